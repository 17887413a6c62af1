-- send_mode, variants and parse_mode decide the text, which is rendered once, at enqueue.
begin;
\ir fake_clock.sql
\ir world.sql
select plan(22);

select test.channel(c) from unnest('{text,media,mixed}'::text[]) c;
update autopost.channels set send_mode = channel_id;
insert into autopost.media_origin (workspace_id, blob_ref, origin_url, size_bytes)
	values ('w', 'sha256:' || repeat('1', 64), 'file:///1', 10);
create function test.verdicts(p_answer jsonb) returns text
language sql
as $$
select string_agg((d.value ->> 'channel_id') || ' ' || (d.value ->> 'status'), ', ' order by d.value ->> 'channel_id')
	from jsonb_array_elements(p_answer -> 'deliveries') d
$$;
select test.tick('1 second');
create temp table picture on commit drop as
	select jsonb_build_array(jsonb_build_object('type', 'image', 'blob_ref', 'sha256:' || repeat('1', 64))) as media;

create temp table all_of_it on commit drop as
	select test.post(jsonb_build_object('text', 'words', 'media', media)) as answer from picture;
select is((select test.verdicts(answer) from all_of_it), 'media queued, mixed queued, text queued');
select is((test.row('text')).render_meta -> 'steps', '[{"step": "text", "text": true}]',
	'a text channel drops the media');
select is((test.row('text')).render_meta -> 'notes', '["media dropped: the channel takes text only"]', 'and says so');
select is((test.row('media')).render_meta -> 'steps', '[{"step": "media-1", "text": true, "items": [0]}]');
select test.tick('1 second');
create temp table words on commit drop as select test.say('words alone') as answer;
select is((select test.verdicts(answer) from words), 'media skipped, mixed queued, text queued',
	'a media channel needs media');
select is((select answer ->> 'skipped' from words), '1');
select test.tick('1 second');
select is(test.verdicts(test.post(jsonb_build_object('media', media))), 'media queued, mixed queued, text skipped',
	'a text channel needs text') from picture;
select is((select count(*)::int from autopost.deliveries where channel_id = 'media'), 2,
	'a skipped channel has no delivery');

-- Variants: the channel's, else the platform's, else the text.
select test.tick('1 second');
select test.post(
	'{"text": "base", "variants": {"telegram": {"text": "for telegram"}, "mixed": {"text": "for mixed"}}}');
select is((test.row('mixed')).rendered_text, 'for mixed');
select is((test.row('text')).rendered_text, 'for telegram');
select test.channel('m', p_platform => 'max');
select test.tick('1 second');
select test.post('{"text": "base 2", "variants": {"telegram": {"text": "for telegram 2"}}}');
select is((test.row('m')).rendered_text, 'base 2');

-- parse_mode: the post's wins over the channel's.
update autopost.channels set settings = '{"parse_mode": "Markdown"}' where channel_id = 'text';
select test.tick('1 second');
select test.say('**bold** and <i>not</i>');
select is((test.row('text')).rendered_text, '<b>bold</b> and &lt;i&gt;not&lt;/i&gt;');
select is((test.row('text')).render_meta ->> 'parse_mode', 'HTML');
select is((test.row('mixed')).rendered_text, '**bold** and <i>not</i>', 'plain where nobody says otherwise');
select is((test.row('mixed')).render_meta -> 'parse_mode', null);
select test.tick('1 second');
select test.post('{"text": "**a** <i>b</i>", "parse_mode": "HTML"}');
select is((test.row('text')).rendered_text, '**a** <i>b</i>');

-- The link is a paragraph of its own, once.
select test.tick('1 second');
select test.post('{"text": "Read", "link": "https://E.x/a?utm_source=z"}');
select is((test.row('mixed')).rendered_text, E'Read\n\nhttps://e.x/a');
select test.tick('1 second');
select test.post('{"text": "Read https://e.x/b now", "link": "https://e.x/b"}');
select is((test.row('mixed')).rendered_text, 'Read https://e.x/b now');
select test.tick('1 second');
select test.post('{"link": "https://e.x/only"}');
select is((test.row('mixed')).rendered_text, 'https://e.x/only');

-- Once: a later change of the channel does not touch what is rendered.
select test.tick('1 second');
select test.say('**frozen**');
update autopost.channels set settings = '{}' where channel_id = 'text';
create temp table c on commit drop as select * from test.claim() where rendered_text like '%frozen%';
select is((test.row('text')).rendered_text, '<b>frozen</b>');
select isnt((test.row('text')).template_version, null, 'what rendered it is pinned');
select is((test.row('mixed')).render_meta ->> 'length', '10', 'the measured length is kept');

select * from finish();
rollback;
