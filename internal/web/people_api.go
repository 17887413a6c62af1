package web

import (
	"context"
	"net/http"

	"autopost/internal/api"
	"autopost/internal/api/rest"
	"autopost/internal/problem"
)

// apiPeople signs people in for the API, under the same limits as the pages.
type apiPeople struct{ s *server }

// People returns what the API needs to sign people in.
func People(deps Deps) api.People { return apiPeople{newServer(deps)} }

// answerHeader collects the headers of an answer that another handler writes.
type answerHeader struct{ header http.Header }

func (a answerHeader) Header() http.Header       { return a.header }
func (answerHeader) Write(p []byte) (int, error) { return len(p), nil }
func (answerHeader) WriteHeader(int)             {}
func (p apiPeople) view(r *http.Request) *view   { return p.s.view(answerHeader{http.Header{}}, r) }
func refusedProblem(status int, text string) error {
	kind := problem.UnknownKey
	switch status {
	case http.StatusTooManyRequests:
		kind = problem.WrongSecrets
	case http.StatusForbidden:
		kind = problem.NotAllowed
	}
	return kind.Says("%s", text)
}

// SignIn implements api.People.
func (p apiPeople) SignIn(r *http.Request, email, password string) (api.SignedIn, error) {
	v := p.view(r)
	v.words = languages["en"]
	switch {
	case p.s.origin.Check(r) != nil:
		return api.SignedIn{}, errOrigin
	case !v.isSecure():
		return api.SignedIn{}, problem.NotAllowed.Says("%s", v.t("login.insecure"))
	}
	login, err := p.login(r.Context(), email)
	if err != nil {
		return api.SignedIn{}, err
	}
	ok, fault, status, err := v.proves(email, password, login.PasswordHash)
	if err != nil {
		return api.SignedIn{}, err
	}
	if !ok {
		return api.SignedIn{}, refusedProblem(status, fault)
	}
	cookie, err := v.newSession(login.UserID)
	if err != nil {
		return api.SignedIn{}, err
	}
	v.token = cookie.Value
	session, err := p.s.Store.ResolveSession(r.Context(), TokenHash(v.token))
	if err != nil || session == nil {
		return api.SignedIn{}, err
	}
	return api.SignedIn{Cookie: cookie, SessionID: session.SessionID, CSRF: v.formToken()}, nil
}

// login returns an empty one for an unknown address, so that the answer takes as long.
func (p apiPeople) login(ctx context.Context, email string) (Login, error) {
	login, err := p.s.Store.GetLogin(ctx, email)
	if err != nil || login == nil {
		return Login{}, err
	}
	return *login, nil
}

// Confirm implements api.People.
func (p apiPeople) Confirm(r *http.Request, caller rest.Key, password string) error {
	v := p.view(r)
	v.words = languages["en"]
	session, err := p.session(v)
	if err != nil {
		return err
	}
	login, err := p.login(r.Context(), session.Email)
	if err != nil {
		return err
	}
	ok, fault, status, err := v.proves(session.Email, password, login.PasswordHash)
	switch {
	case err != nil:
		return err
	case !ok && status == http.StatusUnauthorized:
		return problem.StepUp.Says("%s", fault) // the session is valid
	case !ok:
		return refusedProblem(status, fault)
	}
	_, err = p.s.Store.ConfirmSession(r.Context(), caller.SessionHash)
	return err
}

// Me implements api.People.
func (p apiPeople) Me(r *http.Request) (api.Me, error) {
	v := p.view(r)
	session, err := p.session(v)
	if err != nil {
		return api.Me{}, err
	}
	me := api.Me{
		UserID: session.UserID, Name: session.Name, Email: session.Email, Language: session.Language, InstallationOwner: session.InstallationOwner,
		SessionID: session.SessionID, Confirmed: session.Confirmed, CSRF: v.formToken(),
	}
	for _, m := range session.Workspaces {
		me.Workspaces = append(me.Workspaces, api.MyPlaces(m))
	}
	return me, nil
}

func (p apiPeople) session(v *view) (*Session, error) {
	if err := v.resolve(); err != nil {
		return nil, err
	}
	if v.session == nil {
		return nil, problem.UnknownKey.Says("The session has ended.")
	}
	return v.session, nil
}
