package pages

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"autopost/internal/sim/oidc"
	"autopost/internal/testing/pgtest"
	"autopost/test/harness"
)

const clientSecret = "canary-secret-of-the-oidc-client"

// identified is a site with an identity provider that signs Ann in.
func identified(t *testing.T) (*site, *oidc.Server) {
	t.Helper()
	provider, err := oidc.New(oidc.Config{ClientID: "autopost", ClientSecret: clientSecret}, oidc.Person{Email: ann, Name: "Ann"})
	require.NoError(t, err)
	server := httptest.NewServer(provider)
	t.Cleanup(server.Close)
	provider.Issuer = server.URL
	file := filepath.Join(t.TempDir(), "client-secret")
	require.NoError(t, os.WriteFile(file, []byte(clientSecret+"\n"), 0o600))
	s := &site{Harness: harness.New(t), t: t, ids: map[string]string{}}
	s.fill()
	s.begin("AUTOPOST_OIDC_ISSUER="+server.URL, "AUTOPOST_OIDC_CLIENT_ID=autopost", "AUTOPOST_OIDC_CLIENT_SECRET_FILE="+file)
	provider.SetRedirect(s.url + "/login/oidc/callback")
	return s, provider
}

// identify follows the provider and returns the answer of the callback.
func (p *person) identify(at string) answer {
	p.s.t.Helper()
	return p.get(p.provide(at))
}

// provide begins a sign-in and returns the path of the callback.
func (p *person) provide(at string) string {
	p.s.t.Helper()
	begun := p.get(at)
	require.Equal(p.s.t, http.StatusSeeOther, begun.status, begun.body)
	client := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	allowed, err := client.Get(begun.header.Get("Location"))
	require.NoError(p.s.t, err)
	require.NoError(p.s.t, allowed.Body.Close())
	back, err := url.Parse(allowed.Header.Get("Location"))
	require.NoError(p.s.t, err)
	require.Equal(p.s.t, "/login/oidc/callback", back.Path, allowed.Status)
	return back.RequestURI()
}

// People who exist or were invited sign in by the identity provider; nobody else.
func TestPeopleSignInByTheIdentityProvider(t *testing.T) {
	t.Parallel()
	s, provider := identified(t)
	owner := s.owner()
	p := s.person()
	require.Contains(t, p.get("/login").body, "/login/oidc")
	in := p.identify("/login/oidc?next=%2Fposts")
	require.Equal(t, "/posts", in.header.Get("Location"), in.body)
	require.Equal(t, http.StatusOK, p.get("/posts").status)
	require.Equal(t, "/", s.person().identify("/login/oidc?next=https%3A%2F%2Fevil.example").header.Get("Location"))

	provider.Set(oidc.Person{Email: "eve@example.org", Name: "Eve"}, oidc.Token{})
	eve := s.person()
	require.Equal(t, http.StatusForbidden, eve.identify("/login/oidc").status, "nobody invited her")
	require.Equal(t, http.StatusOK, owner.post("/setup/people/invite", "email", "eve@example.org", "role", "approver").status)
	require.Equal(t, http.StatusSeeOther, eve.identify("/login/oidc").status)
	require.Equal(t, http.StatusOK, eve.get("/decisions").status)
	require.Equal(t, "approver false", pgtest.Value[string](s.DB, `select m.role || ' ' || (u.password_hash is not null)::text from autopost.users u join autopost.memberships m using (user_id) where u.email = 'eve@example.org'`))

	// A person without a password confirms a session by the provider, and only the own one.
	s.Exec(`update autopost.sessions set confirmed_at = confirmed_at - interval '1 hour'`)
	approve := "/decisions/" + s.ids["submission"] + "/approve"
	asked := eve.post(approve)
	require.Equal(t, http.StatusForbidden, asked.status)
	require.Contains(t, asked.body, "/login/oidc?confirm=1")
	provider.Set(oidc.Person{Email: ann}, oidc.Token{})
	require.Equal(t, http.StatusForbidden, eve.identify("/login/oidc?confirm=1&next=%2Fdecisions").status, "another person confirms nothing")
	provider.Set(oidc.Person{Email: "eve@example.org"}, oidc.Token{})
	require.Equal(t, "/decisions", eve.identify("/login/oidc?confirm=1&next=%2Fdecisions").header.Get("Location"))
	require.Equal(t, http.StatusSeeOther, eve.post(approve).status)

	id := pgtest.Value[string](s.DB, `select user_id::text from autopost.users where email = 'eve@example.org'`)
	s.Exec(`select autopost.put_user($1::uuid, '{"enabled": false}', 'o', 'left', false)`, id)
	require.Equal(t, http.StatusForbidden, s.person().identify("/login/oidc").status, "a disabled person")
	require.NotContains(t, s.log(), clientSecret)
}

// A token that is not for us, not from the provider, old, or not of this attempt signs nobody in.
func TestAnswersOfAnotherProviderAreRefused(t *testing.T) {
	t.Parallel()
	s, provider := identified(t)
	s.owner()
	for name, token := range map[string]oidc.Token{
		"audience": {Audience: "another-client"}, "issuer": {Issuer: "https://evil.example"}, "expiry": {Expired: true}, "nonce": {Nonce: "another"},
		"key": {OtherKey: true}, "algorithm none": {Unsigned: true},
	} {
		provider.Set(oidc.Person{Email: ann}, token)
		p := s.person()
		got := p.identify("/login/oidc")
		require.Equal(t, http.StatusUnauthorized, got.status, name)
		require.Equal(t, http.StatusSeeOther, p.get("/posts").status, name)
	}
	for name, person := range map[string]oidc.Person{"unverified": {Email: ann, Unverified: true}, "no address": {}} {
		provider.Set(person, oidc.Token{})
		require.Equal(t, http.StatusUnauthorized, s.person().identify("/login/oidc").status, name)
	}
	provider.Set(oidc.Person{Email: ann}, oidc.Token{})
	victim, attacker := s.person(), s.person()
	back := attacker.provide("/login/oidc")
	require.Equal(t, http.StatusUnauthorized, victim.get(back).status, "the answer to another browser")
	victim.provide("/login/oidc")
	require.Equal(t, http.StatusUnauthorized, victim.get(back).status, "the state of another browser")
	require.Equal(t, http.StatusSeeOther, attacker.get(back).status)
	require.Equal(t, http.StatusUnauthorized, attacker.get(back).status, "once")
	require.Equal(t, http.StatusUnauthorized, s.person().get("/login/oidc/callback?error=access_denied").status)
	require.Equal(t, 1, pgtest.Value[int](s.DB, `select count(distinct user_id)::int from autopost.sessions`))
}
