-- A rule becomes local times, instants and one post each. After a stop only the latest missed one goes out.
begin;
\ir fake_clock.sql
\ir world.sql
select plan(52);

select test.channel('a', p_max_parallel => 100);
create function test.put(p_fields text, p_id uuid default null) returns jsonb
language sql
as $$
select autopost.put_recurrence('w', p_id, p_fields::jsonb, 'user:olga', 'r', false)
$$;
create function test.only() returns uuid
language sql
as $$
select r.recurrence_id from autopost.recurrences r
$$;
create function test.shown() returns text
language sql
as $$
select string_agg(to_char(o.at at time zone 'UTC', 'MM-DD HH24:MI') || ' ' || o.status
	|| coalesce(' ' || o.reason, ''), ', '
	order by o.at) from autopost.occurrences o
$$;
-- Expands as the daemon does, for a daily rule.
create function test.expand() returns jsonb
language sql
as $$
select autopost.put_occurrences('w', (d ->> 'recurrence_id')::uuid, array(
	select g from generate_series(date_trunc('day', (d ->> 'after')::timestamp) + (d ->> 'starts_at')::timestamp::time,
		(d ->> 'until')::timestamp, '1 day') g where g > (d ->> 'after')::timestamp),
	(d ->> 'until')::timestamp, (d -> 'revision')::int)
from jsonb_array_elements(autopost.list_due_recurrences('w', 10)) d
$$;

-- What is wrong is named, and nothing is stored.
create temp table good on commit drop as select '{"endpoint_id": "in", "rule": "FREQ=DAILY", "zone": "Europe/Berlin",
	"starts_at": "2026-03-20T02:30", "payloads": [{"text": "one"}, {"text": "two"}]}'::jsonb as fields;
select is(test.put((g.fields || e.wrong::jsonb)::text) #>> '{errors,0,field}', e.field, e.wrong)
from good g, (values ('{"rule": "FREQ=SECONDLY"}', 'rule'), ('{"rule": "DTSTART=20260101T000000;FREQ=DAILY"}', 'rule'),
	('{"zone": "Mars/Base"}', 'zone'), ('{"starts_at": "2026-02-30T10:00"}', 'starts_at'),
	('{"starts_at": "2026-12-01T10:00+03:00"}', 'starts_at'), ('{"endpoint_id": "none"}', 'endpoint_id'),
	('{"payloads": []}', 'payloads'), ('{"payloads": [{"text": ""}]}', 'payloads[0].text'),
	('{"payloads": [{"text": "x", "scheduled_for": "2026-12-01T10:00:00Z"}]}', 'payloads[0].scheduled_for'),
	('{"payloads": [{"text": "x", "source_ref": "y"}]}', 'payloads[0].source_ref')) e (wrong, field);
select is((select count(*)::int from autopost.recurrences), 0);

-- Days with a change of clocks: 02:30 does not exist on 29 March and exists twice on 25 October.
select test.set_clock('2026-03-26 12:00:00+00');
select is(test.put((select g.fields::text from good g)) -> 'created', 'true');
select is(array(select * from autopost.due_stages(0)), '{recurrences}');
select is(array(select * from autopost.ready_recurrence_workspaces(10)), '{w}');
select is(test.expand() -> 'applied', 'true');
select is((select string_agg(to_char(o.at at time zone 'UTC', 'MM-DD HH24:MI'), ', ' order by o.at)
	from (select * from autopost.occurrences o order by o.at limit 4) o),
	'03-27 01:30, 03-28 01:30, 03-29 01:00, 03-30 00:30', 'the end of the gap, then summer time');
select is(autopost.preview_occurrences('w', 'Europe/Berlin', '{2026-10-25T02:30}'), '["2026-10-25T00:30:00.000000Z"]',
	'the first of two');
select is((select count(*)::int from autopost.occurrences), 60, 'sixty days ahead');
select is((select jsonb_agg(i.value - 'at' - 'message_id' - 'recurrence_id') from jsonb_array_elements(
	autopost.calendar('w', '2026-03-27', '2026-03-29 00:00+00', null) -> 'items') i),
	'[{"kind": "expected", "channels": 1}, {"kind": "expected", "channels": 1}]', 'the calendar expects them');
select is(jsonb_array_length(autopost.calendar('w', '2026-03-27', '2026-04-01', 'a') -> 'items'), 5);
select is(autopost.put_occurrences('w', test.only(), '{2026-04-01T02:30}', null, 7) ->> 'reason', 'changed');
select is(autopost.put_occurrences('w', test.only(), '{2026-03-27T02:30}') -> 'added', '0', 'each is stored once');
select is(autopost.list_due_recurrences('w', 10), '[]', 'expanded again after half of the time');

-- A minute ahead it becomes a post that waits for its instant.
select is(autopost.run_recurrences('w') -> 'ran', '0');
select test.set_clock('2026-03-27 01:29:10+00');
select is(array(select * from autopost.due_stages(0)), '{recurrences}');
select is(autopost.run_recurrences('w'), '{"ran": 1, "more": false}');
select is((select (d.scheduled_for, d.rendered_text)::text from autopost.deliveries d),
	'("2026-03-27 01:30:00+00",one)');
select is(autopost.run_recurrences('w') -> 'ran', '0', 'once');
select is((select i.value ->> 'recurrence_id' from jsonb_array_elements(
	autopost.calendar('w', '2026-03-27', '2026-03-28', null) -> 'items') i), test.only()::text, 'it is known by its post');
select is((select (r.kind, r.stats_json -> 'enqueued')::text from autopost.ingest_runs r), '(recurrence,1)');

-- A stop of two days: the latest missed one goes out, at once; the payloads go in turn.
select test.set_clock('2026-03-29 12:00:00+00');
select is(autopost.run_recurrences('w') -> 'ran', '1');
select is(left(test.shown(), 86),
	'03-27 01:30 enqueued, 03-28 01:30 skipped missed, 03-29 01:00 enqueued, 03-30 00:30 ex');
select is((select string_agg(d.rendered_text || coalesce(d.scheduled_for::text, ''), ', ' order by d.delivery_id)
	from autopost.deliveries d), 'one2026-03-27 01:30:00+00, two');
select is((select e.meta - 'recurrence_id' from autopost.events e where e.action = 'occurrence_skipped'),
	'{"cause": "missed", "occurrences": 1, "first_at": "2026-03-28T01:30:00.000000Z",
	"last_at": "2026-03-28T01:30:00.000000Z"}');

-- The same content goes out again, because its instant counts.
select test.set_clock('2026-03-30 00:30:00+00');
select autopost.run_recurrences('w');
select is((select count(distinct m.content_hash)::int from autopost.messages m), 3);

-- A person moves one, skips one; what is a post is not moved.
create function test.expected(p_n int) returns uuid
language sql
as $$
select o.occurrence_id from autopost.occurrences o where o.status = 'expected'
order by o.local_at offset p_n - 1 limit 1
$$;
select is(autopost.move_occurrence('w', test.only(), test.expected(1), '2026-04-02 10:00+00', 'o', 'r', false)
	-> 'applied', 'true');
select is(autopost.move_occurrence('w', test.only(), test.expected(2), null, 'o', 'r', false) #>> '{after,status}',
	'skipped');
select is(autopost.move_occurrence('w', test.only(), test.expected(1), '2020-01-01', 'o', 'r', false)
	#>> '{errors,0,field}',
	'at');
select is(autopost.move_occurrence('w', test.only(), o.occurrence_id, null, 'o', 'r', false) ->> 'reason',
	'not_expected')
from autopost.occurrences o where o.status = 'enqueued' limit 1;

-- What would have been due while it was paused is skipped; a paused workspace counts as stopped.
select test.put('{"enabled": false}', test.only());
select test.set_clock('2026-04-05 12:00:00+00');
select is('recurrences' = any (array(select * from autopost.due_stages(0))), false);
select test.put('{"enabled": true}', test.only());
select is((select count(*)::int from autopost.occurrences o where o.reason = 'paused'), 5);
update autopost.workspaces set status = 'paused';
select test.set_clock('2026-04-07 12:00:00+00');
select is(autopost.run_recurrences('w') -> 'ran', '0');
update autopost.workspaces set status = 'active';
select is(autopost.run_recurrences('w') -> 'ran', '1');
select is((select count(*)::int from autopost.occurrences o where o.status = 'enqueued'), 4, 'only the latest');

-- A post that is refused skips its occurrence and names the reason.
update autopost.workspace_endpoints set enabled = false where endpoint_id = 'in';
select test.set_clock('2026-04-08 00:30:00+00');
select autopost.run_recurrences('w');
select is((select o.error ->> 'code' from autopost.occurrences o where o.reason = 'rejected'), 'AP001');
update autopost.workspace_endpoints set enabled = true where endpoint_id = 'in';

-- A long stop: expand in parts, and run only after the last part.
select test.set_clock('2026-09-01 12:00:00+00');
select autopost.put_occurrences('w', test.only(), array(select generate_series('2026-05-26 02:30'::timestamp,
	'2026-07-01', '1 day')), '2026-07-01');
select is(autopost.run_recurrences('w') -> 'ran', '0', 'July and August are missing');
select test.expand();
select is(autopost.run_recurrences('w') -> 'ran', '1');
select is((select count(*)::int from autopost.occurrences o where o.status = 'enqueued'), 5,
	'one post for five months');
select is((select array_agg(v.invariant) from autopost.verify('w') v where v.violations > 0), null);

-- A changed rule forgets what it expected; a removed one leaves its posts.
select test.put('{"rule": "FREQ=WEEKLY"}', test.only());
select is((select count(*)::int from autopost.occurrences o where o.status = 'expected'), 0);
select is(autopost.remove_recurrence('w', test.only(), 'o', 'r', false) -> 'applied', 'true');
select is((select (count(*), (select count(*) from autopost.occurrences))::text from autopost.deliveries), '(5,0)');
select * from finish();
rollback;
