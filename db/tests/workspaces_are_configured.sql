-- Functions add, rename, pause and describe a workspace. The audit log has each change and no dry
-- run.
begin;
\ir fake_clock.sql
\ir world.sql
select plan(33);
create function test.logged() returns autopost.admin_audit_log
language sql
as $$
select l from autopost.admin_audit_log l order by l.seq desc limit 1
$$;

select test.channel('a');
select test.channel('b');
update autopost.channels set enabled = false where channel_id = 'b';
select test.say('x');

select is(autopost.put_workspace('new', '{"name": "News"}', 'olga', 'first', true),
	'{"applied": true, "dry_run": true, "created": true, "before": {}, "after": {"name": "News"}}',
		'a dry run answers what it would do');
select is((select count(*)::int from autopost.workspaces where workspace_id = 'new'), 0, 'and does not');
select is((select count(*)::int from autopost.admin_audit_log), 0);
select is(autopost.put_workspace('new', '{"name": "News"}', 'olga', 'first', false),
	'{"applied": true, "dry_run": false, "created": true, "before": {}, "after": {"name": "News"}}');
select is((select row(w.name, w.status, w.created_at)::text from autopost.workspaces w where w.workspace_id = 'new'),
	row('News', 'active', autopost.now_ts())::text);
select is((test.logged()).action, 'put_workspace');
select is((test.logged()).subject, 'workspace:new');
select is((test.logged()).workspace_id, 'new');
select is((test.logged()).operator || ': ' || (test.logged()).reason, 'olga: first');
select is((test.logged()).before, '{}');
select is((test.logged()).after, '{"name": "News"}');

select test.tick('1 minute');
select is(autopost.put_workspace('new', '{"name": "News"}', 'olga', 'again', false),
	'{"applied": false, "dry_run": false, "reason": "unchanged"}');
select is(autopost.put_workspace('new', '{}', 'olga', 'again', false) ->> 'reason', 'unchanged',
	'nothing said, nothing changed');
select is((select count(*)::int from autopost.admin_audit_log), 1, 'what changes nothing is not recorded');
select is((select updated_at from autopost.workspaces where workspace_id = 'new'),
	autopost.now_ts() - interval '1 minute');
select is(autopost.put_workspace('new', '{"name": null, "status": "paused"}', 'olga', 'rest', false),
	'{"applied": true, "dry_run": false, "created": false, "before": {"name": "News", "status": "active"}, "after": {"name": "", "status": "paused"}}', 'null is the default');
select is((select updated_at from autopost.workspaces where workspace_id = 'new'), autopost.now_ts());
select is(autopost.put_workspace('new', '{"status": "asleep", "name": 7}', 'olga', 'odd', false),
	'{"applied": false, "dry_run": false, "reason": "invalid", "errors": [{"field": "name", "reason": "must be a text", "remedy": "write a text", "code": "wrong_type"},
		{"field": "status", "reason": "\"asleep\" is unknown", "remedy": "use active, paused, disabled", "code": "unknown_value"}]}', 'all errors are returned with remedies');

-- Status.
select is(autopost.set_workspace_status('new', 'active', 'olga', 'up', true) -> 'after', '{"status": "active"}');
select is((select status from autopost.workspaces where workspace_id = 'new'), 'paused');
select is(autopost.set_workspace_status('new', 'disabled', 'olga', 'down', false) -> 'before', '{"status": "paused"}');
select is((select status from autopost.workspaces where workspace_id = 'new'), 'disabled');
select is(autopost.set_workspace_status('new', 'asleep', 'olga', 'odd', false) ->> 'reason', 'invalid');
select throws_ok($$select autopost.set_workspace_status('nowhere', 'paused', 'o', 'r', false)$$, 'AP003');

-- Existing workspaces.
select is(autopost.get_workspace('w') - '{created_at,updated_at}'::text[],
	'{"workspace_id": "w", "name": "", "status": "active", "channels": 2, "enabled_channels": 1, "queue": {"queued": 1}}');
select throws_ok($$select autopost.get_workspace('nowhere')$$, 'AP003');
select is((select array_agg(d.workspace_id || ' ' || d.status) from autopost.describe_workspaces(10) d),
	'{new disabled,w active}', 'whatever their status');
select is((select count(*)::int from autopost.describe_workspaces(1)), 1);

-- Only a role with rights for it adds it.
create role contract_shop login in role autopost_caller;
insert into autopost.role_workspaces (role_name, workspace_id) values ('contract_shop', 'shop');
set local role contract_shop;
select throws_ok($$select autopost.put_workspace('other', '{}', 'o', 'r', false)$$, 'AP002');
select throws_ok($$select autopost.put_workspace('w', '{"name": "mine"}', 'o', 'r', false)$$, 'AP002');
select is(autopost.put_workspace('shop', '{}', 'o', 'r', false) -> 'created', 'true', 'its own it may add');
select is((select array_agg(d.workspace_id) from autopost.describe_workspaces(10) d), '{shop}', 'and it sees no other');
reset role;
select is((select count(*)::int from autopost.admin_audit_log where workspace_id = 'shop'), 1);

rollback;
