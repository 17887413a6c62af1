-- A reader sees only rows of its workspaces (role_workspaces), in each view, and no secrets.
begin;
\ir fake_clock.sql
\ir world.sql
select plan(28);

insert into autopost.workspaces (workspace_id) values ('v');
insert into autopost.workspace_endpoints (workspace_id, endpoint_id, kind, secret_hash)
	values ('v', 'in', 'webhook_push', repeat('b', 64));
insert into autopost.channels (workspace_id, channel_id, platform, target_id, auth_ref, rate_group) select x, 'c',
	'telegram', '@c', 'bot', 'bot' from unnest('{v,w}'::text[]) x;
insert into autopost.credential_bindings (workspace_id, auth_ref, platform, secret_ref) select x, 'bot', 'telegram',
	'env:CANARY' from unnest('{v,w}'::text[]) x;
insert into autopost.pull_sources (workspace_id, source_id, kind, config_json) select x, 's', 'rss',
	'{"url": "https://e.x/?key=CANARY", "headers": {"X-Key": "CANARY"}}' from unnest('{v,w}'::text[]) x;
insert into autopost.pull_cursors (workspace_id, source_id, cursor_json) select x, 's',
	'{"moved_to": "https://e.x/new?key=CANARY"}' from unnest('{v,w}'::text[]) x;
insert into autopost.discovered_chats (workspace_id, platform, auth_ref, target_id, first_seen, last_seen) select x,
	'telegram', 'bot', '-1', autopost.now_ts(), autopost.now_ts() from unnest('{v,w}'::text[]) x;
insert into autopost.alerts (workspace_id, alert_id, kind, subject, raised_at) select x, gen_random_uuid(), 'k', 's',
	autopost.now_ts() from unnest('{v,w}'::text[]) x;
insert into autopost.result_webhooks (workspace_id, webhook_id, url, signing_ref, enabled_at, next_send_at) select x,
	'h', 'https://e.x', 'bot', autopost.now_ts(), autopost.now_ts() from unnest('{v,w}'::text[]) x;
insert into autopost.webhook_sends (workspace_id, webhook_id, event_id, event_type, event_at, body, due_at, created_at)
select x, 'h', gen_random_uuid(), 't', autopost.now_ts(), '{}', autopost.now_ts(), autopost.now_ts()
	from unnest('{v,w}'::text[]) x;
select autopost.enqueue_messages_and_deliveries(x, 'in', 'api', '{"text": "a post"}') from unnest('{v,w}'::text[]) x;
insert into autopost.post_acts (workspace_id, act_id, delivery_id, message_id, channel_id, lane, kind, due_at, next_at,
	operator, reason, created_at, updated_at)
select d.workspace_id, gen_random_uuid(), d.delivery_id, d.message_id, 'c', 'c', 'pin', d.created_at, d.created_at, 'o',
	'r', d.created_at, d.created_at from autopost.deliveries d;
select autopost.receive_push(x, 'in', '[{"text": "b", "media": [{"type": "image", "url": "https://e.x/?key=CANARY"}]}]')
from unnest('{v,w}'::text[]) x;
select autopost.receive_event(x, 'in', '{"event": "COMBAT.SUMMARY.GENERATED", "payload": {"type": "combat",
	"encounterId": "e", "winner": {"id": "a", "name": "A"}, "loser": {"id": "b", "name": "B"}, "summaryText": "s", "rounds": 1,
	"createdAt": "2026-06-01T10:00:00Z"}}') from unnest('{v,w}'::text[]) x;
insert into autopost.publish_jobs (workspace_id, job_id, platform, source_id, status, created_at, updated_at)
select x, 'j', 'telegram', 's', 'waiting', autopost.now_ts(), autopost.now_ts() from unnest('{v,w}'::text[]) x;
select autopost.pause_channel(x, 'c', 60, 'o', 'r', false) from unnest('{v,w}'::text[]) x;
select set_config('autopost.workspace_id', '', true); -- as a reader's own transaction has it

create role contract_reader login in role autopost_reader;
create role contract_auditor login in role autopost_reader;
create role contract_outsider login in role autopost_reader;
insert into autopost.role_workspaces (role_name, workspace_id)
	values ('contract_reader', 'w'), ('contract_auditor', '*');

create function test.sees(p_role text, p_sql text) returns text
language plpgsql
as $$
declare
	v_answer text;
begin
	execute format('set local session authorization %I', p_role);
	begin
		execute p_sql into v_answer;
	exception when insufficient_privilege then
		v_answer := 'refused';
	end;
	reset session authorization;
	return v_answer;
end
$$;

create temp table read on commit drop as
select c.relname as name from pg_class c where c.relnamespace = 'autopost'::regnamespace and c.relkind = 'v'
	and has_table_privilege('autopost_reader', c.oid, 'select');
grant select on read to public;

select is((select array_agg(name::text order by name) from read), '{list_acts,list_alerts,list_audit,list_channels,list_chats,list_credentials,list_deliveries,list_endpoints,list_events,list_messages,list_publish_jobs,list_rate_groups,list_runs,list_sources,list_submissions,list_webhook_deliveries,queue_snapshot,x_post_events}'::text[],
	'what readers may read');
select is((select array_agg(p.proname::text) from pg_proc p
	where p.pronamespace = 'autopost'::regnamespace and p.prosecdef
	and p.prorettype in (select c.reltype from pg_class c where c.relkind = 'v')
	and p.proname::text not in (select name::text from read)), '{list_api_keys,list_x_posts}',
		'is returned by the function of that name');
select is((select array_agg(c.relname::text) from pg_class c
	where c.relnamespace = 'autopost'::regnamespace and c.relkind = 'v'
	and (has_table_privilege('autopost_caller', c.oid, 'select')
		or has_table_privilege('autopost_engine', c.oid, 'select'))), null,
		'callers and daemons read by functions alone');

select is(test.sees('contract_reader', format('select string_agg(distinct v.workspace_id, '','') from autopost.%I v',
	name)), 'w', name || ': its workspace, and no other') from read order by name;
select is(test.sees('contract_auditor',
	format('select string_agg(distinct v.workspace_id, '','' order by v.workspace_id) from autopost.%I v',
	'list_events')), 'v,w', 'a role of all workspaces');
select is((select array_agg(test.sees('contract_outsider', format('select count(*) from autopost.%I', name)))
	from read), array_fill('0'::text, array[18]), 'a role without a workspace');

-- it is set once the row was found
select is(test.sees('contract_reader', $$select set_config('autopost.workspace_id', 'v', true) || count(*)
	from autopost.list_deliveries$$), 'v1', 'the variable grants nothing');
select is(test.sees('contract_reader', 'select count(*) from autopost.list_deliveries'), '0', 'nor is it then');
select set_config('autopost.workspace_id', '', true);
select is(test.sees('contract_reader', 'select count(*) from autopost.list_deliveries_rows')
	|| test.sees('contract_reader', 'select count(*) from autopost.list_api_keys')
	|| test.sees('contract_reader', 'select count(*) from autopost.readable_workspaces'), 'refusedrefusedrefused',
		'what stands behind them');

-- A function of the reader's own is asked about no row that it may not see.
set local session authorization contract_reader;
create function pg_temp.leak(p text) returns boolean
	language plpgsql cost 0.0001 as $$ begin perform set_config('test.leaked',
	current_setting('test.leaked', true) || p, true); return true; end $$;
reset session authorization;
select set_config('test.leaked', '', true);
select is(test.sees('contract_reader',
	'select count(*) from autopost.list_deliveries v where pg_temp.leak(v.workspace_id)') || current_setting(
	'test.leaked'), '1w', 'a leaking function sees only the own row');

select is((select string_agg(name, ',') from read
	where test.sees('contract_auditor', format($q$select string_agg(to_jsonb(v)::text, '')
	from autopost.%I v$q$, name)) ~ 'CANARY|aaaaaaaa|bbbbbbbb'), null, 'no secret, nor its digest');
reset role;

select * from finish();
rollback;
