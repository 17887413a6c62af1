-- why returns the origin of a delivery, its history as sentences, and its wait reasons with
-- remedies.
begin;
\ir fake_clock.sql
\ir world.sql
select plan(73);
select test.bind();
select test.bind('k');

create function test.why(p_channel_id text) returns jsonb
language sql
as $$
select autopost.why('w', (test.row(p_channel_id)).delivery_id)
$$;
create function test.held(p_channel_id text) returns text
language sql
as $$
-- The gates that hold the channel's newest delivery, each with its end.
select coalesce(string_agg((h.value ->> 'gate')
	|| coalesce(' ' || to_char((h.value ->> 'until')::timestamptz at time zone 'UTC', 'HH24:MI:SS'), ''), ', '
	order by h.ordinality), '')
from jsonb_array_elements(test.why(p_channel_id) -> 'now' -> 'held_by') with ordinality h
$$;
create function test.sentence(p_channel_id text) returns text
language sql
as $$
select test.why(p_channel_id) -> 'now' ->> 'sentence'
$$;
create function test.sentences(p_channel_id text) returns text[]
language sql
as $$
select array_agg(c.value ->> 'sentence' order by c.ordinality)
	from jsonb_array_elements(test.why(p_channel_id) -> 'chain') with ordinality c
$$;

select is(autopost.why('w', '00000000-0000-7000-8000-000000000000'), '{"status": "unknown_delivery"}');
select test.channel('a');
create temp table posted on commit drop as
	select test.post('{"text": "Hello", "source_ref": "cms-1", "tags": ["x"]}') as answer;
select is(test.why('a') ->> 'status', 'found');
select is(test.why('a') -> 'delivery' ->> 'text', 'Hello');
select is((test.why('a') -> 'source') - 'started_at'::text,
	jsonb_build_object('run_id', answer -> 'run_id', 'trace_id', answer -> 'trace_id', 'kind', 'api', 'endpoint_id',
	'in',
	'source_id', null, 'source_ref', 'cms-1', 'submission_id', null), 'where it came from') from posted;
select is(test.why('a') -> 'message' ->> 'message_id', answer ->> 'message_id') from posted;
select is(test.sentences('a'),
	'{"enqueued: 1 channel got it, 0 had it already, 0 could not take it, 0 were skipped"}');
select is(test.held('a'), '', 'nothing holds it');
select is(test.sentence('a'), 'due: it goes with the next claim');
select is((test.why('a') -> 'now' ->> 'send_at')::timestamptz, autopost.now_ts());
select autopost.touch_run('run-1');
select is((test.why('a') -> 'now' ->> 'daemon_seen_at')::timestamptz, autopost.now_ts(),
	'somebody is there to claim it');

-- In flight, and through a failure to its end.
select test.claimed();
select is(test.sentence('a'), 'claimed by run run-1, its call has not begun, lease until 2026-06-01T12:05:00Z');
select test.start('a');
select is(test.sentence('a'), 'being sent by run run-1, lease until 2026-06-01T12:05:00Z');
select test.tick('1 second');
select test.commit('a', test.failure('TRANSIENT', 'delivery', 'http_502', '{"message": "Bad Gateway"}'));
select matches(test.held('a'), '^retry 12:00:0\d$', 'its wait');
select matches((test.sentences('a'))[3], '^call 1 failed, http_502: Bad Gateway; again at 2026-06-01T12:00:0\dZ$');
select is((test.sentences('a'))[2], 'call 1 began, by run run-1');
select test.tick('10 seconds');
select is(test.held('a'), '', 'it is over');
select test.round('a', test.sent('77'));
select is(test.sentence('a'), 'sent at 2026-06-01T12:00:11Z as 77');
select is((test.sentences('a'))[5], 'the platform accepted it as 77');
select is(cardinality(test.sentences('a')), 5);
select is(test.why('a') -> 'now' -> 'held_by', '[]');

-- Each gate, until when and by what it would be lifted.
select test.post(jsonb_build_object('text', 'later', 'scheduled_for', '2026-06-01T13:00:00Z'));
select is(test.held('a'), 'scheduled_for 13:00:00');
update autopost.channels set paused_until = '2026-06-01 14:00+00', cooldown_until = '2026-06-01 12:30+00'
	where channel_id = 'a';
select is(test.held('a'), 'scheduled_for 13:00:00, channel_paused 14:00:00, channel_cooldown 12:30:00');
select is(test.sentence('a'), 'waits: scheduled for until 2026-06-01T13:00:00Z, channel paused until 2026-06-01T14:00:00Z, channel cooldown until 2026-06-01T12:30:00Z');
select is((test.why('a') -> 'now' ->> 'send_at')::timestamptz, timestamptz '2026-06-01 14:00+00',
	'the last of them decides');
select is((select string_agg(h.value ->> 'lifts', '; ') from jsonb_array_elements(test.why('a') -> 'now' -> 'held_by') h
	where h.value ->> 'gate' = 'channel_paused'), 'resume_channel, or the end of the pause');
insert into autopost.platform_limits (workspace_id, platform, rate_group, cooldown_until)
	values ('w', 'telegram', 'bot', '2026-06-01 15:00+00');
select is(test.held('a'),
	'scheduled_for 13:00:00, channel_paused 14:00:00, channel_cooldown 12:30:00, group_cooldown 15:00:00');
update autopost.channels set window_mode = 'windowed', posting_window = '{"mon": [["16:00", "17:00"]]}',
	cooldown_until = null, paused_until = null where channel_id = 'a';
select is(test.held('a'), 'scheduled_for 13:00:00, group_cooldown 15:00:00, window 16:00:00');
update autopost.channels set window_mode = 'immediate', posting_window = null, enabled = false where channel_id = 'a';
select is(test.held('a'), 'channel_disabled, scheduled_for 13:00:00, group_cooldown 15:00:00');
select is(test.why('a') -> 'now' -> 'send_at', 'null', 'time alone does not bring it');
update autopost.channels set enabled = true where channel_id = 'a';
update autopost.workspaces set status = 'paused';
select is(test.held('a'), 'workspace, scheduled_for 13:00:00, group_cooldown 15:00:00');
update autopost.workspaces set status = 'active';
delete from autopost.platform_limits;

-- The turn: rows before it, the slots of the channel and of the group, a full channel.
select test.channel('q', p_rate_rps => 0.5);
select test.posts('q', 4, '{"include_channels": ["q"]}');
select is(test.held('q'), 'queue, channel_rate '
	|| to_char((autopost.now_ts() + interval '6 seconds') at time zone 'UTC', 'HH24:MI:SS'),
	'three before it, two seconds each');
select is((test.why('q') -> 'now' -> 'held_by' -> 0 ->> 'ahead')::int, 3);
insert into autopost.platform_limits (workspace_id, platform, rate_group, rate_rps)
	values ('w', 'telegram', 'bot', 0.25);
select is((select (h.value ->> 'until')::timestamptz - autopost.now_ts()
	from jsonb_array_elements(test.why('q') -> 'now' -> 'held_by') h where h.value ->> 'gate' = 'group_rate'),
	'12 seconds', 'three in its group, four seconds each');
delete from autopost.platform_limits;
select test.claim();
select is((test.why('q') -> 'now' -> 'held_by' -> 0) - 'lifts'::text,
	jsonb_build_object('gate', 'max_parallel', 'until', null, 'max_parallel', 1,
	'deliveries', jsonb_build_array((select delivery_id from autopost.deliveries
		where channel_id = 'q' and status = 'sending'))), 'its place is taken, by whom');

-- A forecast keeps its word: one by one the queue leaves when it was said.
create temp table foretold on commit drop as
select d.delivery_id, (autopost.why('w', d.delivery_id) -> 'now' ->> 'send_at')::timestamptz as send_at
	from autopost.deliveries d where d.channel_id = 'q' and d.status = 'queued';
do $$
declare
	v_row record;
begin
	for v_second in 1..10 loop
		perform autopost.start_call('w', d.delivery_id, d.claim_token),
			autopost.mark_sent('w', d.delivery_id, d.claim_token, '1', null, null)
		from autopost.deliveries d where d.channel_id = 'q' and d.status = 'sending';
		perform test.tick('1 second');
		perform test.claim();
	end loop;
end
$$;
select is((select count(*)::int from foretold f join autopost.events e on e.delivery_id = f.delivery_id
	and e.action = 'send_attempt'
	where e.meta ->> 'send_at' is not null and (e.meta ->> 'send_at')::timestamptz = f.send_at), 3,
		'each at the very instant');

-- Wait reasons of a channel, its group or its credential: quotas, a breaker, a budget, a refused
-- credential, a pause without end.
select test.channel('k', p_rate_group => 'k');
select test.post('{"text": "kept back", "routing": {"include_channels": ["k"]}}');
insert into autopost.quotas (workspace_id, channel_id, window_seconds, max_sends) values ('w', 'k', 3600, 1);
insert into autopost.quota_uses (workspace_id, delivery_id, attempt, subject, used_at)
	values ('w', gen_random_uuid(), 1, 'channel:k', autopost.now_ts() - interval '30 minutes');
select is(test.held('k'), 'channel_quota ' || to_char((autopost.now_ts() + interval '30 minutes') at time zone 'UTC',
	'HH24:MI:SS'), 'until the use leaves its window');
update autopost.quotas set max_sends = 3;
select is(test.held('k'), '', 'one of three is used');
update autopost.deliveries set render_meta = jsonb_set(render_meta, '{steps}',
	'[{"step": "1"}, {"step": "2"}, {"step": "3"}]') where channel_id = 'k';
select is(test.held('k'), 'channel_quota ' || to_char((autopost.now_ts() + interval '30 minutes') at time zone 'UTC',
	'HH24:MI:SS'), 'a series of three waits for all of it');
delete from autopost.quotas;
insert into autopost.platform_limits (workspace_id, platform, rate_group, quota_until)
	values ('w', 'telegram', 'k', '2026-06-01 18:00+00');
select is(test.held('k'), 'group_quota 18:00:00');
update autopost.platform_limits set quota_until = null, breaker_opened_at = autopost.now_ts(),
	probe_at = '2026-06-01 19:00+00' where rate_group = 'k';
select is(test.held('k'), 'breaker 19:00:00');
select is(test.why('k') -> 'now' -> 'held_by' -> 0 ->> 'lifts',
	'a probe that succeeds: the platform is taken to be down');
delete from autopost.platform_limits;
update autopost.platforms set post_micros = 10 where platform = 'telegram';
insert into autopost.budgets (workspace_id, auth_ref, month_micros) values ('w', 'k', 5);
select is(test.held('k'), 'budget 00:00:00', 'the next month');
delete from autopost.budgets;
update autopost.platforms set post_micros = 0 where platform = 'telegram';
update autopost.channels set paused_until = '2026-06-01 20:00+00', auth_held = true, auth_lost_at = autopost.now_ts()
	where channel_id = 'k';
select is(test.held('k'), 'auth_lost 20:00:00');
select matches(test.why('k') -> 'now' -> 'held_by' -> 0 ->> 'lifts', 'autopost credential set');
update autopost.channels set auth_held = false, paused_until = 'infinity' where channel_id = 'k';
select is(test.held('k'), 'channel_paused', 'without an end');
select is(test.why('k') -> 'now' -> 'send_at', 'null');
select autopost.resume_channel('w', 'k', 'olga', 'over', false);
update autopost.channel_gates set ready_at = autopost.now_ts() where channel_id = 'k';
select is(test.held('k'), '', 'nothing is left');

-- Unknown: a person must look.
select test.channel('h');
update autopost.channels set on_unknown = 'hold' where channel_id = 'h';
select test.post('{"text": "held", "routing": {"include_channels": ["h"]}}');
select test.round('h', test.failure('TRANSIENT', 'delivery', 'timeout', '{"known": false}'));
select is(test.held('h'), 'unknown_outcome');
select matches(test.sentence('h'), '^waits: unknown outcome$');
select is(test.why('h') -> 'now' -> 'held_by' -> 0 ->> 'lifts',
	'the decision of an operator: autopost deliveries resolve');
select is((test.sentences('h'))[3],
	'it is unknown if call 1 reached the platform (timeout); the channel''s policy is hold');
select is((test.sentences('h'))[4], 'call 1 failed, unknown_outcome; again at the decision of an operator');
select is(test.why('h') -> 'delivery' -> 'due_at', 'null');
select autopost.resolve_unknown('w', (test.row('h')).delivery_id, 'found', '99', 'olga', 'seen');
select is((test.sentences('h'))[5], 'olga checked the platform: found');

-- Ends without a post.
select test.channel('d');
select test.post('{"text": "forbidden", "routing": {"include_channels": ["d"]}}');
select test.round('d', test.failure('PERMANENT', 'channel', 'http_403', '{"message": "bot was kicked"}'));
select is(test.sentence('d'), 'ended without being sent: http_403: bot was kicked');
select is(test.why('d') -> 'now' ->> 'lifts', 'resume_channel, then manual_requeue');
select is((test.sentences('d'))[3], 'given up: http_403: bot was kicked');
select autopost.resume_channel('w', 'd', 'olga', 'fixed', false);
select is(test.why('d') -> 'now' ->> 'lifts', 'manual_requeue');
select autopost.manual_requeue('w', array[(test.row('d')).delivery_id], 'olga', 'again');
select is((test.sentences('d'))[4], 'requeued by olga: again');
select is((test.why('d') -> 'delivery' ->> 'max_attempts')::int, 6, 'with one attempt more');
select autopost.skip_deliveries('w', array[(test.row('d')).delivery_id], 'olga', 'no more', false);
select is((test.sentences('d'))[5], 'skipped by olga: no more');
select test.tick('1 second');
select test.post(jsonb_build_object('text', repeat('x', 4097), 'routing', '{"include_channels": ["d"]}'::jsonb));
select is((test.sentences('d'))[2],
	'refused before sending: validation_failed: text has 4097 characters, telegram takes at most 4096');

-- A gate that is shut though nothing holds the delivery: the net will open it, and why says so.
select test.post('{"text": "lost", "routing": {"include_channels": ["h"]}}');
update autopost.channel_gates set ready_at = 'infinity' where channel_id = 'h';
select is(test.held('h'), 'gate');
select autopost.rearm_gates('w');
select is(test.held('h'), '');

-- Each event has a sentence. Deliveries of other workspaces are hidden.
select is((select count(*)::int from autopost.events e where autopost.event_text(e) is null), 0,
	'no event without a sentence');
insert into autopost.workspaces (workspace_id) values ('v');
select is(autopost.why('v', (test.row('a')).delivery_id), '{"status": "unknown_delivery"}');
select is((select string_agg(v.invariant, ',') from autopost.verify('w') v where v.violations > 0), null);

-- Not deliveries yet: media are fetched first, or the post fans out in ranges.
create temp table fetched on commit drop as
select (autopost.submit_post('w', 'in', 'api',
	'{"media": [{"type": "image", "url": "https://example.org/a.png"}]}') ->> 'submission_id')::uuid as id;
select is(autopost.why('w', id) -> 'now' ->> 'sentence', 'waits: its media are fetched first') from fetched;
select is(autopost.why('w', id) -> 'now' -> 'held_by' -> 0 ->> 'gate', 'media') from fetched;
update autopost.submissions set status = 'failed',
	last_error = '{"code": "http_404", "known": true, "message": "Not Found"}';
select is(autopost.why('w', id) -> 'now' ->> 'sentence', 'ended without being enqueued: failed: http_404: Not Found')
	from fetched;
delete from autopost.submissions;
select is(autopost.why('w', id), '{"status": "unknown_delivery"}') from fetched;
insert into autopost.fanout_jobs (workspace_id, job_id, message_id, run_id, trace_id, post, planned, enqueued)
select 'w', gen_random_uuid(), m.message_id, gen_random_uuid(), gen_random_uuid(), '{}', 100, 40
	from autopost.messages m order by m.message_id limit 1;
select is(autopost.why('w', message_id) ->> 'status', 'fanout') from autopost.fanout_jobs;
select is(autopost.why('w', message_id) -> 'now' ->> 'sentence', 'fans out: 40 of 100 channels are through')
	from autopost.fanout_jobs;
delete from autopost.fanout_jobs;

select * from finish();
rollback;
