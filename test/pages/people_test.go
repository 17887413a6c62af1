package pages

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"autopost/internal/testing/pgtest"
)

// ask calls the API with the cookie of a session.
func (p *person) ask(method, path, body string, header map[string]string) answer {
	p.s.t.Helper()
	r, err := http.NewRequest(method, p.s.url+"/api/v1"+path, strings.NewReader(body))
	require.NoError(p.s.t, err)
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	for name, value := range header {
		r.Header.Set(name, value)
	}
	for name, value := range p.cookies {
		r.AddCookie(&http.Cookie{Name: name, Value: value})
	}
	got, err := http.DefaultClient.Do(r)
	require.NoError(p.s.t, err)
	defer func() { _ = got.Body.Close() }()
	text := httptest.NewRecorder().Body
	_, err = text.ReadFrom(got.Body)
	require.NoError(p.s.t, err)
	for _, c := range got.Cookies() {
		p.cookies[c.Name] = c.Value
	}
	return answer{got.StatusCode, got.Header, text.String(), got.Cookies()}
}

// People sign in, act and sign out by the API alone.
func TestPeopleUseTheAPI(t *testing.T) {
	t.Parallel()
	s := open(t)
	s.owner()
	p := s.person()
	wrong := p.ask(http.MethodPost, "/sessions", `{"email": "ann@example.org", "password": "wrong horse battery"}`, nil)
	require.Equal(t, http.StatusUnauthorized, wrong.status, wrong.body)
	require.Equal(t, http.StatusForbidden, p.ask(http.MethodPost, "/sessions", `{"email": "ann@example.org", "password": "`+password+`"}`, map[string]string{"Origin": "https://evil.example"}).status)
	require.Equal(t, http.StatusUnauthorized, p.ask(http.MethodGet, "/me", "", nil).status)
	in := p.ask(http.MethodPost, "/sessions", `{"email": "ann@example.org", "password": "`+password+`"}`, nil)
	require.Equal(t, http.StatusCreated, in.status, in.body)
	require.Len(t, in.set, 1)
	c := in.set[0]
	require.True(t, strings.HasPrefix(c.Name, "__Host-") && c.Secure && c.HttpOnly && c.SameSite == http.SameSiteLaxMode, c.String())
	begun := answerOf(t, in)
	me := answerOf(t, p.ask(http.MethodGet, "/me", "", nil))
	require.Equal(t, "owner", me["role"])
	require.Equal(t, true, me["installation_owner"])
	require.Equal(t, begun["session_id"], me["session_id"])
	require.Equal(t, begun["csrf"], me["csrf"])

	invite := `{"email": "bob@example.org", "role": "approver", "reason": "new"}`
	require.Equal(t, http.StatusForbidden, p.ask(http.MethodPost, "/invitations", invite, nil).status, "no token")
	require.Equal(t, http.StatusForbidden, p.ask(http.MethodPost, "/invitations", invite, map[string]string{"X-Autopost-CSRF": "x"}).status)
	token := map[string]string{"X-Autopost-CSRF": begun["csrf"].(string)}
	made := p.ask(http.MethodPost, "/invitations", invite, token)
	require.Equal(t, http.StatusCreated, made.status, made.body)
	link := answerOf(t, made)["path"].(string)
	require.NotContains(t, p.ask(http.MethodGet, "/invitations", "", nil).body, link)
	require.Equal(t, http.StatusSeeOther, s.person().post(link, "name", "Bob", "password", "battery horse correct").status)

	// Dangerous operations need the password again after a time.
	s.Exec(`update autopost.sessions set confirmed_at = confirmed_at - interval '1 hour'`)
	key := `{"name": "cms", "role": "editor", "scopes": ["posts:write"], "reason": "new"}`
	old := p.ask(http.MethodPost, "/keys", key, token)
	require.Contains(t, old.body, "urn:autopost:problem:step-up")
	require.Equal(t, http.StatusForbidden, p.ask(http.MethodPost, "/me/step-up", `{"password": "wrong horse battery"}`, token).status)
	require.Equal(t, http.StatusOK, p.ask(http.MethodPost, "/me/step-up", `{"password": "`+password+`"}`, token).status)
	once := map[string]string{"X-Autopost-CSRF": token["X-Autopost-CSRF"], "Idempotency-Key": "one"}
	first := p.ask(http.MethodPost, "/keys", key, once)
	require.Equal(t, http.StatusCreated, first.status, first.body)
	secret := answerOf(t, first)["key"].(string)
	again := p.ask(http.MethodPost, "/keys", key, once)
	require.Equal(t, http.StatusCreated, again.status)
	require.NotContains(t, again.body, secret, "a secret is returned once")
	require.Zero(t, pgtest.Value[int](s.DB, `select count(*)::int from autopost.api_requests where answer::text like '%' || $1 || '%'`, secret))

	bob := pgtest.Value[string](s.DB, `select user_id::text from autopost.users where email = 'bob@example.org'`)
	require.Equal(t, http.StatusOK, p.ask(http.MethodPatch, "/users/"+bob, `{"role": "viewer", "reason": "r"}`, token).status)
	require.Equal(t, http.StatusUnprocessableEntity, p.ask(http.MethodPatch, "/users/"+bob, `{"role": "viewer", "enabled": false, "reason": "r"}`, token).status)
	require.Equal(t, http.StatusConflict, p.ask(http.MethodPatch, "/users/"+me["user_id"].(string), `{"leave": true, "reason": "r"}`, token).status, "the last owner stays")
	require.Equal(t, http.StatusOK, p.ask(http.MethodPatch, "/users/"+bob, `{"enabled": false, "reason": "r"}`, token).status)
	require.Equal(t, http.StatusUnauthorized, s.person().post("/login", "email", "bob@example.org", "password", "battery horse correct").status)

	other := s.member("owner")
	mine := answerOf(t, other.ask(http.MethodGet, "/me", "", nil))
	theirs := map[string]string{"X-Autopost-CSRF": mine["csrf"].(string)}
	require.Equal(t, http.StatusForbidden, other.ask(http.MethodPatch, "/users/"+bob, `{"enabled": true, "reason": "r"}`, theirs).status, "only an owner of the installation")
	require.Equal(t, http.StatusForbidden, other.ask(http.MethodPost, "/workspaces", `{"workspace_id": "two", "reason": "r"}`, theirs).status)
	require.Equal(t, http.StatusForbidden, other.ask(http.MethodPost, "/users/"+me["user_id"].(string)+"/sign-out", `{"reason": "r"}`, theirs).status)
	require.Equal(t, http.StatusNotFound, other.ask(http.MethodDelete, "/sessions/"+begun["session_id"].(string), "", theirs).status, "a session of another person")
	require.Equal(t, http.StatusCreated, p.ask(http.MethodPost, "/workspaces", `{"workspace_id": "two", "name": "Two", "reason": "r"}`, token).status)
	inTwo := p.ask(http.MethodGet, "/me", "", map[string]string{"X-Autopost-Workspace": "two"})
	require.Equal(t, "two", answerOf(t, inTwo)["workspace_id"])
	require.Equal(t, http.StatusForbidden, other.ask(http.MethodGet, "/me", "", map[string]string{"X-Autopost-Workspace": "two"}).status)

	require.Equal(t, http.StatusOK, p.ask(http.MethodDelete, "/sessions/"+begun["session_id"].(string), "", token).status)
	require.Equal(t, http.StatusUnauthorized, p.ask(http.MethodGet, "/me", "", nil).status)
	require.NotContains(t, s.log(), password)
}

// An owner of the installation disables accounts, ends sessions and creates workspaces.
func TestOwnersOfTheInstallationManageAccounts(t *testing.T) {
	t.Parallel()
	s := open(t)
	p := s.owner()
	editor := s.member("editor")
	id := pgtest.Value[string](s.DB, `select user_id::text from autopost.users where email = 'editor@example.org'`)
	own := pgtest.Value[string](s.DB, `select user_id::text from autopost.users where email = $1`, ann)
	require.Equal(t, http.StatusSeeOther, p.post("/setup/people/sign-out", "id", id).status)
	require.Equal(t, http.StatusSeeOther, editor.get("/posts").status, "signed out")
	require.Equal(t, http.StatusSeeOther, p.post("/setup/people/disable", "id", id).status)
	require.Equal(t, http.StatusUnauthorized, editor.post("/login", "email", "editor@example.org", "password", password).status)
	require.Equal(t, http.StatusSeeOther, p.post("/setup/people/enable", "id", id).status)
	require.Contains(t, p.post("/setup/people/unmake-owner", "id", own).body, "The last owner of the installation must stay")
	require.Contains(t, p.post("/setup/people/workspace", "workspace_id", "news").body, "exists already")
	require.Equal(t, "/setup", p.post("/setup/people/workspace", "workspace_id", "regions", "name", "Regions").header.Get("Location"))
	require.Contains(t, p.get("/setup").body, "Connect a bot")
	require.Contains(t, p.get("/").body, "Regions")

	other := s.member("owner")
	page := other.get("/setup/people").body
	require.NotContains(t, page, "/setup/people/disable")
	require.NotContains(t, page, "/setup/people/workspace")
	for _, act := range []string{"disable", "sign-out", "make-owner"} {
		require.Equal(t, http.StatusForbidden, other.post("/setup/people/"+act, "id", own).status, act)
	}
	require.Equal(t, http.StatusForbidden, other.post("/setup/people/workspace", "workspace_id", "mine").status)
}
