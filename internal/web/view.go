package web

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/a-h/templ"

	"autopost"
	"autopost/internal/api/rest"
	"autopost/internal/problem"
)

const (
	// maxForm limits a form in bytes.
	maxForm = 1 << 20
	// Cookies with what a person chose. They are no secrets.
	themeCookie, languageCookie, zoneCookie, workspaceCookie, keysCookie = "autopost-theme", "autopost-language", "autopost-zone", "autopost-workspace", "autopost-keys"
)

var (
	errNotFound = problem.UnknownPath.Says("This page does not exist.")
	errOrigin   = problem.NotAllowed.Says("The form came from another site. Open the page again and repeat it there.")
)

// view is one request with the person who made it.
type view struct {
	s *server
	w http.ResponseWriter
	r *http.Request

	// session is nil on pages that everyone may open.
	session   *Session
	token     string
	workspace Membership

	words *language
	zone  *time.Location
	theme string
	now   time.Time
	// refresh is set while the page is rendered again after a change.
	refresh *refresh
	// form are the fields of a form, read by sound.
	form url.Values
	// sums is the summary of the workspace, once it was read.
	sums *summary
	// parts are what is left of a form with files.
	parts *parts
	// names are the members of the workspace by their id, once they were read.
	names map[string]string
}

// open serves a page that needs no session.
func (s *server) open(serve func(v *view)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		v := s.view(w, r)
		if v.sound() {
			serve(v)
		}
	}
}

// signed serves a page for a person with a session.
func (s *server) signed(serve func(v *view)) http.HandlerFunc {
	return s.open(func(v *view) {
		if err := v.resolve(); err != nil {
			v.fail(err)
			return
		}
		switch {
		case v.session == nil && v.safe():
			v.redirect("/login?next=" + url.QueryEscape(v.r.URL.RequestURI()))
		case v.session == nil:
			v.render(http.StatusUnauthorized, loginPage(v, loginForm{Fault: v.t("login.ended"), Next: v.back()}))
		case !v.safe() && !v.hasToken():
			v.fail(errOrigin)
		case len(v.session.Workspaces) == 0:
			v.fail(problem.NotAllowed.Says("%s", v.t("error.no_workspace")))
		default:
			v.choose()
			serve(v)
		}
	})
}

func (s *server) view(w http.ResponseWriter, r *http.Request) *view {
	v := &view{s: s, w: w, r: r, zone: time.UTC, now: time.Now()}
	v.refresh, _ = r.Context().Value(refreshKey{}).(*refresh)
	v.words = languageOf(v.cookie(languageCookie), r.Header.Get("Accept-Language"))
	if theme := v.cookie(themeCookie); theme == "light" || theme == "dark" {
		v.theme = theme
	}
	if name, err := url.QueryUnescape(v.cookie(zoneCookie)); err == nil && name != "" && name != "Local" {
		if zone, err := time.LoadLocation(name); err == nil {
			v.zone = zone
		}
	}
	return v
}

// sound checks a form before anything else: its origin and its size. It answers and returns false if a check fails.
func (v *view) sound() bool {
	if v.safe() {
		return true
	}
	if v.s.origin.Check(v.r) != nil {
		v.fail(errOrigin)
		return false
	}
	if v.hasFiles() {
		return v.readParts()
	}
	v.r.Body = http.MaxBytesReader(v.w, v.r.Body, maxForm)
	if err := v.parse(); err != nil {
		v.fail(problem.TooLarge.Says("%s", v.t("error.form")))
		return false
	}
	v.form = v.r.PostForm //nolint:forbidigo // the fields of a form that was received; the rule is about requests that are sent
	return true
}

// parse reads a form. A file becomes the value of its field, so that a form with a file is like any other.
func (v *view) parse() error {
	if !strings.HasPrefix(v.r.Header.Get("Content-Type"), "multipart/form-data") {
		return v.r.ParseForm()
	}
	if err := v.r.ParseMultipartForm(maxForm); err != nil { //nolint:gosec // sound has limited the body
		return err
	}
	for name, uploaded := range v.r.MultipartForm.File {
		file, err := uploaded[0].Open()
		if err != nil {
			return err
		}
		text, err := io.ReadAll(file)
		_ = file.Close() // it was only read
		if err != nil {
			return err
		}
		if len(text) > 0 {
			v.r.PostForm.Set(name, string(text)) //nolint:forbidigo // the fields of a form that was received
		}
	}
	return nil
}

func (v *view) safe() bool { return v.r.Method == http.MethodGet || v.r.Method == http.MethodHead }

// choose selects the workspace of the request: the one in the cookie, else the first.
func (v *view) choose() {
	if v.refresh != nil {
		v.workspace = v.refresh.workspace
		return
	}
	wanted := v.cookie(workspaceCookie)
	v.workspace = v.session.Workspaces[0]
	if at := slices.IndexFunc(v.session.Workspaces, func(m Membership) bool { return url.QueryEscape(m.WorkspaceID) == wanted }); at >= 0 {
		v.workspace = v.session.Workspaces[at]
	}
}

func (v *view) cookie(name string) string {
	c, err := v.r.Cookie(name)
	if err != nil {
		return ""
	}
	return c.Value
}

// remember stores a choice of the person for a year; "" forgets it.
func (v *view) remember(name, value string) {
	age := 365 * 24 * 60 * 60
	if value == "" {
		age = -1
	}
	http.SetCookie(v.w, &http.Cookie{Name: name, Value: value, Path: "/", MaxAge: age, SameSite: http.SameSiteLaxMode, HttpOnly: true, Secure: v.r.TLS != nil}) //nolint:gosec // no secret; a browser on plain HTTP keeps it, too
}

// may reports whether the person has this role, or a higher one.
func (v *view) may(role string) bool { return rest.Key{Role: v.workspace.Role}.May(role) }

func (v *view) caller() rest.Key {
	return rest.Key{WorkspaceID: v.workspace.WorkspaceID, UserID: v.session.UserID, Name: v.session.Name, Role: v.workspace.Role,
		InstallationOwner: v.session.InstallationOwner, Confirmed: v.session.Confirmed,
		SessionID: v.session.SessionID, SessionHash: TokenHash(v.token)}
}

// act returns the action of the person for functions without an operation.
func (v *view) act(reason string) rest.OperatorAction {
	return rest.OperatorAction{Workspace: v.workspace.WorkspaceID, Operator: "user:" + v.session.UserID, Reason: reason}
}

// get reads an operation into a value.
func (v *view) get(target string, into any) error { return v.call(http.MethodGet, target, nil, into) }

// post runs an operation that changes something.
func (v *view) post(target string, body any) error {
	return v.call(http.MethodPost, target, body, nil)
}

func (v *view) call(method, target string, body, into any) error {
	run := func(ctx context.Context) (json.RawMessage, error) {
		return v.s.API.Call(ctx, v.caller(), method, "/api/v1"+target, body)
	}
	answer, err := v.read(method, target, run)
	if err != nil || into == nil {
		return err
	}
	if err := json.Unmarshal(answer, into); err != nil {
		return fmt.Errorf("read the answer of %s: %w", target, err)
	}
	return nil
}

// read runs an operation. Pages that are rendered again after a change share its answer.
func (v *view) read(method, target string, run func(context.Context) (json.RawMessage, error)) (json.RawMessage, error) {
	if v.refresh == nil || method != http.MethodGet {
		return run(v.r.Context())
	}
	answer, err := v.s.live.read(v.r.Context(), v.refresh.at, v.caller(), target, run)
	if errors.Is(err, errDeferred) {
		v.refresh.deferred = true
	}
	return answer, err
}

// list reads rows of a function without an operation.
func (v *view) list(function string, limit int, into any) error {
	all, err := v.read(http.MethodGet, function, func(ctx context.Context) (json.RawMessage, error) {
		rows, err := v.s.Store.List(ctx, rest.Query{Function: function, Workspace: v.workspace.WorkspaceID, Limit: limit})
		if err != nil {
			return nil, err
		}
		return json.Marshal(rows)
	})
	if err != nil {
		return fmt.Errorf("read %s: %w", function, err)
	}
	return json.Unmarshal(all, into)
}

func (v *view) render(status int, page templ.Component) {
	v.w.Header().Set("Content-Type", "text/html; charset=utf-8")
	v.w.WriteHeader(status)
	if err := page.Render(v.r.Context(), v.w); err != nil && !errors.Is(err, context.Canceled) {
		v.s.Log.WarnContext(v.r.Context(), "web.page_not_written", "path", v.r.URL.Path, "error", err)
	}
}

func (v *view) redirect(to string) { http.Redirect(v.w, v.r, to, http.StatusSeeOther) } //nolint:gosec // local has checked what a request names

// done redirects after a change, to a page that says what was done.
func (v *view) done(to, what string) {
	joint := "?"
	if strings.Contains(to, "?") {
		joint = "&"
	}
	v.redirect(to + joint + "done=" + what)
}

// fail answers with an error as a page.
func (v *view) fail(err error) {
	p := (*problem.Problem)(nil)
	wrong := (*autopost.ArgumentError)(nil)
	switch {
	case v.refresh != nil && v.refresh.deferred:
		v.w.WriteHeader(http.StatusTooManyRequests)
		return // the page is rendered again later
	case errors.As(err, &p):
	case errors.As(err, &wrong):
		p = problem.WrongRequest.Says("%s", v.faultOf(wrong))
	case errors.Is(v.r.Context().Err(), context.Canceled):
		return // the browser is gone
	default:
		v.s.Log.ErrorContext(v.r.Context(), "web.unavailable", "path", v.r.URL.Path, "error", err)
		p = problem.Unavailable.Says("%s", v.t("error.unavailable"))
	}
	if p.Status == http.StatusServiceUnavailable {
		v.w.Header().Set("Retry-After", rest.RetrySeconds)
	}
	v.render(p.Status, errorPage(v, p))
}

// refusal says why something was not done, in the language of the person. detail is what the API said in English; "" if
// that is the same.
func (v *view) refusal(p *problem.Problem) (said, detail string) {
	key := "refused." + p.Reason
	if strings.HasPrefix(p.Reason, "unknown_") {
		key = cmp.Or(known(v, key), "refused.unknown")
	}
	if text, found := v.words.words[key]; found && (p.Decision == nil || v.words.code != "en") {
		return text, ""
	}
	if !isASCII(p.Detail) { // pages say their own refusals in the language of the person
		return p.Detail, ""
	}
	if said, lang := v.said("problem."+typeOf(p), p.Detail); lang != "en" {
		return said, p.Detail
	}
	return p.Detail, ""
}

// said returns the text of a refusal in the language of the person, else the English one of the API.
func (v *view) said(key, english string) (said, lang string) {
	if text, found := refusalTexts[v.words.code][key]; found {
		return text, v.words.code
	}
	return english, "en"
}

// known returns a key that has words; "" for another.
func known(v *view, key string) string {
	if _, found := v.words.words[key]; found {
		return key
	}
	return ""
}

func isASCII(text string) bool {
	return !strings.ContainsFunc(text, func(r rune) bool { return r > unicode.MaxASCII })
}

// faultOf is a wrong argument in words.
func (v *view) faultOf(e *autopost.ArgumentError) string {
	if v.words.code != "en" {
		return v.sentence(e.Argument, problem.Fault{Field: e.Argument, Reason: e.Reason, Remedy: e.Remedy})
	}
	text := e.Argument + " " + e.Reason + "."
	if e.Remedy != "" {
		text += " " + strings.ToUpper(e.Remedy[:1]) + strings.TrimSuffix(e.Remedy[1:], ".") + "."
	}
	return text
}

// sentence is a field error in words. In another language than English it is that of the rule.
func (v *view) sentence(field string, e problem.Fault) string {
	if v.words.code != "en" {
		return v.or("field."+field, field) + ": " + lowerFirst(v.faultWords(e))
	}
	return strings.TrimSpace(fmt.Sprintf("%s %s: %s.", field, e.Reason, e.Remedy))
}

// detailOf is the rule and the remedy of a field error, without the field.
func (v *view) detailOf(e problem.Fault) string {
	if v.words.code != "en" {
		return v.faultWords(e)
	}
	return strings.TrimSpace(e.Reason) + ". " + sentenceOf(e.Remedy)
}

// fault returns the words for an error that belongs into the form of the page; "" if it does not.
func (v *view) fault(err error) string {
	p := (*problem.Problem)(nil)
	wrong := (*autopost.ArgumentError)(nil)
	switch {
	case errors.As(err, &wrong):
		return v.faultOf(wrong)
	case !errors.As(err, &p) || p.Status >= http.StatusInternalServerError:
		return ""
	}
	if len(p.Errors) == 0 {
		said, _ := v.refusal(p)
		return said
	}
	var all []string
	for _, e := range p.Errors {
		all = append(all, v.sentence(e.Field, e))
	}
	return strings.Join(all, " ")
}

// notFound answers that a page does not exist.
func (s *server) notFound(w http.ResponseWriter, r *http.Request) { s.view(w, r).fail(errNotFound) }

// back returns the page that a form came from, as a path of this site.
func (v *view) back() string {
	from, err := url.Parse(v.r.Referer())
	if err != nil || from.Host != v.r.Host {
		return "/"
	}
	return local(from.RequestURI())
}

// local returns a path of this site, and "/" for anything else.
func local(target string) string {
	u, err := url.Parse(target)
	if err != nil || u.Scheme != "" || u.Host != "" || !strings.HasPrefix(target, "/") || strings.HasPrefix(target, "//") || strings.ContainsAny(target, "\\\n\r\t") {
		return "/"
	}
	return target
}

// mostNames is how many people of a workspace a page knows by name.
const mostNames = 500

// nameOf returns the name of an operator: a person of the workspace by name, others as they are.
func (v *view) nameOf(operator string) string {
	id, isPerson := strings.CutPrefix(operator, "user:")
	if !isPerson {
		return operator
	}
	if v.names == nil {
		v.names = map[string]string{}
		var members []member
		if v.list("list_members", mostNames, &members) == nil {
			for _, m := range members {
				v.names[m.UserID] = m.Name
			}
		}
	}
	if name, known := v.names[id]; known {
		return name
	}
	return operator
}

// problemStatus and problemReason are those of the problem in an error; zero without one.
func problemStatus(err error) int {
	if p := (*problem.Problem)(nil); errors.As(err, &p) {
		return p.Status
	}
	return 0
}

func problemReason(err error) string {
	if p := (*problem.Problem)(nil); errors.As(err, &p) {
		return p.Reason
	}
	return ""
}
