package mutation

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"autopost/internal/failpoint"
	"autopost/internal/sim"
	"autopost/internal/sim/feeds"
	"autopost/internal/sim/maxmessenger"
	"autopost/internal/sim/telegram"
	"autopost/internal/testing/pgtest"
	"autopost/internal/testing/wait"
	"autopost/test/harness"
	"autopost/test/netfault"
)

// quick are short leases, so that what is given up comes back within seconds.
var quick = []string{"SENDING_LEASE_SECONDS=4", "MONITOR_INTERVAL_SECONDS=1", "ADAPTER_TIMEOUT_MS=1500"}

// scenario runs a whole installation for a short time and checks the result.
type scenario struct {
	name string
	// tags are those that its program is built with.
	tags string
	play func(t testing.TB, program harness.Option)
}

// station is a workspace with channels on platforms, one after the other.
func station(t testing.TB, program harness.Option, channels int, shape harness.Channel, platforms ...string) *harness.Harness {
	h := harness.New(t, program)
	h.Workspace("news")
	h.Endpoint("news", "cms", "secret-cms")
	for i := range channels {
		c := shape
		c.ID, c.Platform = fmt.Sprintf("channel-%02d", i), platforms[i%len(platforms)]
		h.Channel("news", c)
	}
	return h
}

func push(t testing.TB, h *harness.Harness, d *harness.Daemon, posts int) {
	for n := range posts {
		require.Equal(t, http.StatusAccepted, h.Push(d, "secret-cms", harness.Post("text", fmt.Sprintf("Post %d", n))).Status, "a push is taken")
	}
}

// settled waits until nothing is on its way.
func settled(h *harness.Harness) {
	h.UntilTrue(`select not exists (select 1 from autopost.deliveries d
		where d.status in ('queued', 'sending', 'retry') and d.next_retry_at is distinct from 'infinity')`)
}

// orderly requires that everything is sent once, without any unknown outcome.
func orderly(t testing.TB, h *harness.Harness, deliveries int) {
	settled(h)
	require.Equal(t, harness.Totals{Deliveries: deliveries, Sent: deliveries}, h.Judge("news"), "each is sent, once")
	undoubted(t, h)
	h.Verified()
}

func undoubted(t testing.TB, h *harness.Harness) {
	require.Empty(t, pgtest.Column[string](h.DB, `select action from autopost.events
		where action in ('unknown_outcome', 'sending_lease_expired', 'stale_commit')`), "nothing is in doubt")
}

// blocked waits until a call of the daemon waits for what a session has locked.
func blocked(h *harness.Harness, by *pgtest.Session, call string) {
	h.Until(call+" waits for its row", func() bool {
		return pgtest.Value[bool](h.DB, `select exists (select 1 from pg_stat_activity a where a.datname = current_database() and a.application_name = 'autopost'
			and a.query like '%' || $1 || '%' and $2::int = any (pg_blocking_pids(a.pid)))`, call, int(by.PID()))
	})
}

// ended says that n calls have been made, and that none goes on.
func ended(h *harness.Harness, n int) bool {
	sends := h.Sends()
	for _, e := range sends {
		if e.End.IsZero() {
			return false
		}
	}
	return len(sends) >= n
}

// say sends an update of a customer of the bot on MAX, like the platform.
func say(t testing.TB, d *harness.Daemon, body string) {
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, d.URL+"/hooks/max", strings.NewReader(body))
	require.NoError(t, err)
	request.Header.Set("X-Max-Bot-Api-Secret", "secret-bot")
	response, err := (&http.Client{Timeout: wait.Bound}).Do(request)
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	require.Equal(t, http.StatusOK, response.StatusCode, "an update is taken")
}

var scenarios = []scenario{
	// A customer asks quickly and presses a button; the answer of the platform to the second reply is lost.
	{name: "dialog with the shop bot", play: func(t testing.TB, program harness.Option) {
		const questions = 4
		h := station(t, program, 1, harness.Channel{}, harness.MAX)
		h.Endpoint("news", "bot", "secret-bot")
		h.Exec(`update autopost.workspace_endpoints set kind = 'bot_webhook', meta = '{"auth_ref": "max"}', ingress_rps = 1000 where endpoint_id = 'bot'`)
		h.Exec(`update autopost.platforms set settle_seconds = 1`)
		h.Exec(`select autopost.put_bot_rule('news', 'echo', '{"keywords": ["question"], "response_template": "Answer to {text}"}', 'test', 'test', false)`)
		h.World.MAX.AddChat(maxmessenger.Chat{ID: 5000, Type: "dialog"})
		h.Fault(sim.Fault{Platform: "max", Method: "POST /messages", Chat: "5000", From: 2, To: 2, Effect: sim.EffectAcceptThenDrop})
		d := h.Serve(quick...)
		want := []string{}
		for n := range questions {
			body := fmt.Sprintf(`{"update_type": "message_created", "timestamp": %d, "message": {"recipient": {"chat_id": 5000, "chat_type": "dialog"},
				"body": {"mid": "mid.in.%[1]d", "text": "question %[1]d"}, "sender": {"user_id": 7}}}`, n)
			if n == questions-1 {
				body = fmt.Sprintf(`{"update_type": "message_callback", "timestamp": %d, "callback": {"callback_id": "cb", "payload": "question %[1]d", "user": {"user_id": 7}},
					"message": {"recipient": {"chat_id": 5000, "chat_type": "dialog"}, "body": {"mid": "mid.x", "text": "?"}, "sender": {"user_id": 1, "is_bot": true}}}`, n)
			}
			say(t, d, body)
			want = append(want, fmt.Sprint("Answer to question ", n))
		}
		h.UntilTrue(`select count(*) filter (where status = 'sent') = $1 from autopost.bot_outbox`, questions)
		got := []string{}
		slots := pgtest.Column[time.Time](h.DB, `select send_at from autopost.bot_outbox order by reply_id`)
		for n, e := range h.Sends(sim.Filter{Platform: "max", Chat: "5000"}) {
			if n != 1 && n < len(slots) { // the lost answer has the slot of the question to the platform
				require.False(t, e.Start.Before(slots[n]), "no reply goes out before its slot: %s before %s", e.Start, slots[n])
			}
			got = append(got, e.Text)
		}
		require.Equal(t, want, got, "each answer goes out once, in order")
		require.Equal(t, 1, pgtest.Value[int](h.DB, `select sum(unknown_outcomes)::int from autopost.bot_outbox`), "one outcome is in doubt")
		require.Zero(t, d.Stop(), "the daemon stops in order")
		require.Len(t, h.World.Log.Entries(sim.Filter{Method: "POST /answers"}), 1, "the press is ended")
		h.Verified()
	}},
	// Outcomes wait for a row, and are committed together once it is free.
	{name: "commits that come together", play: func(t testing.TB, program harness.Option) {
		const channels = 8
		h := station(t, program, channels, harness.Channel{}, harness.Telegram)
		h.Fault(sim.Fault{Effect: sim.EffectSlow, DelayMS: 500})
		d := h.Serve("SENDING_LEASE_SECONDS=10", "MONITOR_INTERVAL_SECONDS=1", "ADAPTER_TIMEOUT_MS=4000")
		push(t, h, d, 1)
		h.Until("all calls are on their way", func() bool { return len(h.Sends()) == channels })
		holder := h.Session("holder", "")
		holder.Exec(`begin`)
		holder.Exec(`select 1 from autopost.channel_gates for update`)
		h.Until("all calls are over", func() bool { return ended(h, channels) })
		blocked(h, holder, "commit_outcome_batch")
		holder.Exec(`commit`)
		orderly(t, h, channels)
		require.Zero(t, d.Stop(), "the daemon stops in order")
	}},
	// Starts wait for a row while some channels are paused, and are then answered together.
	{name: "starts that come together", play: func(t testing.TB, program harness.Option) {
		const channels, rate = 8, 4
		h := station(t, program, channels, harness.Channel{}, harness.Telegram)
		h.GroupRate("news", harness.Telegram, harness.Telegram, rate)
		d := h.Serve()
		push(t, h, d, 1)
		h.UntilTrue(`select count(*) >= 3 from autopost.deliveries where status = 'sending' and send_at > now()`)
		holder := h.Session("holder", "")
		holder.Exec(`begin`)
		holder.Exec(`update autopost.channels set paused_until = now() + interval '1 hour' where right(channel_id, 1)::int % 2 = 1`)
		holder.Exec(`select 1 from autopost.channels for update`)
		blocked(h, holder, "start_call_batch")
		h.UntilTrue(`select not exists (select 1 from autopost.deliveries where status = 'sending' and send_at > now() - interval '200 milliseconds')`)
		holder.Exec(`commit`)
		h.UntilTrue(`select not exists (select 1 from autopost.deliveries d join autopost.channels c using (workspace_id, channel_id)
			where d.status <> 'sent' and c.paused_until is null)`)
		h.Exec(`update autopost.channels set paused_until = null`)
		orderly(t, h, channels)
		h.WithinRate("the group", h.Sends(), rate)
	}},
	// A daemon is killed over the last part of a thread, where nobody asks the platform what it has.
	{name: "series that is cut off", play: func(t testing.TB, program harness.Option) {
		h := station(t, program, 1, harness.Channel{OnUnknown: "resend"}, harness.Telegram)
		h.Fault(sim.Fault{Platform: harness.Telegram, Method: "sendPhoto", To: 1, Effect: sim.EffectHang})
		d := h.Serve(quick...)
		h.Push(d, "secret-cms", harness.Post("text", "Picture "+strings.Repeat("and more of it ", 100)+"end",
			"media", []any{map[string]any{"type": "image", "url": h.WorldURL + "/files/photo-1.png"}}, "thread", []any{map[string]any{"media": []int{1}}}))
		h.Until("the last step is on its way", func() bool { return len(h.Sends(sim.Filter{Method: "sendPhoto"})) == 1 })
		d.Kill()
		h.Serve(quick...)
		settled(h)
		first := h.Accepted(sim.Filter{Method: "sendMessage"})
		require.Len(t, first, 1, "a step that was made is not made again")
		require.Equal(t, first[0].MessageIDs[0], h.Accepted(sim.Filter{Method: "sendPhoto"})[0].ReplyTo, "a part replies to the part before")
		require.Equal(t, harness.Totals{Deliveries: 1, Sent: 1}, h.Judge("news"), "it is sent")
		h.Verified()
	}},
	// A text in many slow parts takes longer than a lease.
	{name: "series that outlasts its lease", play: func(t testing.TB, program harness.Option) {
		h := station(t, program, 1, harness.Channel{}, harness.Telegram)
		h.Exec(`update autopost.channels set settings = '{"long_text": "split"}'`)
		h.Fault(sim.Fault{Platform: harness.Telegram, Effect: sim.EffectSlow, DelayMS: 1100})
		d := h.Serve(quick...)
		h.Push(d, "secret-cms", harness.Post("text", strings.Repeat("A line that says nothing at all. ", 600)))
		h.UntilTrue(`select count(*) = 1 from autopost.deliveries`)
		settled(h)
		require.Equal(t, "sent 1", pgtest.Value[string](h.DB, `select status || ' ' || attempt from autopost.deliveries`), "it is sent at its first attempt")
		require.Greater(t, len(h.Accepted()), 4, "it took longer than a lease")
		undoubted(t, h)
	}},
	// Answers are lost on a channel that holds unknown outcomes.
	{name: "answers that are lost", play: func(t testing.TB, program harness.Option) {
		h := station(t, program, 4, harness.Channel{OnUnknown: "hold"}, harness.Telegram, harness.MAX)
		for _, platform := range []string{harness.Telegram, harness.MAX} {
			h.Fault(sim.Fault{Platform: platform, Method: map[string]string{harness.Telegram: "sendMessage", harness.MAX: "POST /messages"}[platform], From: 2, To: 3, Effect: sim.EffectAcceptThenDrop})
		}
		d := h.Serve(quick...)
		push(t, h, d, 2)
		settled(h)
		toll := h.Judge("news")
		require.Equal(t, harness.Totals{Deliveries: 8, Sent: 4, Held: 4}, toll, "what is in doubt is held")
		h.Verified()
	}},
	// A platform asks for a pause.
	{name: "pause that is asked for", play: func(t testing.TB, program harness.Option) {
		h := station(t, program, 1, harness.Channel{}, harness.Telegram)
		h.Fault(sim.Fault{Platform: harness.Telegram, Method: "sendMessage", From: 2, To: 2, Effect: sim.EffectStatus, Status: 429, RetryAfter: 4})
		push(t, h, h.Serve(quick...), 3)
		orderly(t, h, 3)
		until := time.Time{}
		for _, e := range h.Sends() {
			require.Falsef(t, e.Start.Before(until), "a call began inside the platform's pause, %s before its end", until.Sub(e.Start))
			if e.Status == http.StatusTooManyRequests {
				until = e.End.Add(4 * time.Second)
			}
		}
		require.False(t, until.IsZero(), "a pause was asked for")
	}},
	// A lease is taken away while its call goes on.
	{name: "claim that is taken away", play: func(t testing.TB, program harness.Option) {
		h := station(t, program, 1, harness.Channel{OnUnknown: "hold"}, harness.Telegram)
		h.Fault(sim.Fault{Platform: harness.Telegram, Effect: sim.EffectSlow, DelayMS: 3500})
		d := h.Serve("MONITOR_INTERVAL_SECONDS=1")
		push(t, h, d, 1)
		h.Until("the call is on its way", func() bool { return len(h.Sends()) == 1 })
		h.Exec(`update autopost.deliveries set sending_lease_until = now() - interval '1 minute'`)
		h.UntilTrue(`select status = 'retry' from autopost.deliveries`)
		h.Until("the call is over", func() bool { return ended(h, 1) })
		h.UntilTrue(`select exists (select 1 from autopost.events where action = 'stale_commit')`)
		code := d.Stop()
		require.Equal(t, 1, pgtest.Value[int](h.DB, `select count(*)::int from autopost.events where action = 'stale_commit'`), "a stale outcome is reported once")
		require.Zero(t, code, "the daemon stops in order")
	}},
	// The answer of a claim is lost, while its daemon processes the deliveries of another claim.
	{name: "answer of a claim that is lost", play: func(t testing.TB, program harness.Option) {
		h := station(t, program, 2, harness.Channel{}, harness.Telegram, harness.MAX)
		h.Exec(`create table public.gone (); create table public.found (); grant select on public.found to public`)
		h.Exec(`create function public.linger() returns trigger language plpgsql security definer as $$
			begin while not exists (select 1 from public.gone) loop perform pg_sleep(0.02); end loop; return new; end $$`)
		h.Exec(`create trigger linger before update on autopost.deliveries for each row
			when (new.status = 'sending' and old.status <> 'sending' and new.channel_id = 'channel-00') execute function public.linger()`)
		h.Exec(pgtest.Value[string](h.DB, `select replace(pg_get_functiondef('autopost.get_credential'::regproc), 'return (',
			'while not exists (select 1 from public.found) loop perform pg_sleep(0.02); end loop; return (')`))
		line, address := h.DatabaseProxy()
		d := h.Serve(address)
		push(t, h, d, 1)
		lingers := func(call string) []int32 {
			return pgtest.Column[int32](h.DB, `select pid from pg_stat_activity where datname = current_database() and wait_event = 'PgSleep' and query like '%' || $1 || '%'`, call)
		}
		h.Until("one claim is running, and the deliveries of another are in flight", func() bool {
			return len(lingers("claim_and_start")) > 0 && len(lingers("get_credential")) > 0
		})
		claim := lingers("claim_and_start")
		line.Make(netfault.Fault{Kind: netfault.Deaf})
		h.Exec(`insert into public.gone default values`)
		h.UntilTrue(`select not exists (select 1 from pg_stat_activity where pid = any ($1))`, claim)
		require.Equal(t, 2, pgtest.Value[int](h.DB, `select count(*)::int from autopost.deliveries where status = 'sending'`), "both claims stand")
		line.Mend()
		released := func() []string {
			return pgtest.Column[string](h.DB, `select distinct channel_id from autopost.events where action = 'released' order by 1`)
		}
		h.Until("what was lost is handed back", func() bool { return len(released()) > 0 })
		require.Equal(t, []string{"channel-00"}, released(), "claims in flight are not released")
		h.Exec(`insert into public.found default values`)
		orderly(t, h, 2)
		require.Zero(t, d.Stop(), "the daemon stops in order")
	}},
	// A daemon is asked to stop over its calls.
	{name: "stop over calls", play: func(t testing.TB, program harness.Option) {
		const channels, posts = 4, 6
		h := station(t, program, channels, harness.Channel{Rate: 3, Parallel: 3}, harness.Telegram, harness.MAX)
		h.Fault(sim.Fault{Effect: sim.EffectSlow, DelayMS: 600})
		d := h.Serve()
		push(t, h, d, posts)
		h.Until("calls are on their way", func() bool { return len(h.Sends()) > channels && !ended(h, 0) })
		h.UntilTrue(`select exists (select 1 from autopost.deliveries where status = 'sending' and send_at > now())`)
		require.Zero(t, d.Stop(), "the daemon stops in order")
		require.Zero(t, pgtest.Value[int](h.DB, `select count(*)::int from autopost.deliveries where status = 'sending'`), "nothing stays claimed")
		h.Serve()
		orderly(t, h, channels*posts)
	}},
	// The clock of the database is put forward over a call.
	{name: "clock that jumps", play: func(t testing.TB, program harness.Option) {
		h := station(t, program, 1, harness.Channel{}, harness.Telegram)
		h.Fault(sim.Fault{Platform: harness.Telegram, Effect: sim.EffectSlow, DelayMS: 6000})
		d := h.Serve("MONITOR_INTERVAL_SECONDS=1")
		h.UntilTrue(`select count(*) > 0 from autopost.monitor_duties`)
		push(t, h, d, 1)
		h.Until("the call is on its way", func() bool { return len(h.Sends()) == 1 })
		h.Exec(`create or replace function autopost.now_ts() returns timestamptz language sql volatile parallel safe as $$ select clock_timestamp() + interval '1 hour' $$`)
		h.Until("the call is over", func() bool { return ended(h, 1) })
		settled(h)
		undoubted(t, h)
		require.Len(t, h.Sends(), 1, "nothing goes out twice")
	}},
	// One workspace's dead platform fills all the places that it may have.
	{name: "neighbour of a dead platform", play: func(t testing.TB, program harness.Option) {
		h := station(t, program, 4, harness.Channel{Parallel: 8}, harness.Telegram)
		h.Workspace("other")
		h.Endpoint("other", "cms", "secret-other")
		chat := h.Channel("other", harness.Channel{ID: "channel", Platform: harness.MAX})
		h.Fault(sim.Fault{Platform: harness.Telegram, Effect: sim.EffectHang})
		d := h.Serve("DISPATCHER_SENDERS=8", "ADAPTER_TIMEOUT_MS=140000")
		push(t, h, d, 6)
		h.Until("the dead platform is called", func() bool { return len(h.Sends()) >= 3 })
		h.Push(d, "secret-other", harness.Post("text", "Meanwhile"))
		h.Until("the neighbour is served", func() bool { return len(h.Accepted(sim.Filter{Chat: chat})) == 1 })
		for _, e := range h.Sends(sim.Filter{Platform: harness.Telegram}) {
			require.True(t, e.End.IsZero(), "the neighbour is served while all calls of the dead platform go on")
		}
	}},
	// A post is edited in all its channels, the first time in vain.
	{name: "edits of sent posts", play: func(t testing.TB, program harness.Option) {
		const channels, rate = 6, 2
		h := station(t, program, channels, harness.Channel{}, harness.Telegram)
		push(t, h, h.Serve(quick...), 1)
		settled(h)
		h.GroupRate("news", harness.Telegram, harness.Telegram, rate)
		h.RecordChangeSlots()
		h.Fault(sim.Fault{Platform: harness.Telegram, Method: "editMessageText", To: 1, Effect: sim.EffectStatus, Status: 500})
		h.Exec(`select autopost.request_acts('news', 'edit', (select m.message_id from autopost.messages m), null, '{"text": "Better"}', null, 'ann', 'said better', false)`)
		h.UntilTrue(`select count(*) = $1 from autopost.post_acts where status = 'done'`, channels)
		edits := h.World.Log.Entries(sim.Filter{Method: "editMessageText"})
		require.Len(t, slices.DeleteFunc(slices.Clone(edits), func(e sim.Entry) bool { return len(e.Edited) == 0 }), channels, "each post is edited, once")
		require.Len(t, edits, channels+1, "what failed is made again")
		h.WithinRate("the acts", edits, rate)
		require.Empty(t, pgtest.Column[string](h.DB, `select error ->> 'code' from autopost.events where error -> 'known' = 'false'`), "nothing is in doubt")
		h.Verified()
	}},
	// Operators want a notice.
	{name: "message to people", play: func(t testing.TB, program harness.Option) {
		h := station(t, program, 1, harness.Channel{}, harness.Telegram)
		h.World.Telegram.AddChat(telegram.Chat{ID: -1_000_000_009_999, Title: "On duty"})
		add := h.Run(nil, "alert", "target", "add", "ops", "--kind", "telegram", "--address", "-1000000009999", "--auth-ref", "telegram", "--reason=test")
		require.Zero(t, add.Code, add.Stderr)
		test := h.Run(nil, "alert", "target", "test", "ops", "--reason=test")
		require.Zero(t, test.Code, test.Stderr)
		h.Serve(quick...)
		h.UntilTrue(`select count(*) > 0 and bool_and(ended_at is not null) from autopost.alert_messages`)
		require.Len(t, h.Accepted(sim.Filter{Chat: "-1000000009999"}), 1, "people have the message")
	}},
	// The outcome of the first question is unknown, so there are two copies of it.
	{name: "question to moderators", play: func(t testing.TB, program harness.Option) {
		h := station(t, program, 1, harness.Channel{}, harness.Telegram)
		h.World.Telegram.AddChat(telegram.Chat{ID: -1_000_000_007_777, Type: "supergroup"})
		h.Exec(`update autopost.workspace_endpoints set moderated = true`)
		h.Fault(sim.Fault{Chat: "-1000000007777", Method: "sendMessage", Effect: sim.EffectAcceptThenDrop, To: 1})
		add := h.Run(nil, "moderation", "chat", "add", "mods", "--auth-ref", "telegram", "--target-id=-1000000007777", "--reason=test")
		require.Zero(t, add.Code, add.Stderr)
		h.Exec(`select autopost.receive_push(e.workspace_id, e.endpoint_id, '[{"text": "May it go out?"}]') from autopost.workspace_endpoints e where e.kind = 'webhook_push'`)
		h.Serve(quick...)
		h.UntilTrue(`select count(*) > 0 and bool_and(status = 'open') from autopost.moderation_messages`)
		messages := h.World.Telegram.Messages(-1_000_000_007_777)
		require.Len(t, messages, 2, "they are asked")
		h.Exec(`update autopost.moderation_messages set provider_ids = array[$1, $2]`, fmt.Sprint(messages[0].ID), fmt.Sprint(messages[1].ID)) // as presses bring them
		h.Exec(`select autopost.decide_submission(s.workspace_id, s.submission_id, 'reject', '{}', 'olga', 'no') from autopost.submissions s`)
		h.UntilTrue(`select bool_and(status = 'closed') from autopost.moderation_messages`)
		for _, m := range h.World.Telegram.Messages(-1_000_000_007_777) {
			require.Empty(t, m.Buttons, "no copy has buttons")
			require.Contains(t, m.Text, "Rejected by olga")
		}
	}},
	// A result webhook gets an event of each post.
	{name: "results that are reported", play: func(t testing.TB, program harness.Option) {
		const key = "whsec_cGxhbnRzLWNhbmFyeS1zaWduaW5nLWtleQ=="
		h := station(t, program, 2, harness.Channel{}, harness.Telegram)
		require.NoError(t, h.World.Webhook.AddEndpoint("results", key))
		bind := h.Run(nil, "credential", "bind", "key", "--platform", "webhook", "--secret-ref", "env:RESULTS_KEY", "--reason=test")
		require.Zero(t, bind.Code, bind.Stderr)
		add := h.Run([]string{"RESULTS_KEY=" + key}, "webhook", "add", "results", "--url", h.WorldURL+"/webhook/results", "--signing-ref", "key", "--reason=test")
		require.Zero(t, add.Code, add.Stderr)
		push(t, h, h.Serve(append(quick, "RESULTS_KEY="+key)...), 2)
		orderly(t, h, 4)
		h.UntilTrue(`select done_at > (select max(ts) from autopost.events) and not exists (
			select 1 from autopost.webhook_sends where status not in ('delivered', 'dead')) from autopost.webhook_cursors`)
		reported := 0
		for _, e := range h.World.Webhook.Events("results") {
			if e.Type == "delivery.sent" {
				reported++
			}
		}
		require.Equal(t, 4, reported, "the receiver has all")
	}},
	// A daemon dies inside the transaction of a chunk.
	{name: "chunk that is cut off", tags: "failpoint", play: func(t testing.TB, program harness.Option) {
		const items = 5
		h := station(t, program, 1, harness.Channel{Parallel: 4}, harness.Telegram)
		h.Exec(`update autopost.settings set value = '1' where key = 'pull_lease_seconds'`)
		raw, err := feeds.RSS{Items: items}.Document()
		require.NoError(t, err)
		h.World.Feeds.Set("wire", "application/rss+xml", raw)
		d := h.Serve(append(quick, "AUTOPOST_FAILPOINT="+string(failpoint.InsideChunk))...)
		h.Exec(`insert into autopost.pull_sources (workspace_id, source_id, kind, config_json)
			values ('news', 'wire', 'rss', jsonb_build_object('url', $1::text, 'interval_seconds', 1, 'backfill_items', $2::int))`, h.WorldURL+"/feeds/wire", items)
		h.Exec(`insert into autopost.workspace_endpoints (workspace_id, endpoint_id, kind, source_id) values ('news', 'wire', 'pull_source', 'wire')`)
		require.True(t, d.Died(), "the daemon dies in its chunk")
		h.Serve(quick...)
		h.Until("every item comes in", func() bool { return pgtest.Value[int](h.DB, `select count(*)::int from autopost.messages`) == items })
		orderly(t, h, items)
	}},
	// The transaction of a push is held up, and its connection is cut.
	{name: "push that is cut off", play: func(t testing.TB, program harness.Option) {
		h := station(t, program, 1, harness.Channel{}, harness.Telegram)
		d := h.Serve(quick...)
		holder := h.Session("holder", "")
		holder.Exec(`begin`)
		holder.Exec(`select 1 from autopost.channel_gates for update`)
		type reply struct {
			status int
			at     time.Time
		}
		answered := make(chan reply, 1)
		go func() {
			answer, _ := h.TryPush(d.URL, "secret-cms", harness.Post("text", "Held up")) // no answer is status 0
			answered <- reply{answer.Status, time.Now()}
		}()
		h.UntilTrue(`select exists (select 1 from pg_stat_activity where datname = current_database() and query like '%receive_push%' and wait_event_type = 'Lock')`)
		cut := time.Now()
		h.Exec(`select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and query like '%receive_push%' and wait_event_type = 'Lock'`)
		answer := <-answered
		holder.Exec(`rollback`)
		require.False(t, answer.at.Before(cut), "a push is answered when it is committed, not before: %d", answer.status)
		require.Equal(t, http.StatusServiceUnavailable, answer.status, "what is not taken is to come again")
	}},
	// A medium breaks off, and comes whole when it is asked for again.
	{name: "medium that breaks off", play: func(t testing.TB, program harness.Option) {
		h := station(t, program, 1, harness.Channel{}, harness.Telegram)
		content := append([]byte("\x00\x00\x00\x18ftypisom\x00\x00\x02\x00isomiso2"), bytes.Repeat([]byte("0123456789"), 20_000)...)
		var once sync.Once
		origin := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("Range") != "" {
				w.WriteHeader(http.StatusServiceUnavailable)
				return
			}
			part := content
			once.Do(func() { part = content[:len(content)/2] })
			w.Header().Set("Content-Length", fmt.Sprint(len(content)))
			_, _ = w.Write(part)
		}))
		t.Cleanup(origin.Close)
		h.Exec(`update autopost.retry_policies set ladder_ms = '{500}' where ladder_ms is not null`)
		h.Push(h.Serve(quick...), "secret-cms", harness.Post("text", "Clip", "media", []any{map[string]any{"type": "video", "url": origin.URL + "/clip.mp4"}}))
		h.UntilTrue(`select exists (select 1 from autopost.media_origin)`)
		require.Equal(t, []int64{int64(len(content))}, pgtest.Column[int64](h.DB, `select size_bytes from autopost.media_origin`), "what is registered is whole")
		h.UntilTrue(`select count(*) = 1 from autopost.deliveries`)
		orderly(t, h, 1)
	}},
}
