package web

import (
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/google/uuid"

	"autopost/internal/api"
)

// mostPending is how many posts the queue of decisions lists.
const mostPending = 50

// submission is a post that waits for a decision.
type submission struct {
	api.SubmissionRow

	Payload struct {
		Text string `json:"text"`
	} `json:"payload"`
	Plan *struct {
		Renderings []rendering `json:"renderings"`
		Media      []struct {
			Type string `json:"type"`
		} `json:"media"`
	} `json:"plan"`
	Needed    int        `json:"needed"`
	Approvals []approval `json:"approvals"`
}

type rendering struct {
	Platform string `json:"platform"`
	Verdict  string `json:"verdict"`
	Text     string `json:"text"`
	Reason   string `json:"reason"`
	Channels int    `json:"channels"`
}

type approval struct {
	By       string    `json:"by"`
	Decision string    `json:"decision"`
	At       time.Time `json:"at"`
	Void     bool      `json:"void"`
}

// isPending reports whether a decision is still due.
func (s submission) isPending() bool { return s.Decision == nil && s.Status == "pending" }

// approved is how many people approved the post as it is.
func (s submission) approved() int { return approvedOf(s.Approvals) }

// decisionsData is the content of the page of decisions.
type decisionsData struct {
	Queue []api.SubmissionRow
	More  bool
	// Open is nil if nothing waits.
	Open *submission
	// Form is edit or reject if the address asks for that form.
	Form  string
	Fault string
	// Text is the text of the form of an edit.
	Text string
}

func (s *server) decisions(v *view) {
	d, err := v.readDecisions()
	if err != nil {
		v.fail(err)
		return
	}
	v.render(http.StatusOK, decisionsPage(v, d))
}

func (v *view) readDecisions() (decisionsData, error) {
	d := decisionsData{Form: v.r.URL.Query().Get("form")}
	var queue page[api.SubmissionRow]
	if err := v.get("/submissions?status=pending&limit="+num(mostPending), &queue); err != nil {
		return d, err
	}
	d.Queue, d.More = queue.Items, queue.NextCursor != nil
	id := v.r.PathValue("submission_id")
	if id == "" && len(d.Queue) > 0 {
		id = d.Queue[0].SubmissionID
	}
	if id == "" {
		return d, nil
	}
	if uuid.Validate(id) != nil {
		return d, errNotFound
	}
	d.Open = &submission{}
	err := v.get("/submissions/"+id, d.Open)
	d.Text = d.Open.Payload.Text
	return d, err
}

// decide approves, rejects or edits a post.
func (s *server) decide(v *view) {
	id, act, form := v.r.PathValue("submission_id"), v.r.PathValue("act"), v.form
	if uuid.Validate(id) != nil || act != "approve" && act != "reject" && act != "edit" {
		v.fail(errNotFound)
		return
	}
	if act == "approve" && !v.confirmed() {
		return
	}
	reason := strings.TrimSpace(form.Get("reason"))
	if reason == "" {
		reason = v.t("reason." + act)
	}
	body := map[string]any{"reason": reason}
	if act == "edit" {
		body["changes"] = map[string]any{"text": strings.ReplaceAll(form.Get("text"), "\r\n", "\n")}
	} else if digest := form.Get("digest"); digest != "" {
		body["digest"] = digest
	}
	err := v.post("/submissions/"+url.PathEscape(id)+"/"+act, body)
	if err == nil {
		to := "/decisions"
		if act == "edit" {
			to += "/" + id
		}
		v.done(to, act)
		return
	}
	wrong := fault(err)
	if wrong == "" {
		v.fail(err)
		return
	}
	d, failed := v.readDecisions()
	if failed != nil {
		v.fail(failed)
		return
	}
	d.Fault = wrong
	if act != "approve" {
		d.Form, d.Text = act, form.Get("text")
	}
	v.render(http.StatusConflict, decisionsPage(v, d))
}
