-- begin_dispatch grants one run at a time a window of ready workspaces. Only end_dispatch moves the
-- turn.
begin;
\ir fake_clock.sql
\ir world.sql
select plan(41);

insert into autopost.workspaces (workspace_id) select 'w' || n from generate_series(1, 5) n;
insert into autopost.workspace_endpoints (workspace_id, endpoint_id, kind, secret_hash)
select w.workspace_id, 'in', 'webhook_push', md5(w.workspace_id) || md5('x') from autopost.workspaces w
	where w.workspace_id <> 'w';
insert into autopost.channels (workspace_id, channel_id, platform, target_id, auth_ref, rate_group, rate_rps,
	max_parallel)
select w.workspace_id, 'a', 'telegram', '@a', 'bot', 'bot', null, 1000 from autopost.workspaces w
	where w.workspace_id <> 'w';
create function test.everybody_posts(p_text text) returns void
language sql
as $$
select autopost.enqueue_messages_and_deliveries(w.workspace_id, 'in', 'api', jsonb_build_object('text', p_text))
	from autopost.workspaces w where w.workspace_id <> 'w'
$$;
create function test.serve(p_window jsonb) returns void
language sql
as $$
-- Claims for each workspace of a window, and sends.
select autopost.mark_sent(c.workspace_id, c.delivery_id, c.claim_token, '1', null, null)
from jsonb_array_elements_text(p_window) p, autopost.claim_deliveries(p.value, 'r', 1000) c
$$;
create or replace function autopost.dispatch_window() returns int language sql immutable as 'select 2';
select test.everybody_posts('one');
select test.tick('1 second');

select is(autopost.begin_dispatch('run-1', 60),
	'{"granted": true, "until": "2026-06-01T12:01:01+00:00", "workspaces": ["w1", "w2"]}',
	'a window of those that are ready');
select is(autopost.begin_dispatch('run-2', 60),
	'{"granted": false, "held_by": "run-1", "until": "2026-06-01T12:01:01+00:00"}', 'one run at a time');
select is(autopost.end_dispatch('run-2'), '{"applied": false, "reason": "stale"}', 'who holds nothing ends nothing');
select test.serve('["w1"]');
select test.tick('30 seconds');
select is(autopost.begin_dispatch('run-1', 60),
	'{"granted": true, "until": "2026-06-01T12:01:31+00:00", "workspaces": ["w1", "w2"]}',
	'the same run renews and gets the same window');
select is(array(select autopost.ready_workspaces(10)), '{w2,w3,w4,w5}', 'the turn has not moved');
select test.serve('["w2"]');
select is(autopost.end_dispatch('run-1'), '{"applied": true, "served": "w2"}', 'now it has');
select is(autopost.end_dispatch('run-1'), '{"applied": false, "reason": "stale"}', 'once');
select is(array(select autopost.ready_workspaces(10)), '{w3,w4,w5}');

-- A run that dies: its lease runs out, its window is looked at again.
select is(autopost.begin_dispatch('run-2', 60) -> 'workspaces', '["w3", "w4"]');
select test.tick('59 seconds');
select is(autopost.begin_dispatch('run-3', 60) -> 'granted', 'false', 'until the last moment');
select test.tick('1 second');
select is(autopost.begin_dispatch('run-3', 60) -> 'workspaces', '["w3", "w4"]',
	'nothing that nobody processed is passed over');
select is(autopost.end_dispatch('run-2'), '{"applied": false, "reason": "stale"}', 'the dead one wakes up too late');
select test.serve('["w3", "w4"]');
select test.tick('10 minutes');
select is(autopost.end_dispatch('run-3') -> 'served', '"w4"', 'late, but nobody came instead: it counts');

-- Round and round.
select test.everybody_posts('two');
select is(autopost.begin_dispatch('run-4', 60) -> 'workspaces', '["w5", "w1"]', 'the ring closes');
select test.serve('["w5", "w1"]');
select autopost.end_dispatch('run-4');
select is(autopost.begin_dispatch('run-5', 60) -> 'workspaces', '["w2", "w3"]');
select autopost.end_dispatch('run-5');
select is(autopost.begin_dispatch('run-6', 60) -> 'workspaces', '["w4", "w2"]',
	'one that could give nothing is passed over');
select autopost.end_dispatch('run-6');
select test.serve('["w2", "w3", "w4"]');
select is(autopost.begin_dispatch('run-7', 60) -> 'workspaces', '[]', 'nothing is ready');
select is(autopost.end_dispatch('run-7') -> 'served', '"w2"', 'and the turn stays');
select test.everybody_posts('three');
select is(autopost.begin_dispatch('run-8', 60) -> 'workspaces', '["w3", "w4"]');
select autopost.end_dispatch('run-8');

-- None waits more than one turn of the ring, though the others never run dry.
create or replace function autopost.dispatch_window() returns int language sql immutable as 'select 1';
create temp table served (n int, workspace_id text) on commit drop;
do $$
declare
	v_window jsonb;
begin
	for v_n in 1..25 loop
		v_window := autopost.begin_dispatch('run', 60) -> 'workspaces';
		insert into served values (v_n, v_window ->> 0);
		perform test.serve(v_window);
		perform test.everybody_posts('more ' || v_n);
		perform test.tick('1 millisecond');
		perform autopost.end_dispatch('run');
	end loop;
end
$$;
select is((select count(distinct workspace_id)::int from served), 5, 'everybody is served');
select is((select max(gap) from (select n - lag(n) over (partition by workspace_id order by n) as gap from served) g),
	5, 'every fifth time');

-- A daemon keeps its turn itself.
select is(test.ready_workspaces('', 10), '{w1,w2,w3,w4,w5}');
select is(test.ready_workspaces('w3', 10), '{w4,w5,w1,w2,w3}');
select is(test.ready_workspaces('w3', 3), '{w4,w5,w1}');
select is(test.ready_workspaces('w33', 2), '{w4,w5}', 'after one that is gone');
select is(test.ready_workspaces('w5', 2), '{w1,w2}');
update autopost.workspaces set status = 'paused' where workspace_id = 'w1';
select is(test.ready_workspaces('w5', 2), '{w2,w3}', 'one that is not active has no turn');
update autopost.workspaces set status = 'active' where workspace_id = 'w1';

-- Several groups in one workspace: the readiest counts, a shut one never.
insert into autopost.channels (workspace_id, channel_id, platform, target_id, auth_ref, rate_group, rate_rps)
	values ('w2', 'b', 'max', '@b', 'b', 'b', null), ('w2', 'c', 'telegram', '@c', 'z', 'z', null);
select test.serve('["w1", "w2", "w3", "w4", "w5"]');
select is(test.ready_workspaces('', 10), '{}');
select is(test.next_wake(), null, 'no gate is armed');
select autopost.enqueue_messages_and_deliveries('w2', 'in', 'api',
	jsonb_build_object('text', 'groups', 'scheduled_for', autopost.now_ts() + interval '1 minute'));
select is(test.next_wake(), 60000::bigint);
select autopost.enqueue_messages_and_deliveries('w2', 'in', 'api',
	'{"text": "now", "routing": {"include_channels": ["c"]}}');
select is(test.ready_workspaces('', 10), '{w2}');
insert into autopost.platform_limits (workspace_id, platform, rate_group, cooldown_until)
	values ('w2', 'telegram', 'z', autopost.now_ts() + interval '90 seconds');
select is(test.ready_workspaces('', 10), '{}', 'its group cools down');
select is(test.next_wake(), 60000::bigint, 'the other groups come sooner');

-- A role of some workspaces has its own turn and sees only them.
create role contract_tenant login in role autopost_caller;
insert into autopost.role_workspaces (role_name, workspace_id)
	values ('contract_tenant', 'w4'), ('contract_tenant', 'w2');
select test.everybody_posts('four');
select is(autopost.begin_dispatch('main', 60) -> 'granted', 'true');
set local session authorization contract_tenant;
select is(autopost.begin_dispatch('tenant', 60) -> 'workspaces', '["w2"]',
	'not blocked by the other turn, and other workspaces are hidden');
select is(autopost.begin_dispatch('other', 60) ->> 'held_by', 'tenant');
select is(autopost.end_dispatch('main'), '{"applied": false, "reason": "stale"}',
	'it cannot end the turn of another role');
select is(autopost.end_dispatch('tenant') -> 'served', '"w2"');
select is(autopost.begin_dispatch('other', 60) -> 'workspaces', '["w4"]');
select is(autopost.ready_work('', 10, '[]') -> 'workspaces', '["w2", "w4"]');
reset session authorization;
select is(autopost.begin_dispatch('second', 60) ->> 'held_by', 'main');

select * from finish();
rollback;
