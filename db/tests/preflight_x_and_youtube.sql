-- Posts that X and YouTube would refuse. Texts count in X's weights and are cut to the template's limit.
begin;
\ir fake_clock.sql
\ir world.sql
select plan(47);

select autopost.put_template('w', t.id, null, jsonb_build_object('body', t.body, 'sanitize', t.sanitize), 'ann', 'test')
from (values ('image', '{avatar_name}: {prompt}', '{prompt}'::text[]), ('video', 'New video drop: {title}', '{title}'),
	('combat', '{winner_name} defeated {loser_name} in {rounds} rounds!', '{}')) t (id, body, sanitize);
select test.channel('x', p_platform => 'x');
select test.channel('yt', p_platform => 'youtube');
insert into autopost.media_origin (workspace_id, blob_ref, origin_url, size_bytes)
values ('w', 'sha256:' || repeat('1', 64), 'file:///1', 5242880), ('w', 'sha256:' || repeat('2', 64), 'file:///2',
	5242881);
create function test.verdict(p_raw jsonb, p_channel_id text default 'x') returns text
language sql
as $$
-- The result of a post: its status, or its error.
select test.tick('1 second');
select coalesce(d.value ->> 'reason', d.value ->> 'status')
	from jsonb_array_elements(test.post(p_raw) -> 'deliveries') d where d.value ->> 'channel_id' = p_channel_id
$$;
create function test.media(p_types text[], p_digit int default 1) returns jsonb
language sql
as $$
select jsonb_agg(jsonb_build_object('type', t, 'blob_ref', 'sha256:' || repeat(p_digit::text, 64)) order by n)
	from unnest(p_types) with ordinality x (t, n)
$$;
create function test.steps(p_raw jsonb, p_channel_id text default 'x') returns text
language sql
as $$
select test.tick('1 second');
select test.post(p_raw);
select string_agg((s.value ->> 'step') || coalesce(' ' || (s.value ->> 'items'), '') || case
	when s.value -> 'text' = 'true' then ' text' else '' end
	|| coalesce(' to ' || (s.value ->> 'reply_to'), ''), '; ' order by s.ordinality)
from jsonb_array_elements((test.row(p_channel_id)).render_meta -> 'steps') with ordinality s
$$;

-- X: 270 of its weights, ten less than it takes itself.
select is(test.verdict(jsonb_build_object('text', repeat('я', 270))), 'queued', 'Cyrillic weighs one');
select is(test.verdict(jsonb_build_object('text', repeat('я', 271))), 'text has 271 characters, x takes at most 270');
select is(test.verdict(jsonb_build_object('text', repeat('字', 135))), 'queued', 'an ideograph two');
select is(test.verdict(jsonb_build_object('text', repeat('字', 136))), 'text has 272 characters, x takes at most 270');
select is(test.verdict(jsonb_build_object('text', repeat('👨‍👩‍👧‍👦', 135))), 'queued', 'a family two');
select is(test.verdict(jsonb_build_object('text', repeat('👨‍👩‍👧‍👦', 136))),
	'text has 272 characters, x takes at most 270');
select is(test.verdict(jsonb_build_object('text', 'https://e.xyz/' || repeat('a', 400) || ' ' || repeat('b', 246))),
	'queued', 'a link 23');
select is((test.row('x')).render_meta ->> 'length', '270');
select is(test.verdict(jsonb_build_object('text', 'example.com ' || repeat('b', 247) || 'c')),
	'text has 272 characters, x takes at most 270', 'also without its scheme') ;
select is(test.verdict(jsonb_build_object('text', repeat('b', 250), 'link', 'https://e.xyz/')),
	'text has 275 characters, x takes at most 270', 'the link that is added counts');
update autopost.platforms set text_limit = 280 where platform = 'x';
select is(test.verdict(jsonb_build_object('text', repeat('b', 280))), 'queued', 'the limit is a row');
update autopost.platforms set text_limit = 270 where platform = 'x';

-- X: no markup, no buttons, four pictures or one video.
select test.verdict('{"text": "<b>Bold</b> &amp; <a href=\"https://e.x/\">link</a>", "parse_mode": "HTML"}');
select is((test.row('x')).rendered_text, 'Bold & link');
select is(test.verdict('{"text": "buttons", "buttons": [[{"text": "Go", "url": "https://e.x/"}]]}'), 'queued');
select is(array[(test.row('x')).render_meta -> 'notes', (test.row('x')).render_meta -> 'buttons'],
	array['["buttons dropped: x has none"]', null]::jsonb[]);
select is(test.steps(jsonb_build_object('text', 'm1', 'media', test.media('{image,image,image,image}'))),
	'media-1 [0, 1, 2, 3] text');
select is(test.steps(jsonb_build_object('text', 'm2', 'media', test.media('{image,video}'))),
	'media-1 [0] text; media-2 [1] to media-1', 'the next answers it: a thread');
select is(test.verdict(jsonb_build_object('text', 'm3', 'media', test.media('{file}'))), 'media[0]: x takes no file');
select is(test.verdict(jsonb_build_object('text', 'm4', 'media', test.media('{image}', 2))),
	'media[0]: 5242881 bytes, x takes at most 5242880');
select is(test.verdict(jsonb_build_object('text', repeat('long ', 60), 'media', test.media('{image}'))),
	'text has 299 characters, x takes at most 270');

-- X: what takes several posts is a thread: each answers the one before.
update autopost.channels set settings = '{"long_text": "split"}' where channel_id = 'x';
select is(test.steps(jsonb_build_object('text', repeat('long ', 120))),
	'text-1 text; text-2 text to text-1; text-3 text to text-2');
select is(test.steps(jsonb_build_object('text', repeat('long, ', 50), 'media',
	test.media('{image,image,image,image,image}'))),
	'text-1 text; text-2 text to text-1; media-1 [0, 1, 2, 3] to text-2; media-2 [4] to media-1');
update autopost.channels set settings = '{"long_text": "caption_reply"}' where channel_id = 'x';
select is(test.steps(jsonb_build_object('text', repeat('long; ', 100), 'media', test.media('{image}'))),
	'media-1 [0] text; text-1 text to media-1; text-2 text to text-1');
update autopost.channels set settings = '{}' where channel_id = 'x';

-- X: a template is cut to 260, the link stays.
select is(test.verdict(jsonb_build_object('template',
	jsonb_build_object('name', 'image', 'vars',
	jsonb_build_object('avatar_name', 'Nyx', 'prompt', repeat('тёмное море ', 30))), 'link', 'https://e.xyz/nyx')),
	'queued');
select matches((test.row('x')).rendered_text, E'^Nyx: тёмное .*…\n\nhttps://e\\.xyz/nyx$');
select is(array[(test.row('x')).render_meta -> 'truncated', (test.row('x')).render_meta -> 'length'], '{true,259}');
select is((test.row('x')).template_version, 'image@1');
select is(
	test.verdict(
	'{"template": {"name": "combat", "vars": {"winner_name": "Nyx", "loser_name": "Helion", "rounds": 7}}}'), 'queued',
	'a fight without media is a text');
select is((test.row('x')).rendered_text, 'Nyx defeated Helion in 7 rounds!');
update autopost.channels set settings = '{"long_text": "truncate"}' where channel_id = 'x';
select test.verdict(jsonb_build_object('text', repeat('Слово ', 60), 'link', 'https://e.xyz/' || repeat('long', 50)));
select matches((test.row('x')).rendered_text, E'^Слово .*Слово…\n\nhttps://e\\.xyz/(long){50}$',
	'a link costs 23, however long');
select is(autopost.weighted_length((test.row('x')).rendered_text) between 262 and 270, true);

-- X: an account's own length replaces the platform's, in both directions.
update autopost.channels set settings = '{"max_weighted_length": 4000}' where channel_id = 'x';
select is(test.verdict(jsonb_build_object('text', repeat('ю', 4000))), 'queued');
select is((test.row('x')).render_meta -> 'length_limit', '4000');
select is(test.verdict(jsonb_build_object('text', repeat('ю', 4001))),
	'text has 4001 characters, x takes at most 4000');
select is(test.steps(jsonb_build_object('text', repeat('щ', 500), 'media', test.media('{image}'))), 'media-1 [0] text',
	'with its picture');
update autopost.channels set settings = '{"max_weighted_length": 100, "long_text": "split"}' where channel_id = 'x';
select is(test.steps(jsonb_build_object('text', repeat('short ', 30))), 'text-1 text; text-2 text to text-1');
update autopost.channels set settings = '{"max_weighted_length": 100, "long_text": "truncate"}' where channel_id = 'x';
select test.verdict(jsonb_build_object('text', repeat('brief ', 30)));
select is(autopost.weighted_length((test.row('x')).rendered_text) between 90 and 100, true);
update autopost.channels set settings = '{"max_weighted_length": 100}' where channel_id = 'x';
select test.verdict(jsonb_build_object('template',
	jsonb_build_object('name', 'image', 'vars',
	jsonb_build_object('avatar_name', 'Nyx', 'prompt', repeat('тихое море ', 30)))));
select is(autopost.weighted_length((test.row('x')).rendered_text) between 80 and 90, true,
	'a template keeps its reserve of ten');
select is(test.verdict(jsonb_build_object('text', repeat('ы', 101))), 'text has 101 characters, x takes at most 100');
update autopost.channels set settings = '{"max_weighted_length": "long"}' where channel_id = 'x';
select is(test.verdict(jsonb_build_object('text', repeat('ы', 271))), 'text has 271 characters, x takes at most 270',
	'what is not a number changes nothing here: the adapter refuses it');
update autopost.channels set settings = '{}' where channel_id = 'x';

-- YouTube: a video, a title of at most 100 characters, a description of at most 5000 bytes, no angle brackets.
select is(test.verdict('{"text": "words alone"}', 'yt'), 'youtube takes posts with media only');
select is(test.verdict(jsonb_build_object('text', 'a picture', 'media', test.media('{image}')), 'yt'),
	'media: youtube needs a video; give one, or leave the channel out');
select is(test.verdict(jsonb_build_object('text', E'The title <here>\n\nThe rest', 'media', test.media('{video}')),
	'yt'), 'queued');
select is(array[(test.row('yt')).render_meta ->> 'title', (test.row('yt')).rendered_text],
	array['The title here', E'The title here\n\nThe rest'], 'the first line is the title');
select test.verdict(jsonb_build_object('template', '{"name": "video", "vars": {"title": "A title of its own"}}'::jsonb,
	'media', test.media('{video}')), 'yt');
select is(array[(test.row('yt')).render_meta ->> 'title', (test.row('yt')).rendered_text],
	'{A title of its own,New video drop: A title of its own}', 'a template''s title');
select is(test.verdict(jsonb_build_object('text', rtrim(repeat('Заголовок ', 30)), 'media', test.media('{video}')),
	'yt'), 'queued');
select is((test.row('yt')).render_meta ->> 'title', rtrim(repeat('Заголовок ', 10)) || '…');
select is(test.verdict(jsonb_build_object('text', repeat('я', 2501), 'media', test.media('{video}')), 'yt'),
	'text has 5002 bytes, youtube takes at most 5000');

select * from finish();
rollback;
