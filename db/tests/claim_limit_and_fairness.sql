-- The backlog of one channel does not delay other channels.
begin;
\ir fake_clock.sql
\ir world.sql
select plan(5);

select test.channel('big', p_max_parallel => 10);
select test.channel('small', p_max_parallel => 10);
select test.posts('big', 8, '{"include_channels": ["big"]}');
select test.post('{"text": "small", "routing": {"include_channels": ["small"]}}');

create temp table c on commit drop as select * from test.claim(4);
select is((select count(*)::int from c), 4, 'never more than the limit');
select is((select count(*)::int from c where channel_id = 'small'), 1,
	'every channel of a group has its turn before the second of any');
select is((select array_agg(rendered_text order by rendered_text) from c where channel_id = 'big'),
	'{big 1,big 2,big 3}', 'a channel''s posts go in order');
select is((select array_agg(rendered_text order by rendered_text) from test.claim(2)), '{big 4,big 5}',
	'what the limit left over waits for the next claim');
select is((select count(*)::int from test.claim()), 3, 'and nothing is lost');

select * from finish();
rollback;
