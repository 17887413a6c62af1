package web

import (
	"cmp"
	"errors"
	"maps"
	"net/http"
	"net/url"
	"reflect"
	"strings"
	"time"

	"github.com/google/uuid"

	"autopost/internal/problem"
)

// shownOccurrences is how many expected instants the page of a post that repeats shows.
const shownOccurrences = "10"

// recurrenceForm is the page on which a person changes a post that repeats.
type recurrenceForm struct {
	ID      string
	Enabled bool
	When    when
	Zone    string
	// Texts are those of the posts that are taken in turn.
	Texts []string
	// Seen is the last change that the person saw.
	Seen   string
	Faults faults
	// Conflict means that another person changed it meanwhile.
	Conflict bool
	// Next are the next instants; they are those of the form if a dry run made them.
	Next []time.Time
	Dry  bool

	stored recurrenceFields
}

// recurrenceFields are the fields of a post that repeats that the form changes.
type recurrenceFields struct {
	Rule      string           `json:"rule"`
	Zone      string           `json:"zone"`
	StartsAt  string           `json:"starts_at"`
	Payloads  []map[string]any `json:"payloads"`
	Enabled   bool             `json:"enabled"`
	UpdatedAt string           `json:"updated_at"`
}

// readRecurrence reads the post that repeats of the address.
func (v *view) readRecurrence() (f recurrenceForm, err error) {
	f = recurrenceForm{ID: v.r.PathValue("recurrence_id"), Faults: faults{}}
	if uuid.Validate(f.ID) != nil {
		return f, errNotFound
	}
	if err := v.get("/recurrences/"+f.ID, &f.stored); err != nil {
		return f, err
	}
	f.Enabled, f.Zone, f.Seen = f.stored.Enabled, f.stored.Zone, f.stored.UpdatedAt
	f.When.setRule(f.stored.Rule)
	f.When.Date, f.When.Time, _ = strings.Cut(f.stored.StartsAt, "T")
	f.When.Time = f.When.Time[:min(len(f.When.Time), 5)]
	for _, p := range f.stored.Payloads {
		text, _ := p["text"].(string)
		f.Texts = append(f.Texts, text)
	}
	var expected page[struct {
		At     time.Time `json:"at"`
		Status string    `json:"status"`
	}]
	query := url.Values{"since": {v.now.UTC().Format(time.RFC3339)}, "limit": {shownOccurrences}}
	if err := v.get("/recurrences/"+f.ID+"/occurrences?"+query.Encode(), &expected); err != nil {
		return f, err
	}
	for _, o := range expected.Items {
		if o.Status == "expected" {
			f.Next = append(f.Next, o.At)
		}
	}
	if len(f.Next) == 0 && f.Enabled && v.may("editor") { // a new rule is expanded soon
		var answer struct {
			Occurrences []time.Time `json:"occurrences"`
		}
		body := map[string]any{"rule": f.stored.Rule, "reason": v.t("reason.recurrence")}
		if v.call(http.MethodPatch, "/recurrences/"+f.ID+"?dry_run=true", body, &answer) == nil { // else it is one that has ended
			f.Next = answer.Occurrences
		}
	}
	return f, nil
}

// fill replaces the stored fields with those of the form.
func (f *recurrenceForm) fill(form url.Values) {
	f.When = when{clock: clock{form.Get("date"), form.Get("time")}, Every: form.Get("every"), Days: form["day"], Rule: form.Get("rule")}
	f.Zone = strings.TrimSpace(form.Get("zone"))
	seen := form.Get("seen")
	f.Conflict = seen != f.Seen || len(form["text"]) != len(f.Texts)
	for i := range f.Texts {
		f.Texts[i] = strings.ReplaceAll(at(form["text"], i), "\r\n", "\n")
	}
}

// changes are the fields that differ from the stored ones. Other fields of the posts stay.
func (f *recurrenceForm) changes() map[string]any {
	fields := map[string]any{}
	if rule := f.When.rule(); rule != f.stored.Rule {
		fields["rule"] = rule
	}
	if f.Zone != f.stored.Zone {
		fields["zone"] = f.Zone
	}
	if local := f.When.local(); local != f.stored.StartsAt {
		fields["starts_at"] = local
	}
	posts := make([]map[string]any, len(f.stored.Payloads))
	for i, stored := range f.stored.Payloads {
		posts[i] = maps.Clone(stored)
		if posts[i]["text"] = f.Texts[i]; strings.TrimSpace(f.Texts[i]) == "" {
			delete(posts[i], "text")
		}
	}
	if !reflect.DeepEqual(posts, f.stored.Payloads) {
		fields["payloads"] = posts
	}
	return fields
}

// put changes the post that repeats, or says what a change would do.
func (f *recurrenceForm) put(v *view, dry bool) error {
	fields := f.changes()
	if len(fields) == 0 {
		return nil
	}
	fields["reason"] = cmp.Or(v.form.Get("reason"), v.t("reason.recurrence"))
	target := "/recurrences/" + f.ID
	if dry {
		target += "?dry_run=true"
	}
	var answer struct {
		Occurrences []time.Time `json:"occurrences"`
	}
	err := v.call(http.MethodPatch, target, fields, &answer)
	p := (*problem.Problem)(nil)
	switch {
	case errors.As(err, &p) && p.Status == http.StatusUnprocessableEntity && len(p.Errors) > 0:
		f.Faults.addProblem(v, p.Errors)
		f.Next = nil
		return nil
	case err != nil && v.fault(err) != "":
		f.Faults.add("", v.fault(err))
		return nil
	case err != nil:
		return err
	}
	if answer.Occurrences != nil {
		f.Next, f.Dry = answer.Occurrences, true
	}
	return nil
}

func (s *server) recurrence(v *view) {
	f, err := v.readRecurrence()
	if err != nil {
		v.fail(err)
		return
	}
	v.render(http.StatusOK, recurrencePage(v, f))
}

// changeRule stores a form, or shows the instants that it would have. Nothing of a refused form is lost.
func (s *server) changeRule(v *view) {
	act := v.r.PathValue("act")
	if act != "check" && act != "save" {
		v.fail(errNotFound)
		return
	}
	f, err := v.readRecurrence()
	if err != nil {
		v.fail(err)
		return
	}
	f.fill(v.form)
	if act == "check" || !f.Conflict {
		if err := f.put(v, act == "check"); err != nil {
			v.fail(err)
			return
		}
	}
	switch {
	case v.r.Header.Get("HX-Target") == "next":
		v.render(http.StatusOK, expectedPanel(v, f))
	case act == "check":
		v.render(http.StatusOK, recurrencePage(v, f))
	case f.Conflict:
		v.render(http.StatusConflict, recurrencePage(v, f))
	case len(f.Faults) > 0:
		v.render(http.StatusUnprocessableEntity, recurrencePage(v, f))
	default:
		v.done("/calendar/repeats/"+f.ID, "recurrence")
	}
}
