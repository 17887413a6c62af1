-- Operators write settings and API keys by function; the digest shows the installed functions.
begin;
\ir fake_clock.sql
\ir world.sql
select plan(15);

select is(autopost.apply_settings('{"max_attempts": 7}', 'ann', 'faster', false),
	'{"applied": true, "dry_run": false, "changes": [{"key": "max_attempts", "before": 5, "after": 7}]}');
select is(autopost.setting('max_attempts'), 7::numeric);
select is((select updated_at from autopost.settings where key = 'max_attempts'), autopost.now_ts());
select test.tick('1 minute');
select is(autopost.apply_settings('{"max_attempts": 7}', 'ann', 'faster', false),
	'{"applied": false, "dry_run": false, "reason": "unchanged"}', 'the same again');
select is((select updated_at from autopost.settings where key = 'max_attempts'),
	autopost.now_ts() - interval '1 minute', 'changes nothing');

-- Each change is in the audit log of the operator workspace.
create function test.logged() returns text
language sql
as $$
select l.workspace_id || ': ' || concat_ws(' ', l.operator, l.action, l.reason, l.subject, l.before, l.after)
	from autopost.admin_audit_log l order by l.id desc limit 1
$$;
select is(test.logged(), 'w: ann apply_settings faster setting:max_attempts {"value": 5} {"value": 7}');
select autopost.apply_settings('{"max_attempts": 9}', 'olga', 'ticket 4711', true),
	autopost.apply_settings('{"max_attempts": 7}', 'olga', 'ticket 4711', false);
select is((select count(*)::int from autopost.admin_audit_log), 1,
	'once, not where nothing changed, and not by a dry run');
select autopost.apply_settings('{"max_attempts": null, "webhook_poll_ms": 999}', 'olga', 'ticket 4711', false);
select is(test.logged(), 'w: olga apply_settings ticket 4711 setting:webhook_poll_ms {"value": 1000} {"value": 999}');
select is((select count(*)::int from autopost.admin_audit_log), 3, 'a row each');
insert into autopost.workspaces (workspace_id, created_at) values ('later', now() + interval '1 day');
select autopost.apply_settings('{"operator_workspace": "later"}', 'olga', 'moved', false);
select is(test.logged(),
	'later: olga apply_settings moved setting:operator_workspace {"value": ""} {"value": "later"}');
select is((select count(*)::int from autopost.workspaces w, autopost.verify_i35(w.workspace_id)), 0, 'the chains hold');
select is((select (array_agg(l.subject))[1] from autopost.list_audit('later', '{"action": "apply_settings"}', 10) l),
	'setting:operator_workspace');

create temp table k on commit drop as select autopost.create_api_key('w', '{"name": "ci", "role": "editor"}',
	repeat('c', 64), 'ann', 'test') ->> 'id' as id;
select is((select row(a.name, a.role, a.enabled, a.created_at)::text from autopost.api_keys a, k
	where a.workspace_id = 'w' and a.key_id = k.id::uuid),
	row('ci', 'editor', true, autopost.now_ts())::text);
select is((select l.subject_id from autopost.secret_lookup l
	where l.kind = 'api_key' and l.secret_hash = repeat('c', 64)), (select id from k), 'and is found by its hash');

select is(autopost.functions_digest(), (select digest from autopost.installed_functions));

rollback;
