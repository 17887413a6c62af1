package pages

import (
	"encoding/json"
	"html"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"autopost/internal/sim"
	"autopost/internal/sim/telegram"
	"autopost/internal/sim/twitter"
	"autopost/internal/testing/pgtest"
	"autopost/test/harness"
)

func (s *site) credentialsPaths() []string {
	return []string{
		"/setup/credentials", "/setup/credentials?add=telegram", "/setup/credentials?add=x", "/setup/credentials?add=http", "/setup/credentials?ask=replace&credential=bot",
	}
}

// Secrets are checked, stored sealed and never returned. What uses a credential keeps it from being removed.
func TestCredentialsAreSet(t *testing.T) {
	t.Parallel()
	s := open(t)
	require.NoError(t, s.World.Telegram.AddBot(botToken))
	p := s.owner()
	at := "/setup/credentials/set"
	refused := p.post(at, "new", "1", "platform", "telegram", "auth_ref", "second", "secret", "7009009:AAunknownTokenOfNobody00000000000000")
	require.Equal(t, http.StatusUnprocessableEntity, refused.status)
	require.Contains(t, refused.body, "Telegram does not accept the secret")
	require.Contains(t, refused.body, `name="unchecked"`)
	require.Contains(t, refused.body, `value="second"`)
	require.NotContains(t, refused.body, "AAunknownToken")
	require.Equal(t, http.StatusSeeOther, p.post(at, "new", "1", "platform", "telegram", "auth_ref", "second", "secret", botToken, "days", "20").status)
	page := p.get("/setup/credentials").body
	require.Contains(t, page, "expires in 19 days")
	require.NotContains(t, page, botToken)
	require.Zero(t, pgtest.Value[int](s.DB, `select count(*)::int from autopost.sealed_secrets where encode(sealed, 'escape') like '%' || $1 || '%'`, botToken))

	require.Equal(t, http.StatusSeeOther, p.post("/setup/credentials/check", "auth_ref", "second").status)
	require.Regexp(t, `(?s)<h3>second</h3>.*@`, p.get("/setup/credentials").body)
	require.Contains(t, p.post(at, "new", "1", "platform", "http", "auth_ref", "shop", "secret", "key").body, "hosts")
	require.Equal(t, http.StatusSeeOther, p.post(at, "new", "1", "platform", "http", "auth_ref", "shop", "secret", "key", "hosts", "api.example.com, api.example.org:8443").status)
	require.Equal(t, []string{"api.example.com", "api.example.org:8443"}, pgtest.Value[[]string](s.DB, `select hosts from autopost.credential_bindings where auth_ref = 'shop'`))
	require.Contains(t, p.post(at, "new", "1", "platform", "telegram", "auth_ref", "", "secret", botToken).body, "The name is missing")
	require.Contains(t, p.post(at, "platform", "webhook", "auth_ref", "second", "secret", "whsec_x").body, "the platform of this credential")

	require.Contains(t, p.get("/setup/credentials?ask=remove&credential=second").body, "Remove second?")
	s.Exec(`update autopost.channels set auth_ref = 'second' where channel_id = 'night'`)
	inUse := p.post("/setup/credentials/remove", "auth_ref", "second")
	require.Equal(t, http.StatusConflict, inUse.status)
	require.Contains(t, inUse.body, "is in use")
	require.Equal(t, http.StatusSeeOther, p.post("/setup/credentials/remove", "auth_ref", "shop").status)
	require.Zero(t, pgtest.Value[int](s.DB, `select count(*)::int from autopost.credential_bindings where auth_ref = 'shop'`))

	// After a time the form asks for the password, and a secret is not carried over to another page.
	s.Exec(`update autopost.sessions set confirmed_at = confirmed_at - interval '1 hour'`)
	require.Contains(t, p.get("/setup/credentials?ask=replace&credential=second").body, `name="current_password"`)
	asked := p.post(at, "auth_ref", "second", "platform", "telegram", "secret", botToken)
	require.Equal(t, http.StatusForbidden, asked.status)
	require.NotContains(t, asked.body, botToken)
	require.Equal(t, http.StatusSeeOther, p.post(at, "auth_ref", "second", "platform", "telegram", "secret", botToken, "current_password", password).status)
	require.NotContains(t, s.log(), botToken)

	viewer := s.member("viewer")
	require.Equal(t, http.StatusOK, viewer.get("/setup/credentials").status)
	require.NotContains(t, viewer.get("/setup/credentials?add=telegram").body, `name="secret"`)
	for _, act := range []string{"set", "check", "remove", "requeue", "link"} {
		require.Equal(t, http.StatusForbidden, viewer.post("/setup/credentials/"+act, "auth_ref", "second", "platform", "telegram", "secret", botToken).status, act)
	}
}

// Names, accounts, rights, errors and chats are shown as text.
func TestCredentialsShowHostileTextAsText(t *testing.T) {
	t.Parallel()
	s := open(t)
	p := s.owner()
	name := strings.NewReplacer("\n", " ").Replace(hostileText())[:190]
	s.Exec(`insert into autopost.credential_bindings (workspace_id, auth_ref, platform, secret_ref) values ('news', $1, 'telegram', 'env:NONE')`, name)
	s.Exec(`update autopost.credential_health set account = $2, checked_at = now(), error = jsonb_build_object('message', $2::text), rights = jsonb_build_array(jsonb_build_object('target', $2::text,
		'title', $2::text, 'may_post', false, 'reason', $2::text)) where auth_ref = $1`, name, hostileText())
	s.Exec(`insert into autopost.discovered_chats (workspace_id, platform, auth_ref, target_id, title, kind, may_post, first_seen, last_seen) values ('news', 'telegram', $1, '-9', $2, 'channel', true, now(), now())`, name, hostileText())
	p.harmless("/setup/credentials")
	p.harmless("/setup/credentials?ask=replace&credential=" + url.QueryEscape(name))
	p.harmless("/setup/credentials?ask=remove&credential=" + url.QueryEscape(name))
	for _, value := range hostile {
		got := p.post("/setup/credentials/set", "new", "1", "platform", "http", "auth_ref", value, "secret", value, "hosts", value, "days", value)
		s.harmless(value, got.body)
		s.harmless(value, p.post("/setup/credentials/test", "platform", "telegram", "secret", value).body)
		s.harmless(value, p.post("/setup/people/workspace", "workspace_id", "news", "name", value).body)
	}
	s.Exec(`delete from autopost.events where delivery_id in (select delivery_id from autopost.deliveries where status = 'sent')`)
	s.Exec(`delete from autopost.deliveries where status = 'sent'`)
	p.harmless("/setup")
	p.harmless("/setup/first?step=chats&bot=" + url.QueryEscape(name))
	for _, value := range hostile {
		s.harmless(value, p.post("/setup/first/chats", "chat", value).body)
		s.harmless(value, p.post("/setup/first/post", "text", value).body)
	}
}

// A platform refuses a token. Another token in its place sends what waited and what failed, in one act.
func TestATokenIsReplaced(t *testing.T) {
	t.Parallel()
	s := &site{Harness: harness.New(t), t: t, ids: map[string]string{}}
	s.Workspace("news")
	s.Endpoint("news", "cms", "secret-of-the-endpoint")
	s.Channel("news", harness.Channel{ID: "city", Platform: harness.Telegram})
	s.begin()
	p := s.owner()
	revoked := "7001001:AAcanaryTelegramToken"
	s.World.Telegram.RevokeBot(revoked)
	got, err := s.TryPush(s.url, "secret-of-the-endpoint", `{"text": "It failed first"}`)
	require.NoError(t, err)
	require.Equal(t, http.StatusAccepted, got.Status)
	s.UntilTrue(`select count(*) = 1 from autopost.deliveries where status = 'failed_permanent'`)
	_, err = s.TryPush(s.url, "secret-of-the-endpoint", `{"text": "It waited"}`)
	require.NoError(t, err)
	s.Until("the banner leads to the credential", func() bool {
		return strings.Contains(p.get("/posts").body, "/setup/credentials?ask=replace&amp;credential=telegram")
	})
	require.Contains(t, p.get("/setup/credentials").body, "1 credential needs you")
	require.NoError(t, s.World.Telegram.AddBot(botToken))
	require.Equal(t, http.StatusSeeOther, p.post("/setup/credentials/set", "auth_ref", "telegram", "platform", "telegram", "secret", botToken, "requeue", "1").status)
	s.UntilTrue(`select count(*) = 2 from autopost.deliveries where status = 'sent'`)
	texts := map[string]int{}
	for _, e := range s.Accepted(sim.Filter{Platform: telegram.Platform, Method: "sendMessage"}) {
		texts[e.Text]++
	}
	require.Equal(t, map[string]int{"It failed first": 1, "It waited": 1}, texts, "judged by the log of the platform")
	require.Contains(t, p.get("/setup/credentials").body, "All credentials work")
	s.Until("the banner ends", func() bool { return !strings.Contains(p.get("/posts").body, "/setup/credentials?ask=replace") })
}

// consent allows an app on the page of the platform and returns the path of the callback.
func (s *site) consent(address string) string {
	s.t.Helper()
	client := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	shown, err := client.Get(address)
	require.NoError(s.t, err)
	page, err := io.ReadAll(shown.Body)
	require.NoError(s.t, err)
	require.NoError(s.t, shown.Body.Close())
	account := regexp.MustCompile(`<option value="([^"]+)"`).FindSubmatch(page)
	require.NotNil(s.t, account, string(page))
	allowed, err := client.PostForm(address, url.Values{"account": {string(account[1])}, "decision": {"allow"}})
	require.NoError(s.t, err)
	require.NoError(s.t, allowed.Body.Close())
	to, err := url.Parse(allowed.Header.Get("Location"))
	require.NoError(s.t, err)
	require.Equal(s.t, "/oauth/callback", to.Path, allowed.Status)
	return to.RequestURI()
}

// An account of X is connected by its owner's consent. The answer counts once, and only for who began.
func TestAnAccountIsConnected(t *testing.T) {
	t.Parallel()
	s := open(t)
	require.NoError(t, s.World.X.AddApp(twitter.App{Name: "pages", ClientID: "pages-app", ClientSecret: "canary-secret-of-the-app", Callbacks: []string{s.url + "/oauth/callback"}}))
	p := s.owner()
	leave := func(fields ...string) string {
		t.Helper()
		got := p.post("/setup/credentials/link", append([]string{"platform", "x"}, fields...)...)
		require.Equal(t, http.StatusOK, got.status, got.body)
		require.NotContains(t, got.body, "canary-secret")
		return html.UnescapeString(regexp.MustCompile(`href="([^"]+)" rel="noreferrer"`).FindStringSubmatch(got.body)[1])
	}
	first := leave("new", "1", "auth_ref", "x-main", "client_id", "pages-app", "client_secret", "canary-secret-of-the-app")
	back := s.consent(first)
	other := s.member("owner")
	require.Equal(t, http.StatusNotFound, other.get(back).status, "the link of another person")
	require.Equal(t, http.StatusSeeOther, s.person().get(back).status, "without a session: sign-in first")
	require.Equal(t, "/setup/credentials?done=credential_link&credential=x-main", p.get(back).header.Get("Location"))
	require.Equal(t, http.StatusNotFound, p.get(back).status, "once")
	require.Equal(t, "x sealed", pgtest.Value[string](s.DB, `select platform || ' ' || split_part(secret_ref, ':', 1) from autopost.credential_bindings where auth_ref = 'x-main'`))
	page := p.get("/setup/credentials").body
	require.Contains(t, page, "renewed automatically")
	require.NotContains(t, page, "canary-secret")

	again := leave("auth_ref", "x-main")
	require.Contains(t, again, "client_id=pages-app", "the app of the stored secret")
	refused := p.get("/oauth/callback?error=access_denied&state=" + url.QueryEscape(stateOf(t, again)))
	require.Contains(t, refused.body, "x-main is not connected")
	require.Equal(t, http.StatusNotFound, p.get("/oauth/callback?code=c&state=unknown").status)
	require.Equal(t, http.StatusUnprocessableEntity, p.post("/setup/credentials/link", "platform", "youtube", "new", "1", "auth_ref", "tube", "client_id", "only-an-id").status)
	require.NotContains(t, s.log(), "canary-secret")
}

func stateOf(t *testing.T, address string) string {
	t.Helper()
	u, err := url.Parse(address)
	require.NoError(t, err)
	return u.Query().Get("state")
}

// answerOf is the JSON of an answer of the API.
func answerOf(t *testing.T, a answer) (body map[string]any) {
	t.Helper()
	require.NoError(t, json.Unmarshal([]byte(a.body), &body), a.body)
	return body
}

// An owner of an account of X takes the app's rights back. The post in flight fails, the later ones wait, and each page
// says so, until the account is linked again: then all are sent in one act.
func TestARevokedAccountIsLinkedAgain(t *testing.T) {
	t.Parallel()
	s := &site{Harness: harness.New(t), t: t, ids: map[string]string{}}
	s.Workspace("news")
	s.Endpoint("news", "cms", "secret-of-the-endpoint")
	s.Exec(`insert into autopost.channels (workspace_id, channel_id, platform, target_id, auth_ref, rate_group) values ('news', 'world', 'x', $1, 'x-main', 'x-main')`, harness.XAccount)
	s.begin()
	require.NoError(t, s.World.X.AddApp(twitter.App{Name: "pages", ClientID: "pages-app", ClientSecret: "canary-secret-of-the-app", Callbacks: []string{s.url + "/oauth/callback"}}))
	p := s.owner()
	link := func(fields ...string) string {
		t.Helper()
		got := p.post("/setup/credentials/link", append([]string{"platform", "x", "auth_ref", "x-main"}, fields...)...)
		require.Equal(t, http.StatusOK, got.status, got.body)
		back := s.consent(html.UnescapeString(regexp.MustCompile(`href="([^"]+)" rel="noreferrer"`).FindStringSubmatch(got.body)[1]))
		return p.get(back).header.Get("Location")
	}
	push := func(text string) {
		t.Helper()
		got, err := s.TryPush(s.url, "secret-of-the-endpoint", `{"text": "`+text+`"}`)
		require.NoError(t, err)
		require.Equal(t, http.StatusAccepted, got.Status)
	}
	require.Contains(t, link("new", "1", "client_id", "pages-app", "client_secret", "canary-secret-of-the-app"), "done=credential_link")
	push("Before the end")
	s.UntilTrue(`select count(*) = 1 from autopost.deliveries where status = 'sent'`)

	s.World.X.Disconnect(harness.XAccount)
	push("It failed first")
	s.UntilTrue(`select count(*) = 1 from autopost.deliveries where status = 'failed_permanent'`)
	push("It waited")
	s.UntilTrue(`select count(*) = 1 from autopost.deliveries where status = 'queued'`)
	const mend = "/setup/credentials?ask=replace&amp;credential=x-main"
	banner := func(path string) string {
		_, after, _ := strings.Cut(p.get(path).body, `id="banner"`)
		shown, _, _ := strings.Cut(after, `<h1`)
		return shown
	}
	s.Until("the banner leads to the credential", func() bool { return strings.Contains(banner("/posts"), mend) })
	for _, path := range []string{"/", "/posts", "/calendar", "/compose", "/decisions", "/channels", "/setup", "/setup/credentials", "/setup/people", "/operations", "/operations/alerts", "/operations/dead"} {
		require.Contains(t, banner(path), mend, path)
		require.Contains(t, banner(path), `role="alert"`, path)
	}
	viewer := s.member("viewer")
	shown := viewer.get("/posts").body
	require.Contains(t, shown, `role="alert"`)
	require.NotContains(t, shown, mend, "only an owner links it again")
	require.Equal(t, 1, pgtest.Value[int](s.DB, `select count(*)::int from autopost.deliveries where status = 'queued'`), "it waits")
	require.Equal(t, 1, pgtest.Value[int](s.DB, `select count(*)::int from autopost.events where action = 'auth_lost'`))

	require.Contains(t, link("requeue", "1"), "done=credential_link")
	s.UntilTrue(`select count(*) = 3 from autopost.deliveries where status = 'sent'`)
	texts := map[string]int{}
	for _, e := range s.Accepted(sim.Filter{Platform: harness.X}) {
		if e.Text != "" {
			texts[e.Text]++
		}
	}
	require.Equal(t, map[string]int{"Before the end": 1, "It failed first": 1, "It waited": 1}, texts, "judged by the log of the platform")
	s.Until("the banner ends", func() bool { return !strings.Contains(banner("/posts"), `role="alert"`) })
	require.NotContains(t, s.log(), "canary-secret")
}
