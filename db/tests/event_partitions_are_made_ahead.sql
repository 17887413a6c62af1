-- Event partitions exist ahead for each day, isolated like their parent. Events outside of them are
-- stored and reported.
begin;
\ir fake_clock.sql
\ir world.sql
select plan(7);

select test.set_clock('2031-03-30 23:30:00+00');
select is(autopost.ensure_event_partitions() - 'in_default', '{"made": 4}', 'today, and three days ahead');
select is(autopost.ensure_event_partitions() - 'in_default', '{"made": 0}', 'again: they are there');
select test.tick('1 hour');
select is(autopost.ensure_event_partitions() - 'in_default', '{"made": 1}', 'another day, another partition');
select is(array(select pg_get_expr(c.relpartbound, c.oid) from pg_class c
	where c.oid = 'autopost.events_20310331'::regclass),
	array[$$FOR VALUES FROM ('2031-03-31 00:00:00+00') TO ('2031-04-01 00:00:00+00')$$], 'days are those of UTC');
select is((select array[c.relrowsecurity, c.relforcerowsecurity, (select count(*) = 2 from pg_policy p
	where p.polrelid = c.oid)]
	from pg_class c where c.oid = 'autopost.events_20310331'::regclass), '{t,t,t}', 'isolated');

select autopost.emit_note('w', 'cooldown', 'ok', null, null, null, null);
select is((select c.relname::text from autopost.events e join pg_class c on c.oid = e.tableoid
	where e.action = 'cooldown'), 'events_20310331');
select test.set_clock('2031-03-01 12:00:00+00');
select autopost.emit_note('w', 'cooldown', 'ok', null, null, null, null);
select test.set_clock('2031-03-31 12:00:00+00');
select cmp_ok((autopost.ensure_event_partitions() -> 'in_default')::int, '>=', 1, 'what had none is counted');

rollback;
