begin;
\ir fake_clock.sql
\ir world.sql
select plan(25);

update autopost.workspace_endpoints set ingress_rps = 2, max_payload_bytes = 1000;
create function test.knock(p_items int default 1, p_bytes int default 10) returns jsonb
language sql
as $$
select autopost.guard_ingress('w', 'in', p_bytes, p_items)
$$;

select is(test.knock(1, 1000), '{"admitted": true, "ingress_rps": 2, "left": 1, "reset_ms": 500}', 'just fits');
select is(test.knock(1, 1001), '{"admitted": false, "reason": "size"}');
select is(test.count_events('ingress_payload_rejected'), 1);
select is((select e.attempt from autopost.events e where e.action = 'ingress_payload_rejected'), 0);
select is((select stats_json from autopost.ingest_runs), '{"payload_rejected": 1}', 'counted in a run of its own');
select ok((select finished_at is not null from autopost.ingest_runs), 'which is ended');

-- A second's worth at once, then at the rate.
select is(test.knock() -> 'admitted', 'true', 'the second of two a second');
select is(test.knock(), '{"admitted": false, "reason": "rate", "retry_after_ms": 500, "ingress_rps": 2, "left": 0, "reset_ms": 1000}',
	'the third waits half a second');
select is(test.count_events('ingress_rate_limited'), 1);
select is((select sum((stats_json ->> 'rate_limited')::int)::int from autopost.ingest_runs), 1);
select test.tick('499 milliseconds');
select is(test.knock() ->> 'retry_after_ms', '1', 'a refusal costs nothing');
select test.tick('1 millisecond');
select is(test.knock() -> 'admitted', 'true');
select test.tick('1 hour');
select is(test.knock(2) -> 'admitted', 'true', 'items count, not requests');
select is(test.knock() -> 'admitted', 'false');

-- An array larger than a second's worth passes when the endpoint is idle, and is paid for afterwards.
select test.tick('1 hour');
select is(test.knock(100) -> 'admitted', 'true');
select is(test.knock(), '{"admitted": false, "reason": "rate", "retry_after_ms": 49500, "ingress_rps": 2, "left": 0, "reset_ms": 50000}');
select is(test.knock(100) ->> 'retry_after_ms', '50000', 'another such array when the debt is gone');
select test.tick('49.5 seconds');
select is(test.knock() -> 'admitted', 'true');
select test.tick('1 hour');
update autopost.workspace_endpoints set ingress_rps = 0.5;
select is(test.knock(), '{"admitted": true, "ingress_rps": 0.5, "left": 0, "reset_ms": 2000}', 'one in two seconds');
update autopost.workspace_endpoints set ingress_rps = 2;

select is((select count(*)::int from autopost.messages) + (select count(*)::int from autopost.deliveries), 0,
	'what is dropped leaves no message');
update autopost.workspaces set status = 'disabled';
select is(test.knock(), '{"admitted": false, "reason": "disabled"}');
update autopost.workspaces set status = 'paused';
select test.tick('1 hour');
select is(test.knock() -> 'admitted', 'true', 'a paused workspace takes posts in');
update autopost.workspace_endpoints set enabled = false;
select throws_ok($$select test.knock()$$, 'AP001', null, 'a disabled endpoint is refused');
select throws_ok($$select autopost.guard_ingress('w', 'nowhere', 1, 1)$$, 'AP001', null);
update autopost.workspace_endpoints set enabled = true;
select throws_ok($$select test.knock(0)$$, 'AP001', null, 'no items');

select * from finish();
rollback;
