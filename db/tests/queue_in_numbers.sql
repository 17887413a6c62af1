-- queue_metrics returns the queue of all workspaces in numbers. Each channel counts under the one
-- gate that holds it. The number of rows is limited.
begin;
\ir fake_clock.sql
\ir world.sql
select plan(31);

create function test.gate_of(p_channel_id text) returns text
language sql
as $$
-- The gate that keeps the one channel of a group, which has the channel's name.
select m.gate from autopost.queue_metrics() m where m.rate_group = p_channel_id
$$;
create function test.alone(p_channel_id text) returns void
language sql
as $$
-- A channel in a group of its own, with two posts.
select test.channel(p_channel_id, p_rate_group => p_channel_id);
select test.posts(p_channel_id, 2, jsonb_build_object('include_channels', jsonb_build_array(p_channel_id)))
$$;

select is((select count(*)::int from autopost.queue_metrics()), 0, 'nothing waits');
select test.alone('a');
create temp table since on commit drop as select min(due_at) as at from autopost.deliveries;
select test.tick('1 minute');
select is(to_jsonb(m) - 'oldest_due_at', '{"workspace_id": "w", "platform": "telegram", "rate_group": "a", "gate": "ready", "channels": 1, "waiting": 2, "due": 2, "in_flight": 0}')
from autopost.queue_metrics() m;
select is(oldest_due_at, (select at from since)) from autopost.queue_metrics();
select test.claimed();
select is(to_jsonb(m) - 'oldest_due_at', '{"workspace_id": "w", "platform": "telegram", "rate_group": "a", "gate": "max_parallel", "channels": 1, "waiting": 1, "due": 1, "in_flight": 1}')
from autopost.queue_metrics() m;
delete from autopost.events where delivery_id is not null;
delete from autopost.deliveries where status = 'queued';
select is(to_jsonb(m), '{"workspace_id": "w", "platform": "telegram", "rate_group": "a", "gate": "sending", "channels": 1, "waiting": 0, "due": 0, "in_flight": 1, "oldest_due_at": null}')
from autopost.queue_metrics() m;

-- Each gate.
select test.post(jsonb_build_object('text', 'later', 'scheduled_for', '2026-06-01T13:00:00Z', 'routing',
	'{"include_channels": ["a"]}'::jsonb));
select is(test.gate_of('a'), 'not_due');
select is(due, 0::bigint) from autopost.queue_metrics();
select test.alone('b');
update autopost.channels set paused_until = autopost.now_ts() + interval '1 hour' where channel_id = 'b';
select is(test.gate_of('b'), 'channel_paused');
update autopost.channels set auth_held = true where channel_id = 'b';
select is(test.gate_of('b'), 'auth_lost', 'the reason of the pause');
update autopost.channels set auth_held = false, enabled = false where channel_id = 'b';
select is(test.gate_of('b'), 'channel_disabled');
update autopost.channels set enabled = true, paused_until = null, cooldown_until = autopost.now_ts() + interval '1 hour'
	where channel_id = 'b';
select is(test.gate_of('b'), 'channel_cooldown');
update autopost.channels set cooldown_until = null, window_mode = 'windowed',
	posting_window = '{"tue": [["09:00", "10:00"]]}' where channel_id = 'b';
select is(test.gate_of('b'), 'window');
update autopost.channels set window_mode = 'immediate', posting_window = null, rate_rps = 1,
	next_allowed_at = autopost.now_ts() + interval '1 second' where channel_id = 'b';
select is(test.gate_of('b'), 'channel_rate');
insert into autopost.platform_limits (workspace_id, platform, rate_group, rate_rps, next_allowed_at)
	values ('w', 'telegram', 'b', 1, autopost.now_ts() + interval '1 second');
select is(test.gate_of('b'), 'group_rate');
update autopost.platform_limits set quota_until = autopost.now_ts() + interval '1 minute';
select is(test.gate_of('b'), 'group_quota');
update autopost.platform_limits set cooldown_until = autopost.now_ts() + interval '1 minute';
select is(test.gate_of('b'), 'group_cooldown');
update autopost.platform_limits set breaker_opened_at = autopost.now_ts(),
	probe_at = autopost.now_ts() + interval '1 minute';
select is(test.gate_of('b'), 'breaker');
delete from autopost.platform_limits;
update autopost.channels set rate_rps = null, next_allowed_at = null where channel_id = 'b';
update autopost.channel_gates set ready_at = 'infinity' where channel_id = 'b';
select is(test.gate_of('b'), 'gate', 'shut though nothing keeps it');
insert into autopost.budgets (workspace_id, auth_ref, month_micros) values ('w', 'b', 1);
update autopost.channel_gates set ready_at = 'infinity' where channel_id = 'b';
select is(test.gate_of('b'), 'budget');
insert into autopost.quotas (workspace_id, channel_id, window_seconds, max_sends) values ('w', 'b', 3600, 1);
insert into autopost.quota_uses (workspace_id, delivery_id, attempt, subject, used_at)
	values ('w', gen_random_uuid(), 1, 'channel:b', autopost.now_ts());
update autopost.channel_gates set ready_at = 'infinity' where channel_id = 'b';
select is(test.gate_of('b'), 'channel_quota');
update autopost.workspaces set status = 'paused';
select is(test.gate_of('b'), 'workspace');
update autopost.workspaces set status = 'active';
select test.channel('h', p_rate_group => 'h');
update autopost.channels set on_unknown = 'hold' where channel_id = 'h';
select test.post('{"text": "held", "routing": {"include_channels": ["h"]}}');
select test.round('h', test.failure('TRANSIENT', 'delivery', 'timeout', '{"known": false}'));
select is(test.gate_of('h'), 'unknown_outcome');
select is(oldest_due_at, null, 'due for nobody') from autopost.queue_metrics() where rate_group = 'h';

-- Every word is one of why's, or says that nothing is in the way.
select is((select array_agg(distinct g.word order by g.word)
	from regexp_matches(pg_get_functiondef('autopost.gate_of'::regproc), '(?:then|else) ''(\w+)''', 'g') m (words)
	cross join lateral (select m.words[1] as word) g
	where g.word not in ('ready', 'not_due', 'auth_lost', 'channel_quota', 'group_quota', 'budget')
	and position(quote_literal(g.word) in pg_get_functiondef('autopost.wait_reasons'::regproc)
		|| pg_get_functiondef('autopost.time_holds'::regproc)
		|| pg_get_functiondef('autopost.rate_holds'::regproc) || pg_get_functiondef('autopost.why_now'::regproc)) = 0),
			null);

-- Bounded: fifty workspaces by name, twenty groups of each.
delete from autopost.events where delivery_id is not null;
delete from autopost.deliveries;
update autopost.channel_gates set inflight = 0;
insert into autopost.workspaces (workspace_id) select format('w%s', n) from generate_series(10, 69) n;
insert into autopost.channels (workspace_id, channel_id, platform, target_id, auth_ref, rate_group)
select w.workspace_id, c.n::text, 'telegram', '@c' || c.n, 'bot', 'g' || lpad(c.n::text, 2, '0')
from autopost.workspaces w, generate_series(1, 25) c (n)
	where w.workspace_id <> 'w' and (c.n = 1 or w.workspace_id = 'w10');
insert into autopost.messages (workspace_id, message_id, content_hash, payload)
select w.workspace_id, gen_random_uuid(), 'x', '{}' from autopost.workspaces w where w.workspace_id <> 'w';
insert into autopost.deliveries (workspace_id, delivery_id, message_id, channel_id, hash_version, content_hash)
select c.workspace_id, gen_random_uuid(), m.message_id, c.channel_id, 1, 'x' from autopost.channels c
join autopost.messages m on m.workspace_id = c.workspace_id where c.workspace_id <> 'w';
select is((select count(distinct workspace_id)::int from autopost.queue_metrics()), 51);
select is((select array[sum(waiting), sum(channels)] from autopost.queue_metrics() where workspace_id = '_other'),
	array[10, 10]::numeric[], 'the rest together');
select is((select count(distinct rate_group)::int from autopost.queue_metrics() where workspace_id = 'w10'), 21);
select is((select sum(waiting) from autopost.queue_metrics() where workspace_id = 'w10'), 25::numeric,
	'nothing is lost');
select is((select sum(waiting) from autopost.queue_metrics()), 84::numeric);

-- The engine alone, for all; a role of one workspace does not even ask.
set local role autopost_engine;
select is((select sum(waiting) from autopost.queue_metrics()), 84::numeric);
set local role autopost_caller;
select throws_ok('select * from autopost.queue_metrics()', '42501');
reset role;

select * from finish();
rollback;
