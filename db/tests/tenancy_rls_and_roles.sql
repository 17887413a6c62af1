-- Login roles act only for their workspaces. Nothing of another workspace is visible.
begin;
\ir fake_clock.sql
\ir world.sql
select plan(44);

insert into autopost.workspaces (workspace_id) values ('v');
insert into autopost.workspace_endpoints (workspace_id, endpoint_id, kind, secret_hash)
	values ('v', 'in', 'webhook_push', repeat('b', 64));
insert into autopost.channels (workspace_id, channel_id, platform, target_id, auth_ref, rate_group, rate_rps)
	values ('v', 'a', 'telegram', '@a', 'bot', 'bot', null);
insert into autopost.credential_bindings (workspace_id, auth_ref, platform, secret_ref)
	values ('v', 'bot', 'telegram', 'env:V'), ('w', 'bot', 'telegram', 'env:W');
select test.channel('a');
select test.say('of w');
select autopost.enqueue_messages_and_deliveries('v', 'in', 'api', '{"text": "of v"}');
select autopost.receive_push('v', 'in', '[{"text": "p", "media": [{"type": "image", "url": "https://e.x/1.png"}]}]');

create role contract_n8n login in role autopost_caller;
create role contract_daemon login in role autopost_engine;
create role contract_reader login in role autopost_reader;
create role contract_owner login in role autopost_owner;
insert into autopost.role_workspaces (role_name, workspace_id) values ('contract_n8n', 'w');

create function test.refused(p_role text, p_sql text, p_state text, p_what text) returns text
language plpgsql
as $$
-- Whether a login role is refused a statement with the SQLSTATE ('00000': it is not refused).
declare
	v_state text := '00000';
begin
	execute format('set local session authorization %I', p_role);
	begin
		execute p_sql;
	exception when others then
		v_state := sqlstate;
	end;
	reset session authorization;
	return is(v_state, p_state, p_role || ': ' || p_what);
end
$$;

-- Its own workspace, and no other.
select test.refused('contract_n8n', $$select autopost.claim_deliveries('w', 'r', 1)$$, '00000',
	'claims for its workspace');
select test.refused('contract_n8n', $$select autopost.claim_deliveries('v', 'r', 1)$$, 'AP002', 'not for another');
select test.refused('contract_n8n', $$select autopost.claim_deliveries('nowhere', 'r', 1)$$, 'AP002',
	'and does not learn whether one exists');
select test.refused('contract_daemon', $$select autopost.claim_deliveries('nowhere', 'r', 1)$$, 'AP003',
	'a role of all workspaces gets another error');
select test.refused('contract_n8n', $$select autopost.enqueue_messages_and_deliveries('v', 'in', 'api',
	'{"text": "x"}')$$, 'AP002', 'enqueues nothing elsewhere');
select test.refused('contract_n8n', $$select autopost.get_run('v', null)$$, 'AP002', 'reads nothing elsewhere');
select test.refused('contract_n8n', $$set local role autopost_engine$$, '42501', 'cannot become the engine');
select test.refused('contract_n8n', $$set local role autopost_owner$$, '42501', 'nor the owner');

-- No table, no helper, no secret.
select test.refused('contract_n8n', $$select 1 from autopost.deliveries$$, '42501', 'no table');
select test.refused('contract_n8n', $$select 1 from autopost.credential_bindings$$, '42501', 'no credential');
select test.refused('contract_n8n', $$insert into autopost.role_workspaces values ('contract_n8n', '*')$$, '42501',
	'cannot give itself rights');
select test.refused('contract_n8n', $$select autopost.get_credential('w', 'bot')$$, '42501',
	'where secrets are kept is not for it');
select test.refused('contract_n8n', $$select autopost.apply_settings('{"max_attempts": 1}', 'o', 'r', false)$$, '42501',
	'nor the settings of all');
select test.refused('contract_n8n', $$select autopost.create_api_key('w', '{"name": "n", "role": "owner"}',
	repeat('c', 64), 'o', 'r')$$, '42501', 'nor keys');
select test.refused('contract_n8n', $$select autopost.normalize_payload('{}')$$, '42501', 'helpers are the owner''s');
select test.refused('contract_n8n', $$select autopost.emit_note('w', 'sent', 'ok', null, null, null, null)$$, '42501',
	'nobody writes events himself');
select test.refused('contract_daemon', $$select 1 from autopost.messages$$, '42501', 'the daemon has no table either');
select test.refused('contract_daemon', $$update autopost.deliveries set status = 'queued'$$, '42501',
	'and cannot go around the functions');
select test.refused('contract_daemon', $$select autopost.get_credential('v', 'bot')$$, '00000',
	'reads where secrets are kept');
select test.refused('contract_daemon', $$select autopost.claim_deliveries('w', 'r', 1),
	autopost.claim_deliveries('v', 'r', 1)$$, '00000', 'acts for all workspaces');
select test.refused('contract_reader', $$select autopost.claim_deliveries('w', 'r', 1)$$, '42501', 'calls nothing');
select test.refused('contract_reader', $$select 1 from autopost.messages$$, '42501', 'reads views, not tables');
select test.refused('contract_owner', $$select autopost.claim_deliveries('v', 'r', 1)$$, '00000', 'the owner may all');

-- Membership counts, a switched role does not widen it.
create role contract_team nologin;
grant contract_team to contract_n8n;
insert into autopost.role_workspaces (role_name, workspace_id) values ('contract_team', 'v');
select test.refused('contract_n8n', $$select autopost.claim_deliveries('v', 'r', 1)$$, '00000',
	'a right of a role it is a member of');
delete from autopost.role_workspaces where role_name = 'contract_team';
select test.refused('contract_n8n', $$select autopost.claim_deliveries('v', 'r', 1)$$, 'AP002',
	'and its end act at once');
select test.refused('contract_daemon', $$set local role contract_n8n$$, '42501', 'no member, no switch');

-- Setting the workspace by hand opens nothing.
select test.refused('contract_n8n', $$select set_config('autopost.workspace_id', 'v', true),
	autopost.claim_deliveries('v', 'r', 1)$$, 'AP002', 'the variable grants nothing');
select test.refused('contract_n8n', $$set local transaction isolation level repeatable read$$, '25001',
	'too late for another isolation level');

-- p_now decides for the owner alone.
create temp table lead on commit drop as select delivery_id from autopost.deliveries where workspace_id = 'w';
select test.refused('contract_n8n', $$select autopost.recover_sending_leases('w', '2099-01-01')$$, '00000',
	'may pass a time');
select is((select status from autopost.deliveries where workspace_id = 'w'), 'sending', 'which does not decide');
select test.refused('contract_owner', $$select autopost.recover_sending_leases('w', '2099-01-01')$$, '00000',
	'passes a time');
select is((select status from autopost.deliveries where workspace_id = 'w'), 'retry', 'which does');

-- The few functions that look across workspaces.
create function test.sees(p_role text, p_sql text) returns text
language plpgsql
as $$
declare
	v_answer text;
begin
	execute format('set local session authorization %I', p_role);
	execute p_sql into v_answer;
	reset session authorization;
	return v_answer;
end
$$;
select test.tick('1 hour');
select autopost.release_claims('v', array(select claim_token from autopost.deliveries where workspace_id = 'v'));
select is(test.sees('contract_n8n', $$select array(select autopost.list_workspaces())$$), '{w}');
select is(test.sees('contract_daemon', $$select array(select autopost.list_workspaces())$$), '{v,w}');
select is(test.sees('contract_n8n', $$select array(select autopost.ready_workspaces(10))$$), '{w}');
select is(test.sees('contract_daemon', $$select array(select autopost.ready_workspaces(10) order by 1)$$), '{v,w}');
select is(test.sees('contract_n8n', $$select array(select autopost.ready_submission_workspaces(10))$$), '{}');
select is(test.sees('contract_n8n', $$select autopost.resolve_endpoint('webhook_push', repeat('b', 64))$$), null::text,
	'an endpoint elsewhere is not found');
select is(test.sees('contract_n8n', $$select autopost.resolve_endpoint('webhook_push',
	repeat('a', 64)) ->> 'workspace_id'$$), 'w');

-- Inside a function another workspace's rows do not exist, whatever is asked for.
select is(autopost.commit_outcome('w', d.delivery_id, 'x', test.sent('1')) ->> 'reason', 'unknown_delivery',
	'a delivery of another workspace') from autopost.deliveries d where d.workspace_id = 'v' limit 1;
select is(autopost.get_run('w', r.run_id), null, 'a run of another workspace') from autopost.ingest_runs r
	where r.workspace_id = 'v' limit 1;
select is(autopost.manual_requeue('w', array(select delivery_id from autopost.deliveries where workspace_id = 'v'), 'o',
	'r') ->> 'requeued', '0');
set local role autopost_owner;
select set_config('autopost.workspace_id', 'w', true);
select is((select string_agg(distinct c.workspace_id, ',') from autopost.channels c), 'w',
	'row-level security holds for the owner, too');
select throws_ok($$insert into autopost.channels (workspace_id, channel_id, platform, target_id, auth_ref, rate_group)
	values ('v', 'x', 'telegram', 'x', 'x', 'x')$$, '42501', null, 'also for what is written');
reset role;

select * from finish();
rollback;
