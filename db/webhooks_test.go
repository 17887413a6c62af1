package db_test

import (
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"autopost/internal/testing/pgtest"
	"autopost/internal/testing/posttest"
	"autopost/internal/testing/wait"
)

const (
	read = `select autopost.enqueue_webhooks('w')`
	// happened writes an event as emit_note does.
	happened = `insert into autopost.events (workspace_id, id, channel_id, ts, action, result, meta)
		select 'w', $1, 'a', clock_timestamp(), 'channel_paused', 'ok', '{}' where pg_current_xact_id() is not null`
	queued = `select coalesce(array_agg(event_id::text order by event_id), '{}') from autopost.webhook_sends`
)

const first, second = "00000000-0000-7000-8000-000000000001", "00000000-0000-7000-8000-000000000002"

// webhookWorld has a webhook for all events. The overlap is zero: it cannot find late events
// if the reader does not wait for them.
func webhookWorld(t *testing.T) *pgtest.DB {
	t.Helper()
	base := world(t, "a")
	base.Exec(`update autopost.settings set value = '0' where key in ('webhook_overlap_seconds', 'webhook_poll_ms')`)
	base.Exec(`select autopost.put_webhook('w', 'crm', '{"url": "https://crm.example.com", "signing_ref": "key"}', 'ann', 'r', false)`)
	return base
}

// A transaction may commit long after later events were read. Its event is queued once. Events
// of other transactions do not wait for it.
func TestEventCommittedLateIsQueued(t *testing.T) {
	t.Parallel()
	base := webhookWorld(t)
	slow, pump := base.Session("slow", ""), base.Session("pump", "engine")
	slow.Exec(`begin`)
	slow.Exec(happened, first)

	for range 4 {
		pump.Exec(read)
	}
	base.Exec(happened, second)
	for range 4 {
		pump.Exec(read)
		require.Equal(t, []string{second}, pgtest.Value[[]string](base, queued))
	}
	done := `select done_at > (select max(ts) from autopost.events) from autopost.webhook_cursors`
	require.False(t, pgtest.Value[bool](base, done), "the reader waits for open transactions")

	slow.Exec(`commit`)
	readUntil(t, base, done)
	require.Equal(t, []string{first, second}, pgtest.Value[[]string](base, queued))

	base.Exec(`delete from autopost.webhook_sends`)
	pump.Exec(read)
	require.Empty(t, pgtest.Value[[]string](base, queued), "finished events are not read again")
}

// A backlog is read in few steps, each event once and in order. The cost of a step does not grow
// with the number of events that were read before.
func TestBacklogIsReadInFewSteps(t *testing.T) {
	t.Parallel()
	base := webhookWorld(t)
	base.Exec(`insert into autopost.events (workspace_id, id, channel_id, ts, action, result, meta)
		select 'w', gen_random_uuid(), 'a', now() - interval '1 minute' + n * interval '1 ms', case when n % 2 = 0 then 'channel_paused' else 'send_attempt' end, 'ok', '{}' from generate_series(1, 24000) n`)
	base.Exec(`update autopost.result_webhooks set enabled_at = now() - interval '1 hour'`)
	base.Exec(`delete from autopost.webhook_cursors`)
	base.Exec(`insert into autopost.webhook_cursors (workspace_id, done_at, mark_xid, mark_at, read_at, next_done_at)
		select 'w', now() - interval '1 hour', pg_current_xact_id(), now(), now() - interval '1 hour', now() - interval '1 hour'`)
	pump := base.Session("pump", "engine")
	var steps []float64
	for range 3 {
		steps = append(steps, pages(pump, read))
	}
	t.Logf("pages of the steps: %v", steps)
	require.Less(t, steps[1], 1.5*steps[0])
	require.Equal(t, [][]any{{int64(12_000)}}, base.Session("look", "").Exec(`select count(*) from autopost.webhook_sends s
		join autopost.events e on e.id = s.event_id and e.ts = s.event_at where e.action = 'channel_paused'`))
	require.True(t, pgtest.Value[bool](base, `select position_at is null from autopost.webhook_cursors`), "all events are read")
}

// A transaction that writes behind the position of a long reading is found by the next reading.
func TestEventBehindTheReadingIsQueued(t *testing.T) {
	t.Parallel()
	base := webhookWorld(t)
	late := base.Session("late", "")
	late.Exec(`begin`)
	late.Exec(happened, first)
	base.Exec(`select autopost.emit_note('w', 'channel_paused', 'ok', 'a', null, null, '{}') from generate_series(1, 5500)`)
	require.Equal(t, true, base.JSON(read)["more"])
	late.Exec(`commit`)
	readUntil(t, base, `select count(*) = 5501 from autopost.webhook_sends`)
}

// A copy that was restored into another server has a mark in the future of that server. The mark
// is reset, and unread events of the copy are queued.
func TestReadingGoesOnInACopy(t *testing.T) {
	t.Parallel()
	base := webhookWorld(t)
	base.Exec(happened, first)
	base.Exec(`update autopost.webhook_cursors set mark_xid = '9999999999', read_at = now()`)
	readUntil(t, base, `select done_at > (select max(ts) from autopost.events) from autopost.webhook_cursors`)
	require.Equal(t, []string{first}, pgtest.Value[[]string](base, queued))
}

// The cost of a reading, in pages, depends on the new events and not on the stored ones.
func TestReadingPassesWhatIsDone(t *testing.T) {
	t.Parallel()
	base := webhookWorld(t)
	base.Exec(`insert into autopost.events (workspace_id, id, channel_id, ts, action, result, meta)
		select 'w', gen_random_uuid(), 'a', clock_timestamp() - make_interval(secs => n), 'channel_paused', 'ok', '{}' from generate_series(1, 30000) n`)
	base.Exec(`analyze autopost.events`)
	readUntil(t, base, `select true`)
	base.Exec(happened, first)
	look := base.Session("look", "engine")
	require.Less(t, pagesOf(look, read), 500.)
	require.Equal(t, []string{first}, pgtest.Value[[]string](base, queued))
}

// A second reading skips queued events before it renders them, and skips send_attempt events. It costs
// a few pages per event and writes none. The check whether a post with many channels has ended
// is as cheap.
func TestReadingAgainIsCheap(t *testing.T) {
	t.Parallel()
	base := webhookWorld(t)
	base.Exec(`select autopost.put_webhook('w', 'erp', '{"url": "https://erp.example.com", "signing_ref": "key", "event_types": ["post.*"]}', 'ann', 'r', false)`)
	base.Exec(`update autopost.result_webhooks set enabled_at = now() - interval '1 hour'`)
	base.Exec(`insert into autopost.channels (workspace_id, channel_id, platform, target_id, auth_ref, rate_group)
		select 'w', 'c' || n, 'telegram', '@' || n, 'bot', 'bot' from generate_series(1, 1000) n`)
	for _, text := range []string{"one", "two", "three"} {
		posttest.Post(base, "w", text)
	}
	base.Exec(`set session_replication_role = replica;
		update autopost.deliveries set status = 'sent', sent_at = now(), finished_at = now(), provider_message_id = '1';
		insert into autopost.events (workspace_id, id, delivery_id, message_id, channel_id, ts, action, attempt, result, meta)
		select 'w', gen_random_uuid(), d.delivery_id, d.message_id, d.channel_id, clock_timestamp(), a, 1, 'ok', jsonb_build_object('trace_id', d.trace_id, 'provider_message_id', '1')
		from autopost.deliveries d, unnest('{send_attempt,sent}'::text[]) a order by d.delivery_id;
		set session_replication_role = origin`)
	pump := base.Session("pump", "engine")
	wind := func() {
		base.Exec(`update autopost.webhook_cursors set done_at = now() - interval '1 minute', read_at = now() - interval '1 minute', next_done_at = now() - interval '1 minute'`)
	}
	wind()
	first := answer(t, pump.Exec(read))
	sent := pgtest.Value[float64](base, `select count(*)::float8 from autopost.events where action = 'sent'`)
	require.Greater(t, sent, 3000.)
	require.Equal(t, sent+2*6, first["queued"], "all sent events, and for both webhooks that three posts were accepted and completed")
	wind()
	require.Equal(t, map[string]any{"read": first["read"], "queued": 0., "more": false, "busy": false}, answer(t, pump.Exec(read)))
	wind()
	pages := pages(pump, read)
	t.Logf("%v pages to read %v events again", pages, first["read"])
	require.Less(t, pages, 10*sent)
}

// Two concurrent readings queue each event once, and neither waits.
func TestOneReadsTheOtherGoesAway(t *testing.T) {
	t.Parallel()
	base := webhookWorld(t)
	base.Exec(happened, first)
	one, other := base.Session("one", "engine"), impatient(base, "other")
	one.Exec(`begin`)
	one.Exec(read)
	require.Equal(t, true, answer(t, other.Exec(read))["busy"])
	one.Exec(`commit`)
	other.Exec(read)
	require.Equal(t, []string{first}, pgtest.Value[[]string](base, queued))
}

// Many sessions write, commit late or roll back while two read. Each committed event is queued once.
func TestEveryCommittedEventIsQueued(t *testing.T) {
	t.Parallel()
	base := webhookWorld(t)
	base.Exec(`update autopost.settings set value = '1' where key = 'webhook_overlap_seconds'`)
	var writers, readers sync.WaitGroup
	for w := range 6 {
		s := base.Session("writer-"+string(rune('a'+w)), "")
		writers.Go(func() {
			for range 40 {
				s.Exec(`begin`)
				for range 1 + rand.IntN(3) {
					s.Exec(`select autopost.emit_note('w', 'channel_paused', 'ok', 'a', null, null, '{}')`)
				}
				s.Exec(`select count(*) from generate_series(1, $1::int)`, rand.IntN(1+rand.IntN(200_000)))
				s.Exec([]string{`commit`, `commit`, `commit`, `rollback`}[rand.IntN(4)])
			}
		})
	}
	stop := make(chan struct{})
	for _, name := range []string{"reader-1", "reader-2"} {
		s := base.Session(name, "engine")
		readers.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
					s.Exec(read)
				}
			}
		})
	}
	writers.Wait()
	close(stop)
	readers.Wait()
	readUntil(t, base, `select done_at > (select max(ts) from autopost.events) from autopost.webhook_cursors`)
	require.Greater(t, pgtest.Value[int](base, `select count(*)::int from autopost.events`), 200)
	require.Equal(t, 0, pgtest.Value[int](base, `
		select count(*)::int from autopost.events e where e.action = 'channel_paused'
		and not exists (select 1 from autopost.webhook_sends s where s.event_id = e.id)`))
}

// readUntil reads until the query reached returns true. It also waits for transactions of other
// tests: a server numbers the transactions of all its databases.
func readUntil(t *testing.T, base *pgtest.DB, reached string) {
	t.Helper()
	wait.Until(t, reached, func() bool {
		base.Exec(read)
		return pgtest.Value[bool](base, reached)
	})
}

// The cost of a claim and a commit depends on their calls, not on the calls of the past, whatever the planner knows.
// Lists of event types are compared once for all webhooks.
func TestManyWebhooksShareTheWork(t *testing.T) {
	t.Parallel()
	const webhooks = 60
	base := webhookWorld(t)
	// While autovacuum reads a table, dead rows stay, and their pages would be counted.
	base.Exec(`alter table autopost.webhook_sends set (autovacuum_enabled = off); alter table autopost.result_webhooks set (autovacuum_enabled = off)`)
	base.Exec(`insert into autopost.credential_bindings (workspace_id, auth_ref, platform, secret_ref) values ('w', 'key', 'webhook', 'env:KEY')`)
	base.Exec(`select autopost.put_webhook('w', 'crm-' || n, '{"url": "https://crm.example.com", "signing_ref": "key"}', 'ann', 'r', false) from generate_series(2, $1::int) n`, webhooks)
	pump := base.Session("pump", "engine")
	const (
		claim  = `select autopost.claim_webhooks('w', 256)`
		commit = `select autopost.commit_webhook_batch('w', (select jsonb_agg(jsonb_build_object('webhook_id', s.webhook_id, 'event_id', s.event_id, 'claim_token', s.claim_token, 'outcome', '{"http_status": 200}'::jsonb))
			from autopost.webhook_sends s where s.status = 'sending'))`
	)
	round := func() (claimed, committed float64) {
		base.Exec(`select autopost.emit_note('w', 'channel_paused', 'ok', 'a', null, null, '{}') from generate_series(1, 3)`)
		base.Exec(`update autopost.result_webhooks set next_send_at = now()`)
		require.EqualValues(t, 3*webhooks, answer(t, pump.Exec(read))["queued"])
		claimed = pages(pump, claim)
		sending := `select count(*) from autopost.webhook_sends where status = 'sending'`
		require.Equal(t, 3*webhooks, pgtest.Value[int](base, sending))
		committed = pages(base.Session("commit", ""), commit)
		require.Zero(t, pgtest.Value[int](base, sending))
		return claimed, committed
	}
	for range 7 { // plans are fixed after five uses
		round()
	}
	claimed, committed := round()
	base.Exec(`insert into autopost.webhook_sends (workspace_id, webhook_id, event_id, event_type, event_at, body, status, due_at, created_at, finished_at)
		select 'w', 'crm', gen_random_uuid(), 'channel.paused', now() - interval '1 day', '{}', 'delivered', now() - interval '1 day', now(), now() from generate_series(1, 30000)`)
	later, after := round()
	t.Logf("pages of a claim of %d calls: %v, with a history %v; of their commit: %v, %v", 3*webhooks, claimed, later, committed, after)
	require.Less(t, later, 1.5*claimed+500)
	require.Less(t, after, 1.5*committed+500)

	count := base.Session("count", "")
	count.Exec(`set track_functions = 'all'`)
	count.Exec(`begin`)
	base.Exec(`select autopost.emit_note('w', 'channel_paused', 'ok', 'a', null, null, '{}')`)
	count.Exec(read)
	compared := count.Exec(`select calls::int from pg_stat_xact_user_functions where funcname = 'is_type_wanted'`)
	count.Exec(`rollback`)
	require.Less(t, compared[0][0], int32(10), "comparisons of a type with a list")
}
