package web

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"autopost/internal/api"
)

// mostPending is how many posts a page of the queue lists.
const mostPending = 50

// submission is a post that waits for a decision.
type submission struct {
	api.SubmissionRow

	Payload struct {
		Text         string `json:"text"`
		ScheduledFor string `json:"scheduled_for"`
	} `json:"payload"`
	Plan *struct {
		Renderings []rendering      `json:"renderings"`
		Media      []decisionMedium `json:"media"`
	} `json:"plan"`
	Needed    int        `json:"needed"`
	Approvals []approval `json:"approvals"`
}

type rendering struct {
	Platform string   `json:"platform"`
	Verdict  string   `json:"verdict"`
	Text     string   `json:"text"`
	Reason   string   `json:"reason"`
	Channels int      `json:"channels"`
	IDs      []string `json:"channel_ids"`
}

// named are the channels of a rendering in words.
func (r rendering) named() string {
	names := strings.Join(r.IDs[:min(len(r.IDs), 3)], ", ")
	if r.Channels > 3 {
		names += ", …"
	}
	return names
}

// decisionMedium is a medium of a post that waits.
type decisionMedium struct {
	Type    string `json:"type"`
	BlobRef string `json:"blob_ref"`
	Alt     string `json:"alt"`
	Caption string `json:"caption"`
}

// isPicture reports whether the page shows its content.
func (m decisionMedium) isPicture() bool {
	return m.Type == "image" && strings.HasPrefix(m.BlobRef, "sha256:")
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

// at is the time that the post states for itself; nil for at once.
func (s submission) at() *time.Time {
	at, err := time.Parse(time.RFC3339, s.Payload.ScheduledFor)
	if err != nil {
		return nil
	}
	return &at
}

// decisionsData is the content of the page of decisions.
type decisionsData struct {
	// View is "" for one decision beside the queue, queue or history.
	View   string
	Queue  page[api.SubmissionRow]
	Cursor string
	// Open is nil if nothing waits.
	Open *submission
	// Form is edit or reject if the address asks for that form.
	Form  string
	Fault string
	// Text and Reason are what the form of an edit or of a rejection has.
	Text, Reason string
	// Decided is the post that the person decided just before.
	Decided string
	// Skip is how many deliveries of the decided post have not begun.
	Skip int
}

// place is the position of the open post in the queue; -1 if it is not there.
func (d decisionsData) place() int {
	return slices.IndexFunc(d.Queue.Items, func(s api.SubmissionRow) bool { return d.Open != nil && s.SubmissionID == d.Open.SubmissionID })
}

// neighbour is the post that is some places away in the queue; "" if there is none.
func (d decisionsData) neighbour(by int) string {
	at := d.place()
	if at < 0 {
		if by < 0 || len(d.Queue.Items) == 0 {
			return ""
		}
		return d.Queue.Items[0].SubmissionID
	}
	if at += by; at < 0 || at >= len(d.Queue.Items) {
		return ""
	}
	return d.Queue.Items[at].SubmissionID
}

// following is the post that opens after a decision.
func (d decisionsData) following() string {
	if next := d.neighbour(1); next != "" {
		return next
	}
	return d.neighbour(-1)
}

// target is the address of a post in this page of the queue.
func (d decisionsData) target(id string, pairs ...string) string {
	return addressOf("/decisions/"+id, append(pairs, "cursor", d.Cursor)...)
}

func (s *server) decisions(v *view) {
	d, err := v.readDecisions()
	if err != nil {
		v.fail(err)
		return
	}
	switch d.View {
	case "queue", "history":
		v.show(http.StatusOK, "queue", decisionListPage(v, d), queuePart(v, d))
	default:
		v.render(http.StatusOK, decisionsPage(v, d))
	}
}

func (v *view) readDecisions() (decisionsData, error) {
	q := v.r.URL.Query()
	d := decisionsData{Form: q.Get("form"), View: q.Get("view"), Cursor: q.Get("cursor"), Decided: q.Get("decided")}
	if uuid.Validate(d.Decided) != nil {
		d.Decided = ""
	}
	which := []string{"status", "pending"}
	if d.View == "history" {
		which = []string{"decided", "true"}
	}
	if err := v.get(addressOf("/submissions", append(which, "limit", num(mostPending), "cursor", d.Cursor)...), &d.Queue); err != nil {
		return d, err
	}
	id := v.r.PathValue("submission_id")
	if id == "" && d.View == "" && len(d.Queue.Items) > 0 {
		id = d.Queue.Items[0].SubmissionID
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
	if err == nil && d.Open.MessageID != nil && v.may("operator") {
		d.Skip, err = v.notBegun(*d.Open.MessageID)
	}
	return d, err
}

// notBegun counts the deliveries of a post that a person can still skip.
func (v *view) notBegun(message string) (int, error) {
	var post struct {
		Counts counted `json:"counts"`
	}
	err := v.get("/posts/"+message, &post)
	if v.fault(err) != "" { // it is not there any more
		return 0, nil
	}
	return post.Counts.of("queued", "retry"), err
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
	body := map[string]any{"reason": v.reason(act)}
	if act == "edit" {
		body["changes"] = map[string]any{"text": strings.ReplaceAll(form.Get("text"), "\r\n", "\n")}
	} else if digest := form.Get("digest"); digest != "" {
		body["digest"] = digest
	}
	err := v.post("/submissions/"+url.PathEscape(id)+"/"+act, body)
	if err == nil {
		v.decided(id, act)
		return
	}
	wrong := v.fault(err)
	if wrong == "" {
		v.fail(err)
		return
	}
	d, failed := v.readDecisions()
	if failed != nil {
		v.fail(failed)
		return
	}
	switch {
	case d.Open != nil && d.Open.Decision != nil: // the page says who decided
	case isReason(err, "digest_changed"):
		d.Fault = v.t("decisions.changed")
	default:
		d.Fault = wrong
	}
	if act != "approve" {
		d.Form, d.Text, d.Reason = act, form.Get("text"), form.Get("reason")
	}
	v.render(statusOf(err), decisionsPage(v, d))
}

// decided opens the next post after a decision. The decided one stays reachable.
func (v *view) decided(id, act string) {
	next, cursor := v.form.Get("next"), v.form.Get("cursor")
	if act == "edit" {
		next = id
	}
	to := "/decisions"
	if uuid.Validate(next) == nil {
		to += "/" + next
	}
	pairs := []string{"cursor", cursor}
	if act != "edit" && v.form.Has("next") {
		pairs = append(pairs, "decided", id)
	}
	v.done(addressOf(to, pairs...), act)
}

// number is the number of a post in the queue, from 1.
func (d decisionsData) number() int { return d.place() + 1 }
