package web

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"time"

	"autopost/internal/oidc"
	"autopost/internal/problem"
)

const (
	// identityCookie keeps an attempt to sign in until the identity provider answers.
	identityCookie = "__Host-autopost-identity"
	// identitySeconds is how long that may take.
	identitySeconds = 600
	// freshProof is how old the proof of a person may be that confirms a session.
	freshProof = 5 * time.Minute
)

func (s *server) identityRoutes(mux *http.ServeMux) {
	if s.Identity == nil {
		return
	}
	mux.HandleFunc("GET /login/oidc", s.open(s.beginIdentity))
	mux.HandleFunc("GET "+oidcCallback, s.open(s.finishIdentity))
}

// oidcCallback is where the identity provider answers.
const oidcCallback = "/login/oidc/callback"

// beginIdentity sends the person to the identity provider.
func (s *server) beginIdentity(v *view) {
	if !v.isSecure() {
		v.render(http.StatusForbidden, loginPage(v, loginForm{Insecure: true}))
		return
	}
	q := v.r.URL.Query()
	address, attempt, err := s.Identity.Begin(v.r.Context(), v.site()+oidcCallback, local(q.Get("next")), q.Get("confirm") != "")
	if err != nil {
		v.unidentified(err)
		return
	}
	kept, err := json.Marshal(attempt)
	if err != nil {
		v.fail(err)
		return
	}
	http.SetCookie(v.w, &http.Cookie{Name: identityCookie, Value: base64.RawURLEncoding.EncodeToString(kept), Path: "/", MaxAge: identitySeconds, Secure: true, HttpOnly: true, SameSite: http.SameSiteLaxMode})
	v.redirect(address)
}

// unidentified answers that the provider cannot be asked.
func (v *view) unidentified(err error) {
	v.s.Log.WarnContext(v.r.Context(), "web.identity_unavailable", "error", err)
	v.render(http.StatusBadGateway, loginPage(v, loginForm{Fault: v.t("identity.unavailable")}))
}

// finishIdentity signs in the person whom the identity provider names, or confirms the session of that person. Only
// people who exist or were invited sign in.
func (s *server) finishIdentity(v *view) {
	var attempt oidc.Attempt
	kept, err := base64.RawURLEncoding.DecodeString(v.cookie(identityCookie))
	if err == nil {
		_ = json.Unmarshal(kept, &attempt) // an empty attempt is refused
	}
	http.SetCookie(v.w, &http.Cookie{Name: identityCookie, Path: "/", MaxAge: -1, Secure: true, HttpOnly: true, SameSite: http.SameSiteLaxMode})
	q := v.r.URL.Query()
	person, err := s.Identity.Finish(v.r.Context(), v.site()+oidcCallback, attempt, q.Get("state"), q.Get("code"))
	refused := (*oidc.Refusal)(nil)
	switch {
	case errors.As(err, &refused):
		s.Log.WarnContext(v.r.Context(), "web.identity_refused", "address", v.r.RemoteAddr, "reason", refused.Reason)
		v.render(http.StatusUnauthorized, loginPage(v, loginForm{Fault: v.t("identity.refused")}))
		return
	case err != nil:
		v.unidentified(err)
		return
	}
	done, err := s.Store.AdmitPerson(v.r.Context(), person.Email, person.Name)
	switch {
	case err != nil:
		v.fail(err)
	case !done.Applied:
		v.render(http.StatusForbidden, loginPage(v, loginForm{Fault: v.t("identity.unknown", person.Email)}))
	case attempt.Confirm:
		v.confirmIdentity(done.UserID, person.At, local(attempt.Next))
	default:
		if err := v.begin(done.UserID); err != nil {
			v.fail(err)
			return
		}
		v.redirect(local(attempt.Next))
	}
}

// confirmIdentity confirms the session if the same person has just proved who they are.
func (v *view) confirmIdentity(user string, at time.Time, next string) {
	if err := v.resolve(); err != nil {
		v.fail(err)
		return
	}
	if v.session == nil || v.session.UserID != user || v.now.Sub(at) > freshProof {
		v.fail(problem.NotAllowed.Says("%s", v.t("identity.other")))
		return
	}
	if _, err := v.s.Store.ConfirmSession(v.r.Context(), TokenHash(v.token)); err != nil {
		v.fail(err)
		return
	}
	v.redirect(next)
}

// identityLink is the address that begins a sign-in by the identity provider.
func identityLink(next string, confirm bool) string {
	q := url.Values{"next": {next}}
	if confirm {
		q.Set("confirm", "1")
	}
	return "/login/oidc?" + q.Encode()
}
