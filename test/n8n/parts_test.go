//go:build n8n

package n8n

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"autopost/internal/sim"
	"autopost/internal/sim/maxmessenger"
	"autopost/internal/sim/telegram"
	"autopost/internal/testing/pgtest"
	"autopost/test/harness"
)

// answers are the statuses of the push endpoint.
func answers(s *stage) {
	s.Workspace("ans")
	s.Endpoint("ans", "cms", "secret-ans")
	s.Exec(`update autopost.workspace_endpoints set max_payload_bytes = 2000 where workspace_id = 'ans'`)
	s.Channel("ans", harness.Channel{ID: "a", Platform: harness.Telegram})
	status := func(secret, body string) int {
		code, _ := s.n.push(secret, body)
		return code
	}
	require.Equal(s.t, 202, status("secret-ans", harness.Post("text", "a post", "source_ref", "1")))
	require.Equal(s.t, 200, status("secret-ans", harness.Post("text", "a post", "source_ref", "1")))
	require.Equal(s.t, 401, status("another", harness.Post("text", "x")))
	require.Equal(s.t, 422, status("secret-ans", harness.Post("text", "")))
	require.Equal(s.t, 413, status("secret-ans", harness.Post("text", strings.Repeat("x", 3000))))
	code, answer := s.n.push("secret-ans", `[{"text": "two"}, {"text": ""}, {"text": "three"}]`)
	require.Equal(s.t, 202, code)
	require.Len(s.t, answer["results"], 3)
	s.Exec(`update autopost.workspace_endpoints set ingress_rps = 0.001 where workspace_id = 'ans'`)
	require.Contains(s.t, []int{status("secret-ans", harness.Post("text", "")), status("secret-ans", harness.Post("text", ""))}, 429)
	s.Drained("ans")
	require.Equal(s.t, 3, pgtest.Value[int](s.DB, `select count(*) from autopost.deliveries where workspace_id = 'ans' and rendered_text in ('a post', 'two', 'three') and status = 'sent'`))
}

// series sends what needs several steps, and media through the upload proxy of a daemon.
func series(s *stage) {
	d := s.ServeOnly("ingest,web", "AUTOPOST_LISTEN="+s.api)
	defer d.Stop()
	s.Endpoint("media", "cms", "secret-media")
	chat := s.Channel("media", harness.Channel{ID: "max", Platform: harness.MAX})
	long := s.Channel("media", harness.Channel{ID: "long", Platform: harness.Telegram, Filter: `{"include_any": ["long"]}`})
	medium := func(kind, name string) map[string]any {
		return map[string]any{"type": kind, "url": s.WorldURL + "/files/" + name}
	}
	answer := s.enqueue("secret-media", "text", "pictures", "media", []any{medium("image", "photo-1.png"), medium("image", "photo-2.png")})
	require.Equal(s.t, "accepted", answer["status"])
	s.enqueue("secret-media", "text", "files", "media", []any{medium("file", "document-1.pdf"), medium("file", "document-2.pdf")})
	s.enqueue("secret-media", "text", "part one", "tags", []string{"long"}, "thread", []any{map[string]any{"text": "part two"}, map[string]any{"text": "part three"}})
	s.UntilTrue(`select count(*) >= 3 and bool_and(status = 'sent') from autopost.deliveries where workspace_id = 'media'`)
	shown := s.Accepted(sim.Filter{Chat: chat})
	require.Len(s.t, shown[0].Media, 2)
	require.Equal(s.t, "pictures", shown[0].Text)
	thread := s.Accepted(sim.Filter{Chat: long})
	require.Len(s.t, thread, 3)
	require.Equal(s.t, []string{"part one", "part two", "part three"}, []string{thread[0].Text, thread[1].Text, thread[2].Text})
	require.Zero(s.t, pgtest.Value[int](s.DB, `select count(*) from autopost.deliveries d where d.workspace_id = 'media'
		and exists (select 1 from jsonb_array_elements(d.render_meta -> 'steps') s where not d.render_meta -> 'series_progress' -> 'steps' ? (s ->> 'step'))`))
	for text, copies := range s.Copies() {
		require.LessOrEqual(s.t, copies, 2, text) // two files have one empty text
	}
}

// unknownOutcomes loses answers after the platform has the post.
func unknownOutcomes(s *stage) {
	s.Workspace("unk")
	s.Endpoint("unk", "cms", "secret-unk")
	for _, c := range []harness.Channel{{ID: "tg", Platform: harness.Telegram}, {ID: "max", Platform: harness.MAX}, {ID: "hold", Platform: harness.MAX, OnUnknown: "hold"}, {ID: "proxy", Platform: harness.Telegram}} {
		chat := s.Channel("unk", c)
		fault := sim.Fault{Platform: c.Platform, Chat: chat, Effect: sim.EffectAcceptThenDrop, From: 1, To: 1}
		if c.ID == "proxy" {
			fault.Effect, fault.Status = sim.EffectGarbage, 502
		}
		s.Fault(fault)
	}
	s.enqueue("secret-unk", "text", "perhaps")
	s.sent("unk", 3)
	s.Drained("unk")
	s.World.Faults.Clear()
	require.Equal(s.t, 4, pgtest.Value[int](s.DB, `select count(*) from autopost.events where workspace_id = 'unk' and action = 'unknown_outcome'`))
	require.Equal(s.t, "retry", pgtest.Value[string](s.DB, `select status from autopost.deliveries where workspace_id = 'unk' and channel_id = 'hold'`))
}

const feed = `<?xml version="1.0"?><rss version="2.0"><channel><title>News</title><link>https://news.example/</link>%s</channel></rss>`

func feedItem(n int) string {
	return fmt.Sprintf(`<item><title>Title %d &amp; more</title><link>https://news.example/%d</link><guid isPermaLink="false">item-%d</guid><pubDate>Sat, 28 Nov 2026 10:%02d:00 GMT</pubDate></item>`, n, n, n, n)
}

// pull reads a feed twice: items of the first sight by backfill_items, then what is new.
func pull(s *stage) {
	s.Workspace("pull")
	s.Channel("pull", harness.Channel{ID: "a", Platform: harness.Telegram})
	s.World.Feeds.Set("news.xml", "application/rss+xml", fmt.Appendf(nil, feed, feedItem(3)+feedItem(2)+feedItem(1)))
	s.Exec(`insert into autopost.pull_sources (workspace_id, source_id, kind, config_json) values
		('pull', 'news', 'rss', jsonb_build_object('url', $1::text, 'interval_seconds', 1, 'backfill_items', 1)),
		('pull', 'other', 'db', '{"interval_seconds": 1}'), ('pull', 'gone', 'rss', jsonb_build_object('url', $1::text || '.none', 'interval_seconds', 1))`, s.WorldURL+"/feeds/news.xml")
	s.Exec(`insert into autopost.workspace_endpoints (workspace_id, endpoint_id, kind, source_id) values ('pull', 'news-in', 'pull_source', 'news'), ('pull', 'gone-in', 'pull_source', 'gone')`)
	s.sent("pull", 1)
	s.World.Feeds.Set("news.xml", "application/rss+xml", fmt.Appendf(nil, feed, feedItem(5)+feedItem(4)+feedItem(3)+feedItem(2)))
	s.sent("pull", 3)
	require.Equal(s.t, []string{"Title 3 & more", "Title 4 & more", "Title 5 & more"}, pgtest.Column[string](s.DB,
		`select split_part(m.payload ->> 'text', E'\n', 1) from autopost.deliveries d join autopost.messages m using (workspace_id, message_id) where d.workspace_id = 'pull' order by 1`))
	require.Equal(s.t, "item-5", pgtest.Value[string](s.DB, `select cursor_json ->> 'last_seen_id' from autopost.pull_cursors where source_id = 'news'`))
	require.Equal(s.t, "pull_http_404", pgtest.Value[string](s.DB, `select last_error ->> 'code' from autopost.pull_cursors where source_id = 'gone'`))
	require.Zero(s.t, pgtest.Value[int](s.DB, `select count(*) from autopost.pull_cursors where source_id = 'other' and leased_until is not null`), "n8n leaves other kinds to the daemon")
	s.Exec(`update autopost.pull_sources set enabled = false where workspace_id = 'pull'`)
}

// hold takes the turn, so that 02_dispatcher claims nothing until release.
func (s *stage) hold() (release func()) {
	s.t.Helper()
	s.UntilTrue(`select (autopost.begin_dispatch('test', 3000) ->> 'granted')::boolean`)
	return func() { s.Exec(`select autopost.end_dispatch('test')`) }
}

// recovery ends the leases of a dispatcher that died, and reports it.
func recovery(s *stage) {
	s.World.Telegram.AddChat(telegram.Chat{ID: -1000000000001, Title: "operators"})
	s.Workspace("rec")
	s.Endpoint("rec", "cms", "secret-rec")
	chat := s.Channel("rec", harness.Channel{ID: "a", Platform: harness.Telegram})
	// Another dispatcher claimed before n8n could, started one of two calls and died.
	release := s.hold()
	session := s.Session("dead", "engine")
	s.Exec(`insert into autopost.role_workspaces (role_name, workspace_id) values ('autopost_engine', '*') on conflict do nothing`)
	s.Channel("rec", harness.Channel{ID: "b", Platform: harness.MAX})
	session.Exec(`select autopost.enqueue_messages_and_deliveries('rec', 'cms', 'api', '{"text": "half sent"}')`)
	rows := session.Exec(`select delivery_id, claim_token, channel_id from autopost.claim_deliveries('rec', 'dead', 10)`)
	require.Len(s.t, rows, 2)
	for _, row := range rows {
		if row[2] == "a" {
			session.Exec(`select autopost.start_call('rec', $1, $2)`, row[0], row[1])
		}
	}
	s.Exec(`update autopost.deliveries set sending_lease_until = now() - interval '1 second', sending_started_at = now() - interval '10 minutes' where workspace_id = 'rec' and status = 'sending'`)
	release()
	s.sent("rec", 2)
	require.Len(s.t, s.Accepted(sim.Filter{Chat: chat}), 1)
	s.Until("the operators read about it", func() bool {
		for _, e := range s.Accepted(sim.Filter{Chat: operators}) {
			if strings.Contains(e.Text, "rec: ") && strings.Contains(e.Text, "leases recovered") {
				return true
			}
		}
		return false
	})
}

// stopped kills n8n while calls are in flight, starts it again, and ends the leases.
func stopped(s *stage) {
	s.Workspace("stop")
	s.Endpoint("stop", "cms", "secret-stop")
	slow := s.Channel("stop", harness.Channel{ID: "slow", Platform: harness.MAX})
	s.Channel("stop", harness.Channel{ID: "quick", Platform: harness.Telegram})
	s.Fault(sim.Fault{Platform: harness.MAX, Chat: slow, Effect: sim.EffectSlow, DelayMS: 20_000, From: 1, To: 1})
	s.enqueue("secret-stop", "text", "in flight")
	s.Until("the call is in flight", func() bool { return len(s.Sends(sim.Filter{Chat: slow})) > 0 })
	s.n.kill()
	require.NotZero(s.t, pgtest.Value[int](s.DB, `select count(*) from autopost.deliveries where workspace_id = 'stop' and status = 'sending'`))
	// Five minutes later: the leases of the claims and of the turn are over.
	s.Exec(`update autopost.deliveries set sending_lease_until = now() - interval '1 second' where workspace_id = 'stop' and status = 'sending'`)
	s.Exec(`update autopost.dispatch_cursor set lease_until = now() - interval '1 second'`)
	s.n.start()
	s.sent("stop", 2)
	s.World.Faults.Clear()
	totals := s.judge("stop")
	require.Equal(s.t, 2, totals.Sent)
}

// conversation has a bot of MAX return goods in three steps, by the example rules, with a repeated update.
func conversation(s *stage) {
	s.Workspace("bot")
	s.Exec(`insert into autopost.workspace_endpoints (workspace_id, endpoint_id, kind, secret_hash, ingress_rps, meta)
		values ('bot', 'max', 'bot_webhook', encode(sha256(convert_to('secret-bot', 'UTF8')), 'hex'), 1000, '{"auth_ref": "max", "bot": {"enabled": true}}')`)
	s.Exec(`select autopost.install_bot_examples('bot', 'test', 'test')`)
	const user, chat = 9001, -70_009_001
	s.World.MAX.AddChat(maxmessenger.Chat{ID: chat, Title: "a customer"})
	say := func(mid, text string) (int, map[string]any) {
		return s.n.post("autopost/max", map[string]string{"X-Max-Bot-Api-Secret": "secret-bot"}, harness.Post("update_type", "message_created", "timestamp", time.Now().UnixMilli(), "user_locale", "en",
			"message", map[string]any{"sender": map[string]any{"user_id": user, "first_name": "Ann"}, "recipient": map[string]any{"chat_id": chat, "chat_type": "dialog"},
				"timestamp": time.Now().UnixMilli(), "body": map[string]any{"mid": mid, "seq": 1, "text": text}}))
	}
	heard := func() []string {
		var texts []string
		for _, e := range s.Accepted(sim.Filter{Chat: fmt.Sprint(chat)}) {
			texts = append(texts, e.Text)
		}
		return texts
	}
	hears := func(want ...string) {
		s.Until(fmt.Sprint("the customer hears ", want), func() bool { return len(heard()) >= len(want) })
		require.Equal(s.t, want, heard())
	}
	want := []string{"You can return goods within 14 days. Please send the order number.", "Order A-7. Why are you returning it?",
		"Request accepted: order A-7, reason: too small. Bring the goods and the receipt to any of our shops, or send them by post."}
	for i, text := range []string{"I want a refund", "A-7", "too small"} {
		code, answer := say(fmt.Sprint("mid.", i), text)
		require.Equal(s.t, 200, code, "%v", answer)
		hears(want[:i+1]...)
		code, answer = say(fmt.Sprint("mid.", i), text)
		require.Equal(s.t, 200, code)
		require.Equal(s.t, "duplicate", answer["reason"])
	}
	s.Exec(`select autopost.put_bot_rule('bot', 'size', '{"keywords": ["size"], "response_template": "Which size?", "buttons": [[{"text": "S", "payload": "size:s"}]]}', 'test', 'test', false)`)
	code, answer := say("mid.size", "what size")
	require.Equal(s.t, 200, code, "%v", answer)
	hears(append(want, "Which size?")...)
	shown := s.Accepted(sim.Filter{Chat: fmt.Sprint(chat)})[len(want)].Buttons
	require.Equal(s.t, [][]sim.Button{{{Text: "S", Data: "size:s"}}}, shown)
	code, _ = s.n.post("autopost/max", map[string]string{"X-Max-Bot-Api-Secret": "another"}, `{"update_type": "bot_started"}`)
	require.Equal(s.t, 401, code)
	require.Equal(s.t, 4, pgtest.Value[int](s.DB, `select count(*) from autopost.bot_outbox where workspace_id = 'bot' and status = 'sent'`))
}

// judge compares one workspace with the request log: Judge would reject the texts of other workspaces.
func (s *stage) judge(workspace string) harness.Totals {
	s.t.Helper()
	var totals harness.Totals
	rows := pgtest.Column[map[string]any](s.DB, `
		select jsonb_build_object('id', d.delivery_id, 'status', d.status, 'message', coalesce(d.provider_message_id, ''), 'chat', c.target_id, 'text', d.rendered_text,
			'unknown', d.unknown_outcomes)
		from autopost.deliveries d join autopost.channels c using (workspace_id, channel_id) where d.workspace_id = $1`, workspace)
	copies := map[string][]sim.Entry{}
	for _, e := range s.Accepted() {
		copies[e.Chat+" "+e.Text] = append(copies[e.Chat+" "+e.Text], e)
	}
	for _, row := range rows {
		totals.Deliveries++
		of := copies[fmt.Sprint(row["chat"], " ", row["text"])]
		totals.Extra += max(0, len(of)-1)
		require.LessOrEqual(s.t, len(of), 1+min(1, int(row["unknown"].(float64))), "%v", row)
		if row["status"] == "sent" {
			totals.Sent++
			require.NotEmpty(s.t, of, "%v is sent, but the platform has nothing", row)
		}
	}
	return totals
}

// sameRows runs the script of calls through the Postgres node, and compares it with psql and Go.
func sameRows(s *stage) {
	s.Exec(`insert into autopost.role_workspaces (role_name, workspace_id) values ('autopost_caller', '*') on conflict do nothing`)
	for _, workspace := range []string{"by-go", "by-psql", "by-n8n"} {
		prepareScript(s.DB, workspace)
		s.Exec(`update autopost.channels set route_filter = null where workspace_id = $1`, workspace)
	}
	defer s.hold()()
	byN8N := func(statement string, args ...any) []map[string]string {
		raw, err := json.Marshal(map[string]any{"statement": statement, "args": args})
		require.NoError(s.t, err)
		code, answer := s.n.post("test/call", nil, string(raw))
		require.Equal(s.t, 200, code, "%v", answer)
		var list []map[string]string
		for _, row := range answer["rows"].([]any) {
			fields := map[string]string{}
			for name, value := range row.(map[string]any) {
				if text, ok := value.(string); ok {
					fields[name] = text
					continue
				}
				// As PostgreSQL writes jsonb.
				spaced := pgtest.Value[string](s.DB, `select $1::jsonb::text`, value)
				fields[name] = spaced
			}
			list = append(list, fields)
		}
		return list
	}
	script(s.t, "by-go", byGo(s.Session("go", "caller")))
	script(s.t, "by-psql", byPsql(s.t, s.URL("caller")))
	script(s.t, "by-n8n", byN8N)
	want := left(s.DB, "by-go")
	require.Equal(s.t, want, left(s.DB, "by-psql"))
	require.Equal(s.t, want, left(s.DB, "by-n8n"))
	s.Exec(`update autopost.workspaces set status = 'paused' where workspace_id in ('by-go', 'by-psql', 'by-n8n')`)
}

// testCall is a workflow that makes one call with the Postgres node, as the exports do.
func testCall(t testing.TB) []byte {
	t.Helper()
	raw, err := os.ReadFile("testdata/call.json")
	require.NoError(t, err)
	return raw
}

// besideDaemon sends a load through both entry points, with n8n and a daemon as dispatchers of the same rows.
func besideDaemon(s *stage) {
	duration := 2 * time.Minute
	s.Workspace("both")
	s.Endpoint("both", "cms", "secret-both")
	var chats []string
	for i := range 12 {
		platform := harness.Telegram
		if i%2 == 0 {
			platform = harness.MAX
		}
		chats = append(chats, s.Channel("both", harness.Channel{ID: fmt.Sprintf("c%02d", i), Platform: platform, Rate: 2, Group: fmt.Sprintf("%s-%d", platform, i%3)}))
	}
	for i, chat := range chats[:4] {
		s.Fault(sim.Fault{Chat: chat, Effect: sim.EffectAcceptThenDrop, From: 3 + i, To: 3 + i})
		s.Fault(sim.Fault{Chat: chat, Effect: sim.EffectStatus, Status: 429, RetryAfter: 2, From: 9 + i, To: 9 + i})
	}
	// Every call takes a while and the daemon has few senders, so that both have work.
	s.Fault(sim.Fault{Effect: sim.EffectSlow, DelayMS: 500})
	d := s.Serve("DISPATCHER_SENDERS=4")
	// The load is even, at a rate that the channels allow.
	load := func(name string, push func(body string) bool) (accepted int) {
		pace := time.NewTicker(4 * time.Second)
		defer pace.Stop()
		for n := range int(duration / (4 * time.Second)) {
			<-pace.C
			if push(harness.Post("text", fmt.Sprintf("%s %d", name, n), "source_ref", fmt.Sprintf("%s %d", name, n))) {
				accepted++
			}
		}
		return accepted
	}
	var both sync.WaitGroup
	accepted := make([]int, 2)
	both.Go(func() {
		accepted[0] = load("daemon", func(body string) bool {
			answer, err := s.TryPush(d.URL, "secret-both", body)
			return err == nil && answer.Status == 202
		})
	})
	accepted[1] = load("n8n", func(body string) bool {
		code, _ := s.n.push("secret-both", body)
		return code == 202
	})
	both.Wait()
	s.Drained("both")
	s.World.Faults.Clear()
	totals := s.judge("both")
	require.Equal(s.t, (accepted[0]+accepted[1])*len(chats), totals.Deliveries)
	require.Equal(s.t, totals.Deliveries, totals.Sent)
	by := map[string]int{}
	for _, row := range pgtest.Column[string](s.DB, `select case when meta ->> 'run_id' like 'n8n-%' then 'n8n' else 'daemon' end
		from autopost.events where workspace_id = 'both' and action = 'send_attempt'`) {
		by[row]++
	}
	s.t.Logf("%d posts by the daemon and %d by n8n; %d deliveries, %d second copies after unknown outcomes; calls by %v", accepted[0], accepted[1], totals.Deliveries, totals.Extra, by)
	require.NotZero(s.t, by["n8n"])
	require.NotZero(s.t, by["daemon"])
	require.Zero(s.t, d.Stop())
}
