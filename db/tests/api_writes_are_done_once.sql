-- An API write with an Idempotency-Key runs once. A repeat gets the first answer, for a day.
begin;
\ir fake_clock.sql
\ir world.sql
select plan(16);

select test.channel('a');
create function test.key(p_name text, p_hash text) returns uuid
language sql
as $$
select (autopost.create_api_key('w', jsonb_build_object('name', p_name, 'role', 'editor'), p_hash, 'ann',
	'r') ->> 'id')::uuid
$$;
create temp table k on commit drop as select test.key('one', repeat('1', 64)) as one,
	test.key('two', repeat('2', 64)) as two;
create function test.write(p_key uuid, p_once text, p_hash text default repeat('a', 64)) returns jsonb
language sql
as $$
-- One call, as the API makes it.
select autopost.write_once('w', p_key, p_once, p_hash, 'pause_channel',
	'{"channel": "a", "seconds": 60, "operator": "ann", "reason": "r", "dry_run": false}')
$$;
create function test.pauses() returns int
language sql
as $$
select count(*)::int from autopost.admin_audit_log a where a.action = 'pause_channel'
$$;

create temp table first on commit drop as select test.write(one, 'x') as answer from k;
select is((select answer ->> 'status' from first), 'done');
select is(test.pauses(), 1);
select test.tick('1 minute');
select is((select test.write(one, 'x') ->> 'status' from k), 'replayed');
select is((select test.write(one, 'x') -> 'answer' from k)::text, (select answer -> 'answer' from first)::text,
	'to the letter');
select is(test.pauses(), 1, 'and is not done again');
select is((select test.write(one, 'x', repeat('b', 64)) from k), '{"status": "other_request"}');
select is(test.pauses(), 1);
select is((select test.write(two, 'x') ->> 'status' from k), 'done', 'another key has its own');
select is((select test.write(one, 'y') ->> 'status' from k), 'done');
select is(test.pauses(), 3);

-- A refusal is an answer, and is kept; an argument that is wrong leaves nothing behind.
select throws_ok($$select autopost.write_once('w', k.one, 'z', repeat('a', 64), 'pause_channel',
	'{"channel": "a", "seconds": 0, "operator": "ann", "reason": "r", "dry_run": false}') from k$$, 'AP001', null);
select is((select autopost.begin_request('w', one, 'z', repeat('a', 64)) from k), '{"status": "fresh"}');

select is((select (autopost.purge_receipts('w') ->> 'purged')::int), 0, 'not before its time');
select test.tick('1 day');
select is((select test.write(one, 'x') ->> 'status' from k), 'done', 'after a day the key is fresh again');
select is((select (autopost.purge_receipts('w') ->> 'purged')::int), 2, 'what is over goes');
select is((select count(*)::int from autopost.api_requests), 1);

select * from finish();
rollback;
