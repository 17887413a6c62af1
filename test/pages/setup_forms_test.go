package pages

import (
	"bytes"
	"io"
	"mime/multipart"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"autopost/internal/testing/pgtest"
)

var (
	hiddenVersion = regexp.MustCompile(`name="version" value="([^"]*)"`)
	hiddenDigest  = regexp.MustCompile(`name="digest" value="([0-9a-f]{64})"`)
	shownSecret   = regexp.MustCompile(`readonly value="([A-Za-z0-9_-]{20,})"`)
	inputs        = regexp.MustCompile(`<input class="in" id="([a-z_.]+)" name="[a-z_.]+" type="text" value="([^"]*)"`)
	textareas     = regexp.MustCompile(`(?s)<textarea class="in[a-z ]*" id="([a-z_.]+)" name="[a-z_.]+"[^>]*>(.*?)</textarea>`)
	selects       = regexp.MustCompile(`(?s)<select class="in short" id="([a-z_.]+)"[^>]*>(.*?)</select>`)
	selected      = regexp.MustCompile(`<option value="([^"]*)" selected`)
)

// filled returns the fields of the form of a page as a browser would send them, with some changed.
func (p *person) filled(path string, changed ...string) []string {
	p.s.t.Helper()
	page := p.get(path)
	require.Equal(p.s.t, http.StatusOK, page.status, path)
	body := page.body[strings.Index(page.body, `id="form"`):]
	fields := map[string]string{"version": hiddenVersion.FindStringSubmatch(body)[1]}
	for _, m := range append(inputs.FindAllStringSubmatch(body, -1), textareas.FindAllStringSubmatch(body, -1)...) {
		fields[m[1]] = unescaped.Replace(m[2])
	}
	for _, m := range selects.FindAllStringSubmatch(body, -1) {
		if chosen := selected.FindStringSubmatch(m[2]); chosen != nil {
			fields[m[1]] = chosen[1]
		}
	}
	for i := 0; i < len(changed); i += 2 {
		fields[changed[i]] = changed[i+1]
	}
	var all []string
	for name, value := range fields {
		all = append(all, name, value)
	}
	return all
}

var unescaped = strings.NewReplacer("&lt;", "<", "&gt;", ">", "&#34;", `"`, "&#39;", "'", "&amp;", "&")

// A form changes what the person changed, and nothing else. It keeps every value after a refusal.
func TestAFormChangesOneField(t *testing.T) {
	t.Parallel()
	s := open(t)
	p := s.owner()
	row := func() map[string]any {
		return s.JSON(`select to_jsonb(c) - '{updated_at,title}'::text[] from autopost.channels c where c.workspace_id = 'news' and c.channel_id = 'city'`)
	}
	before := row()
	same := p.post("/channels/city/set", p.filled("/channels/city")...)
	require.Equal(t, "/channels/city?done=same", same.header.Get("Location"), same.body)
	got := p.post("/channels/city/set", p.filled("/channels/city", "title", "Город & край")...)
	require.Equal(t, "/channels/city?done=saved", got.header.Get("Location"), got.body)
	require.Equal(t, before, row())
	require.Equal(t, "Город & край", pgtest.Value[string](s.DB, `select title from autopost.channels where channel_id = 'city'`))
	dry := p.post("/channels/city/set", append(p.filled("/channels/city", "posting_window.tue", "10:00-11:00", "settings.long_text", "truncate"), "dry", "1")...)
	require.Equal(t, http.StatusOK, dry.status)
	require.Contains(t, dry.body, "2 fields would change.")
	require.Equal(t, before, row())
	wrong := p.post("/channels/city/set", p.filled("/channels/city", "rate_rps", "-1", "settings", "{", "title", "Kept <b>")...)
	require.Equal(t, http.StatusUnprocessableEntity, wrong.status)
	require.Contains(t, wrong.body, "Write an object as JSON")
	require.Contains(t, wrong.body, `value="Kept &lt;b&gt;"`)
	wrong = p.post("/channels/city/set", p.filled("/channels/city", "rate_rps", "-1", "title", "Kept")...)
	require.Equal(t, http.StatusUnprocessableEntity, wrong.status)
	require.Contains(t, wrong.body, "The value is out of range.")
	require.Contains(t, wrong.body, `aria-invalid="true"`)
	p.cookies["autopost-language"] = "ru"
	require.Contains(t, p.post("/channels/city/set", p.filled("/channels/city", "rate_rps", "-1")...).body, "Значение вне границ.")
	delete(p.cookies, "autopost-language")

	// Another person stores a value between the reading and the sending of the form.
	opened := p.filled("/channels/city", "title", "Mine")
	s.Exec(`select autopost.put_channel('news', 'city', '{"title": "Theirs", "max_parallel": 7}', 'bob', 'r', false)`)
	conflict := p.post("/channels/city/set", opened...)
	require.Equal(t, http.StatusConflict, conflict.status)
	require.Contains(t, conflict.body, "Stored now: Theirs.")
	require.Contains(t, conflict.body, `value="Mine"`)
	require.Equal(t, "Theirs", pgtest.Value[string](s.DB, `select title from autopost.channels where channel_id = 'city'`))
}

// The key in the address of a source is never shown, and survives a change of another field.
func TestAMaskedAddressSurvives(t *testing.T) {
	t.Parallel()
	s := open(t)
	p := s.owner()
	for _, path := range []string{"/setup/sources", "/setup/sources/blog", "/setup/config/export"} {
		require.NotContains(t, p.get(path).body, "topsecret", path)
	}
	got := p.post("/setup/sources/blog/set", p.filled("/setup/sources/blog", "config_json.interval_seconds", "900")...)
	require.Equal(t, "/setup/sources/blog?done=saved", got.header.Get("Location"), got.body)
	require.Equal(t, "https://feeds.example/rss?api_key=topsecret 900", pgtest.Value[string](s.DB,
		`select config_json ->> 'url' || ' ' || (config_json ->> 'interval_seconds') from autopost.pull_sources where source_id = 'blog'`))
	half := p.post("/setup/sources/blog/set", p.filled("/setup/sources/blog", "config_json.url", "https://other.example/?key=[redacted]")...)
	require.Equal(t, http.StatusUnprocessableEntity, half.status)
	require.Contains(t, half.body, "A part of it is hidden.")
	tried := p.post("/setup/sources", "id", "fresh", "kind", "rss", "config_json.url", "http://127.0.0.1:1/feed", "try", "1")
	require.Equal(t, http.StatusOK, tried.status)
	require.Contains(t, tried.body, "The source cannot be read")
	require.Contains(t, tried.body, `value="http://127.0.0.1:1/feed"`)
	require.Equal(t, 0, pgtest.Value[int](s.DB, `select count(*)::int from autopost.pull_sources where source_id = 'fresh'`))
	added := p.post("/setup/sources", "id", "fresh", "kind", "rss", "config_json.url", "https://example.org/feed", "enabled", "false")
	require.Equal(t, "/setup/sources/fresh?done=saved", added.header.Get("Location"), added.body)
	require.Equal(t, http.StatusUnprocessableEntity, p.post("/setup/sources", "id", "fresh", "kind", "rss", "config_json.url", "https://example.org/2").status, "the name is taken")
}

// A new endpoint shows its secret once, with a line that works.
func TestASecretIsShownOnce(t *testing.T) {
	t.Parallel()
	s := open(t)
	p := s.owner()
	made := p.post("/setup/endpoints", "id", "cms", "kind", "webhook_push")
	require.Equal(t, http.StatusOK, made.status, made.body)
	secret := shownSecret.FindStringSubmatch(made.body)[1]
	require.Contains(t, made.body, "Authorization: Bearer "+secret)
	require.NotContains(t, p.get("/setup/endpoints/cms").body, secret)
	pushed := s.person()
	pushed.header.Set("Authorization", "Bearer "+secret)
	pushed.header.Set("Content-Type", "application/json")
	require.Equal(t, http.StatusAccepted, pushed.raw("/hooks/push", `{"text": "Hello"}`).status)
	rotated := p.post("/setup/endpoints/cms/rotate")
	require.Equal(t, http.StatusOK, rotated.status)
	require.NotEqual(t, secret, shownSecret.FindStringSubmatch(rotated.body)[1])
	require.Equal(t, "/setup/endpoints/cms?done=act_disable", p.post("/setup/endpoints/cms/disable").header.Get("Location"))
	require.Equal(t, http.StatusUnauthorized, pushed.raw("/hooks/push", `{"text": "Hello again"}`).status)
}

// raw sends a body that is not a form.
func (p *person) raw(path, body string) answer {
	p.s.t.Helper()
	r, err := http.NewRequestWithContext(p.s.t.Context(), http.MethodPost, p.s.url+path, strings.NewReader(body))
	require.NoError(p.s.t, err)
	for name, values := range p.header {
		r.Header[name] = values
	}
	for name, value := range p.cookies {
		r.AddCookie(&http.Cookie{Name: name, Value: value})
	}
	client := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	got, err := client.Do(r)
	require.NoError(p.s.t, err)
	defer func() { _ = got.Body.Close() }()
	text, err := io.ReadAll(got.Body)
	require.NoError(p.s.t, err)
	return answer{got.StatusCode, got.Header, string(text), got.Cookies()}
}

// A group is paused in two steps: the question names the channels, then it is done.
func TestAGroupIsPaused(t *testing.T) {
	t.Parallel()
	s := open(t)
	p := s.member("operator")
	require.Contains(t, p.get("/setup/limits").body, "telegram/bot")
	require.Contains(t, p.get("/setup/groups/telegram%2Fbot?ask=pause").body, "It affects 4 channels.")
	require.Equal(t, "/setup/groups/telegram%2Fbot?done=act_pause", p.post("/setup/groups/telegram%2Fbot/pause", "hours", "2", "reason", "storm").header.Get("Location"))
	require.Equal(t, 4, pgtest.Value[int](s.DB, `select count(*)::int from autopost.channels where workspace_id = 'news' and paused_until > now() + interval '119 minutes'`))
	require.Equal(t, "storm", pgtest.Value[string](s.DB, `select reason from autopost.admin_audit_log where action = 'pause_group'`))
	viewer := s.member("viewer")
	require.NotContains(t, viewer.get("/setup/groups/telegram%2Fbot").body, "?ask=")
	require.Equal(t, http.StatusForbidden, viewer.post("/setup/groups/telegram%2Fbot/pause").status)
	require.Equal(t, http.StatusForbidden, p.post("/setup/webhooks/crm/remove").status)
	owner := s.owner2()
	require.Contains(t, owner.get("/channels/night?ask=remove").body, "Remove night?")
	s.Exec(`update autopost.sessions set confirmed_at = confirmed_at - interval '1 hour'`)
	require.Contains(t, owner.post("/setup/webhooks/crm/remove").body, `name="current_password"`)
	require.Equal(t, "/setup/webhooks?done=removed", owner.post("/setup/webhooks/crm/remove", "current_password", password).header.Get("Location"))
}

// owner2 is a further owner of the workspace, who does not own the installation.
func (s *site) owner2() *person { return s.member("owner") }

// Settings are changed by the owner of the installation alone, with a record.
func TestSettingsOnAPage(t *testing.T) {
	t.Parallel()
	s := open(t)
	p := s.owner()
	require.Contains(t, p.get("/setup/settings?key=max_attempts").body, `name="value"`)
	wrong := p.post("/setup/settings", "key", "max_attempts", "value", "0")
	require.Equal(t, http.StatusUnprocessableEntity, wrong.status)
	require.Contains(t, wrong.body, "max_attempts must be a whole number")
	require.Equal(t, "/setup/settings?done=saved", p.post("/setup/settings", "key", "max_attempts", "value", "7", "reason", "slow").header.Get("Location"))
	require.Equal(t, "7", pgtest.Value[string](s.DB, `select value::text from autopost.settings where key = 'max_attempts'`))
	require.Equal(t, 1, pgtest.Value[int](s.DB, `select count(*)::int from autopost.admin_audit_log where action = 'apply_settings' and reason = 'slow' and operator like 'user:%'`))
	other := s.member("owner")
	require.NotContains(t, other.get("/setup/settings?key=max_attempts").body, `name="value"`)
	require.Equal(t, http.StatusForbidden, other.post("/setup/settings", "key", "max_attempts", "value", "8").status)
}

// A file is uploaded, its changes are shown, and exactly those are applied.
func TestAFileIsApplied(t *testing.T) {
	t.Parallel()
	s := open(t)
	p := s.owner()
	var body bytes.Buffer
	form := multipart.NewWriter(&body)
	require.NoError(t, form.WriteField("csrf", hiddenToken.FindStringSubmatch(p.get("/setup").body)[1]))
	require.NoError(t, form.WriteField("format", "channels"))
	file, err := form.CreateFormFile("file", "channels.csv")
	require.NoError(t, err)
	_, err = file.Write([]byte("channel_id,platform,target_id,auth_ref,title\nnew,telegram,@new,bot,Новый\ncity,,,,Город\n"))
	require.NoError(t, err)
	require.NoError(t, form.Close())
	p.header.Set("Content-Type", form.FormDataContentType())
	shown := p.raw("/setup/config", body.String())
	p.header.Del("Content-Type")
	require.Equal(t, http.StatusOK, shown.status, shown.body)
	require.Contains(t, shown.body, "2 changes")
	text := "channel_id,platform,target_id,auth_ref,title\nnew,telegram,@new,bot,Новый\ncity,,,,Город\n"
	digest := hiddenDigest.FindStringSubmatch(shown.body)[1]
	s.Exec(`select autopost.put_channel('news', 'city', '{"title": "Another"}', 'bob', 'r', false)`)
	require.Equal(t, http.StatusConflict, p.post("/setup/config", "format", "channels", "text", text, "digest", digest).status, "it changed meanwhile")
	fresh := p.post("/setup/config", "format", "channels", "text", text)
	require.Equal(t, "/setup/config?done=config", p.post("/setup/config", "format", "channels", "text", text, "digest", hiddenDigest.FindStringSubmatch(fresh.body)[1]).header.Get("Location"))
	require.Equal(t, "Новый", pgtest.Value[string](s.DB, `select title from autopost.channels where channel_id = 'new'`))
	feeds := p.post("/setup/config", "format", "feeds", "text", `<opml version="2.0"><body><outline text="A" xmlUrl="https://a.example/feed"/></body></opml>`)
	require.Contains(t, feeds.body, "https://a.example/feed")
	bad := p.post("/setup/config", "text", "workspaces:\n  news:\n    credentials:\n      x:\n        platform: telegram\n        secret_ref: file:/etc/passwd\n")
	require.Equal(t, http.StatusUnprocessableEntity, bad.status)
	require.Contains(t, bad.body, "must have secret_ref sealed:x")
	require.Equal(t, http.StatusForbidden, s.member("operator").get("/setup/config").status)
}

// The preview of a template is that of the form, before anything is stored.
func TestATemplateIsPreviewed(t *testing.T) {
	t.Parallel()
	s := open(t)
	p := s.owner()
	p.header.Set("HX-Target", "preview")
	got := p.post("/setup/templates/digest/preview", "body", "News: {title}", "sample", "title: <b>Bridge</b>")
	p.header.Del("HX-Target")
	require.True(t, strings.HasPrefix(got.body, `<section class="panel" id="preview"`), got.body)
	require.Contains(t, got.body, "News: &lt;b&gt;Bridge&lt;/b&gt;")
	require.Equal(t, "/setup/templates/digest?platform="+url.QueryEscape("*")+"&done=saved", p.post("/setup/templates/digest/set", "platform", "*", "body", "News: {title}").header.Get("Location"))
	require.Equal(t, 2, pgtest.Value[int](s.DB, `select max(version)::int from autopost.templates where template_id = 'digest'`))
	require.Equal(t, http.StatusUnprocessableEntity, p.post("/setup/templates/digest/set", "body", "").status)
}

// A result webhook is tried by a test request. What its receiver did not accept is listed, and sent again.
func TestAWebhookIsTried(t *testing.T) {
	t.Parallel()
	s := open(t)
	p := s.owner()
	sends := func() int {
		return pgtest.Value[int](s.DB, `select count(*)::int from autopost.webhook_sends where webhook_id = 'crm'`)
	}
	first := sends()
	require.Contains(t, p.get("/setup/webhooks/crm").body, `id="sends"`)
	s.Exec(`select autopost.put_webhook('news', 'crm', '{"enabled": true}', 'ann', 'r', false)`)
	require.Equal(t, "/setup/webhooks/crm?done=act_test", p.post("/setup/webhooks/crm/test").header.Get("Location"))
	require.Equal(t, first+1, sends())

	s.Exec(`delete from autopost.webhook_sends`)
	require.Contains(t, p.post("/setup/webhooks/crm/replay", "hours", "1").body, "There is nothing to send again.")
	s.Exec(`insert into autopost.webhook_sends (workspace_id, webhook_id, event_id, event_type, event_at, body, status, due_at, http_status, error, created_at, finished_at)
		values ('news', 'crm', autopost.new_id(), 'delivery.sent', now(), '{}', 'dead', now(), 500, 'the receiver is away', now(), now())`)
	page := p.get("/setup/webhooks/crm").body
	require.Contains(t, page[strings.Index(page, `id="sends"`):], "the receiver is away")
	require.Contains(t, p.get("/setup/webhooks/crm?ask=replay").body, "1 event is selected now.")
	require.Equal(t, "/setup/webhooks/crm?done=act_replay", p.post("/setup/webhooks/crm/replay", "hours", "1").header.Get("Location"))
	require.Zero(t, pgtest.Value[int](s.DB, `select count(*)::int from autopost.webhook_sends where status = 'dead'`))
}

// A feed is tried: the page shows its posts, those that would go out and their channels. Nothing is stored.
func TestASourceIsTried(t *testing.T) {
	t.Parallel()
	s := open(t)
	p := s.owner()
	s.World.Feeds.Set("wire", "application/rss+xml", []byte(`<rss version="2.0"><channel><item><title>The bridge &lt;b&gt;closes&lt;/b&gt;</title><guid>1</guid></item></channel></rss>`))
	at := s.WorldURL + "/feeds/wire"
	tried := p.post("/setup/sources", "id", "fresh", "kind", "rss", "config_json.url", at, "config_json.backfill_items", "1", "try", "1")
	require.Equal(t, http.StatusOK, tried.status)
	s.harmless("/setup/sources", tried.body)
	panel := tried.body[strings.Index(tried.body, `id="trial"`):]
	require.Contains(t, panel, "The bridge")
	require.Contains(t, panel, "Published")
	require.Contains(t, panel, "city")
	require.Contains(t, tried.body, `value="`+at+`"`, "the form stays")
	require.Zero(t, pgtest.Value[int](s.DB, `select count(*)::int from autopost.pull_sources where source_id = 'fresh'`))
	require.Zero(t, pgtest.Value[int](s.DB, `select count(*)::int from autopost.deliveries where rendered_text like 'The bridge%'`))
}
