-- What an operator puts in by function: settings, keys of the API; and which functions are installed.
begin;
\ir fake_clock.sql
\ir world.sql
select plan(8);

select is(autopost.put_setting('max_attempts', '7'), '{"applied": true}');
select is(autopost.setting('max_attempts'), 7::numeric);
select is((select updated_at from autopost.settings where key = 'max_attempts'), autopost.now_ts());
select test.tick('1 minute');
select is(autopost.put_setting('max_attempts', '7'), '{"applied": true}', 'the same again');
select is((select updated_at from autopost.settings where key = 'max_attempts'), autopost.now_ts() - interval '1 minute', 'changes nothing');

create temp table k on commit drop as select autopost.add_api_key('w', 'ci', 'editor', repeat('c', 64)) ->> 'id' as id;
select is((select row(a.name, a.role, a.enabled, a.created_at)::text from autopost.api_keys a, k where a.workspace_id = 'w' and a.key_id = k.id::uuid),
	row('ci', 'editor', true, autopost.now_ts())::text);
select is((select l.subject_id from autopost.secret_lookup l where l.kind = 'api_key' and l.secret_hash = repeat('c', 64)), (select id from k), 'and is found by its hash');

select is(autopost.functions_digest(), (select digest from autopost.installed_functions));

rollback;
