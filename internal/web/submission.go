package web

import (
	"cmp"
	"net/http"

	"github.com/google/uuid"
)

// submissionData is the content of the page of a submission.
type submissionData struct {
	submission

	// Ask means that the page asks before a retry.
	Ask bool
}

func (s *server) submissionRoutes(mux *http.ServeMux) {
	mux.HandleFunc("GET /submissions/{submission_id}", s.signed(s.submission))
	mux.HandleFunc("POST /submissions/{submission_id}/retry", s.signed(s.retrySubmission))
}

func (s *server) submission(v *view) {
	var d submissionData
	id := v.r.PathValue("submission_id")
	if uuid.Validate(id) != nil {
		v.fail(errNotFound)
		return
	}
	if err := v.get("/submissions/"+id, &d.submission); err != nil {
		v.fail(err)
		return
	}
	d.Ask = v.r.URL.Query().Get("ask") == "retry" && d.Status == "failed" && v.may("operator")
	if v.r.Header.Get("HX-Target") == "submission" {
		v.render(http.StatusOK, submissionState(v, d))
		return
	}
	v.render(http.StatusOK, submissionPage(v, d))
}

// retrySubmission fetches the media of a failed submission again.
func (s *server) retrySubmission(v *view) {
	id := v.r.PathValue("submission_id")
	if uuid.Validate(id) != nil {
		v.fail(errNotFound)
		return
	}
	if err := v.post("/submissions/"+id+"/retry", map[string]any{"reason": cmp.Or(v.form.Get("reason"), v.t("reason.retry"))}); err != nil {
		v.fail(err)
		return
	}
	v.done("/submissions/"+id, "submission_retry")
}
