package pages

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"html"
	"image"
	"image/color"
	"image/png"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"autopost"
	"autopost/internal/testing/pgtest"
	"autopost/internal/testing/posttest"
)

// above are the pages that need more than the role viewer. An owner of the installation sees all.
var above = map[string]string{"/operations/audit": "operator", "/operations/daemons": "installation"}

func (s *site) operationsPaths() []string {
	if s.ids["job"] == "" {
		s.fileJob("seen")
		s.ids["picture"] = s.depict(color.RGBA{46, 125, 147, 255})
	}
	return []string{
		"/operations", "/operations/dead", "/operations/dead?view=failed", "/operations/dead?view=retrying&ask=skip", "/operations/dead?ask=retry", "/operations/dead?code=nothing",
		"/operations/alerts", "/operations/events", "/operations/events?result=all&since=week", "/operations/audit", "/operations/audit?verify=1", "/operations/daemons",
		"/operations/media", "/operations/media?kind=video", "/operations/files", "/operations/files?status=failed", s.ids["job"], s.ids["job"] + "?form=reject", s.ids["later"] + "?form=prepare",
	}
}

// fileJob adds a folder with a job that waits, and an approval of a job without a payload.
func (s *site) fileJob(reason string) {
	s.t.Helper()
	s.Exec(`insert into autopost.pull_sources (workspace_id, source_id, kind, config_json) values ('news', 'files', 'filebus', '{"root": "/nowhere", "channels": {"telegram": "city"}}')`)
	s.Exec(`select autopost.put_publish_job('news', 'files', jsonb_build_object('job_id', 'dance', 'platform', 'telegram', 'publish_config', jsonb_build_object('title', $1::text),
		'file', jsonb_build_object('complete', true, 'artifacts', '{}'::jsonb)))`, "Cat vibing "+hostile[0])
	s.Exec(`select autopost.decide_publish_job('news', 'later', 'telegram', 'approve', null, 'ann', $1)`, reason)
	s.ids["job"], s.ids["later"] = "/operations/files/dance/telegram", "/operations/files/later/telegram"
}

// depict stores a picture of one colour and returns its reference.
func (s *site) depict(c color.Color) string {
	s.t.Helper()
	picture := image.NewRGBA(image.Rect(0, 0, 160, 90))
	for i := range 160 * 90 {
		picture.Set(i%160, i/160, c)
	}
	var content bytes.Buffer
	require.NoError(s.t, png.Encode(&content, picture))
	s.Exec(`select autopost.create_api_key('news', '{"name": "pictures", "role": "editor"}', encode(sha256('pictures'), 'hex'), 'ann', 'r') where not exists (
		select from autopost.api_keys k where k.name = 'pictures')`)
	r, err := http.NewRequestWithContext(context.Background(), http.MethodPost, s.url+"/api/v1/media?kind=image", &content)
	require.NoError(s.t, err)
	r.Header.Set("Authorization", "Bearer pictures")
	got, err := http.DefaultClient.Do(r)
	require.NoError(s.t, err)
	defer func() { _ = got.Body.Close() }()
	require.Equal(s.t, http.StatusCreated, got.StatusCode)
	var stored struct {
		BlobRef string `json:"blob_ref"`
	}
	require.NoError(s.t, json.NewDecoder(got.Body).Decode(&stored))
	return stored.BlobRef
}

// deadIn makes a dead delivery in a channel.
func (s *site) deadIn(channel string) string {
	s.t.Helper()
	id := posttest.Delivery(s.DB, "news", channel, autopost.StatusQueued)
	s.Exec(`select autopost.skip_deliveries('news', array[$1]::uuid[], 'ann', 'r', false)`, id)
	return id
}

// Dead deliveries are filtered, previewed and sent again. What cannot go stays and says why.
func TestDeadLettersAreSentAgain(t *testing.T) {
	t.Parallel()
	s := open(t)
	p := s.owner()
	for range 3 {
		s.deadIn("city")
	}
	held := s.deadIn("sport")
	s.Exec(`update autopost.deliveries set last_error = jsonb_build_object('category', 'PERMANENT', 'scope', 'channel', 'code', 'tg_forbidden', 'known', true, 'message', $1::text) where channel_id = 'sport' and status = 'dead'`, hostileText())
	require.Contains(t, p.get("/operations/dead").body, "tg_forbidden")
	require.NotContains(t, p.get("/operations/dead?channel=city").body, "tg_forbidden")
	require.Contains(t, p.get("/operations/dead?code=tg_forbidden").body, held)
	require.Contains(t, p.get("/operations/dead?from=2020-01-01&until=2020-01-02").body, "Nothing matches")
	require.Equal(t, http.StatusUnprocessableEntity, p.get("/operations/dead?from=yesterday").status)
	p.header.Set("HX-Target", "dead")
	require.True(t, strings.HasPrefix(p.get("/operations/dead").body, `<form class="panel" id="dead"`), "a filter replaces the list alone")
	p.header.Del("HX-Target")

	s.Exec(`update autopost.sessions set confirmed_at = confirmed_at - interval '1 hour'`)
	asked := p.harmless("/operations/dead?ask=retry").body
	require.Contains(t, asked, "Send again: 4 deliveries?", "the preview needs no password")
	require.Contains(t, asked, "the channel is disabled or paused: resume it first")
	require.Equal(t, 5, pgtest.Value[int](s.DB, `select count(*)::int from autopost.deliveries where status = 'dead'`), "a preview changes nothing")
	form := formOf(asked, "/operations/dead/retry")
	again := p.submit("/operations/dead/retry", form)
	require.Contains(t, again.body, `name="current_password"`)
	form.Set("current_password", password)
	require.Equal(t, "/operations/dead?view=dead&done=retry", p.submit("/operations/dead/retry", form).header.Get("Location"))
	require.Equal(t, 1, pgtest.Value[int](s.DB, `select count(*)::int from autopost.deliveries where status = 'dead'`))
	require.Equal(t, http.StatusConflict, p.post("/operations/dead/retry").status, "nothing chosen")

	skip := p.get("/operations/dead?view=retrying&ask=skip&id=" + url.QueryEscape("city:"+pgtest.Value[string](s.DB, `select delivery_id::text from autopost.deliveries where status = 'retry' limit 1`))).body
	require.Contains(t, skip, "Skip 1 delivery?")
	require.Equal(t, http.StatusSeeOther, p.submit("/operations/dead/skip", formOf(skip, "/operations/dead/skip")).status)
	require.Equal(t, 2, pgtest.Value[int](s.DB, `select count(*)::int from autopost.deliveries where status = 'dead'`))
}

// An act on more than ten channels needs the count typed. A wrong one keeps the form.
func TestActsOnManyChannelsNeedTheCount(t *testing.T) {
	t.Parallel()
	s := open(t)
	p := s.owner()
	for i := range 12 {
		posttest.Channel(s.DB, "news", fmt.Sprintf("many-%d", i), posttest.MaxParallel(10))
		s.deadIn(fmt.Sprintf("many-%d", i))
	}
	asked := p.get("/operations/dead?ask=retry").body
	require.Contains(t, asked, "Type 13 to confirm")
	form := formOf(asked, "/operations/dead/retry")
	form.Set("reason", "the bot is back")
	wrong := p.submit("/operations/dead/retry", form)
	require.Equal(t, http.StatusUnprocessableEntity, wrong.status)
	require.Contains(t, wrong.body, "The number must be 13.")
	require.Contains(t, wrong.body, `value="the bot is back"`)
	form = formOf(wrong.body, "/operations/dead/retry")
	form.Set("count", "13")
	require.Equal(t, http.StatusSeeOther, p.submit("/operations/dead/retry", form).status)
	require.Zero(t, pgtest.Value[int](s.DB, `select count(*)::int from autopost.deliveries where status = 'dead'`))
}

func TestAlertsHaveRemediesAndAreAcknowledged(t *testing.T) {
	t.Parallel()
	s := open(t)
	p := s.owner()
	s.Exec(`select autopost.raise_alert('news', 'auth_lost', 'credential:bot', jsonb_build_object('message', $1::text), '{}')`, hostileText())
	page := p.harmless("/operations/alerts").body
	require.Contains(t, page, "2 alerts are open")
	require.Contains(t, page, `href="/operations/dead"`)
	for _, button := range []string{`href="/setup/credentials" aria-label="Replace the secret: `, `href="/operations/dead" aria-label="Send again: `} {
		require.Contains(t, p.get("/").body, button, "the overview has the buttons, too")
	}
	require.Less(t, strings.Index(page, "/setup/credentials"), strings.Index(page, `href="/operations/dead"`+" aria"), "the worst first")
	id := pgtest.Value[string](s.DB, `select alert_id::text from autopost.alerts where kind = 'dead'`)
	require.Equal(t, http.StatusSeeOther, p.post("/operations/alerts/"+id+"/acknowledge").status)
	require.Contains(t, p.get("/operations/alerts").body, "Ann knows about it since")
	require.Equal(t, http.StatusForbidden, s.member("editor").post("/operations/alerts/"+id+"/acknowledge").status)
	require.NotContains(t, s.member("viewer").get("/operations/alerts").body, "Acknowledge")
}

// The raw answer of an event is opened by a link that works once, by an owner who confirms the password.
func TestEventsShowErrorsAndTheRawAnswer(t *testing.T) {
	t.Parallel()
	s := open(t)
	p := s.owner()
	id := pgtest.Value[string](s.DB, `insert into autopost.events (workspace_id, id, ts, action, result, channel_id, payload_ref, error, meta)
		values ('news', autopost.new_id(), now(), 'failed_permanent', 'error', 'city', 'raw/20260601/' || gen_random_uuid(), jsonb_build_object('code', 'tg_forbidden', 'message', $1::text), jsonb_build_object('note', $1::text))
		returning id::text`, hostileText())
	page := p.harmless("/operations/events").body
	require.Contains(t, page, "tg_forbidden")
	require.NotContains(t, p.get("/operations/events?result=ok").body, "tg_forbidden")
	require.Contains(t, p.get("/operations/events?channel=city&action=failed_permanent").body, "tg_forbidden")
	require.NotContains(t, p.get("/operations/events?channel=sport&since=hour").body, "tg_forbidden")
	require.NotContains(t, s.member("operator").get("/operations/events").body, "ask=raw", "an owner only")

	require.Contains(t, p.get("/operations/events?ask=raw&event="+id).body, "Open the raw answer")
	s.Exec(`update autopost.sessions set confirmed_at = confirmed_at - interval '1 hour'`)
	at := "/operations/events/" + id + "/raw"
	require.Contains(t, p.post(at, "reason", "a customer asks").body, `name="current_password"`)
	made := p.post(at, "reason", "a customer asks", "current_password", password)
	link := regexp.MustCompile(`href="(/raw/news/[0-9a-f]{64})"`).FindStringSubmatch(made.body)
	require.NotEmpty(t, link, made.body)
	require.Equal(t, http.StatusGone, p.get(link[1]).status, "this payload is not stored")
	require.Equal(t, http.StatusNotFound, p.get(link[1]).status, "the link works once")
	require.Equal(t, "a customer asks", pgtest.Value[string](s.DB, `select reason from autopost.admin_audit_log where action = 'create_raw_link'`))
}

func TestTheAuditLogIsChecked(t *testing.T) {
	t.Parallel()
	s := open(t)
	p := s.owner()
	s.Exec(`select autopost.put_channel('news', 'city', jsonb_build_object('title', $1::text), 'bob', $1, false)`, hostileText())
	page := p.harmless("/operations/audit").body
	require.Contains(t, page, "put_channel")
	require.NotContains(t, p.get("/operations/audit?action=pause_channel").body, "put_channel")
	require.Contains(t, p.get("/operations/audit?operator=bob&subject=channel:city").body, "put_channel")
	kept := regexp.MustCompile(`\d+:[0-9a-f]{64}`).FindString(page)
	require.Contains(t, p.get("/operations/audit?verify=1").body, "the chain is unbroken")
	require.Contains(t, p.get("/operations/audit?verify=1&head="+kept).body, "the chain is unbroken")
	require.Contains(t, p.get("/operations/audit?verify=1&head=5:"+strings.Repeat("0", 64)).body, "No: 1 row is wrong or missing.")
	for _, wrong := range []string{"yesterday", "5:x", "5"} {
		require.Equal(t, http.StatusUnprocessableEntity, p.get("/operations/audit?verify=1&head="+wrong).status, wrong)
	}
	s.Exec(`alter table autopost.admin_audit_log disable trigger all`)
	s.Exec(`update autopost.admin_audit_log set reason = 'nothing' where action = 'put_channel' and operator = 'bob'`)
	require.Contains(t, p.get("/operations/audit?verify=1").body, "wrong or missing.")
	require.Equal(t, http.StatusForbidden, s.member("approver").get("/operations/audit").status)
}

// Daemons belong to the installation: an owner of another workspace does not see them.
func TestDaemonsAreForTheInstallation(t *testing.T) {
	t.Parallel()
	s := open(t)
	p := s.owner()
	s.Until("the daemon is listed", func() bool { return strings.Contains(p.get("/operations/daemons").body, "1 daemon is alive") })
	other := s.member("owner")
	require.Equal(t, http.StatusForbidden, other.get("/operations/daemons").status)
	require.NotContains(t, other.get("/operations").body, "/operations/daemons")
	require.Equal(t, http.StatusForbidden, other.get("/api/v1/daemons").status)
	var list struct {
		Items []struct {
			RunID string `json:"run_id"`
			Alive bool   `json:"alive"`
		} `json:"items"`
	}
	require.NoError(t, json.Unmarshal([]byte(p.get("/api/v1/daemons").body), &list))
	require.Len(t, list.Items, 1)
	require.True(t, list.Items[0].Alive)
}

func TestMediaAreShown(t *testing.T) {
	t.Parallel()
	s := open(t)
	p := s.owner()
	require.Contains(t, p.get("/operations/media").body, "No medium matches")
	ref := s.depict(color.Black)
	page := p.get("/operations/media").body
	require.Contains(t, page, `src="/api/v1/media/`+ref+`"`)
	shown := p.get("/api/v1/media/" + ref)
	require.Equal(t, http.StatusOK, shown.status)
	require.Equal(t, "image/png", shown.header.Get("Content-Type"))
	require.Contains(t, shown.header.Get("Content-Security-Policy"), "sandbox")
	require.NotContains(t, p.get("/operations/media?kind=video").body, ref)
	require.Contains(t, p.get("/operations/media?unused=true").body, ref)
	require.Equal(t, http.StatusUnauthorized, s.person().get("/api/v1/media/"+ref).status)
}

func TestFileJobsAreDecidedOnPages(t *testing.T) {
	t.Parallel()
	s := open(t)
	p := s.owner()
	s.fileJob(hostileText())
	require.Contains(t, p.harmless("/operations/files").body, "Cat vibing")
	require.NotContains(t, p.get("/operations/files?status=failed").body, "Cat vibing")
	page := p.harmless(s.ids["job"]).body
	require.Contains(t, page, "waits for an approval")
	require.Contains(t, p.get(s.ids["job"]+"?form=reject").body, "Why is it rejected?")
	viewer := s.member("viewer")
	require.NotContains(t, viewer.get(s.ids["job"]).body, "Approve")
	require.Equal(t, http.StatusForbidden, viewer.post(s.ids["job"]+"/reject").status)
	require.Equal(t, http.StatusConflict, p.post(s.ids["job"]+"/approve", "digest", strings.Repeat("0", 64)).status, "another content")
	require.Equal(t, s.ids["job"]+"?done=job_approve", p.submit(s.ids["job"]+"/approve", formOf(page, s.ids["job"]+"/approve")).header.Get("Location"))
	require.Equal(t, "approved", pgtest.Value[string](s.DB, `select status from autopost.publish_jobs where job_id = 'dance'`))
	require.Equal(t, "page", pgtest.Value[string](s.DB, `select source from autopost.approvals where subject = 'job:dance'`))

	p.harmless(s.ids["later"])
	bad := p.post(s.ids["later"]+"/prepare", "title", hostileText(), "privacy", "public", "tags", "a, b")
	require.Equal(t, http.StatusUnprocessableEntity, bad.status)
	s.harmless(s.ids["later"], bad.body)
	require.Contains(t, bad.body, html.EscapeString(hostile[3]), "the form keeps its values")
	require.Equal(t, http.StatusSeeOther, p.post(s.ids["later"]+"/prepare", "title", "Later", "video", "v.mp4", "privacy", "public", "tags", "a, b").status)
	require.Equal(t, http.StatusNotFound, p.get("/operations/files/nothing/telegram").status)

	// The address of the post comes from a file: only that of a web page is a link.
	for _, c := range []struct {
		address string
		linked  bool
	}{
		{"https://www.youtube.com/watch?v=dQw4w9WgXcQ", true}, {"javascript:alert(document.domain)", false}, {"//evil.example/x", false}, {"http://evil.example/x", false}, {"https:evil", false},
	} {
		s.Exec(`update autopost.publish_jobs set post_url = $1 where job_id = 'dance'`, c.address)
		page := p.harmless(s.ids["job"]).body
		require.Contains(t, page, html.EscapeString(c.address), "it is shown")
		require.Equal(t, c.linked, strings.Contains(page, `href="`+html.EscapeString(c.address)+`"`), c.address)
	}
}

var (
	formTag   = regexp.MustCompile(`(?s)<form[^>]*action="([^"]*)"[^>]*>(.*?)</form>`)
	inputTag  = regexp.MustCompile(`<input[^>]*>`)
	attribute = regexp.MustCompile(`([a-z-]+)="([^"]*)"`)
)

// formOf returns the fields of the form with this action, as a browser would send them.
func formOf(page, action string) url.Values {
	form := url.Values{}
	for _, m := range formTag.FindAllStringSubmatch(page, -1) {
		if html.UnescapeString(m[1]) != action {
			continue
		}
		for _, tag := range inputTag.FindAllString(m[2], -1) {
			of := map[string]string{}
			for _, a := range attribute.FindAllStringSubmatch(tag, -1) {
				of[a[1]] = html.UnescapeString(a[2])
			}
			if of["type"] != "checkbox" && of["type"] != "radio" || strings.Contains(tag, " checked") {
				form.Add(of["name"], of["value"])
			}
		}
	}
	return form
}

// submit posts fields as they are.
func (p *person) submit(path string, form url.Values) answer {
	p.s.t.Helper()
	return p.do(http.MethodPost, path, form)
}
