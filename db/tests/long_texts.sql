-- The channel's long_text decides about a long text: refuse, cut, split, or caption with a reply.
begin;
\ir fake_clock.sql
\ir world.sql
select plan(40);

select test.channel('tg');
select test.channel('m', p_platform => 'max');
insert into autopost.media_origin (workspace_id, blob_ref, origin_url, size_bytes)
	values ('w', 'sha256:' || repeat('1', 64), 'file:///1', 10);
create function test.long(p_strategy text) returns void
language sql
as $$
update autopost.channels set settings = coalesce(jsonb_build_object('long_text', p_strategy) - case
	when p_strategy is null then 'long_text' else '' end, '{}')
$$;
create function test.steps(p_raw jsonb, p_channel_id text default 'tg') returns text
language sql
as $$
-- The plan of a post, briefly: its steps, the length of the text that goes with each (… of the
-- whole), what they answer.
select test.tick('1 second');
select test.post(p_raw);
select case r.status when 'queued' then (
	select string_agg((s.value ->> 'step') || coalesce(' ' || (s.value ->> 'items'), '')
		|| case when s.value -> 'text' = 'true' then ' ' || coalesce(length(s.value ->> 'body')::text, '…')
			else '' end || coalesce(' to ' || (s.value ->> 'reply_to'), ''), '; ' order by s.ordinality)
	from jsonb_array_elements(r.render_meta -> 'steps') with ordinality s) else r.last_error ->> 'message' end
from test.row(p_channel_id) r
$$;
create function test.media(p_count int) returns jsonb
language sql
as $$
select jsonb_agg(jsonb_build_object('type', 'image', 'blob_ref', 'sha256:' || repeat('1', 64)))
	from generate_series(1, p_count)
$$;
create function test.said(p_channel_id text default 'tg') returns text[]
language sql
as $$
select array(select s ->> 'body' from jsonb_array_elements((test.row(p_channel_id)).render_meta -> 'steps') s
	where s ? 'body')
$$;
create temp table words on commit drop as
select rtrim(repeat('Ten chars ', 500)) as plain, '<b>' || rtrim(repeat('Ten chars ', 500)) || '</b>' as bold;

-- None said: refused, as what it is.
select is(test.steps(jsonb_build_object('text', plain)), 'text has 4999 characters, telegram takes at most 4096')
	from words;
select throws_like($$select test.long('shorten')$$, '%channels_long_text%',
	'an unknown strategy is refused when it is written');

-- truncate: after a word, with an ellipsis, tags closed, the link kept.
select test.long('truncate');
select is(test.steps(jsonb_build_object('text', plain || ' a')), 'text …') from words;
select is(right((test.row('tg')).rendered_text, 14), 'Ten chars Ten…');
select is(char_length((test.row('tg')).rendered_text), 4094, 'the next word has no room');
select is((test.row('tg')).render_meta -> 'truncated', 'true');
select test.steps(jsonb_build_object('text', bold, 'parse_mode', 'HTML', 'link', 'https://e.x/full')) from words;
select matches((test.row('tg')).rendered_text, E'^<b>Ten .*…</b>\n\nhttps://e.x/full$');
select is(char_length(autopost.visible_text((test.row('tg')).rendered_text, true)) <= 4096, true);
select matches((test.row('m')).rendered_text, E'^<b>Ten .*…</b>\n\nhttps://e.x/full$');
select is(char_length((test.row('m')).rendered_text) <= 4000, true, 'where the tags count they are counted');
select is(test.steps('{"text": "short"}'), 'text …');
select is((test.row('tg')).render_meta -> 'truncated', null);
select is(test.steps(jsonb_build_object('text', rtrim(repeat('Caption x ', 150)), 'media', test.media(1))),
	'text …; media-1 [0]', 'a caption has a message of its own to go to');

-- split: in parts, each a step.
select test.long('split');
select is(test.steps(jsonb_build_object('text', plain || ' b')) , 'text-1 4093; text-2 907') from words;
select is(array_to_string(test.said(), ' '), (select plain || ' b' from words), 'nothing is lost');
select is((test.row('tg')).rendered_text, (select plain || ' b' from words), 'the whole is kept');
select is((test.row('tg')).render_meta ->> 'length', '5001');
select is(test.steps(jsonb_build_object('text', repeat('a', 3000) || E'.\n\n' || repeat('b', 1000) || '. '
	|| repeat('c', 1000))), 'text-1 3001; text-2 2002', 'after a paragraph');
select is(test.steps(jsonb_build_object('text', repeat('a', 500) || E'\n\n' || repeat('b', 3000) || '. ' || repeat('c',
	1000) || ' d')), 'text-1 3503; text-2 1002', 'else after a sentence: a part is at least half full');
select is(test.steps(jsonb_build_object('text', repeat('😀', 4000))), 'text-1 2048; text-2 1952',
	'no surrogate pair is parted');
select is(test.steps(jsonb_build_object('text', repeat('a', 4095) || U&'\006B\0323' || repeat('b', 9))),
	'text-1 4096; text-2 9', 'one letter, once composed');
select is(test.steps(jsonb_build_object('text', repeat('a', 4095) || U&'x\0301' || repeat('b', 9))),
	'text-1 4095; text-2 11', 'a letter keeps its mark');
select is(test.steps(jsonb_build_object('text', repeat('a', 4093) || '👨‍👩‍👧' || 'b')), 'text-1 4093; text-2 6',
	'a family stays together');
select is(test.steps(jsonb_build_object('text', repeat('🇷🇺', 1500))), 'text-1 2048; text-2 952', 'and a flag');
select is(test.steps(jsonb_build_object('text', 'See ' || repeat('a', 100) || ' https://e.x/' || repeat('p', 4050))),
	'text-1 104; text-2 4062', 'a link is not cut');
select test.steps(jsonb_build_object('text', '<b>' || repeat('a', 4000) || ' <a href="https://e.x/">' || repeat('b', 90)
	|| ' ' || repeat('c', 90) || '</a></b> &lt;end', 'parse_mode', 'HTML'));
select is(test.said()::text,
	array['<b>' || repeat('a', 4000) || ' <a href="https://e.x/">' || repeat('b', 90) || '</a></b>',
	'<b><a href="https://e.x/">' || repeat('c', 90) || '</a></b> &lt;end']::text,
	'open tags are closed and opened again');
select is(test.steps(jsonb_build_object('text', bold, 'parse_mode', 'HTML'), 'm'), 'text-1 4000; text-2 1012')
	from words;
select is(test.steps(jsonb_build_object('text', repeat('x', 3990) || repeat('<b></b>', 600), 'parse_mode', 'HTML'),
	'm'), 'text-1 3990', 'tags without a text are no part of their own');
select is(test.steps(jsonb_build_object('text', repeat('<b></b>', 6000) || 'x', 'parse_mode', 'HTML'), 'm'),
	'text-1 42001', 'and have an end');
select is(test.steps(jsonb_build_object('text', plain, 'media', test.media(2))),
	'text-1 4093; text-2 905; media-1 [0, 1]', 'the text goes ahead of its media') from words;
select is(test.steps(jsonb_build_object('text', repeat('a b ', 21000))),
	'text has 83999 characters, telegram takes at most 4096', 'there is an end to it');
select is(test.steps(jsonb_build_object('text', repeat('y z ', 4096))),
	'text-1 4095; text-2 4095; text-3 4095; text-4 4095');

-- caption_reply: the beginning is the caption, the rest answers it.
select test.long('caption_reply');
select is(test.steps(jsonb_build_object('text', plain, 'media', test.media(1))),
	'media-1 [0] 1023; text-1 3975 to media-1') from words;
select is(array_to_string(test.said(), ' '), (select plain from words));
select is(test.steps(jsonb_build_object('text', plain || ' c', 'media', test.media(11), 'buttons',
	'[[{"text": "Go", "url": "https://e.x/"}]]'::jsonb)),
	'media-1 [0, 1, 2, 3, 4, 5, 6, 7, 8, 9] 1023; media-2 [10]; text-1 3977 to media-1',
		'an album, its rest, the reply') from words;
select isnt((test.row('tg')).render_meta -> 'buttons', null, 'which carries the buttons');
select is(test.steps(jsonb_build_object('text', 'fits', 'media', test.media(1))), 'media-1 [0] …');
select is(test.steps(jsonb_build_object('text', plain || ' d')), 'text-1 4093; text-2 907', 'without media it is split')
	from words;
select is(test.steps(jsonb_build_object('text', plain || ' e', 'media', test.media(1)), 'm'),
	'media-1 [0] 3999; text-1 1001 to media-1') from words;
select is(test.steps(jsonb_build_object('text', plain || ' f', 'media',
	jsonb_build_array(test.media(1) -> 0 || '{"caption": "own"}'))), 'text-1 4093; text-2 907; media-1 [0]',
	'a medium keeps its own caption') from words;

select * from finish();
rollback;
