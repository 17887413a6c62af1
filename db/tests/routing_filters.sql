begin;
\ir fake_clock.sql
\ir world.sql
select plan(34);

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
update autopost.channels set route_filter = '{"include_any": ["flats"], "exclude": ["rent"]}'
	where channel_id = 'flats';
update autopost.channels set enabled = false where channel_id = 'off';
update autopost.channels set route_filter = '{"include_any": ["none"]}', send_mode = 'media' where channel_id = 'none';
create function test.goes_to(p_answer jsonb) returns text
language sql
as $$
select string_agg(d.value ->> 'channel_id', ',' order by d.value ->> 'channel_id')
	from jsonb_array_elements(p_answer -> 'deliveries') d
$$;
select is(test.goes_to(test.post('{"text": "1", "tags": ["Cars"]}')), 'all,cars');
select is(test.goes_to(test.post('{"text": "2 #flats"}')), 'all,flats', 'by the hashtags of the text, too');
select is(test.goes_to(test.post('{"text": "3 #flats", "tags": ["rent"]}')), 'all');
select is(test.goes_to(test.say('4')), 'all', 'no tags: only who asks for none');
select throws_ok($$update autopost.channels set route_filter = '{"include_any": "cars"}'$$, 'AP001', null,
	'a filter of another shape is refused');

-- A row that is written by hand is held to what the function asks for.
create function test.write(p_filter text) returns text
language plpgsql
as $$
begin
	update autopost.channels set route_filter = p_filter::jsonb where channel_id = 'all';
	return 'written';
exception when sqlstate 'AP001' then
	return sqlerrm;
end
$$;
select is(test.write(f), e) from (values
	('{"include_any": ["a"], "include_all": [], "exclude": ["b"]}', 'written'),
	(null, 'written'),
	('{"include_anyy": ["a"]}', 'argument route_filter: has ''include_anyy'', which is not a condition'),
	('{"exclude": ["Rent"]}', 'argument route_filter: must have only tags in lower case for exclude'),
	('{"include_all": [7]}', 'argument route_filter: must have only tags in lower case for include_all')) x (f, e);
select throws_ok($$
	insert into autopost.channels (workspace_id, channel_id, platform, target_id, auth_ref, rate_group, route_filter)
	values ('w', 'new', 'telegram', '@new', 'bot', 'bot', '{"only": []}')
$$, 'AP001', 'argument route_filter: has ''only'', which is not a condition');
update autopost.channels set tags = '{News, #ru ," ",news}' where channel_id = 'all';
select is((test.channel_row('all')).tags, '{news,ru}', 'tags are those of messages');
select is(autopost.put_channel('w', 'all', '{"tags": ["RU", "news"]}', 'ann', 'tidy', false) ->> 'reason', 'unchanged',
	'for the function as well');
select is(autopost.put_channel('w', 'all', '{"tags": ["B", "a", "b"]}', 'ann', 'tidy', false) #> '{after,tags}',
	'["a", "b"]', 'which answers what it stored');
alter table autopost.channels disable trigger check_routing;
update autopost.channels set route_filter = '{"old": []}' where channel_id = 'all';
alter table autopost.channels enable trigger check_routing;
select lives_ok($$update autopost.channels set tags = '{x}', route_filter = route_filter
	where channel_id = 'all'$$, 'a filter from before is not judged again');

select * from finish();
rollback;
