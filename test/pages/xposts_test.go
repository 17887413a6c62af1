package pages

import (
	"net/http"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"autopost"
	"autopost/internal/testing/pgtest"
	"autopost/internal/testing/posttest"
)

var hrefs = regexp.MustCompile(`href="([^"]*)"`)

func (s *site) xpostsPaths() []string {
	if s.ids["x pending"] == "" {
		s.globalX("Nyx outmaneuvered Helion")
	}
	return []string{"/x-posts", "/x-posts?status=failed", "/x-posts?reject=" + s.ids["x pending"], "/admin/x-global-posts.html"}
}

// globalX configures Global X, with an event in some statuses. words are in each.
func (s *site) globalX(words string) {
	s.t.Helper()
	posttest.Channel(s.DB, "news", "global", posttest.Platform(autopost.X), posttest.Group("x"))
	s.Exec(`insert into autopost.credential_bindings (workspace_id, auth_ref, platform, secret_ref) values ('news', 'x', 'x', 'env:TEST_X_TOKEN') on conflict do nothing`)
	s.Exec(`select autopost.put_x_post_config('news', '{"channel_id": "global", "moderation": {"enabled": true}, "rate": {"perHour": 6}, "templates": {"combat": "{winner_name} won: {summary}"}}', 'ann', 'r', false)`)
	s.unlimited()
	for _, status := range []string{"x pending", "x failed", "x rejected", "x approved"} {
		answer := s.JSON(`select autopost.receive_event('news', 'editors', jsonb_build_object('event', 'COMBAT.SUMMARY.GENERATED', 'payload', jsonb_build_object('type', 'combat', 'createdAt', '2026-11-28T10:00:00Z', 'encounterId', $1::text,
			'winner', jsonb_build_object('id', 'a', 'name', 'Nyx'), 'loser', jsonb_build_object('id', 'b', 'name', 'Helion'), 'rounds', 7, 'summaryText', $2::text)))`, status, words+" "+status)
		require.NotNil(s.t, answer["submission_id"], answer)
		s.ids[status] = answer["submission_id"].(string)
	}
	s.Exec(`select autopost.decide_submission('news', $1::uuid, 'reject', '{"source": "sql"}', 'olga', $2)`, s.ids["x rejected"], words)
	s.Exec(`select autopost.decide_submission('news', $1::uuid, 'approve', '{"source": "sql"}', 'olga', 'r')`, s.ids["x approved"])
	s.Exec(`update autopost.submissions set status = 'failed', last_error = jsonb_build_object('category', 'PERMANENT', 'scope', 'delivery', 'code', 'http_400', 'known', true, 'message', $2::text) where submission_id = $1::uuid`, s.ids["x failed"], words)
}

// The page has all sections of the founding document, and its address of that document.
func TestGlobalXIsConfigured(t *testing.T) {
	t.Parallel()
	s := open(t)
	p := s.owner()
	require.Contains(t, p.get("/x-posts").body, "No X channel posts for events")
	require.NotContains(t, p.get("/").body, `href="/x-posts"`, "not configured")
	s.globalX("won")
	page := p.get("/admin/x-global-posts.html").body
	for _, section := range []string{"Configuration", "To decide", "Recent activity", "In numbers", "Try again", "Template of pictures"} {
		require.Contains(t, page, section)
	}
	require.Contains(t, p.get("/").body, `href="/x-posts"`)
	require.Contains(t, page, "The global account posts")
	require.Contains(t, page, "Nyx: Celestial ranger in neon forest", "the preview of the default template")

	s.Exec(`update autopost.settings set value = '2' where key = 'global_x_posting_rate_per_hour'`)
	page = p.get("/x-posts").body
	require.Contains(t, page, `name="perHour" type="number" min="1" value="6"`, "what is stored")
	require.Contains(t, page, "In effect: 2", "what the environment allows")

	form := formOf(page, "/x-posts/config")
	form.Set("mode", "hold")
	form.Set("channel_id", "global")
	form.Del("enableVideos")
	form.Set("perDay", "25")
	for kind, body := range map[string]string{"image": "{avatar_name} emerges: {prompt}", "video": "New video drop: {title}", "combat": "{winner_name} won: {summary}"} {
		form.Set("template-"+kind, body)
	}
	require.Equal(t, "/x-posts?done=xposts_config", p.submit("/x-posts/config", form).header.Get("Location"))
	page = p.get("/x-posts").body
	require.Contains(t, page, "Nyx emerges: Celestial ranger in neon forest")
	require.Contains(t, page, "Posts wait: the account is on hold")
	require.Equal(t, "false", pgtest.Value[string](s.DB, `select config ->> 'enableVideos' from autopost.x_post_config where workspace_id = 'news'`))

	form.Set("template-image", "{nothing} "+hostileText())
	form.Set("perDay", "24")
	wrong := p.submit("/x-posts/config", form)
	require.Equal(t, http.StatusUnprocessableEntity, wrong.status)
	require.Contains(t, wrong.body, `value="24"`, "the form keeps its values")
	s.harmless("/x-posts", wrong.body)
	p.header.Set("HX-Target", "preview-image")
	form.Set("template-image", "Seen: {prompt}")
	part := p.submit("/x-posts/preview", form)
	require.Contains(t, part.body, "Seen: Celestial ranger")
	require.NotContains(t, part.body, "<html")
	p.header.Del("HX-Target")
	require.Contains(t, p.submit("/x-posts/preview", form).body, "Seen: Celestial ranger", "also without script")
	form.Set("perHour", "many")
	require.Equal(t, http.StatusUnprocessableEntity, p.submit("/x-posts/config", form).status)
	approver := s.member("approver")
	require.Equal(t, http.StatusForbidden, approver.post("/x-posts/config", "perHour", "1", "perDay", "1", "mode", "live").status)
}

// Events are approved, rejected and retried on the page. A refused account is said aloud.
func TestEventsOfGlobalXAreDecided(t *testing.T) {
	t.Parallel()
	s := open(t)
	p := s.owner()
	s.globalX("Nyx " + hostileText())
	for _, path := range s.xpostsPaths() {
		p.harmless(path)
	}
	at := "/x-posts/" + s.ids["x pending"]
	form := formOf(p.get("/x-posts").body, at+"/approve")
	s.Exec(`update autopost.sessions set confirmed_at = confirmed_at - interval '1 hour'`)
	require.Contains(t, p.submit(at+"/approve", form).body, `name="current_password"`)
	form.Set("current_password", password)
	require.Equal(t, "/x-posts?done=xposts_approve", p.submit(at+"/approve", form).header.Get("Location"))
	second := p.submit(at+"/approve", form)
	require.Equal(t, http.StatusConflict, second.status)
	require.Contains(t, second.body, "Ann approved this post.")
	require.Equal(t, "page", pgtest.Value[string](s.DB, `select decision_source from autopost.submissions where submission_id = $1::uuid`, s.ids["x pending"]))
	require.Equal(t, http.StatusSeeOther, p.post("/x-posts/"+s.ids["x failed"]+"/retry").status)
	require.NotEqual(t, "failed", pgtest.Value[string](s.DB, `select status from autopost.submissions where submission_id = $1::uuid`, s.ids["x failed"]))
	require.Equal(t, http.StatusNotFound, p.post("/x-posts/"+s.ids["x failed"]+"/explode").status)
	require.NotContains(t, p.get("/x-posts?status=posted").body, s.ids["x rejected"])
	viewer := s.member("viewer")
	require.NotContains(t, viewer.get("/x-posts").body, `action="/x-posts/`+s.ids["x failed"])

	s.Exec(`update autopost.channels set auth_held = true, paused_until = 'infinity' where channel_id = 'global'`)
	page := p.get("/x-posts").body
	require.Contains(t, page, "X refuses the account")
	require.Contains(t, page, "Link the account again")
}
