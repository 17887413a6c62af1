package web

import (
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/a-h/templ"

	"autopost/internal/api/rest"
	"autopost/internal/problem"
)

// section is a page of the operations.
type section struct {
	name, icon string
	// role is the lowest role that sees it. "installation" is an owner of the installation.
	role string
}

const installationOwner = "installation"

var sections = []section{
	{"dead", "stop", rest.Viewer}, {"alerts", "warn", rest.Viewer}, {"events", "operations", rest.Viewer}, {"audit", "quote", rest.Operator},
	{"daemons", "send", installationOwner}, {"media", "image", rest.Viewer}, {"files", "code", rest.Viewer},
}

func (s section) path() string { return "/operations/" + s.name }

// sections are the sections of the operations that the person sees.
func (v *view) sections() []section {
	return slices.DeleteFunc(slices.Clone(sections), func(s section) bool {
		if s.role == installationOwner {
			return !v.session.InstallationOwner
		}
		return !v.may(s.role)
	})
}

func (s *server) operationsRoutes(mux *http.ServeMux) {
	mux.HandleFunc("GET /operations", s.signed(s.operations))
	mux.HandleFunc("GET /operations/dead", s.signed(s.dead))
	mux.HandleFunc("POST /operations/dead/{act}", s.signed(s.actOnDead))
	mux.HandleFunc("GET /operations/alerts", s.signed(s.alerts))
	mux.HandleFunc("POST /operations/alerts/{alert_id}/acknowledge", s.signed(s.acknowledge))
	mux.HandleFunc("GET /operations/events", s.signed(s.events))
	mux.HandleFunc("POST /operations/events/{event_id}/raw", s.signed(s.linkRaw))
	mux.HandleFunc("GET /operations/audit", s.signed(s.audit))
	mux.HandleFunc("GET /operations/daemons", s.signed(s.daemons))
	mux.HandleFunc("GET /operations/media", s.signed(s.media))
	mux.HandleFunc("GET /operations/files", s.signed(s.fileJobs))
	mux.HandleFunc("GET /operations/files/{job_id}/{platform}", s.signed(s.fileJob))
	mux.HandleFunc("POST /operations/files/{job_id}/{platform}/{act}", s.signed(s.actOnFileJob))
}

func (s *server) operations(v *view) { v.render(http.StatusOK, operationsPage(v)) }

// show renders a page, or only its part with this id if the browser replaces that.
func (v *view) show(status int, id string, whole, part templ.Component) {
	if v.r.Header.Get("HX-Target") == id {
		whole = part
	}
	v.render(status, whole)
}

// addressOf returns a path with the parameters that have a value.
func addressOf(path string, pairs ...string) string {
	q := url.Values{}
	for pair := range slices.Chunk(pairs, 2) {
		if name, value := pair[0], pair[len(pair)-1]; value != "" {
			q.Set(name, value)
		}
	}
	if len(q) == 0 {
		return path
	}
	return path + "?" + q.Encode()
}

// days sets since and until of a query to the first and the last day of a range in the zone of the reader. fault is what
// is wrong with a date.
func (v *view) days(q url.Values, from, until string) (fault string) {
	for _, d := range []struct {
		name, value string
		days        int
	}{{"since", from, 0}, {"until", until, 1}} {
		if d.value == "" {
			continue
		}
		day, err := time.ParseInLocation(time.DateOnly, d.value, v.zone)
		if err != nil {
			return v.t("posts.date", d.value)
		}
		q.Set(d.name, day.AddDate(0, 0, d.days).Format(time.RFC3339))
	}
	return ""
}

// date is the day that is some days after today, as a field of a form has it.
func (v *view) date(days int) string {
	return v.now.In(v.zone).AddDate(0, 0, days).Format(time.DateOnly)
}

// cursorOf returns the cursor of the next page; "" on the last one.
func (p page[Row]) cursor() string { return text(p.NextCursor) }

// reason returns the reason of a form, or the words for an act without one.
func (v *view) reason(act string) string {
	if given := strings.TrimSpace(v.form.Get("reason")); given != "" {
		return given
	}
	return v.t("reason." + act)
}

// problemOf returns the refusal that an error is; nil for another error.
func problemOf(err error) (p *problem.Problem) {
	_ = errors.As(err, &p) // else p stays nil
	return p
}

// statusOf returns the status of a refusal.
func statusOf(err error) int {
	if p := problemOf(err); p != nil {
		return p.Status
	}
	return http.StatusUnprocessableEntity
}

// isReason reports whether a refusal has this reason.
func isReason(err error, reason string) bool {
	p := problemOf(err)
	return p != nil && p.Reason == reason
}
