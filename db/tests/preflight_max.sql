-- The same posts on MAX, which has other limits.
begin;
\ir fake_clock.sql
\ir world.sql
select plan(17);

select test.channel('m', p_platform => 'max');
insert into autopost.media_origin (workspace_id, blob_ref, origin_url, size_bytes)
values ('w', 'sha256:' || repeat('1', 64), 'file:///1', 10), ('w', 'sha256:' || repeat('2', 64), 'file:///2', 52428801);
create function test.verdict(p_raw jsonb) returns jsonb
language sql
as $$
select (test.post(p_raw) -> 'deliveries' -> 0) - 'delivery_id' - 'channel_id'
$$;
create function test.media(p_types text[], p_digit int default 1) returns jsonb
language sql
as $$
select jsonb_agg(jsonb_build_object('type', t, 'blob_ref', 'sha256:' || repeat(p_digit::text, 64)) order by n)
	from unnest(p_types) with ordinality x (t, n)
$$;
create function test.steps(p_raw jsonb) returns text
language sql
as $$
select test.tick('1 second');
select test.post(p_raw);
select string_agg((s.value ->> 'step') || coalesce(' ' || (s.value ->> 'items'), '') || case
	when s.value -> 'text' = 'true' then ' text' else '' end, '; ' order by s.ordinality)
from jsonb_array_elements((test.row('m')).render_meta -> 'steps') with ordinality s
$$;

select is(test.verdict(jsonb_build_object('text', repeat('я', 4000))) ->> 'status', 'queued');
select is(test.verdict(jsonb_build_object('text', repeat('я', 4001))) ->> 'reason',
	'text has 4001 characters, max takes at most 4000');
select is(test.verdict(jsonb_build_object('text', '<b>' || repeat('a', 3993) || '</b>', 'parse_mode',
	'HTML')) ->> 'status', 'queued', 'the markup counts: 4000 with it');
select is(test.verdict(jsonb_build_object('text', '<b>' || repeat('a', 3994) || '</b>', 'parse_mode',
	'HTML')) ->> 'status', 'failed_permanent');
select is(test.steps(jsonb_build_object('text', repeat('b', 4000), 'media', test.media('{image}'))), 'media-1 [0] text',
	'a caption may be as long as a text');
select is(test.steps(jsonb_build_object('text', 't1', 'media', test.media('{image,video,image}'))),
	'media-1 [0, 1, 2] text');
select is(test.steps(jsonb_build_object('text', 't2', 'media', test.media('{image,file,file,audio}'))),
	'media-1 [0] text; media-2 [1]; media-3 [2]; media-4 [3]', 'files and sounds go alone: a series');
select is(test.steps(jsonb_build_object('text', 't3', 'media', test.media(array_fill('image'::text, array[12])))),
	'media-1 [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10] text; media-2 [11]');
select is(test.steps(jsonb_build_object('text', 't4', 'media', test.media('{image,image}'), 'buttons',
	'[[{"text": "Go", "url": "https://e.x/"}]]'::jsonb)), 'media-1 [0, 1] text', 'an album keeps its buttons');
select is((test.row('m')).render_meta -> 'buttons', '[[{"text": "Go", "url": "https://e.x/"}]]');
select is(test.steps(jsonb_build_object('text', 't5', 'media',
	jsonb_build_array(test.media('{image}') -> 0 || '{"caption": "c"}', test.media('{image}') -> 0))),
	'text text; media-1 [0, 1]', 'one text a message: with a caption of its own the text goes ahead');
select is(test.verdict(jsonb_build_object('text', 's1', 'media', test.media('{image}', 2))) ->> 'reason',
	'media[0]: 52428801 bytes, max takes at most 52428800');
select is(test.verdict(jsonb_build_object('text', 's2', 'media', test.media('{file}', 2))) ->> 'status', 'queued');
create function test.buttons(p_rows int, p_columns int) returns jsonb
language sql
as $$
select jsonb_agg((select jsonb_agg('{"text": "b", "url": "https://e.x/"}'::jsonb) from generate_series(1, p_columns)))
	from generate_series(1, p_rows)
$$;
select is(test.verdict(jsonb_build_object('text', 'b1', 'buttons', test.buttons(30, 3))) ->> 'status', 'queued');
select is(test.verdict(jsonb_build_object('text', 'b2', 'buttons', test.buttons(1, 4))) ->> 'status',
	'failed_permanent');
select is(test.verdict(jsonb_build_object('text', 'b3', 'buttons', test.buttons(31, 1))) ->> 'status',
	'failed_permanent');

-- One post, two platforms: each is checked separately.
select test.channel('tg');
select is((select string_agg(d.value ->> 'status', ',' order by d.value ->> 'channel_id')
	from jsonb_array_elements(test.post(jsonb_build_object('text', repeat('z', 4050))) -> 'deliveries') d),
	'failed_permanent,queued', 'what one refuses the other takes');

select * from finish();
rollback;
