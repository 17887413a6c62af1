-- A post for a video platform: its fields from the variant and the channel settings, its steps, and its refusal.
begin;
\ir fake_clock.sql
\ir world.sql
select plan(69);

select autopost.put_template('w', 'video', null, '{"body": "New video drop: {title}"}', 'ann', 'test');
select test.channel('yt', p_platform => 'youtube');
select test.channel('tg');
insert into autopost.media_origin (workspace_id, blob_ref, origin_url, size_bytes)
select 'w', 'sha256:' || repeat(d::text, 64), 'file:///' || d, case d when 9 then 52428801 else 10 end
	from generate_series(1, 9) d;
create function test.video(p_variant jsonb, p_types text[] default '{video}', p_text text default 'A show')
	returns jsonb
language sql
as $$
-- A post with media of these types, each with content of its own, and a variant for youtube.
select jsonb_strip_nulls(jsonb_build_object('variants', jsonb_build_object('youtube', p_variant)))
	|| jsonb_build_object('text', p_text, 'media', (
	select jsonb_agg(jsonb_build_object('type', t.type, 'blob_ref', 'sha256:' || repeat(t.n::text, 64)) order by t.n)
		from unnest(p_types) with ordinality t (type, n)))
$$;
create function test.shown(p_raw jsonb) returns jsonb
language sql
as $$
-- The render_meta of a post on yt, or why it failed.
select test.tick('1 second');
delete from autopost.events where delivery_id is not null;
delete from autopost.deliveries;
select test.post(p_raw);
select coalesce(to_jsonb(r.last_error ->> 'message'), r.render_meta) from test.row('yt') r
$$;
create function test.refused(p_raw jsonb) returns text
language sql
as $$
-- "field: reason" of what is wrong with the form of a raw payload.
select string_agg((e.value ->> 'field') || ': ' || (e.value ->> 'reason'), '; ' order by e.ordinality)
from jsonb_array_elements(autopost.payload_errors(p_raw)) with ordinality e
$$;
create function test.steps(p_meta jsonb) returns text
language sql
as $$
select string_agg((s.value ->> 'step') || coalesce(' ' || (s.value ->> 'items'), '') || case
	when s.value -> 'aside' = 'true' then ' aside' else '' end, '; ' order by s.ordinality)
from jsonb_array_elements(p_meta -> 'steps') with ordinality s
$$;

-- The fields.
select is(test.shown(test.video(null)) - 'title' - 'steps' - 'length',
	'{"length_limit": 5000, "video": {"privacy": "public"}}', 'a video and a text are enough');
select is(test.shown(test.video('{"title": "Own  title", "description": "Own text", "tags": ["a", "b c"], "privacy": "unlisted", "category_id": "22", "made_for_kids": true, "synthetic_media": true}')) - 'steps' - 'length',
	'{"length_limit": 5000, "title": "Own title", "video": {"privacy": "unlisted", "tags": ["a", "b c"], "category_id": "22", "made_for_kids": true, "synthetic_media": true}}');
select is((test.row('yt')).rendered_text, 'Own text', 'the description is the variant''s text');
select is(test.shown(test.video('{"publish_at": "2027-01-01T10:00:00+03:00"}')) -> 'video',
	'{"privacy": "private", "publish_at": "2027-01-01T10:00:00+03:00"}', 'a video with a time is private until then');
select is(
	test.shown(test.video('{"publish_at": "2027-01-01T10:00:00Z", "privacy": "private"}')) -> 'video' ->> 'privacy',
	'private');
select is(test.shown(test.video(null, p_text => E'First <line>\nand more')) ->> 'title', 'First line',
	'the first line is the title, without what is forbidden');
select is(test.shown(test.video(null, p_text => rtrim(repeat('Заголовок ', 30)))) ->> 'title',
	rtrim(repeat('Заголовок ', 10)) || '…', 'cut');
select is((test.shown(test.video('{"title": "Ours"}')
	|| '{"template": {"name": "video", "vars": {"title": "The template''s"}}}')) ->> 'title', 'Ours');

-- Channel settings apply if the post sets nothing.
update autopost.channels set settings = '{"youtube": {"privacy": "unlisted", "tags": ["dance"], "category_id": "25", "made_for_kids": true, "captions_language": "ru"}}' where channel_id = 'yt';
select is(test.shown(test.video('{"title": "t"}')) -> 'video',
	'{"privacy": "unlisted", "tags": ["dance"], "category_id": "25", "made_for_kids": true}');
select is(test.shown(test.video('{"tags": ["own"], "privacy": "private", "made_for_kids": false}')) -> 'video',
	'{"privacy": "private", "tags": ["own"], "category_id": "25", "made_for_kids": false}');
select is(test.shown(test.video('{"captions": [{"media": 1}, {"media": 2, "language": "en", "name": "English"}]}',
	'{video,file,file}')) #> '{video,captions}',
	'{"captions": {"language": "ru"}, "captions-2": {"language": "en", "name": "English"}}');
select throws_ok($$update autopost.channels set settings = '{"youtube": {"privacy": "secret"}}'
	where channel_id = 'yt'$$, '23514');
select throws_ok($$update autopost.channels set settings = '{"youtube": {"colour": "red"}}'
	where channel_id = 'yt'$$, '23514');
select throws_ok($$update autopost.channels set settings = '{"youtube": {"tags": [1]}}'
	where channel_id = 'yt'$$, '23514');
select throws_ok($$update autopost.channels set settings = '{"youtube": "public"}' where channel_id = 'yt'$$, '23514');
update autopost.channels set settings = '{}' where channel_id = 'yt';

-- Other fields, from the post or the channel.
select is(test.shown(test.video('{"language": "pt-BR", "license": "creativeCommon", "embeddable": false, "notify_subscribers": false, "playlist_id": "PL1"}')) -> 'video',
	'{"privacy": "public", "language": "pt-BR", "license": "creativeCommon", "embeddable": false, "notify_subscribers": false, "playlist_id": "PL1"}');
update autopost.channels set settings = '{"youtube": {"language": "ru", "license": "youtube", "embeddable": true, "notify_subscribers": false, "playlist_id": "PLhouse"}}' where channel_id = 'yt';
select is(test.shown(test.video('{"language": "en", "notify_subscribers": true}')) -> 'video',
	'{"privacy": "public", "language": "en", "license": "youtube", "embeddable": true, "notify_subscribers": true, "playlist_id": "PLhouse"}');
select is(test.steps(test.shown(test.video(null, '{video,image}'))),
	'session aside; video [0]; thumbnail [1] aside; playlist aside');
select is(test.shown(test.video('{"playlist_id": ""}')) #> '{video,playlist_id}', null, 'in none');
select is(test.steps(test.shown(test.video('{"playlist_id": ""}'))), 'session aside; video [0]');

-- The tags of the post are the video's where the channel says so, behind its own, as many as fit.
update autopost.channels set settings = '{"youtube": {"tags": ["Dance"], "post_tags": true}}' where channel_id = 'yt';
select is(test.shown(test.video(null) || '{"tags": ["ru", "dance", "two words", "<b>"]}') #> '{video,tags}',
	'["Dance", "ru", "two words"]');
select is(test.shown(test.video('{"tags": ["own"]}', p_text => 'A #show') || '{"tags": ["ru"]}') #> '{video,tags}',
	'["own", "ru", "show"]', 'hashtags too');
select is(test.shown(test.video(null) || jsonb_build_object('tags',
	array[repeat('x', 300), repeat('y', 194), repeat('z', 193)])) #> '{video,tags}',
	jsonb_build_array('Dance', repeat('x', 300), repeat('z', 193)), 'five hundred characters with their commas');
update autopost.channels set settings = '{"youtube": {"tags": ["Dance"]}}' where channel_id = 'yt';
select is(test.shown(test.video(null) || '{"tags": ["ru"]}') #> '{video,tags}', '["Dance"]',
	'routing tags are not published');
select throws_ok($$update autopost.channels set settings = '{"youtube": {"post_tags": "all"}}'
	where channel_id = 'yt'$$, '23514');
select throws_ok($$update autopost.channels set settings = '{"youtube": {"license": "mine"}}'
	where channel_id = 'yt'$$, '23514');
select throws_ok($$update autopost.channels set settings = '{"youtube": {"language": "klingon!"}}'
	where channel_id = 'yt'$$, '23514');
update autopost.channels set settings = '{}' where channel_id = 'yt';

-- The steps: what is uploaded is one video; an image becomes its thumbnail, files its captions where the post says so.
select is(test.steps(test.shown(test.video(null))), 'session aside; video [0]');
select is(test.steps(test.shown(test.video(null, '{image,video,image}'))),
	'session aside; video [1]; thumbnail [0] aside');
select is((test.row('yt')).render_meta -> 'notes',
	'["media dropped: youtube shows a video, its thumbnail and captions"]');
select is(test.shown(test.video(null) || '{"buttons": [[{"text": "Open", "url": "https://e.x/"}]]}') -> 'notes',
	'["buttons dropped: youtube has none"]');
select is(test.steps(test.shown(test.video('{"thumbnail": 2}', '{image,video,image}'))),
	'session aside; video [1]; thumbnail [2] aside');
select is(test.steps(test.shown(test.video('{"media": [1, 2]}', '{image,video,image}'))),
	'session aside; video [1]; thumbnail [2] aside', 'of the media that it chose');
select is(
	test.steps(test.shown(test.video('{"captions": [{"media": 2, "language": "en"}, {"media": 1, "language": "de"}]}',
	'{video,file,file,image}'))),
	'session aside; video [0]; thumbnail [3] aside; captions [2] aside; captions-2 [1] aside');
select is((test.row('yt')).render_meta -> 'notes', null);
select is(test.steps(test.shown(test.video(null, '{video,file}'))), 'session aside; video [0]',
	'a file alone is not used as captions');
select is((test.row('tg')).status, 'queued', 'elsewhere it is a post like any other');

-- Refused here, and only here.
select is(test.shown(test.video(null, '{image}')) #>> '{}',
	'media: youtube needs a video; give one, or leave the channel out');
select is(test.shown(test.video(null, '{video,video}')) #>> '{}',
	'media[1]: youtube takes one video a post; choose it by variants.youtube.media');
select is(test.shown(test.video(null, '{video,file,file,file,file,file,file,file,image}')) #>> '{}',
	'media[8]: 52428801 bytes, youtube takes at most 52428800; make it smaller');
select is(test.shown(test.video(jsonb_build_object('title', repeat('x', 101)))) #>> '{}',
	'title: 101 characters, youtube takes at most 100; shorten it');
select is(test.shown(test.video(jsonb_build_object('title', repeat('x', 100)))) ->> 'title', repeat('x', 100),
	'the longest');
select is(test.shown(test.video('{"title": "a < b"}')) #>> '{}',
	'title: youtube takes none of <> in it; leave them out');
select is(
	test.shown(test.video(jsonb_build_object('tags', array[repeat('x', 250), repeat('y', 248) || ' z']))) #>> '{}',
	'tags: 503 characters, youtube takes at most 500; give fewer');
select is(test.shown(test.video(jsonb_build_object('tags', array[repeat('x', 250), repeat('y', 249)]))) ? 'video', true,
	'the most');
select is(test.shown(test.video('{"tags": ["<b>"]}')) #>> '{}',
	'tags: youtube takes none of <> in them; leave them out');
select is(test.shown(test.video('{"publish_at": "2027-01-01T10:00:00Z", "privacy": "unlisted"}')) #>> '{}',
	'privacy: a video with publish_at is private until then, not unlisted; leave it out');
select is(test.shown(test.video('{"captions": [{"media": 1}]}', '{video,file}')) #>> '{}',
	'captions[0].language: is missing; give it, or set captions_language of the channel''s youtube settings');
select is(test.shown(test.video('{"description": ""}') - 'text') #>> '{}',
	'youtube needs a title: give text, variants.youtube.title or template.vars.title');
select is(test.shown(test.video('{"title": "two\nlines"}')) ->> 'title', 'two lines');
select is(test.shown(test.video('{"title": "only"}') - 'text') ->> 'title', 'only', 'a video needs no text');

-- The form is judged with the post.
select is(test.refused(test.video('{"title": 1}')), 'variants.youtube.title: has a wrong type');
select is(test.refused(test.video('{"privacy": "secret"}')), 'variants.youtube.privacy: is unknown');
select is(test.refused(test.video('{"category_id": "music"}')),
	'variants.youtube.category_id: must be the number of a category');
select is(test.refused(test.video('{"publish_at": "2027-01-01 10:00"}')),
	'variants.youtube.publish_at: must be a time with an offset');
select is(test.refused(test.video('{"publish_at": "2027-13-01T10:00:00Z"}')),
	'variants.youtube.publish_at: must be a time with an offset');
select is(test.refused(test.video('{"language": "klingon!"}')), 'variants.youtube.language: must be a language tag');
select is(test.refused(test.video('{"license": "mine"}')), 'variants.youtube.license: is unknown');
select is(test.refused(test.video('{"playlist_id": "a/b"}')),
	'variants.youtube.playlist_id: must be the id of a playlist');
select is(test.refused(test.video('{"embeddable": "yes"}')), 'variants.youtube.embeddable: has a wrong type');
select is(test.refused(test.video('{"thumbnail": 0}')),
	'variants.youtube.thumbnail: must be the index of an image in the post''s media');
select is(test.refused(test.video('{"thumbnail": "0"}')),
	'variants.youtube.thumbnail: must be the index of an image in the post''s media');
select is(test.refused(test.video('{"captions": [{"media": 0}]}')),
	'variants.youtube.captions[0].media: must be the index of a file in the post''s media');
select is(test.refused(test.video('{"captions": [{"media": 1, "language": "klingon!"}]}', '{video,file}')),
	'variants.youtube.captions[0].language: must be a language tag');
select is(
	test.refused(test.video(jsonb_build_object('captions',
	jsonb_build_array(jsonb_build_object('media', 1, 'name', repeat('x', 151)))), '{video,file}')),
	'variants.youtube.captions[0].name: must be a text of at most 150 characters');
select is(test.refused(test.video('{"captions": {}}')), 'variants.youtube.captions: must be an array of at most 10');
select is(test.refused(test.video('{"tags": [""]}')),
	'variants.youtube.tags: must contain only strings of 1 to 2048 characters');
select is(autopost.post_warnings('w', '{"variants": {"youtube": {"title": "t"}, "yt": {"tags": ["a"]}}}'), '[]');
select is(autopost.post_warnings('w', '{"variants": {"tg": {"title": "t"}}}'), '["variants.tg.title"]');

select * from finish();
rollback;
