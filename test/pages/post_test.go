package pages

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"autopost/internal/testing/pgtest"
	"autopost/internal/testing/posttest"
	"autopost/test/harness"
)

// fillCauses adds a post to ten channels: some have it, the others do not for five causes.
func (s *site) fillCauses() string {
	s.t.Helper()
	s.Exec(`update autopost.workspaces set status = 'active' where workspace_id = 'news'`)
	names := []string{"got-1", "got-2", "got-3", "kicked-1", "kicked-2", "again", "unclear", "quiet-1", "quiet-2", "refused"}
	for _, name := range names {
		group := "team"
		if name == "refused" {
			group = "other"
		}
		posttest.Channel(s.DB, "news", name, posttest.Group(group))
	}
	s.Exec(`insert into autopost.credential_bindings (workspace_id, auth_ref, platform, secret_ref) select 'news', g, 'telegram', 'env:TEST_TELEGRAM_TOKEN' from unnest('{team,other}'::text[]) g on conflict do nothing`)
	s.Exec(`update autopost.channels set on_unknown = 'hold' where channel_id = 'unclear'`)
	s.Exec(`insert into autopost.retry_policies (platform, code, kind, ladder_ms, jitter) values ('telegram', 'tg_timeout', 'ladder', '{1}', 0)`)
	s.Exec(`select autopost.pause_channel('news', c, 7200, 'ann', 'quiet', false) from unnest('{quiet-1,quiet-2}'::text[]) c`)
	message := s.JSON(`select autopost.submit_post('news', 'in', 'api', jsonb_build_object('text', 'Мост через Кузнечиху откроют раньше срока', 'routing', jsonb_build_object('include_channels', $1::text[])))`, names)["message_id"].(string)
	claim := func() map[string][2]string {
		claims := map[string][2]string{}
		for _, row := range pgtest.Column[string](s.DB, `select c.channel_id || ' ' || c.delivery_id || ' ' || c.claim_token from autopost.claim_deliveries('news', 'test', 1000) c`) {
			parts := strings.Fields(row)
			claims[parts[0]] = [2]string{parts[1], parts[2]}
		}
		return claims
	}
	fail := func(claims map[string][2]string, channel, failure string) {
		at := claims[channel]
		require.NotEmpty(s.t, at[0], channel)
		s.Exec(`select autopost.start_call('news', $1::uuid, $2)`, at[0], at[1])
		s.Exec(`select autopost.commit_outcome('news', $1::uuid, $2, jsonb_build_object('ok', false, 'error', $3::jsonb))`, at[0], at[1], failure)
	}
	claims := claim()
	for i, name := range names[:3] {
		s.Exec(`select autopost.start_call('news', $1::uuid, $2)`, claims[name][0], claims[name][1])
		s.Exec(`select autopost.mark_sent('news', $1::uuid, $2, $3, null, null)`, claims[name][0], claims[name][1], fmt.Sprint(i+1))
	}
	for _, name := range names[3:5] {
		fail(claims, name, `{"category": "PERMANENT", "scope": "delivery", "code": "tg_forbidden", "known": true, "message": "Forbidden: bot was kicked from the channel chat"}`)
	}
	fail(claims, "unclear", `{"category": "TRANSIENT", "scope": "delivery", "code": "net_reset", "known": false, "message": "the connection was reset after the request"}`)
	fail(claims, "refused", `{"category": "PERMANENT", "scope": "platform", "code": "tg_unauthorized", "known": true, "message": "Unauthorized"}`)
	fail(claims, "again", `{"category": "TRANSIENT", "scope": "delivery", "code": "tg_timeout", "known": true, "message": "no answer within 30 s"}`)
	s.UntilTrue(`select next_retry_at <= now() from autopost.deliveries where channel_id = 'again'`)
	s.Until("the second attempt is claimed", func() bool { claims = claim(); return claims["again"][0] != "" })
	fail(claims, "again", `{"category": "TRANSIENT", "scope": "delivery", "code": "http_503", "known": true, "message": "Service Unavailable"}`)
	return message
}

// The page of a post has a block for each cause, with the attempts so far and the next one.
func TestAPostShowsACauseOnce(t *testing.T) {
	t.Parallel()
	s := &site{Harness: harness.New(t), t: t, ids: map[string]string{}}
	s.fill()
	message := s.fillCauses()
	d := s.ServeOnly("web") // nothing is sent, and the workspace is not paused
	s.url, s.log = d.URL, d.Log
	s.Until("the first link is printed", func() bool { return printedLink.MatchString(d.Log()) })
	s.link = printedLink.FindStringSubmatch(d.Log())[1]
	b := s.browser()
	b.start()
	at := "/posts/" + message
	looks := []look{{360, "light", "en"}, {1440, "dark", "ru"}}
	if isWhole() {
		looks = append(looks, look{360, "dark", "ru"}, look{1440, "light", "en"})
	}
	for _, l := range looks {
		b.check("post with causes", at, l)
		b.check("posts with bars", "/posts", l)
	}
	b.check("post with causes", at, look{1440, "light", "en"})
	require.Equal(t, 5, js[int](b, `document.querySelectorAll("#channels .hold").length`), js[string](b, `document.querySelector("#channels").innerText`))
	said := js[string](b, `document.querySelector("#channels").innerText`)
	for _, part := range []string{"3 of 10 channels have it", "3 sent", "3 failed", "1 unknown", "kicked-1, kicked-2", "quiet-1, quiet-2", "the credential was refused", "The channel is paused", "not allowed there",
		"Attempt 1: no connection", "Attempt 2: the platform failed", "Next attempt", "Waits for a person: nobody knows"} {
		require.Contains(t, said, part)
	}
	require.Equal(t, "3 sent, 3 wait, 1 unknown, 3 failed", js[string](b, `document.querySelector("#channels .strip").getAttribute("aria-label")`))

	// A channel of a block can be looked at alone.
	one := pgtest.Value[string](s.DB, `select delivery_id::text from autopost.deliveries where channel_id = 'quiet-2' and message_id = $1::uuid`, message)
	b.visit(at + "?delivery=" + one)
	require.Equal(t, "quiet-2", js[string](b, fmt.Sprintf(`document.querySelector("#delivery-%s h3").textContent`, one)))
	b.check("one channel of a post", at+"?delivery="+one, look{1440, "light", "en"})

	// An act on a block is for its channels.
	p := s.person()
	require.Equal(t, http.StatusSeeOther, p.post("/login", "email", ann, "password", password).status)
	ids := strings.Join(pgtest.Column[string](s.DB, `select delivery_id::text from autopost.deliveries where channel_id like 'quiet-%' order by 1`), ",")
	require.Contains(t, p.get(at+"?ask=skip&delivery="+ids).body, "Skip this post in 2 channels?")
	require.Equal(t, at+"?done=skip", p.post(at+"/skip", "delivery", ids).header.Get("Location"))
	require.Equal(t, []string{"quiet-1", "quiet-2"}, pgtest.Column[string](s.DB, `select channel_id from autopost.deliveries where message_id = $1::uuid and last_error ->> 'code' = 'manual_skip' order by 1`, message))
}
