begin;
\ir fake_clock.sql
select plan(8);

create temp table ids on commit drop as
select at, autopost.uuid_v7_of(at, 'n') as id
from (select timestamptz '2026-06-01 11:59:59.998+00' + n * interval '1 microsecond' as at
	from generate_series(0, 3999) n) x;
select is((select count(*)::int from (select id <= lag(id) over (order by at) as wrong from ids) x where wrong), 0,
	'microsecond after microsecond, over the edges of milliseconds');
select is(substr(id::text, 15, 1) || substr(id::text, 20, 1), '78', 'version 7, its variant') from ids limit 1;
select is(autopost.uuid_v7_of(now(), 'a'), autopost.uuid_v7_of(now(), 'a'), 'the same of the same');
select isnt(autopost.uuid_v7_of(now(), 'a'), autopost.uuid_v7_of(now(), 'b'));
select is(('x' || replace(substr(autopost.uuid_v7_of('2026-06-01 12:00:00.1239+00', 'a')::text, 1, 13), '-', ''))::bit(
	48)::bigint,
	(extract(epoch from timestamptz '2026-06-01 12:00:00.123+00') * 1000)::bigint,
		'its first 48 bits are the milliseconds');
select isnt(autopost.new_id(), autopost.new_id());
select ok(autopost.first_id_at('-infinity') <= autopost.first_id_at('0001-01-01Z')
	and autopost.first_id_at('0001-01-01Z') < autopost.new_id() and autopost.new_id() < autopost.first_id_at('infinity'),
	'instants that no id can have are the first and the last');
select is(autopost.first_id_at(null), null);

select * from finish();
rollback;
