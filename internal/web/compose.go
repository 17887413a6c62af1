package web

import (
	"cmp"
	"encoding/json"
	"errors"
	"mime/multipart"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/google/uuid"

	"autopost"
	"autopost/internal/api"
	"autopost/internal/api/rest"
	"autopost/internal/problem"
)

// composeData is the content of the composer.
type composeData struct {
	composed

	Channels  []channel
	Endpoints []pushEndpoint
	Faults    faults
	Plan      *planView
	// Conflict means that another page stored the draft meanwhile.
	Conflict bool
	// Kept means that the draft is stored as the form shows it.
	Kept bool
}

// pushEndpoint is an endpoint that posts of people may use.
type pushEndpoint struct {
	EndpointID string `json:"endpoint_id"`
	Kind       string `json:"kind"`
	Enabled    bool   `json:"enabled"`
	Moderated  bool   `json:"moderated"`
}

// chosen reports whether a channel is one of the only ones.
func (d composeData) chosen(id string) bool {
	for _, c := range d.composed.Channels {
		if c == id {
			return true
		}
	}
	return false
}

// unlisted are the chosen channels that the list does not have.
func (d composeData) unlisted() (ids []string) {
	listed := map[string]bool{}
	for _, c := range d.Channels {
		listed[c.ChannelID] = true
	}
	for _, id := range d.composed.Channels {
		if !listed[id] {
			ids = append(ids, id)
		}
	}
	return ids
}

// isModerated reports whether a person decides about posts of the endpoint.
func (d composeData) isModerated() bool {
	for _, e := range d.Endpoints {
		if e.EndpointID == d.Endpoint {
			return e.Moderated
		}
	}
	return false
}

func (s *server) composeRoutes(mux *http.ServeMux) {
	mux.HandleFunc("GET /compose", s.signed(s.compose))
	mux.HandleFunc("GET /compose/{draft_id}", s.signed(s.compose))
	mux.HandleFunc("POST /compose/{act}", s.signed(s.actOnCompose))
}

// editor answers with a refusal unless the person may write posts.
func (v *view) editor() bool {
	if v.may(rest.Editor) {
		return true
	}
	v.fail(problem.NotAllowed.Says("%s", v.t("compose.role", v.t("role."+v.workspace.Role))))
	return false
}

func (s *server) compose(v *view) {
	if !v.editor() {
		return
	}
	if v.r.URL.Query().Get("view") == "drafts" {
		s.drafts(v)
		return
	}
	d := composeData{composed: v.blank()}
	if id := v.r.PathValue("draft_id"); id != "" {
		submitted, err := v.openDraft(id, &d)
		if err != nil {
			v.fail(err)
			return
		}
		if submitted != "" {
			v.redirect(submitted)
			return
		}
	}
	v.showComposer(http.StatusOK, d)
}

// openDraft reads a draft into the form. submitted is the page of the post that it became.
func (v *view) openDraft(id string, d *composeData) (submitted string, err error) {
	var draft struct {
		EndpointID  string          `json:"endpoint_id"`
		Payload     json.RawMessage `json:"payload"`
		Version     int             `json:"version"`
		UpdatedAt   time.Time       `json:"updated_at"`
		SubmittedAt *time.Time      `json:"submitted_at"`
		Answer      submitAnswer    `json:"answer"`
	}
	if uuid.Validate(id) != nil {
		return "", errNotFound
	}
	if err := v.get("/drafts/"+id, &draft); err != nil {
		return "", err
	}
	if draft.SubmittedAt != nil {
		return draft.Answer.page(""), nil
	}
	var post storedPost
	raw := map[string]any{}
	wrong := (*json.UnmarshalTypeError)(nil)
	if err := json.Unmarshal(draft.Payload, &post); err != nil && !errors.As(err, &wrong) {
		return "", err
	}
	if err := json.Unmarshal(draft.Payload, &raw); err != nil {
		return "", err
	}
	d.composed = v.composedFrom(post, raw)
	d.Draft, d.Version, d.KeptAt, d.Endpoint, d.Kept = id, draft.Version, draft.UpdatedAt, draft.EndpointID, true
	return "", nil
}

// showComposer renders the composer with the lists that it needs and the dry run.
func (v *view) showComposer(status int, d composeData) {
	var channels page[channel]
	err := v.get(channelNames, &channels)
	if err == nil {
		d.Endpoints, err = v.pushEndpoints()
	}
	if err != nil {
		v.fail(err)
		return
	}
	d.Channels = channels.Items
	d.Endpoint = cmp.Or(d.Endpoint, usualEndpoint(d.Endpoints))
	if d.Faults == nil {
		d.Faults = faults{}
	}
	if d.Plan, err = v.planOf(d.composed, d.isModerated()); err != nil {
		v.fail(err)
		return
	}
	v.render(status, composePage(v, d))
}

func (v *view) pushEndpoints() (all []pushEndpoint, err error) {
	var endpoints page[pushEndpoint]
	if err := v.get("/endpoints?limit=200", &endpoints); err != nil {
		return nil, err
	}
	for _, e := range endpoints.Items {
		if e.Kind == "webhook_push" && e.Enabled {
			all = append(all, e)
		}
	}
	return all, nil
}

// usualEndpoint is the endpoint of a post that names none: the first whose posts go out at once.
func usualEndpoint(all []pushEndpoint) string {
	for _, e := range all {
		if !e.Moderated {
			return e.EndpointID
		}
	}
	if len(all) > 0 {
		return all[0].EndpointID
	}
	return ""
}

// actOnCompose keeps, plans, publishes or deletes a draft, or adds media to it.
func (s *server) actOnCompose(v *view) {
	if !v.editor() {
		return
	}
	act := v.r.PathValue("act")
	if act == "upload" {
		v.upload()
		return
	}
	stored, err := v.storeAll()
	d := composeData{composed: composedOf(v.form), Faults: faults{}}
	d.Media = append(d.Media, stored...)
	if err != nil {
		v.refusedPost(d, "media", err)
		return
	}
	switch act {
	case "plan":
		v.showPlan(d)
	case "save":
		v.save(d)
	case "submit":
		v.submit(d)
	case "remove":
		if err := v.removeDraft(d.Draft); err != nil {
			v.fail(err)
			return
		}
		v.done("/compose?view=drafts", "draft_removed")
	default:
		v.fail(errNotFound)
	}
}

func (v *view) removeDraft(id string) error {
	if uuid.Validate(id) != nil {
		return errNotFound
	}
	return v.call(http.MethodDelete, "/drafts/"+id, nil, nil)
}

// refusedPost shows the composer again with everything that the form had, and the errors beside their fields.
func (v *view) refusedPost(d composeData, section string, err error) {
	p, wrong := (*problem.Problem)(nil), (*autopost.ArgumentError)(nil)
	switch {
	case errors.As(err, &p) && p.Status < http.StatusInternalServerError && len(p.Errors) > 0 && section == "":
		d.Faults.addProblem(v, p.Errors)
	case errors.As(err, &p) && p.Status < http.StatusInternalServerError, errors.As(err, &wrong):
		d.Faults.add(section, v.fault(err))
	default:
		v.fail(err)
		return
	}
	v.showComposer(http.StatusUnprocessableEntity, d)
}

// keep stores the draft. A conflict with another page leaves the stored draft as it is.
func (v *view) keep(d *composeData) error {
	body := map[string]any{"payload": d.payload()}
	if d.Endpoint != "" {
		body["endpoint_id"] = d.Endpoint
	}
	method, target := http.MethodPost, "/drafts"
	if d.Draft != "" {
		if uuid.Validate(d.Draft) != nil {
			return errNotFound
		}
		method, target = http.MethodPatch, "/drafts/"+d.Draft
		if d.Version > 0 && v.form.Get("mine") == "" {
			body["version"] = d.Version
		}
	}
	var answer struct {
		DraftID string `json:"draft_id"`
		Version int    `json:"version"`
	}
	err := v.call(method, target, body, &answer)
	if p := (*problem.Problem)(nil); errors.As(err, &p) && p.Reason == "changed" {
		d.Conflict = true
		return err
	}
	if err == nil {
		d.Draft, d.Version, d.KeptAt, d.Kept = answer.DraftID, answer.Version, v.now, true
	}
	return err
}

// save keeps the draft. A script gets the line that says so; without one the page is shown again.
func (v *view) save(d composeData) {
	isPart := v.r.Header.Get("HX-Request") != "" || v.form.Get("leave") != ""
	if d.Draft == "" && d.isEmpty() && isPart {
		v.w.WriteHeader(http.StatusNoContent)
		return
	}
	isNew := d.Draft == ""
	err := v.keep(&d)
	switch {
	case isPart && (err == nil || d.Conflict):
		if isNew && err == nil {
			v.w.Header().Set("HX-Replace-Url", "/compose/"+d.Draft)
		}
		v.render(http.StatusOK, keptLine(v, d))
	case d.Conflict:
		v.showComposer(http.StatusConflict, d)
	case err != nil:
		v.refusedPost(d, "", err)
	default:
		v.done("/compose/"+d.Draft, "draft_kept")
	}
}

// submitAnswer is the answer to a submit.
type submitAnswer struct {
	Status       string `json:"status"`
	MessageID    string `json:"message_id"`
	SubmissionID string `json:"submission_id"`
}

// page is the page of what the post became.
func (a submitAnswer) page(done string) string {
	to := "/posts"
	if a.MessageID != "" {
		to += "/" + a.MessageID
	} else if a.SubmissionID != "" {
		to = "/submissions/" + a.SubmissionID
	}
	if done != "" {
		to += "?done=" + done
	}
	return to
}

// submit publishes the post, or stores its schedule. Nothing of the form is lost if it is refused.
func (v *view) submit(d composeData) {
	if d.Faults = d.check(v); len(d.Faults) > 0 {
		v.showComposer(http.StatusUnprocessableEntity, d)
		return
	}
	if err := v.keep(&d); err != nil {
		if d.Conflict {
			v.showComposer(http.StatusConflict, d)
			return
		}
		v.refusedPost(d, "", err)
		return
	}
	if d.When.Kind == "repeat" {
		v.submitRepeat(d)
		return
	}
	var answer submitAnswer
	if err := v.call(http.MethodPost, "/drafts/"+d.Draft+"/submit", nil, &answer); err != nil {
		v.refusedPost(d, "", err)
		return
	}
	v.redirect(answer.page("posted_" + cmp.Or(answer.Status, "enqueued")))
}

// submitRepeat makes a recurrence of the draft.
func (v *view) submitRepeat(d composeData) {
	payload := d.payload()
	delete(payload, repeatField)
	delete(payload, "remove_at")
	err := v.post("/recurrences", map[string]any{
		"endpoint_id": d.Endpoint, "rule": d.When.rule(), "zone": d.zone().String(), "starts_at": d.When.local(), "payloads": []any{payload}, "reason": v.t("reason.repeat"),
	})
	if err != nil {
		v.refusedPost(d, "", err)
		return
	}
	if err := v.removeDraft(d.Draft); err != nil {
		v.fail(err)
		return
	}
	v.done("/calendar", "repeats")
}

// upload stores files and answers with their rows for the form.
func (v *view) upload() {
	stored, err := v.storeAll()
	if err != nil {
		text := v.fault(err)
		if text == "" {
			v.fail(err)
			return
		}
		v.render(http.StatusUnprocessableEntity, problemNote(text))
		return
	}
	v.render(http.StatusOK, mediumRows(v, stored, faults{}))
}

// storeAll uploads the files of a form. With an error it returns those before.
func (v *view) storeAll() (all []composedMedium, err error) {
	err = v.eachFile(func(file *multipart.Part) error {
		m, err := v.store(file)
		if err == nil {
			all = append(all, m)
		}
		return err
	})
	return all, err
}

// store uploads one file of a form.
func (v *view) store(file *multipart.Part) (composedMedium, error) {
	kind := kindOf(file.Header.Get("Content-Type"))
	var answer struct {
		BlobRef string `json:"blob_ref"`
		Width   int    `json:"width"`
		Height  int    `json:"height"`
	}
	if err := v.call(http.MethodPost, "/media?kind="+url.QueryEscape(kind), file, &answer); err != nil {
		return composedMedium{}, err
	}
	meta := map[string]any{"filename": file.FileName()}
	if answer.Width > 0 && answer.Height > 0 {
		meta["width"], meta["height"] = answer.Width, answer.Height
	}
	return composedMedium{Fields: map[string]any{"type": kind, "blob_ref": answer.BlobRef, "meta": meta}}, nil
}

// kindOf returns the use of a medium of this content type.
func kindOf(contentType string) string {
	kind, form, _ := strings.Cut(contentType, "/")
	switch {
	case kind == "image" && form == "gif":
		return string(autopost.MediaAnimation)
	case kind == "image" && (form == "svg+xml" || form == "svg"):
		return string(autopost.MediaFile)
	case kind == "image", kind == "video", kind == "audio":
		return kind
	}
	return string(autopost.MediaFile)
}

// drafts shows the posts that the person has not submitted.
func (s *server) drafts(v *view) {
	var list page[api.DraftRow]
	cursor := v.r.URL.Query().Get("cursor")
	target := "/drafts?limit=50"
	if cursor != "" {
		target += "&cursor=" + url.QueryEscape(cursor)
	}
	if err := v.get(target, &list); err != nil {
		v.fail(err)
		return
	}
	v.render(http.StatusOK, draftsPage(v, list))
}
