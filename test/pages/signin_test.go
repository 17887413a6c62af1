package pages

import (
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"autopost/internal/testing/pgtest"
)

// The first link makes an owner, once. People sign in, out, and out everywhere.
func TestPeopleSignIn(t *testing.T) {
	t.Parallel()
	s := open(t)
	guest := s.person()
	require.Contains(t, guest.get("/login").body, "There is no account yet")
	require.Equal(t, http.StatusUnprocessableEntity, guest.post(s.link, "email", ann, "name", "Ann", "workspace", "news", "password", "short").status)
	p := s.owner()
	require.Equal(t, http.StatusNotFound, guest.get(s.link).status, "the link works once")
	require.Contains(t, p.get("/").body, "Северные новости")
	require.Equal(t, "owner", pgtest.Value[string](s.DB, `select role from autopost.memberships`))

	session := p.get("/")
	require.Empty(t, session.set, "a read sets no cookie")
	in := s.person().post("/login", "email", strings.ToUpper(ann), "password", password)
	require.Equal(t, http.StatusSeeOther, in.status)
	require.Len(t, in.set, 1)
	c := in.set[0]
	require.True(t, strings.HasPrefix(c.Name, "__Host-") && c.Secure && c.HttpOnly && c.Path == "/" && c.Domain == "" && c.SameSite == http.SameSiteLaxMode, c.String())
	require.Zero(t, pgtest.Value[int](s.DB, `select count(*)::int from autopost.sessions where token_hash = $1`, c.Value), "the database has hashes only")

	require.Equal(t, http.StatusUnauthorized, guest.post("/login", "email", ann, "password", "wrong horse battery").status)
	require.Equal(t, http.StatusUnauthorized, guest.post("/login", "email", "bob@example.org", "password", password).status)
	for path, want := range map[string]string{"/": "/login?next=%2F", "/posts?view=dead": "/login?next=%2Fposts%3Fview%3Ddead"} {
		got := guest.get(path)
		require.Equal(t, http.StatusSeeOther, got.status)
		require.Equal(t, want, got.header.Get("Location"))
	}
	require.Equal(t, http.StatusUnauthorized, guest.post("/decisions/"+s.ids["submission"]+"/approve").status)
	for _, next := range []string{"https://evil.example/", "//evil.example", "/\\evil.example", "javascript:alert(1)"} {
		got := s.person().post("/login", "email", ann, "password", password, "next", next)
		require.Equal(t, "/", got.header.Get("Location"), next)
	}

	other := s.person()
	require.Equal(t, http.StatusSeeOther, other.post("/login", "email", ann, "password", password).status)
	require.Equal(t, http.StatusSeeOther, p.post("/logout").status)
	require.Equal(t, http.StatusSeeOther, p.get("/posts").status)
	require.Equal(t, http.StatusOK, other.get("/posts").status, "another session stays")
	third := s.person()
	third.post("/login", "email", ann, "password", password)
	require.Equal(t, http.StatusSeeOther, other.post("/logout-everywhere").status)
	require.Equal(t, http.StatusSeeOther, third.get("/posts").status)
	require.Contains(t, strings.Join(pgtest.Column[string](s.DB, `select distinct action from autopost.admin_audit_log where operator = 'user:' || (select user_id from autopost.users)::text order by 1`), " "),
		"begin_session create_owner end_session end_sessions")
}

// A form needs the token of its session and must not come from another site.
func TestFormsOfOtherSitesAreRefused(t *testing.T) {
	t.Parallel()
	s := open(t)
	p := s.owner()
	path := "/channels/city/pause"
	require.Equal(t, http.StatusForbidden, p.do(http.MethodPost, path, map[string][]string{"reason": {"r"}}).status, "no token")
	require.Equal(t, http.StatusForbidden, p.post(path, "csrf", "x").status)
	other := s.person()
	other.post("/login", "email", ann, "password", password)
	require.Equal(t, http.StatusForbidden, p.post(path, "csrf", hiddenToken.FindStringSubmatch(other.get("/setup").body)[1]).status, "the token of another session")
	for name, value := range map[string]string{"Origin": "https://evil.example", "Sec-Fetch-Site": "cross-site"} {
		p.header.Set(name, value)
		require.Equal(t, http.StatusForbidden, p.post(path).status, name)
		require.Equal(t, http.StatusForbidden, p.post("/login", "email", ann, "password", password).status, name)
		p.header.Del(name)
	}
	require.Nil(t, pgtest.Value[*string](s.DB, `select paused_until::text from autopost.channels where channel_id = 'city'`))
	require.Equal(t, http.StatusSeeOther, p.post(path).status)
	require.NotNil(t, pgtest.Value[*string](s.DB, `select paused_until::text from autopost.channels where channel_id = 'city'`))
	require.Regexp(t, `^user:[0-9a-f-]{36}$`, pgtest.Value[string](s.DB, `select operator from autopost.admin_audit_log where action = 'pause_channel' and subject = 'channel:city'`))
}

func TestEveryPageIsGuardedByHeaders(t *testing.T) {
	t.Parallel()
	s := open(t)
	p := s.owner()
	for _, path := range append(s.paths(), "/login", "/invite/x", "/posts/x", "/setup/nowhere") {
		got := p.get(path)
		h := got.header
		for _, part := range []string{"default-src 'none'", "script-src 'self'", "style-src 'self'", "frame-ancestors 'none'", "base-uri 'none'", "form-action 'self'"} {
			require.Contains(t, h.Get("Content-Security-Policy"), part, path)
		}
		require.NotContains(t, h.Get("Content-Security-Policy"), "unsafe")
		require.Equal(t, "nosniff", h.Get("X-Content-Type-Options"), path)
		require.NotEmpty(t, h.Get("Referrer-Policy"), path)
		require.Equal(t, "no-store", h.Get("Cache-Control"), path)
		require.NotRegexp(t, regexp.MustCompile(`(?i)<script>|<script [^>]*>[^<]|<style|\sstyle=|\son[a-z]+=|https?://(?:cdn|unpkg)`), got.body, path)
		require.Less(t, len(got.body), 100<<10, path)
	}
	asset := regexp.MustCompile(`/assets/app\.[0-9a-f]{12}\.css`).FindString(p.get("/").body)
	got := s.person().get(asset)
	require.Equal(t, http.StatusOK, got.status)
	require.Contains(t, got.header.Get("Cache-Control"), "immutable")
	require.Equal(t, http.StatusNotFound, s.person().get("/assets/app.000000000000.css").status)
}

// Wrong passwords are limited, and do not lock out the person from where she signed in before.
func TestWrongPasswordsAreLimited(t *testing.T) {
	t.Parallel()
	s := open(t)
	s.owner()
	require.Equal(t, http.StatusSeeOther, s.person().post("/login", "email", ann, "password", password).status)
	limited := 0
	for range 12 {
		if got := s.person().post("/login", "email", "other@example.org", "password", "wrong horse battery"); got.status == http.StatusTooManyRequests {
			require.NotEmpty(t, got.header.Get("Retry-After"))
			limited++
		}
	}
	require.Positive(t, limited)
	require.Equal(t, http.StatusSeeOther, s.person().post("/login", "email", ann, "password", password).status)
}

// Without encryption nobody signs in from another machine.
func TestPasswordsNeedEncryption(t *testing.T) {
	t.Parallel()
	s := open(t)
	s.owner()
	p := s.person()
	p.header.Set("Host", "news.example.org")
	require.Contains(t, p.get("/login").body, "https://")
	require.NotContains(t, p.get("/login").body, `type="password"`)
	require.Equal(t, http.StatusForbidden, p.post("/login", "email", ann, "password", password).status)
	p.header.Set("X-Forwarded-Proto", "https")
	require.Equal(t, http.StatusSeeOther, p.post("/login", "email", ann, "password", password).status)
}

// Some actions need the password again after a time. The form is repeated with its values.
func TestActionsAskForThePasswordAgain(t *testing.T) {
	t.Parallel()
	s := open(t)
	p := s.owner()
	s.Exec(`update autopost.sessions set confirmed_at = confirmed_at - interval '1 hour'`)
	at := "/decisions/" + s.ids["submission"] + "/approve"
	got := p.post(at, "reason", "good & <b>short</b>")
	require.Equal(t, http.StatusForbidden, got.status)
	require.Contains(t, got.body, `name="current_password"`)
	require.Contains(t, got.body, `value="good &amp; &lt;b&gt;short&lt;/b&gt;"`)
	require.Contains(t, p.post(at, "current_password", "wrong horse battery").body, "is wrong")
	require.Equal(t, "pending", pgtest.Value[string](s.DB, `select status from autopost.submissions where submission_id = $1::uuid`, s.ids["submission"]))
	require.Equal(t, http.StatusSeeOther, p.post(at, "current_password", password, "reason", "good").status)
	require.Equal(t, "enqueued", pgtest.Value[string](s.DB, `select status from autopost.submissions where submission_id = $1::uuid`, s.ids["submission"]))
	require.Equal(t, http.StatusSeeOther, p.post("/posts/"+s.ids["dead"]+"/retry").status, "good for a time")
	require.Equal(t, "retry", pgtest.Value[string](s.DB, `select status from autopost.deliveries where message_id = $1::uuid`, s.ids["dead"]))
	for name, path := range map[string]string{"retry": "/posts/" + s.ids["failed_permanent"] + "/retry", "keys": "/setup/keys/add", "people": "/setup/people/invite"} {
		s.Exec(`update autopost.sessions set confirmed_at = confirmed_at - interval '1 hour'`)
		require.Contains(t, p.post(path, "email", "x@example.org", "role", "viewer", "name", "n").body, `name="current_password"`, name)
	}
}

// Sessions end after a time without use, and with the password, the account and the membership.
func TestSessionsEnd(t *testing.T) {
	t.Parallel()
	s := open(t)
	p := s.owner()
	editor := s.member("editor")
	require.Equal(t, http.StatusOK, editor.get("/").status)
	result := s.RunWithInput("another horse battery\n", "user", "set", "editor@example.org", "--password")
	require.Zero(t, result.Code, result.Stderr)
	require.Equal(t, http.StatusSeeOther, editor.get("/").status)
	require.Equal(t, http.StatusSeeOther, editor.post("/login", "email", "editor@example.org", "password", "another horse battery").status)
	require.Zero(t, s.Run(nil, "user", "set", "editor@example.org", "--role", "none", "--workspace", "news").Code)
	require.Equal(t, http.StatusForbidden, editor.get("/").status, "no workspace")
	require.Zero(t, s.Run(nil, "user", "disable", "editor@example.org").Code)
	require.Equal(t, http.StatusSeeOther, editor.get("/").status)
	require.Equal(t, http.StatusUnauthorized, editor.post("/login", "email", "editor@example.org", "password", "another horse battery").status)
	require.Equal(t, 1, s.Run(nil, "user", "disable", ann).Code, "the last owner stays")
	s.Exec(`update autopost.sessions set last_seen_at = last_seen_at - interval '61 minutes'`)
	require.Equal(t, http.StatusSeeOther, p.get("/").status)
}

// The API accepts the session of a person, with her role, in one of her workspaces. A change needs the token.
func TestTheAPIAcceptsSessions(t *testing.T) {
	t.Parallel()
	s := open(t)
	p := s.owner()
	require.Equal(t, http.StatusOK, p.get("/api/v1/channels").status)
	require.Equal(t, http.StatusUnauthorized, s.person().get("/api/v1/channels").status)
	pause := func() int {
		return p.do(http.MethodPost, "/api/v1/channels/city/resume?dry_run=true", nil).status
	}
	p.header.Set("Content-Type", "application/json")
	p.header.Set("X-Autopost-Reason", "r")
	require.Equal(t, http.StatusForbidden, pause(), "no token")
	p.header.Set("X-Autopost-CSRF", hiddenToken.FindStringSubmatch(p.get("/setup").body)[1])
	require.Equal(t, http.StatusOK, pause())
	p.header.Set("Idempotency-Key", "once")
	require.Equal(t, http.StatusOK, pause())
	require.Equal(t, http.StatusOK, p.do(http.MethodPost, "/api/v1/channels/city/resume", nil).status)
	require.Equal(t, "true", p.do(http.MethodPost, "/api/v1/channels/city/resume", nil).header.Get("Idempotent-Replayed"))
	p.header.Del("Idempotency-Key")
	p.header.Set("Origin", "https://evil.example")
	require.Equal(t, http.StatusForbidden, pause(), "another site")
	p.header.Del("Origin")
	p.header.Set("X-Autopost-Workspace", "nowhere")
	require.Equal(t, http.StatusForbidden, p.get("/api/v1/channels").status)
	p.header.Set("X-Autopost-Workspace", "news")
	s.Exec(`update autopost.sessions set confirmed_at = confirmed_at - interval '1 hour'`)
	require.Equal(t, http.StatusOK, pause())
	again := p.do(http.MethodPost, "/api/v1/submissions/"+s.ids["submission"]+"/approve", nil)
	require.Equal(t, http.StatusForbidden, again.status)
	require.Contains(t, again.body, "urn:autopost:problem:step-up")
	s.Exec(`update autopost.memberships set role = 'viewer'`)
	require.Equal(t, http.StatusForbidden, pause())
}
