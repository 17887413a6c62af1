begin;
\ir fake_clock.sql
\ir world.sql
select plan(24);

select is(autopost.route_matches(f::jsonb, t::text[]), e, coalesce(f, 'no filter') || ' on ' || t)
from (values
	(null, '{}', true),
	(null, '{a}', true),
	('{}', '{}', true),
	('{}', '{a}', true),
	('{"include_any": ["a", "b"]}', '{b,c}', true),
	('{"include_any": ["a", "b"]}', '{c}', false),
	('{"include_any": ["a"]}', '{}', false),
	('{"include_any": []}', '{}', true),
	('{"include_all": ["a", "b"]}', '{a,b,c}', true),
	('{"include_all": ["a", "b"]}', '{a}', false),
	('{"include_all": ["a"]}', '{}', false),
	('{"include_all": []}', '{}', true),
	('{"exclude": ["a"]}', '{a,b}', false),
	('{"exclude": ["a"]}', '{b}', true),
	('{"exclude": ["a"]}', '{}', true),
	('{"exclude": []}', '{a}', true),
	('{"include_any": ["a"], "include_all": ["b"], "exclude": ["c"]}', '{a,b}', true),
	('{"include_any": ["a"], "include_all": ["b"], "exclude": ["c"]}', '{a,b,c}', false),
	('{"include_any": ["a"], "include_all": ["b"], "exclude": ["c"]}', '{b}', false)) x (f, t, e);

-- Through the enqueue.
select test.channel(c) from unnest('{all,cars,flats,off,none}'::text[]) c;
update autopost.channels set route_filter = '{"include_any": ["cars"]}' where channel_id = 'cars';
update autopost.channels set route_filter = '{"include_any": ["flats"], "exclude": ["rent"]}' where channel_id = 'flats';
update autopost.channels set enabled = false where channel_id = 'off';
update autopost.channels set route_filter = '{"include_any": ["none"]}', send_mode = 'media' where channel_id = 'none';
create function test.goes_to(p_answer jsonb) returns text
language sql
as $$
select string_agg(d.value ->> 'channel_id', ',' order by d.value ->> 'channel_id') from jsonb_array_elements(p_answer -> 'deliveries') d
$$;
select is(test.goes_to(test.post('{"text": "1", "tags": ["Cars"]}')), 'all,cars');
select is(test.goes_to(test.post('{"text": "2 #flats"}')), 'all,flats', 'by the hashtags of the text, too');
select is(test.goes_to(test.post('{"text": "3 #flats", "tags": ["rent"]}')), 'all');
select is(test.goes_to(test.say('4')), 'all', 'no tags: only who asks for none');
select throws_ok($$update autopost.channels set route_filter = '{"include_any": "cars"}'$$, '23514', null, 'a filter of another shape is refused');

select * from finish();
rollback;
