-- Posts that Telegram would refuse are refused before they are queued. Long posts are planned as steps.
begin;
\ir fake_clock.sql
\ir world.sql
select plan(33);

select test.channel('tg');
insert into autopost.media_origin (workspace_id, blob_ref, origin_url, size_bytes)
values ('w', 'sha256:' || repeat('1', 64), 'file:///1', 10485760), ('w', 'sha256:' || repeat('2', 64), 'file:///2',
	10485761), ('w', 'sha256:' || repeat('3', 64), 'file:///3', 52428801);
create function test.verdict(p_raw jsonb) returns jsonb
language sql
as $$
-- {"status", "reason"} of the one channel.
select test.tick('1 second');
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
-- The plan of a post, briefly: text means that the text goes with the step.
select test.tick('1 second');
select test.post(p_raw);
select string_agg((s.value ->> 'step') || coalesce(' ' || (s.value ->> 'items'), '') || case
	when s.value -> 'text' = 'true' then ' text' else '' end, '; ' order by s.ordinality)
from jsonb_array_elements((test.row('tg')).render_meta -> 'steps') with ordinality s
$$;

-- Text: 4096 characters of what is read, in UTF-16 units.
select is(test.verdict(jsonb_build_object('text', repeat('я', 4096))) ->> 'status', 'queued', '4096 letters');
select is(test.verdict(jsonb_build_object('text', repeat('я', 4097))),
	'{"status": "failed_permanent", "reason": "text has 4097 characters, telegram takes at most 4096"}');
select is((test.row('tg')).status, 'failed_permanent');
select is((test.row('tg')).last_error, '{"category": "PERMANENT", "scope": "delivery", "code": "validation_failed", "known": true, "message": "text has 4097 characters, telegram takes at most 4096"}');
select is((test.row('tg')).attempt, 0);
select is(test.count_events('validation_failed', 'tg'), 1);
select is(test.claimed() <> '{}', true, 'the other one is claimed');
select is((select count(*)::int from autopost.deliveries where status = 'failed_permanent'), 1,
	'and what failed is not');
select is(test.verdict(jsonb_build_object('text', repeat('😀', 2048))) ->> 'status', 'queued',
	'an emoji counts twice: 2048');
select is(test.verdict(jsonb_build_object('text', repeat('😀', 2048) || 'x')) ->> 'status', 'failed_permanent');
select is(test.verdict(jsonb_build_object('text', '<b>' || repeat('a', 4096) || '</b>', 'parse_mode',
	'HTML')) ->> 'status', 'queued', 'markup does not count');
select is(test.verdict(jsonb_build_object('text', repeat('&lt;', 4096), 'parse_mode', 'HTML')) ->> 'status', 'queued',
	'an entity is one character');
select is(test.verdict(jsonb_build_object('text', repeat('a', 4085), 'link', 'https://e.x/')) ->> 'status',
	'failed_permanent', 'the link that is added counts');
select is(test.verdict('{"text": "<b>x", "parse_mode": "HTML"}') ->> 'reason',
	'can''t parse the markup: unclosed tag <b>');
select is(test.verdict('{"text": "<table>x</table>", "parse_mode": "HTML"}') ->> 'status', 'failed_permanent');

-- Captions: 1024; longer text goes ahead of the media.
select is(test.steps(jsonb_build_object('text', repeat('b', 1024), 'media', test.media('{image}'))), 'media-1 [0] text',
	'a caption');
select is(test.steps(jsonb_build_object('text', repeat('b', 1025), 'media', test.media('{image}'))),
	'text text; media-1 [0]', 'too long for one: text first, then the picture');
select is(test.steps(jsonb_build_object('text', repeat('b', 1025), 'media', test.media('{image,image}'))),
	'text text; media-1 [0, 1]', 'the same with an album');
select is(test.steps(jsonb_build_object('media', test.media('{image}'))), 'media-1 [0]', 'no text');
select is(test.verdict(jsonb_build_object('media',
	jsonb_build_array(test.media('{image}') -> 0 || jsonb_build_object('caption', repeat('c', 1025))))) ->> 'reason',
	'media[0].caption is longer than 1024 characters');

-- Albums: ten, photos with videos, files and sounds among themselves, animations alone; the order is kept.
select is(test.steps(jsonb_build_object('text', 't1', 'media', test.media(array_fill('image'::text, array[10])))),
	'media-1 [0, 1, 2, 3, 4, 5, 6, 7, 8, 9] text');
select is(test.steps(jsonb_build_object('text', 't2', 'media', test.media(array_fill('image'::text, array[11])))),
	'media-1 [0, 1, 2, 3, 4, 5, 6, 7, 8, 9] text; media-2 [10]');
select is(test.steps(jsonb_build_object('text', 't3', 'media', test.media('{image,video,file,file,audio,image}'))),
	'media-1 [0, 1] text; media-2 [2, 3]; media-3 [4]; media-4 [5]');
select is(test.steps(jsonb_build_object('text', 't4', 'media', test.media('{animation,animation}'))),
	'media-1 [0] text; media-2 [1]');
select is(test.steps(jsonb_build_object('text', 't5', 'media', test.media('{image,image}'), 'buttons',
	'[[{"text": "Go", "url": "https://e.x/"}]]'::jsonb)), 'text text; media-1 [0, 1]',
	'an album has no buttons: the text carries them');
select is(test.steps(jsonb_build_object('text', 't6', 'media', test.media('{image}'), 'buttons',
	'[[{"text": "Go", "url": "https://e.x/"}]]'::jsonb)), 'media-1 [0] text');

-- Sizes and buttons.
select is(test.verdict(jsonb_build_object('text', 's1', 'media', test.media('{image}', 1))) ->> 'status', 'queued',
	'a picture of 10 MB');
select is(test.verdict(jsonb_build_object('text', 's2', 'media', test.media('{image}', 2))) ->> 'reason',
	'media[0]: 10485761 bytes, telegram takes at most 10485760');
select is(test.verdict(jsonb_build_object('text', 's3', 'media', test.media('{image,video}', 3))) ->> 'status',
	'failed_permanent');
select is(test.verdict(jsonb_build_object('text', 's4', 'media', test.media('{video}', 2))) ->> 'status', 'queued',
	'a video may be larger');
create function test.buttons(p_rows int, p_columns int) returns jsonb
language sql
as $$
select jsonb_agg((select jsonb_agg('{"text": "b", "url": "https://e.x/"}'::jsonb) from generate_series(1, p_columns)))
	from generate_series(1, p_rows)
$$;
select is(test.verdict(jsonb_build_object('text', 'b1', 'buttons', test.buttons(12, 8))) ->> 'status', 'queued');
select is(test.verdict(jsonb_build_object('text', 'b2', 'buttons', test.buttons(1, 9))) ->> 'status',
	'failed_permanent');
select is(test.verdict(jsonb_build_object('text', 'b3', 'buttons', test.buttons(13, 1))) ->> 'status',
	'failed_permanent');

select * from finish();
rollback;
