package web

import (
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

// jobStatuses are the statuses of file jobs.
var jobStatuses = []string{"waiting", "approved", "publishing", "published", "rejected", "failed", "unknown"}

// fileJobRow is a file job in the list.
type fileJobRow struct {
	JobID       string     `json:"job_id"`
	Platform    string     `json:"platform"`
	SourceID    string     `json:"source_id"`
	Status      string     `json:"status"`
	Title       *string    `json:"title"`
	Digest      *string    `json:"digest"`
	Error       *failure   `json:"error"`
	DeliveryID  *string    `json:"delivery_id"`
	PostURL     *string    `json:"post_url"`
	PublishedAt *time.Time `json:"published_at"`
	Imported    bool       `json:"imported"`
	UpdatedAt   time.Time  `json:"updated_at"`
}

func (j fileJobRow) path() string {
	return "/operations/files/" + url.PathEscape(j.JobID) + "/" + url.PathEscape(j.Platform)
}

// postURL returns the address of the published post; "" if it has none that may be a link.
func (j fileJobRow) postURL() string { return safeURL(text(j.PostURL)) }

// safeURL returns a stored address if it is an https address with a host, else "".
func safeURL(stored string) string {
	at, err := url.Parse(stored)
	if err != nil || at.Scheme != "https" || at.Host == "" {
		return ""
	}
	return at.String()
}

func (j fileJobRow) name() string {
	if text(j.Title) != "" {
		return *j.Title
	}
	return j.JobID
}

// fileJobList is a page of file jobs.
type fileJobList struct {
	Status string
	Rows   page[fileJobRow]
	Fault  string
}

func (s *server) fileJobs(v *view) {
	q := v.r.URL.Query()
	list := fileJobList{Status: q.Get("status")}
	if !slices.Contains(jobStatuses, list.Status) {
		list.Status = ""
	}
	status := http.StatusOK
	if err := v.get(addressOf("/filebus/jobs", "limit", "50", "status", list.Status, "cursor", q.Get("cursor")), &list.Rows); v.fault(err) != "" {
		list.Fault, status = v.fault(err), http.StatusUnprocessableEntity
	} else if err != nil {
		v.fail(err)
		return
	}
	v.show(status, "files", fileJobsPage(v, list), fileJobsPanel(v, list))
}

// fileJobData is the content of the page of a file job.
type fileJobData struct {
	fileJobRow

	Payload   json.RawMessage            `json:"payload"`
	Artifacts map[string]json.RawMessage `json:"artifacts"`
	Needed    int                        `json:"needed"`
	Approvals []approval                 `json:"approvals"`
	Now       struct {
		Sentence string `json:"sentence"`
		Lifts    string `json:"lifts"`
	} `json:"now"`

	// Form is reject or prepare if the address asks for that form.
	Form  string     `json:"-"`
	Fault string     `json:"-"`
	Given url.Values `json:"-"`
}

// acts are the acts that fit the status of the job.
func (d fileJobData) acts(v *view) (all []string) {
	if v.may("approver") && slices.Contains([]string{"unseen", "waiting", "failed"}, d.Status) {
		all = append(all, "approve", "reject")
	}
	if v.may("editor") && d.Status == "unseen" {
		all = append(all, "prepare")
	}
	return all
}

func (v *view) readFileJob() (fileJobData, error) {
	d := fileJobData{Form: v.r.URL.Query().Get("form"), Given: url.Values{}}
	at := fileJobRow{JobID: v.r.PathValue("job_id"), Platform: v.r.PathValue("platform")}
	err := v.get(strings.Replace(at.path(), "/operations/files", "/filebus/jobs", 1), &d)
	return d, err
}

func (s *server) fileJob(v *view) {
	d, err := v.readFileJob()
	if err != nil {
		v.fail(err)
		return
	}
	v.show(http.StatusOK, "job", fileJobPage(v, d), fileJobPanel(v, d))
}

// jobFields are the fields of a payload that the page asks for, and where they are in the body.
var jobFields = []struct{ name, in string }{
	{"title", "publish_config"}, {"description", "publish_config"}, {"privacy", "publish_config"}, {"video", "artifact_pointers"}, {"subtitles", "artifact_pointers"}, {"thumbnail", "artifact_pointers"},
}

// preparation is the body that prepares a job from the fields of a form.
func preparation(form url.Values) map[string]any {
	body := map[string]any{"publish_config": map[string]any{}, "artifact_pointers": map[string]any{}}
	for _, f := range jobFields {
		if value := strings.TrimSpace(form.Get(f.name)); value != "" {
			body[f.in].(map[string]any)[f.name] = value
		}
	}
	if tags := strings.FieldsFunc(form.Get("tags"), func(r rune) bool { return r == ',' }); len(tags) > 0 {
		for i := range tags {
			tags[i] = strings.TrimSpace(tags[i])
		}
		body["publish_config"].(map[string]any)["tags"] = tags
	}
	return body
}

// actOnFileJob approves, rejects or prepares a file job.
func (s *server) actOnFileJob(v *view) {
	act, form := v.r.PathValue("act"), v.form
	if act != "approve" && act != "reject" && act != "prepare" {
		v.fail(errNotFound)
		return
	}
	if act == "approve" && !v.confirmed() {
		return
	}
	body := map[string]any{}
	if act == "prepare" {
		body = preparation(form)
	} else if digest := form.Get("digest"); digest != "" {
		body["digest"] = digest
	}
	body["reason"] = v.reason(act)
	at := fileJobRow{JobID: v.r.PathValue("job_id"), Platform: v.r.PathValue("platform")}
	err := v.post(strings.Replace(at.path(), "/operations/files", "/filebus/jobs", 1)+"/"+act, body)
	if err == nil {
		v.done(at.path(), "job_"+act)
		return
	}
	wrong := v.fault(err)
	d, failed := v.readFileJob()
	if wrong == "" || failed != nil {
		v.fail(err)
		return
	}
	d.Fault, d.Given = wrong, form
	if act != "approve" {
		d.Form = act
	}
	v.render(statusOf(err), fileJobPage(v, d))
}
