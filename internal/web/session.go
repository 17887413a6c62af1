package web

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"autopost/internal/api/rest"
	"autopost/internal/password"
	"autopost/internal/problem"
)

const (
	// sessionCookie has the prefix that binds it to this host and to a secure origin.
	sessionCookie = "__Host-autopost-session"
	// tokenField is the field of a form with the token of the session's forms, tokenHeader the header for scripts.
	tokenField, tokenHeader = "csrf", "X-Autopost-CSRF"
	// passwordField is the field of a form with the password that confirms a session.
	passwordField = "current_password"
)

// Token returns 32 random bytes as text.
func Token() string { return rest.NewToken() }

// TokenHash returns the lower-case hexadecimal SHA-256 of a token. The database has only this hash.
func TokenHash(token string) string { return rest.TokenHash(token) }

// secretFields are never sent back to the browser. Their forms ask for the password themselves (stepUpField).
var secretFields = []string{"secret", "client_secret", "password"}

// resolve reads the session of the request, if it has one.
func (v *view) resolve() (err error) {
	if v.refresh != nil {
		v.session, v.token = v.refresh.session, v.refresh.token
		return nil
	}
	v.token = v.cookie(sessionCookie)
	if len(v.token) != 43 {
		return nil
	}
	v.session, err = v.s.Store.ResolveSession(v.r.Context(), TokenHash(v.token))
	if err == nil && v.session != nil && v.session.Language != "" && v.cookie(languageCookie) == "" {
		v.words = languageOf(v.session.Language, "")
	}
	return err
}

// formToken is the token that forms of this session have.
func (v *view) formToken() string {
	mac := hmac.New(sha256.New, []byte(v.token))
	mac.Write([]byte("form"))
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

func (v *view) hasToken() bool {
	given := v.form.Get(tokenField)
	if given == "" {
		given = v.r.Header.Get(tokenHeader)
	}
	return subtle.ConstantTimeCompare([]byte(given), []byte(v.formToken())) == 1
}

// begin begins a session of a person who has proved the password, and sets its cookie.
func (v *view) begin(user string) error {
	c, err := v.newSession(user)
	if err == nil {
		http.SetCookie(v.w, c)
	}
	return err
}

// newSession begins a session and returns its cookie. It ends the session that the request has.
func (v *view) newSession(user string) (*http.Cookie, error) {
	if old := v.cookie(sessionCookie); old != "" {
		if _, err := v.s.Store.EndSession(v.r.Context(), TokenHash(old)); err != nil {
			return nil, err
		}
	}
	token := Token()
	begun, err := v.s.Store.BeginSession(v.r.Context(), user, TokenHash(token))
	if err != nil {
		return nil, err
	}
	if !begun.Applied {
		return nil, problem.NotAllowed.Says("%s", v.t("login.wrong"))
	}
	return sessionCookieOf(token), nil
}

// sessionCookieOf returns the cookie of a session; "" removes it. The database ends sessions.
func sessionCookieOf(token string) *http.Cookie {
	c := &http.Cookie{Name: sessionCookie, Value: token, Path: "/", Secure: true, HttpOnly: true, SameSite: http.SameSiteLaxMode}
	if token == "" {
		c.MaxAge = -1
	}
	return c
}

// forget removes the cookie of the session.
func (v *view) forget() { http.SetCookie(v.w, sessionCookieOf("")) }

// isSecure reports whether the browser reaches this daemon in a way that nobody can read: by TLS, which may end at
// a proxy, or on the same machine.
func (v *view) isSecure() bool {
	if v.r.TLS != nil || strings.EqualFold(v.r.Header.Get("X-Forwarded-Proto"), "https") ||
		v.s.public != nil && v.s.public.Scheme == "https" && strings.EqualFold(v.r.Host, v.s.public.Host) {
		return true
	}
	peer, err := netip.ParseAddrPort(v.r.RemoteAddr)
	return err == nil && peer.Addr().Unmap().IsLoopback() && isLoopback(v.r.Host)
}

func isLoopback(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	if host == "localhost" || strings.HasSuffix(host, ".localhost") {
		return true
	}
	addr, err := netip.ParseAddr(strings.Trim(host, "[]"))
	return err == nil && addr.IsLoopback()
}

// proves checks the password of an account under the limits of wrong passwords. fault is what to show instead of true.
func (v *view) proves(account, given, hash string) (ok bool, fault string, status int, err error) {
	if wait := v.s.logins.Wait(v.r.RemoteAddr, account); wait > 0 {
		seconds := problem.RetryAfter(v.w, wait)
		return false, v.n("login.wait", seconds), http.StatusTooManyRequests, nil
	}
	ok, err = password.Check(v.r.Context(), given, hash)
	switch {
	case err != nil:
		return false, "", 0, err
	case !ok:
		v.s.logins.Failed(v.r.RemoteAddr, account)
		v.s.Log.WarnContext(v.r.Context(), "web.password_refused", "address", v.r.RemoteAddr)
		return false, v.t("login.wrong"), http.StatusUnauthorized, nil
	}
	v.s.logins.Succeeded(v.r.RemoteAddr, account)
	return true, "", 0, nil
}

// confirmed reports whether the person proved the password a short time ago. If not, it answers with a page that asks
// for it and repeats the form.
func (v *view) confirmed() bool {
	if v.session.Confirmed {
		return true
	}
	form := confirmForm{Action: v.r.URL.Path, Values: url.Values{}}
	for name, values := range v.form {
		if name != tokenField && name != passwordField && !slices.Contains(secretFields, name) {
			form.Values[name] = values
		}
	}
	given := v.form.Get(passwordField)
	if given == "" {
		v.render(http.StatusForbidden, confirmPage(v, form))
		return false
	}
	login, err := v.s.Store.GetLogin(v.r.Context(), v.session.Email)
	if err != nil {
		v.fail(err)
		return false
	}
	hash := ""
	if login != nil {
		hash = login.PasswordHash
	}
	ok, fault, status, err := v.proves(v.session.Email, given, hash)
	if err == nil && ok {
		_, err = v.s.Store.ConfirmSession(v.r.Context(), TokenHash(v.token))
		v.session.Confirmed = err == nil
	}
	switch {
	case err != nil:
		v.fail(err)
	case !ok:
		form.Fault = fault
		if status == http.StatusUnauthorized {
			status = http.StatusForbidden // the session is valid
		}
		v.render(status, confirmPage(v, form))
	}
	return err == nil && ok
}

// confirmForm is a form that waits for a password.
type confirmForm struct {
	Action string
	Values url.Values
	Fault  string
}

// loginForm is the form of the sign-in.
type loginForm struct {
	Email, Next, Fault string
	// Nobody means that there is no account yet.
	Nobody bool
	// Insecure means that a password would be readable on its way.
	Insecure bool
}

func (s *server) showLogin(v *view) {
	if err := v.resolve(); err != nil {
		v.fail(err)
		return
	}
	next := local(v.r.URL.Query().Get("next"))
	if v.session != nil {
		v.redirect(next)
		return
	}
	users, err := s.Store.ListUsers(v.r.Context(), "", 1)
	if err != nil {
		v.fail(err)
		return
	}
	form := loginForm{Next: next, Nobody: len(users) == 0, Insecure: !v.isSecure()}
	if v.r.URL.Query().Get("done") == "logout" {
		form.Fault = ""
	}
	v.render(http.StatusOK, loginPage(v, form))
}

func (s *server) login(v *view) {
	form := loginForm{Email: strings.TrimSpace(v.form.Get("email")), Next: local(v.form.Get("next")), Insecure: !v.isSecure()}
	if form.Insecure {
		v.render(http.StatusForbidden, loginPage(v, form))
		return
	}
	login, err := s.Store.GetLogin(v.r.Context(), form.Email)
	if err != nil {
		v.fail(err)
		return
	}
	if login == nil {
		login = &Login{}
	}
	ok, fault, status, err := v.proves(form.Email, v.form.Get("password"), login.PasswordHash)
	switch {
	case err != nil:
		v.fail(err)
	case !ok:
		form.Fault = fault
		v.render(status, loginPage(v, form))
	default:
		if err := v.begin(login.UserID); err != nil {
			v.fail(err)
			return
		}
		v.redirect(form.Next)
	}
}

func (s *server) logout(v *view) {
	if _, err := s.Store.EndSession(v.r.Context(), TokenHash(v.token)); err != nil {
		v.fail(err)
		return
	}
	v.forget()
	v.redirect("/login")
}

func (s *server) logoutEverywhere(v *view) {
	if _, err := s.Store.EndSessions(v.r.Context(), v.act("sign-out everywhere"), v.session.UserID); err != nil {
		v.fail(err)
		return
	}
	v.forget()
	v.redirect("/login")
}

// prefer stores language and theme in cookies, and the language also with a person's account.
func (s *server) prefer(v *view) {
	if theme := v.form.Get("theme"); v.form.Has("theme") && (theme == "" || theme == "light" || theme == "dark") {
		v.remember(themeCookie, theme)
	}
	if code := v.form.Get("language"); languages[code] != nil {
		v.remember(languageCookie, code)
	}
	if keys := v.form.Get("keys"); v.form.Has("keys") && (keys == "" || keys == "off") {
		v.remember(keysCookie, keys)
	}
	v.redirect(v.back())
}

func (s *server) chooseWorkspace(v *view) {
	v.remember(workspaceCookie, url.QueryEscape(v.form.Get("workspace")))
	v.redirect("/")
}

// signInOnce signs in the person of a link that works once.
func (s *server) signInOnce(v *view) {
	user := ""
	if s.Once != nil && v.isSecure() {
		user = s.Once(TokenHash(v.r.PathValue("token")))
	}
	if user == "" {
		v.fail(problem.UnknownPath.Says("%s", v.t("login.once_ended")))
		return
	}
	if err := v.begin(user); err != nil {
		v.fail(err)
		return
	}
	v.redirect("/")
}
