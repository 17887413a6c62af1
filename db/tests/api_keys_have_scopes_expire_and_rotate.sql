-- An API key has scopes, expires, rotates and can be disabled. The audit log records each change;
-- use is recorded once an hour.
begin;
\ir fake_clock.sql
\ir world.sql
select plan(31);

create temp table k (name text, id uuid) on commit drop;
create function test.add_key(p_name text, p_hash text, p_more jsonb default '{}') returns uuid
language sql
as $$
select (autopost.create_api_key('w', jsonb_build_object('name', p_name, 'role', 'editor') || p_more, p_hash, 'ann',
	'asked for') ->> 'id')::uuid
$$;
create function test.resolved(p_hash text) returns text
language sql
as $$
select concat_ws(' ', r ->> 'name', r ->> 'role', r ->> 'scopes', r ->> 'unseen')
	from autopost.resolve_api_key(p_hash) r
$$;
insert into k values ('plain', test.add_key('plain', repeat('1', 64))),
	('narrow', test.add_key('narrow', repeat('2', 64),
		'{"scopes": ["posts:write", "channels:read", "posts:write"], "expires_at": "2026-06-02T12:00:00Z"}'));

select is(test.resolved(repeat('1', 64)), 'plain editor [] true');
select is(test.resolved(repeat('2', 64)), 'narrow editor ["channels:read", "posts:write"] true', 'each scope once');
select is((select count(*)::int from autopost.list_audit('w', '{"action": "create_api_key", "operator": "ann"}', 10)),
	2);
select unalike((select string_agg(to_jsonb(a)::text, '') from autopost.list_audit('w', '{}', 10) a),
	'%' || repeat('1', 64) || '%', 'no hash in the audit log');

select is(autopost.touch_api_key('w', (select id from k where name = 'plain')), '{"applied": true}');
select is(test.resolved(repeat('1', 64)), 'plain editor [] false');
select is(autopost.touch_api_key('w', (select id from k where name = 'plain')), '{"applied": false}', 'once an hour');
select test.tick('1 hour');
select is(autopost.touch_api_key('w', (select id from k where name = 'plain')), '{"applied": true}');
select is((select last_used_at
	from autopost.list_api_keys('w', jsonb_build_object('key_id', (select id from k where name = 'plain')), 1)),
	autopost.now_ts());

-- Replaced: both work for a while, and the old one says by which.
select is(autopost.rotate_api_key('w', (select id from k where name = 'narrow'), repeat('3', 64), 60, 'ann', 'r',
	true) - 'before' #>> '{after,expires_at}',
	(autopost.rotate_api_key('w', (select id from k where name = 'narrow'), repeat('3', 64), 60, 'ann', 'r',
		true)) #>> '{after,expires_at}');
select is(autopost.resolve_api_key(repeat('3', 64)), null, 'a dry run makes no key');
insert into k select 'new', (autopost.rotate_api_key('w', (select id from k where name = 'narrow'), repeat('3', 64), 60,
	'ann', 'r', false) ->> 'id')::uuid;
select is(test.resolved(repeat('3', 64)), 'narrow editor ["channels:read", "posts:write"] true',
	'the same name, role and scopes');
select is(test.resolved(repeat('2', 64)), 'narrow editor ["channels:read", "posts:write"] true',
	'the old one still works');
select is((select replaced_by
	from autopost.list_api_keys('w', jsonb_build_object('key_id', (select id from k where name = 'narrow')), 1)),
	(select id from k where name = 'new'));
select test.tick('1 minute');
select is(autopost.resolve_api_key(repeat('2', 64)), null, 'its time is over');
select is(autopost.rotate_api_key('w', (select id from k where name = 'narrow'), repeat('4', 64), 0, 'ann', 'r', false),
	'{"applied": false, "dry_run": false, "reason": "expired"}');
select test.set_clock('2026-06-02 12:00:00+00');
select is(autopost.resolve_api_key(repeat('3', 64)), null, 'the new one ends when the old one should have');

select is(autopost.disable_api_key('w', (select id from k where name = 'plain'), 'ann', 'r', true) ->> 'applied',
	'true');
select isnt(autopost.resolve_api_key(repeat('1', 64)), null, 'a dry run disables nothing');
select is(autopost.disable_api_key('w', (select id from k where name = 'plain'), 'ann', 'r',
	false) #>> '{after,enabled}', 'false');
select is(autopost.resolve_api_key(repeat('1', 64)), null);
select is(autopost.disable_api_key('w', (select id from k where name = 'plain'), 'ann', 'r', false),
	'{"applied": false, "dry_run": false, "reason": "unchanged"}');
select is(autopost.rotate_api_key('w', (select id from k where name = 'plain'), repeat('5', 64), 0, 'ann', 'r', false),
	'{"applied": false, "dry_run": false, "reason": "disabled"}');
select is(autopost.disable_api_key('w', gen_random_uuid(), 'ann', 'r', false),
	'{"applied": false, "dry_run": false, "reason": "unknown_key"}');
select is(autopost.rotate_api_key('w', gen_random_uuid(), repeat('5', 64), 0, 'ann', 'r', false),
	'{"applied": false, "dry_run": false, "reason": "unknown_key"}');
select is((select string_agg(a.action, ' ' order by a.seq) from autopost.list_audit('w', '{}', 10) a),
	'create_api_key create_api_key rotate_api_key disable_api_key');
select is((select string_agg(l.name, ' ' order by l.name) from autopost.list_api_keys('w', '{}', 10) l),
	'narrow narrow plain', 'what ended stays listed');

select throws_ok($$select autopost.create_api_key('w', '{"name": "x", "role": "editor"}', repeat('3', 64), 'ann',
	'r')$$, 'AP001', null, 'a secret belongs to one key');
select throws_ok($$select autopost.create_api_key('w', '{"name": "x", "role": "editor", "scopes": ["posts:delete"]}',
	repeat('6', 64), 'ann', 'r')$$, 'AP001', null);
select throws_ok($$select autopost.create_api_key('w',
	'{"name": "x", "role": "editor", "expires_at": "2026-06-02T12:00:00Z"}', repeat('6', 64), 'ann', 'r')$$, 'AP001',
	null, 'over already');
select throws_ok($$select autopost.create_api_key('w', '{"name": "x", "role": "editor", "colour": 1}', repeat('6', 64),
	'ann', 'r')$$, 'AP001', null);

select * from finish();
rollback;
