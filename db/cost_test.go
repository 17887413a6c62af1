package db_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"autopost"
	"autopost/internal/testing/pgtest"
	"autopost/internal/testing/posttest"
)

// The cost of a check across workspaces depends on those with waiting work. It is counted in
// pages, which do not depend on the load of the machine.
func TestLookAcrossWorkspacesPassesThoseWithoutWork(t *testing.T) {
	t.Parallel()
	base := pgtest.New(t)
	base.Exec(`insert into autopost.workspaces (workspace_id) select 'w' || n from generate_series(1, 400) n`)
	base.Exec(`insert into autopost.channels (workspace_id, channel_id, platform, target_id, auth_ref, rate_group)
		select w.workspace_id, 'c' || n, 'telegram', '@' || n, 'bot', 'group' || n % 2 from autopost.workspaces w, generate_series(1, 4) n`)
	posttest.Workspace(base, "busy")
	posttest.Channel(base, "busy", "a")
	posttest.Channel(base, "busy", "b", posttest.Group("other"))
	posttest.Post(base, "busy", "one")
	base.Exec(`analyze`)

	look := base.Session("look", "engine")
	for _, query := range []string{`select autopost.ready_work('', 100, '[]')`, `select autopost.due_stages(4000)`} {
		pages(look, query) // fills the caches of the session
		require.Less(t, pages(look, query), 200., query+": less than half a page a workspace")
	}
	require.Equal(t, []string{"deliveries"}, pgtest.Column[string](base, `select autopost.due_stages(4000)`))
}

// Whether what a post names is a channel is a probe for each name, however many the workspace has.
func TestNamedChannelsAreProbed(t *testing.T) {
	t.Parallel()
	base := world(t, "a")
	base.Exec(`set session_replication_role = replica;
		insert into autopost.channels (workspace_id, channel_id, platform, target_id, auth_ref, rate_group) select 'w', 'c' || n, 'telegram', '@' || n, 'bot', 'bot' from generate_series(1, 20000) n;
		set session_replication_role = origin; analyze`)
	const named = `select autopost.routing_warnings('w', '{"include_channels": ["a", "c7", "nope"]}')`
	require.Equal(t, "routing.include_channels.nope", pgtest.Value[string](base, named))
	look := base.Session("look", "")
	require.Less(t, pagesOf(look, named), 60.)
	require.Less(t, pagesOf(look, `select autopost.variant_warnings('w', '{"a": {"txt": ""}, "c7": {"text": ""}, "nope": {"text": ""}}')`), 60.)
}

// Frequent queries read only the head of each index. Their cost does not depend on the finished work.
func TestStagesThatAreDuePassTheHistory(t *testing.T) {
	t.Parallel()
	const finished = 20_000 // of each kind
	base := world(t, "a")
	base.Exec(fmt.Sprintf(`set session_replication_role = replica;
		insert into autopost.workspaces (workspace_id) select 'w' || n from generate_series(1, 400) n;
		insert into autopost.pull_sources (workspace_id, source_id, kind) select 'w', 'feed ' || n, 'rss' from generate_series(1, 20) n;
		insert into autopost.pull_cursors (workspace_id, source_id, next_poll_at) select 'w', 'feed ' || n, now() + interval '1 hour' from generate_series(1, 20) n;
		insert into autopost.result_webhooks (workspace_id, webhook_id, url, signing_ref, enabled_at, next_send_at) values ('w', 'crm', 'https://example.com', 'key', now(), now());
		insert into autopost.webhook_cursors (workspace_id, done_at, mark_xid, mark_at, read_at, next_done_at) values ('w', now(), pg_current_xact_id(), now(), now() + interval '1 hour', now());
		insert into autopost.deliveries (workspace_id, delivery_id, message_id, channel_id, hash_version, content_hash, status, sent_at, finished_at, provider_message_id)
		select 'w', autopost.uuid_v7_of(now(), n::text), gen_random_uuid(), 'a', 1, 'hash ' || n, 'sent', now(), now(), n::text from generate_series(1, %[1]d) n;
		insert into autopost.submissions (workspace_id, submission_id, endpoint_id, kind, status, raw_payload, run_id, trace_id)
		select 'w', gen_random_uuid(), 'in', 'push', 'failed', '{}', gen_random_uuid(), gen_random_uuid() from generate_series(1, %[1]d) n;
		insert into autopost.fanout_jobs (workspace_id, job_id, message_id, run_id, trace_id, status, planned, finished_at)
		select 'w', gen_random_uuid(), gen_random_uuid(), gen_random_uuid(), gen_random_uuid(), 'done', 1, now() from generate_series(1, %[1]d) n;
		insert into autopost.post_acts (workspace_id, act_id, delivery_id, message_id, channel_id, lane, kind, status, due_at, next_at, operator, reason, created_at, updated_at, finished_at)
		select 'w', gen_random_uuid(), gen_random_uuid(), gen_random_uuid(), 'a', 'a', 'pin', 'done', now(), now(), 'o', 'r', now(), now(), now() from generate_series(1, %[1]d) n;
		insert into autopost.webhook_sends (workspace_id, webhook_id, event_id, event_type, event_at, body, status, due_at, created_at, finished_at)
		select 'w', 'crm', gen_random_uuid(), 'delivery.sent', now(), '{}', 'delivered', now(), now(), now() from generate_series(1, %[1]d) n;
		set session_replication_role = origin`, finished))
	base.Exec(`analyze`)

	look := base.Session("look", "engine")
	require.Empty(t, look.Exec(`select autopost.due_stages(4000)`)) // and fills the caches of the session
	require.Less(t, pages(look, `select autopost.due_stages(4000)`), 215.)
}

// After an unknown outcome, a claim returns the channel's other posts. The cost does not depend
// on the number of past and waiting posts.
func TestKnownPostsAreTheNewest(t *testing.T) {
	t.Parallel()
	base := world(t, "a", "b")
	posttest.Post(base, "w", "one")
	base.Exec(`set session_replication_role = replica;
		insert into autopost.deliveries (workspace_id, delivery_id, message_id, channel_id, hash_version, content_hash, status, sent_at, finished_at, provider_message_id)
		select 'w', autopost.uuid_v7_of(now() - n * interval '1 minute', n::text), d.message_id, 'a', 1, 'hash ' || n, 'sent', now() - n * interval '1 minute', now() - n * interval '1 minute', n::text
		from generate_series(1, 20000) n, (select message_id from autopost.deliveries limit 1) d;
		insert into autopost.deliveries (workspace_id, delivery_id, message_id, channel_id, hash_version, content_hash, status, next_retry_at, not_before)
		select 'w', autopost.uuid_v7_of(now(), 'waits ' || n), d.message_id, 'a', 1, 'waits ' || n, case when n % 2 = 0 then 'queued' else 'retry' end, now() - interval '1 day', now() - interval '1 day'
		from generate_series(1, 20000) n, (select message_id from autopost.deliveries limit 1) d;
		set session_replication_role = origin`)
	base.Exec(`analyze`)
	look := base.Session("look", "")
	const query = `select autopost.known_posts('w', 'a', gen_random_uuid(), now() - interval '150 seconds')`
	pages(look, query) // fills the caches of the session
	require.Less(t, pages(look, query), 3000.)
	require.Equal(t, [][]any{{map[string]any{"before": []any{"3"}, "others": []any{"1", "2", "3", "4", "5", "6", "7"}, "others_in_doubt": false}}}, look.Exec(query))
}

// Each day's events have a table of their own, empty when a daemon's connections planned for it. What a start, a commit and a reading of results cost
// later that day goes by what they look at, before anybody has made statistics of it and after somebody made them too soon.
func TestTodaysEventsCostNothingWhenTheyWereFewAtFirst(t *testing.T) {
	t.Parallel()
	for name, before := range map[string]string{"no statistics": ``, "statistics of nothing": `analyze autopost.events`} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			base := world(t, "a")
			// Autovacuum would make statistics at any moment of the test.
			base.Exec(`do $$ declare v_part regclass; begin
				for v_part in select i.inhrelid::regclass from pg_inherits i where i.inhparent = 'autopost.events'::regclass loop
					execute format('alter table %s set (autovacuum_enabled = off)', v_part);
				end loop; end $$`)
			if before != "" {
				base.Exec(before)
			}
			daemon, reader := base.Session("daemon", "engine"), base.Session("reader", "")
			cost := func() map[string]float64 {
				id := posttest.Delivery(base, "w", "a", autopost.StatusQueued)
				token := posttest.Claim(base, "w", id)
				return map[string]float64{
					"start":   pages(daemon, fmt.Sprintf(`select autopost.start_call('w', '%s', '%s')`, id, token)),
					"commit":  pages(daemon, fmt.Sprintf(`select autopost.commit_outcome('w', '%s', '%s', '{"ok": true, "provider_message_id": "1"}')`, id, token)),
					"results": pages(reader, `select autopost.events_to_send('w', now(), gen_random_uuid(), 5000)`),
				}
			}
			cost() // plans, and fills the caches of the session
			few := cost()
			base.Exec(`select autopost.set_event_strictness(false)`) // rows for the size alone
			base.Exec(`insert into autopost.events (workspace_id, id, delivery_id, message_id, channel_id, ts, action, attempt, result, meta)
				select 'w', autopost.uuid_v7_of(now(), n::text), gen_random_uuid(), gen_random_uuid(), 'a', now(), 'send_attempt', 1, 'ok', '{}' from generate_series(1, 30000) n`)
			many, again := cost(), cost()
			for call := range many {
				// On a busy server the session may have to read the catalog again, which counts.
				require.Less(t, min(many[call], again[call]), 2*few[call]+50, call)
			}
		})
	}
}

// A claim, a start and a commit read the rows that they take, and not all that wait on the channel, however short the queue was when the connection planned for it:
// refresh_statistics sees to it.
func TestLongQueueCostsNothingWhenItWasShortAtFirst(t *testing.T) {
	t.Parallel()
	for name, before := range map[string]string{"no statistics": ``, "statistics of nothing": `analyze`, "statistics of few": `analyze`} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			base := world(t, "a", "b")
			base.Exec(`alter table autopost.deliveries set (autovacuum_enabled = off)`) // it would analyze before the monitor
			if name == "statistics of few" {
				for n := range 5 {
					posttest.Post(base, "w", fmt.Sprint("early ", n))
				}
			}
			if before != "" {
				base.Exec(before)
			}
			daemon := base.Session("daemon", "engine")
			cost := func() map[string]float64 {
				posttest.Delivery(base, "w", "a", autopost.StatusQueued)
				claim := pages(daemon, `select autopost.claim_deliveries('w', 'daemon', 1)`)
				flying := base.Session("look", "").Exec(`select delivery_id::text, claim_token from autopost.deliveries where status = 'sending'`)
				require.Len(t, flying, 1)
				start := pages(daemon, fmt.Sprintf(`select autopost.start_call('w', '%s', '%s')`, flying[0]...))
				commit := pages(daemon, fmt.Sprintf(`select autopost.commit_outcome('w', '%s', '%s', '{"ok": true, "provider_message_id": "1"}')`, flying[0]...))
				return map[string]float64{"claim": claim, "start": start, "commit": commit}
			}
			cost() // plans, and fills the caches of the session
			few := cost()
			source := base.Session("source", "")
			source.Exec(`set session_replication_role = replica`)
			source.Exec(`insert into autopost.deliveries (workspace_id, delivery_id, message_id, channel_id, hash_version, content_hash, status, not_before)
				select 'w', autopost.uuid_v7_of(now(), 'waits ' || n), d.message_id, 'a', 1, 'waits ' || n, 'queued', now() - interval '1 day'
				from generate_series(1, 5000) n, (select message_id from autopost.deliveries limit 1) d`)
			source.Exec(`select pg_stat_force_next_flush()`)
			source.Exec(`select`)
			monitor := base.Session("monitor", "engine")
			require.Equal(t, map[string]any{"analyzed": []any{"deliveries"}}, monitor.Exec(`select autopost.refresh_statistics()`)[0][0])
			require.Equal(t, map[string]any{"analyzed": []any{}}, monitor.Exec(`select autopost.refresh_statistics()`)[0][0], "once")
			cost() // new query plans
			for call, many := range cost() {
				require.Less(t, many, 2*few[call]+50, call)
			}
		})
	}
}

// A claim, a start and a commit find their deliveries by key, whatever the statistics are: plans that were made for a thousand rows stay
// when there are many more, and true statistics give the same cost. For smaller tables refresh_statistics sees to it.
func TestClaimStartAndCommitNeedNoStatistics(t *testing.T) {
	t.Parallel()
	for name, before := range map[string]string{"no statistics": ``, "statistics of few": `analyze`} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			base := world(t, "a", "b")
			base.Exec(`alter table autopost.deliveries set (autovacuum_enabled = off); update autopost.channels set max_parallel = 100`)
			posttest.Post(base, "w", "one")
			more := func(kind string, rows int) {
				base.Exec(fmt.Sprintf(`set session_replication_role = replica;
					insert into autopost.deliveries (workspace_id, delivery_id, message_id, channel_id, hash_version, content_hash, status, not_before)
					select 'w', autopost.uuid_v7_of(now(), '%[1]s ' || n), d.message_id, 'a', 1, '%[1]s ' || n, 'queued', now() + interval '1 day'
					from generate_series(1, %[2]d) n, (select message_id from autopost.deliveries limit 1) d;
					set session_replication_role = origin`, kind, rows))
			}
			daemon, look := base.Session("daemon", "engine"), base.Session("look", "")
			claimed := func(call string) (cost float64, items string) {
				for n := range 10 {
					posttest.Delivery(base, "w", []string{"a", "b"}[n%2], autopost.StatusQueued)
				}
				cost = pages(daemon, call)
				items = pgtest.Value[string](base, `select jsonb_agg(jsonb_build_object('delivery_id', d.delivery_id, 'claim_token', d.claim_token,
					'outcome', '{"ok": true, "provider_message_id": "1"}'::jsonb))::text from autopost.deliveries d where d.status = 'sending'`)
				return cost, items
			}
			cost := func() map[string]float64 {
				const commit = `select autopost.commit_outcome_batch('w', '%s')`
				both, items := claimed(`select autopost.claim_and_start('w', 'daemon', 100, '[]', '{bot}')`)
				require.True(t, pgtest.Value[bool](base, `select count(*) >= 10 and bool_and(call_begun_at is not null) from autopost.deliveries where status = 'sending'`))
				look.Exec(fmt.Sprintf(commit, items))
				_, refused := claimed(`select autopost.claim_and_start('w', 'daemon', 100, '[]', '{bot}')`)
				refused = strings.Replace(refused, `{"ok": true, "provider_message_id": "1"}`,
					`{"ok": false, "error": {"category": "PERMANENT", "scope": "delivery", "code": "bad", "known": true}}`, 1)
				each := pages(daemon, fmt.Sprintf(commit, refused))
				require.True(t, pgtest.Value[bool](base, `select not exists (select 1 from autopost.deliveries where status = 'sending')`))
				claim, items := claimed(`select autopost.claim_deliveries('w', 'daemon', 100)`)
				return map[string]float64{
					"claim and start": both, "claim": claim, "commit with a failure": each,
					"start":  pages(daemon, fmt.Sprintf(`select autopost.start_call_batch('w', '%s')`, items)),
					"commit": pages(daemon, fmt.Sprintf(commit, items)),
				}
			}
			more("early", 1000)
			if before != "" {
				base.Exec(before)
			}
			for range 6 { // generic plans are made after five runs
				cost()
			}
			few := cost()
			more("late", 20_000)
			for call, many := range cost() {
				require.Less(t, many, 2*few[call]+50, "stale: "+call)
			}
			base.Exec(`analyze`)
			cost() // new query plans
			for call, many := range cost() {
				require.Less(t, many, 2*few[call]+50, "true: "+call)
			}
		})
	}
}

// With true statistics as well: a claim of few rows of many channels reads no queue to its end.
func TestClaimReadsNoQueueToItsEnd(t *testing.T) {
	t.Parallel()
	base := world(t)
	base.Exec(`insert into autopost.workspaces (workspace_id) select 'w' || n from generate_series(1, 1) n`)
	base.Exec(`insert into autopost.channels (workspace_id, channel_id, platform, target_id, auth_ref, rate_group, max_parallel)
		select w.workspace_id, p || n, p, p || n, p, p, 10 from autopost.workspaces w, unnest('{telegram,max}'::text[]) p, generate_series(1, 20) n`)
	posttest.Post(base, "w", "one")
	base.Exec(`set session_replication_role = replica;
		insert into autopost.deliveries (workspace_id, delivery_id, message_id, channel_id, hash_version, content_hash, status, not_before)
		select c.workspace_id, gen_random_uuid(), d.message_id, c.channel_id, 1, 'waits ' || n, 'queued', now() - interval '1 day'
		from autopost.channels c, generate_series(1, 300) n, (select message_id from autopost.deliveries limit 1) d;
		update autopost.channel_gates set ready_at = now() - interval '1 day';
		set session_replication_role = origin`)
	base.Exec(`analyze`)
	daemon := base.Session("daemon", "engine")
	claim := `select autopost.claim_within('w', 'daemon', 100, '[{"platform": "max", "room": 0}]')`
	pages(daemon, claim)
	require.Less(t, pages(daemon, claim), 5000., "a row costs a few pages; 20 queues have some 1,000 each")
}

// A commit of what adapters return, which may have the ids of the step, is the commit of a whole batch: its deliveries are not locked and settled one by one.
func TestACommitOfPostsOfOneStepIsOneStatement(t *testing.T) {
	t.Parallel()
	base := world(t, "a", "b")
	base.Exec(`update autopost.channels set max_parallel = 100`)
	daemon, counter := base.Session("daemon", "engine"), base.Session("counter", "")
	counter.Exec(`set track_functions = 'pl'`)
	oneByOne := func(raw string) any {
		for n := range 4 {
			posttest.Delivery(base, "w", []string{"a", "b"}[n%2], autopost.StatusQueued)
		}
		base.Exec(`update autopost.deliveries set render_meta = render_meta || '{"steps": [{"step": "text"}]}' where status = 'queued'`)
		daemon.Exec(`select autopost.claim_and_start('w', 'daemon', 100, '[]', '{bot}')`)
		counter.Exec(`begin`)
		counter.Exec(`select autopost.commit_outcome_batch('w', (select jsonb_agg(jsonb_build_object('delivery_id', d.delivery_id, 'claim_token', d.claim_token,
			'outcome', jsonb_strip_nulls(jsonb_build_object('ok', true, 'provider_message_id', '7', 'sent_at', '2026-08-01T10:00:00Z', 'raw', $1::jsonb))))
			from autopost.deliveries d where d.status = 'sending'))`, raw)
		calls := counter.Exec(`select coalesce(sum(calls), 0)::int from pg_stat_xact_user_functions where funcname = 'commit_each'`)[0][0]
		counter.Exec(`commit`)
		return calls
	}
	kept := func() []string {
		return pgtest.Column[string](base, `select distinct concat_ws(' ', e.meta -> 'raw', d.render_meta -> 'series_progress',
				autopost.sent_ids(d.render_meta, d.provider_message_id, row(p.*)::autopost.platforms),
				autopost.posts_of(d.render_meta, d.provider_message_id))
			from autopost.deliveries d join autopost.events e using (delivery_id) join autopost.platforms p on p.platform = 'telegram'
			where e.action = 'sent' order by 1`)
	}
	require.Zero(t, oneByOne(`null`))
	plain := `{"sent_at": "2026-08-01T10:00:00Z"} {"text": ["7"]} ["7"]`
	require.Equal(t, []string{plain}, kept(), "the id of the only message stands for its step")
	require.Zero(t, oneByOne(`{"ids": ["7", "8"], "steps": {"text": ["7", "8"]}}`))
	require.Equal(t, []string{`{"raw": {"ids": ["7", "8"], "steps": {"text": ["7", "8"]}}, "sent_at": "2026-08-01T10:00:00Z"} ` +
		`{"steps": {"text": ["7", "8"]}, "sent_items": [], "provider_message_ids": ["7", "8"]} {"text": ["7", "8"]} ["7", "8"]`, plain}, kept())
	require.EqualValues(t, 1, oneByOne(`{"reconciled": true, "ids": ["7"], "steps": {"text": ["7"]}}`), "the count must show the other way")
}

// The last channel of a workspace that has no statistics is the end of an index.
func TestLastChannelIsProbed(t *testing.T) {
	t.Parallel()
	base := pgtest.New(t)
	base.Exec(`alter table autopost.channels set (autovacuum_enabled = off)`)
	posttest.Workspace(base, "w")
	base.Exec(`insert into autopost.channels (workspace_id, channel_id, platform, target_id, auth_ref, rate_group)
		select 'w', 'c' || n, 'telegram', '@' || n, 'bot', 'bot' from generate_series(1, 3000) n`)
	look := base.Session("look", "")
	pages(look, `select autopost.last_channel('w')`) // fills the caches of the session
	require.Less(t, pages(look, `select autopost.last_channel('w')`), 20.)
}

// A repeat after its window asks for the deliveries of its message in each channel. It passes the rows of suppressed repeats, of which a content may
// have very many.
func TestARepeatPassesSuppressedOnes(t *testing.T) {
	t.Parallel()
	base := world(t, "a")
	posttest.Delivery(base, "w", "a", autopost.StatusSent)
	text := pgtest.Value[string](base, `select m.payload ->> 'text' from autopost.messages m`)
	source := base.Session("source", "engine")
	cost := func() float64 {
		cost := pages(source, fmt.Sprintf(`select autopost.enqueue_messages_and_deliveries('w', '%s', 'api', '{"text": "%s"}')`, posttest.Endpoint, text))
		require.Equal(t, 1, pgtest.Value[int](base, `with gone as (delete from autopost.deliveries d where d.status = 'queued' returning 1) select count(*)::int from gone`))
		return cost
	}
	base.Exec(`set session_replication_role = replica;
		update autopost.deliveries set sent_at = now() - interval '30 days'; set session_replication_role = origin`)
	cost() // plans, and fills the caches of the session
	few := cost()
	base.Exec(`set session_replication_role = replica;
		insert into autopost.deliveries (workspace_id, delivery_id, message_id, channel_id, hash_version, content_hash, status, finished_at)
		select d.workspace_id, autopost.uuid_v7_of(now(), n::text), d.message_id, d.channel_id, d.hash_version, d.content_hash, 'deduped', now()
		from generate_series(1, 20000) n, autopost.deliveries d;
		set session_replication_role = origin; analyze`)
	cost() // new plans
	require.Less(t, cost(), few+100)
}

// A claim computes no posting windows of channels that have none.
func TestAClaimOfChannelsWithoutHoursComputesNone(t *testing.T) {
	t.Parallel()
	base := world(t, "a", "b")
	posttest.Post(base, "w", "one")
	count := base.Session("count", "")
	count.Exec(`set track_functions = 'all'`)
	count.Exec(`begin`)
	require.Len(t, count.Exec(`select autopost.claim_deliveries('w', 'run', 10)`), 2)
	calls := count.Exec(`select coalesce(sum(calls), 0)::int, count(*) filter (where funcname = 'claim_from_group')::int
		from pg_stat_xact_user_functions where funcname in ('windows_of', 'hours_are_open', 'claim_from_group')`)
	count.Exec(`rollback`)
	require.Equal(t, []any{int32(1), int32(1)}, calls[0], "claim_from_group alone")
}
