-- A workspace sets, lists, exports and resets its own retry policies. Other workspaces keep theirs.
begin;
\ir fake_clock.sql
\ir world.sql
select plan(34);
create function test.put(p_code text, p_fields jsonb, p_dry_run boolean default false) returns jsonb
language sql
as $$
select autopost.put_retry_policy('w', 'x', p_code, p_fields, 'o', 'r', p_dry_run)
$$;
create function test.logged() returns text
language sql
as $$
select concat_ws(' ', l.action, l.subject, l.before, l.after) from autopost.admin_audit_log l order by l.seq desc
	limit 1
$$;
create function test.wait(p_workspace_id text, p_code text) returns int
language sql
as $$
select (extract(epoch from autopost.retry_delay(autopost.retry_policy(p_workspace_id, 'x', p_code), 1, null, 0.5))
	* 1000)::int
$$;
create function test.own() returns int
language sql
as $$
select count(*)::int from autopost.own_retry_policies r
$$;
insert into autopost.workspaces (workspace_id) values ('v');

select is(test.put('*', '{"ladder_ms": [1000, 2000]}', true) -> 'created', 'true');
select is(test.own(), 0, 'a dry run writes nothing');
select is(test.put('*', '{}') ->> 'reason', 'unchanged');
select is(test.put('*', '{"ladder_ms": [1000, 2000]}') - 'before', '{"applied": true, "dry_run": false, "created": true, "after": {"ladder_ms": [1000, 2000]}}');
select is(test.logged(), 'put_retry_policy retry_policy:x/* {"ladder_ms": [60000, 300000, 1800000, 7200000, 21600000]} {"ladder_ms": [1000, 2000]}');
select is(test.wait('w', 'x_5xx'), 1000, 'the workspace has its own ladder');
select is(test.wait('v', 'x_5xx'), 60000, 'another one has that of the installation');
select is((autopost.retry_policy('w', 'x', '*')).max_attempts, 6, 'the other fields are inherited');
select is(test.wait('w', 'x_no_credits'), 3600000, 'a more specific policy still wins');

-- A new code inherits from the workspace's own policy of the platform.
select is(test.put('x_503', '{"kind": "exponential", "base_ms": 5000}') -> 'applied', 'true');
select is(test.wait('w', 'x_503'), 5000);
select is((autopost.retry_policy('w', 'x', 'x_503')).ladder_ms, '{1000,2000}');
select is(test.wait('w', 'x_504'), 1000);

-- Bounds.
select is(test.put('*', p.fields) #>> '{errors,0,field}', p.field, p.fields::text)
from (values ('{"kind": "spiral"}'::jsonb, 'kind'), ('{"base_ms": 0}', 'base_ms'), ('{"base_ms": 2678400001}', 'base_ms'),
	('{"factor": 0.5}', 'factor'), ('{"cap_ms": 100}', 'cap_ms'), ('{"ladder_ms": [0]}', 'ladder_ms'),
	('{"ladder_ms": ["1"]}', 'ladder_ms'), ('{"ladder_ms": []}', 'ladder_ms'), ('{"ladder_ms": 5}', 'ladder_ms'),
	('{"jitter": 1}', 'jitter'), ('{"max_attempts": 0}', 'max_attempts'), ('{"max_attempts": 1001}', 'max_attempts'),
	('{"costs_attempt": 1}', 'costs_attempt')) p (fields, field);

-- Listed and exported.
select is((select l.value -> 'own' from autopost.list_configuration('w', 'retry_policy', '{"id": "x/*"}', 10) l (value)), 'true');
select is((select count(*) from autopost.list_configuration('v', 'retry_policy', '{}', 1000)),
	(select count(*) from autopost.retry_policies r));
create temp table export on commit drop as
select jsonb_path_query_array(autopost.export_config('w'), '$[*] ? (@.kind == "retry_policy")') as items;
select is((select e.items from export e),
	'[{"id": "x/*", "kind": "retry_policy", "fields": {"ladder_ms": [1000, 2000]}}, {"id": "x/x_503", "kind": "retry_policy", "fields": {"kind": "exponential", "base_ms": 5000}}]');
select is(autopost.apply_config('w', (select e.items from export e), 'o', 'r', false) ->> 'reason', 'unchanged');
select autopost.apply_config('v', (select e.items from export e), 'o', 'r', false);
select is(autopost.export_config('v') @> (select e.items from export e), true, 'the export makes the same policies elsewhere');

-- Reset.
select is(test.put('x_503', '{"kind": null, "base_ms": null}') -> 'applied', 'true');
select is(autopost.apply_config('w', '[{"kind": "retry_policy", "id": "x/*", "retire": true}]', 'o', 'r', false) -> 'applied', 'true');
select is((select count(*)::int from autopost.own_retry_policies r where r.workspace_id = 'w'), 0, 'equal to the inherited one: no row');

select * from finish();
rollback;
