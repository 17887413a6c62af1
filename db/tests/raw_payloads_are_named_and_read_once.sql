-- A failed call names its raw payload in its events while raw payloads are kept. Its link works once, for five
-- minutes, in its workspace alone, and each use is in the audit log.
begin;
\ir fake_clock.sql
\ir world.sql
select plan(46);
select test.channel('a');
insert into autopost.workspaces (workspace_id) values ('v');
create function test.fail(p_error jsonb, p_has_raw boolean) returns jsonb
language plpgsql
as $$
declare
	v_claim autopost.claimed_delivery;
begin
	perform test.say('post ' || gen_random_uuid());
	perform test.tick('1 millisecond');
	select c.* into v_claim from autopost.claim_deliveries('w', 'run', 1) c;
	perform autopost.start_call('w', v_claim.delivery_id, v_claim.claim_token);
	return autopost.commit_outcome_batch('w', jsonb_build_array(jsonb_build_object('delivery_id', v_claim.delivery_id,
		'claim_token', v_claim.claim_token, 'has_raw', p_has_raw,
		'outcome', jsonb_build_object('ok', false, 'error', p_error)))) -> 0;
end
$$;
create function test.named() returns text
language sql
as $$
select string_agg(e.action, ' ' order by e.id) from autopost.events e where e.payload_ref is not null
$$;

-- Off by default.
select is(test.fail('{"category": "PERMANENT", "scope": "delivery", "code": "teapot"}', true) -> 'payload_ref', null);
select is(test.named(), null, 'nothing is named');
select is(autopost.raw_kept_since(), '20260602', 'every payload must go, also that of today');

select autopost.apply_settings('{"raw_retention_days": 7}', 'o', 'r', false);
select is(autopost.raw_kept_since(), '20260525');
select throws_ok($$select autopost.apply_settings('{"raw_retention_days": 90}', 'o', 'r', false)$$, 'AP001', null, 'below that of deliveries');
select throws_ok($$select autopost.apply_settings('{"delivery_retention_days": 7, "event_retention_days": 7}', 'o', 'r', false)$$, 'AP001', null);
select lives_ok($$select autopost.apply_settings('{"raw_retention_days": 60}', 'o', 'r', false)$$);
select is(autopost.raw_kept_since(), '20260502', 'no longer than events');

select is(test.fail('{"category": "PERMANENT", "scope": "delivery", "code": "teapot"}', false) -> 'payload_ref', null, 'the caller has none');
create temp table answer on commit drop as
select test.fail('{"category": "PERMANENT", "scope": "delivery", "code": "teapot", "payload_ref": "raw/another"}', true) as a;
select matches((select a ->> 'payload_ref' from answer), '^raw/20260601/[0-9a-f-]{36}$');
select is(test.named(), 'failed_permanent');
select is((select e.payload_ref from autopost.events e where e.payload_ref is not null), (select a ->> 'payload_ref' from answer));
select is((select e.error ? 'payload_ref' from autopost.events e where e.payload_ref is not null), false);
select is((select bool_or(d.last_error ? 'payload_ref') from autopost.deliveries d), false);
select is((select d.settled #> '{answer,payload_ref}' from autopost.deliveries d where d.settled #> '{answer,payload_ref}' is not null),
	(select a -> 'payload_ref' from answer), 'a repeated commit gives the same name');
select is((select count(*)::int from autopost.list_events('w', '{}', 100) e where e.payload_ref is not null), 1, 'it is listed');
update autopost.events set payload_ref = null;
select test.fail('{"category": "TRANSIENT", "scope": "delivery", "code": "timeout", "known": false}', true);
select is(test.named(), 'unknown_outcome retry_scheduled', 'an unknown outcome');
select is((select count(distinct e.payload_ref)::int from autopost.events e), 1);
update autopost.events set payload_ref = null;
select test.fail('{"category": "TRANSIENT", "scope": "channel", "code": "429", "retry_after_ms": 1000}', true);
select is(test.named(), 'cooldown retry_scheduled', 'a limit');

-- Links.
create temp table event on commit drop as
select e.id, e.payload_ref from autopost.events e where e.action = 'retry_scheduled' and e.payload_ref is not null;
create function test.link(p_token text, p_workspace_id text default 'w') returns jsonb
language sql
as $$
select autopost.create_raw_link(p_workspace_id, (select id from event), repeat(p_token, 64), 'olga', 'ticket 4711')
$$;
create function test.use(p_token text, p_workspace_id text default 'w') returns jsonb
language sql
as $$
select autopost.use_raw_link(p_workspace_id, repeat(p_token, 64))
$$;
create function test.logged() returns text
language sql
as $$
select concat_ws(' ', l.workspace_id, l.operator, l.reason, l.action, l.subject = 'event:' || (select id from event), l.after)
from autopost.admin_audit_log l where l.workspace_id = 'w' order by l.seq desc limit 1
$$;
select is(test.link('a', 'v'), '{"applied": false, "reason": "unknown_raw"}', 'another workspace');
select is(autopost.create_raw_link('w', gen_random_uuid(), repeat('a', 64), 'o', 'r') ->> 'reason', 'unknown_raw');
select is(test.link('a') - 'payload_ref' - 'event_id', jsonb_build_object('applied', true, 'token', repeat('a', 64),
	'expires_at', autopost.now_ts() + interval '5 minutes'));
select matches(test.logged(), '^w olga ticket 4711 create_raw_link t \{"expires_at": .*"payload_ref": "raw/20260601/');
select is((select count(*)::int from autopost.raw_links l where l::text like '%aaaaaaaa%'), 0, 'the token is not stored');
select is(test.use('b') ->> 'reason', 'unknown_link');
select is(test.use('a', 'v') ->> 'reason', 'unknown_link', 'in its workspace alone');
select is(test.use('a'), jsonb_build_object('applied', true, 'event_id', (select id from event), 'payload_ref',
	(select payload_ref from event)));
select is(test.logged(), format('w olga ticket 4711 read_raw t {"payload_ref": "%s"}', (select payload_ref from event)));
select is(test.use('a') ->> 'reason', 'unknown_link', 'once');
select test.link('c');
select test.tick('5 minutes');
select is(test.use('c') ->> 'reason', 'unknown_link', 'for five minutes');
select test.tick('25 hours');
select test.link('d');
select is((select count(*)::int from autopost.raw_links), 1, 'old links are removed');

-- Preparation and keys.
select is(autopost.begin_raw('w', '{"status": 400, "body": {"token": "hunter2", "text": "call +7 911 123-45-67"}}'),
	'{"payload": {"status": 400, "body": {"token": "[redacted]", "text": "call [redacted]"}}, "key": null}');
select is(autopost.add_data_key('w', 1, 'k1', 'AQID'), '{"applied": true}');
select is(autopost.add_data_key('w', 1, 'k9', 'CQkJ'), '{"applied": false}', 'the first one wins');
select is(autopost.add_data_key('w', 2, 'k2', 'AAAA'), '{"applied": true}');
select is(autopost.begin_raw('w', '1') -> 'key', '{"version": 2, "key_id": "k2", "wrapped_key": "AAAA"}', 'the newest seals');
select is(autopost.get_data_key('w', 1), '{"version": 1, "key_id": "k1", "wrapped_key": "AQID"}');
select is(autopost.get_data_key('v', 1), null);
select is(autopost.list_data_keys('w', 'k2'), '[{"version": 1, "key_id": "k1", "wrapped_key": "AQID"}]');
select is(autopost.rewrap_data_key('w', 1, 'k1', 'k2', 'BBBB'), '{"applied": true}');
select is(autopost.rewrap_data_key('w', 1, 'k1', 'k3', 'CCCC'), '{"applied": false}');
select is(autopost.list_master_keys(), '{"k2": 2}');

-- Rejected posts of a run share one payload.
create function test.rejected() returns uuid
language plpgsql
as $$
declare
	v_run uuid := gen_random_uuid();
begin
	perform autopost.emit_note('w', 'ingress_payload_rejected', 'error', null, null, null, jsonb_build_object('run_id', v_run))
	from generate_series(1, 2);
	return v_run;
end
$$;
create temp table rejection on commit drop as
select r.run_id, autopost.name_rejected('w', r.run_id) as named from (select test.rejected() as run_id) r;
select is((select array_agg(distinct e.payload_ref) from autopost.events e
	where e.meta ->> 'run_id' = (select run_id::text from rejection)), (select array[named ->> 'payload_ref'] from rejection));
select is((select named -> 'kept' from rejection), 'true');
select is(autopost.name_rejected('w', gen_random_uuid()), '{"kept": true, "payload_ref": null}', 'a run without events');
select autopost.apply_settings('{"raw_retention_days": 0}', 'o', 'r', false);
select is(autopost.name_rejected('w', test.rejected()), '{"kept": false, "payload_ref": null}');

select * from finish();
rollback;
