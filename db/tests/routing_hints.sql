-- routing narrows one enqueue; it is no part of the content.
begin;
\ir fake_clock.sql
\ir world.sql
select plan(9);

select test.channel(c) from unnest('{a,b,c}'::text[]) c;
update autopost.channels set route_filter = '{"include_any": ["x"]}' where channel_id = 'c';
create function test.goes_to(p_raw text) returns text
language sql
as $$
select coalesce(string_agg(d.value ->> 'channel_id', ',' order by d.value ->> 'channel_id'), '') from jsonb_array_elements(test.post(p_raw::jsonb) -> 'deliveries') d
$$;
select is(test.goes_to('{"text": "1", "routing": {"include_channels": ["b"]}}'), 'b');
select is(test.goes_to('{"text": "2", "routing": {"exclude_channels": ["b"]}}'), 'a');
select is(test.goes_to('{"text": "3", "routing": {"include_channels": ["a", "b"], "exclude_channels": ["a"]}}'), 'b');
select is(test.goes_to('{"text": "4", "routing": {"include_channels": ["c"]}}'), '', 'a hint does not lift the channel''s own filter');
select is(test.goes_to('{"text": "5", "routing": {"include_channels": ["nobody"]}}'), '');
select is(test.goes_to('{"text": "6", "routing": {"include_channels": []}}'), '', 'an empty list includes nobody');
select is(test.goes_to('{"text": "7", "routing": {}}'), 'a,b');
select is((test.post('{"text": "1", "routing": {"include_channels": ["a"]}}') ->> 'message_id'), (test.post('{"text": "1"}') ->> 'message_id'), 'the same content under another hint is the same message');
select is((select count(*)::int from autopost.deliveries d join autopost.messages m using (workspace_id, message_id) where m.payload ->> 'text' = '1'), 2, 'with one delivery a channel');

select * from finish();
rollback;
