-- A variant changes text, markup, link, media, buttons or preview for a platform or a channel. All of it is content.
begin;
\ir fake_clock.sql
\ir world.sql
select plan(45);

select test.channel('tg');
select test.channel('m', p_platform => 'max');
insert into autopost.media_origin (workspace_id, blob_ref, origin_url, size_bytes)
select 'w', 'sha256:' || repeat(d::text, 64), 'file:///' || d, 10 from generate_series(1, 3) d;
create temp table given on commit drop as
select jsonb_agg(jsonb_build_object('type', 'image', 'blob_ref', 'sha256:' || repeat(d::text, 64))) as media
	from generate_series(1, 3) d;
create function test.shown(p_raw jsonb, p_channel_id text default 'tg') returns text
language sql
as $$
select test.tick('1 second');
select test.post(p_raw);
select coalesce(r.last_error ->> 'message', r.rendered_text) from test.row(p_channel_id) r
$$;
create function test.fault(p_raw text) returns text
language sql
as $$
select test.post(p_raw::jsonb) #>> '{errors,0,field}'
$$;

select is(test.shown('{"text": "base", "variants": {"tg": {"link": "https://E.x/tg#a"}, "telegram": {"text": "ours", "link": "https://e.x/all"}}, "link": "https://e.x/base"}'), E'ours\n\nhttps://e.x/tg', 'the channel''s over the platform''s, field by field');
select is((test.row('m')).rendered_text, E'base\n\nhttps://e.x/base');
select is(test.shown('{"text": "no link here", "variants": {"tg": {"link": ""}}, "link": "https://e.x/base"}'),
	'no link here', 'an empty one takes away');
select is(test.shown('{"text": "**plain**", "variants": {"tg": {"text": "<i>own</i>  markup", "parse_mode": "HTML"}}}'),
	'<i>own</i> markup');
select is((test.row('m')).rendered_text, '**plain**');
select is(test.shown('{"text": "<b>x</b>", "parse_mode": "HTML", "variants": {"tg": {"parse_mode": "None"}}}'),
	'<b>x</b>');
select is((test.row('tg')).render_meta -> 'parse_mode', null);
select test.shown('{"text": "buttons", "buttons": [[{"text": "All", "url": "https://e.x/"}]], "variants": {"tg": {"buttons": [[{"text": " Ours ", "url": "https://e.x/tg"}], []]}, "m": {"buttons": []}}}');
select is((test.row('tg')).render_meta -> 'buttons', '[[{"text": "Ours", "url": "https://e.x/tg"}]]');
select is(coalesce((test.row('m')).render_meta -> 'buttons', '[]'), '[]');
select test.shown('{"text": "preview", "variants": {"tg": {"disable_preview": true}}}');
select is((test.row('tg')).render_meta -> 'disable_preview', 'true');
select is((test.row('m')).render_meta -> 'disable_preview', null);

-- Fields of a variant that only some platforms have.
select test.channel('on-x', p_platform => 'x');
select test.shown('{"text": "made", "variants": {"x": {"made_with_ai": true, "reply_settings": "following"}, "on-x": {"reply_settings": "everyone", "paid_partnership": false}}}');
select is((test.row('on-x')).render_meta -> 'post',
	'{"made_with_ai": true, "reply_settings": "everyone", "paid_partnership": false}');
select is((test.row('tg')).render_meta -> 'post', null);
select is((test.row('on-x')).rendered_text, 'made');
select test.shown('{"text": "nothing of it"}');
select is((test.row('on-x')).render_meta -> 'post', null);
select is(test.fault('{"text": "a", "variants": {"x": {"made_with_ai": "yes"}}}'), 'variants.x.made_with_ai');
select is(test.fault('{"text": "a", "variants": {"x": {"reply_settings": "nobody"}}}'), 'variants.x.reply_settings');
select is(autopost.post_warnings('w',
	'{"variants": {"x": {"made_with_ai": true}, "on-x": {"reply_settings": "verified"}}}'), '[]');
select is(autopost.post_warnings('w', '{"variants": {"telegram": {"made_with_ai": true}}}'),
	'["variants.telegram.made_with_ai"]');
select is(autopost.post_warnings('w', jsonb_build_object('scheduled_for', autopost.now_ts() - interval '61 seconds')),
	'["scheduled_for"]', 'a time in the past has no effect');
select is(autopost.post_warnings('w', jsonb_build_object('scheduled_for', autopost.now_ts() - interval '59 seconds')), '[]',
	'clocks differ');
select isnt(autopost.content_hash(autopost.normalize_payload(
	'{"text": "a", "variants": {"x": {"made_with_ai": true}}}')),
	autopost.content_hash(autopost.normalize_payload('{"text": "a", "variants": {"x": {"made_with_ai": false}}}')),
		'it is content');

-- Media: a choice of the post's, in an order of its own, by their places.
select test.shown(jsonb_build_object('text', 'pictures', 'media', media, 'variants',
	'{"tg": {"media": [2, 0]}, "m": {"media": []}}'::jsonb)) from given;
select is((test.row('tg')).render_meta -> 'steps', '[{"step": "media-1", "text": true, "items": [2, 0]}]');
select is((test.row('m')).render_meta -> 'steps', '[{"step": "text", "text": true}]');
select test.shown(jsonb_build_object('text', 'captions', 'media', jsonb_set(media, '{1,caption}', '"own"'), 'variants',
	'{"tg": {"media": [0, 1]}}'::jsonb)) from given;
select is((test.row('tg')).render_meta -> 'steps',
	'[{"step": "media-1", "text": true, "items": [0, 1], "captions": [null, "own"]}]');
select is((test.row('m')).render_meta -> 'steps',
	'[{"step": "text", "text": true}, {"step": "media-1", "items": [0, 1, 2], "captions": [null, "own", null]}]');

-- Invalid variants.
select is(test.fault('{"text": "x", "variants": {"tg": "short"}}'), 'variants.tg');
select is(test.fault('{"text": "x", "variants": {"tg": {}}}'), 'variants.tg');
select is(test.fault('{"text": "x", "variants": {"tg": {"text": 1}}}'), 'variants.tg');
select is(test.fault('{"text": "x", "variants": {"tg": {"parse_mode": "html"}}}'), 'variants.tg.parse_mode');
select is(test.fault('{"text": "x", "variants": {"tg": {"link": "e.x"}}}'), 'variants.tg.link');
select is(test.fault('{"text": "x", "variants": {"tg": {"media": [0]}}}'), 'variants.tg.media', 'there are no media');
select is(test.fault(jsonb_build_object('text', 'x', 'media', media, 'variants',
	'{"tg": {"media": [1, 1]}}'::jsonb)::text), 'variants.tg.media') from given;
select is(test.fault(jsonb_build_object('text', 'x', 'media', media, 'variants',
	'{"tg": {"media": [3]}}'::jsonb)::text), 'variants.tg.media') from given;
select is(test.fault('{"text": "x", "variants": {"tg": {"buttons": [[{"text": "Go"}]]}}}'), 'variants.tg.buttons');

-- Ignored fields cause warnings.
select is(autopost.receive_push('w', 'in', '[{"text": "warned", "colour": 1, "variants": {"telegramm": {"text": "a"}, "tg": {"text": "b", "txt": "c"}, "max": {"text": "d"}}}]') #> '{results,0,warnings}',
	'["colour", "variants.telegramm", "variants.tg.txt"]');
select is(autopost.receive_push('w', 'in',
	'[{"text": "unwarned", "variants": {"x": {"text": "a"}, "m": {"text": "b"}}}]') #> '{results,0,warnings}', null);
select is(autopost.post_warnings('w', '{"zoo": 1, "media": [{"type": "image", "url": "https://e.x/1.png"}, {"type": "image", "url": "https://e.x/2.png", "foo": 1}, 7], "buttons": [[{"text": "a", "url": "https://e.x"},
	{"text": "a", "url": "https://e.x", "bar": 1}], "no row"], "template": {"name": "t", "vars": {"any": 1}, "var": {}}, "routing": {"include_channels": ["tg"], "zoo": []}}'),
	'["zoo", "buttons[0][1].bar", "media[1].foo", "routing.zoo", "template.var"]',
		'so is what no part of a post can say');
select is(autopost.post_warnings('w', '{"media": 1, "buttons": {}, "template": [], "routing": 7, "variants": ""}'),
	'[]', 'what is of a wrong type is an error, and no warning');

-- Content: what a variant says makes another post; what it said before it could say more is the same post still.
create function test.hash(p_raw text) returns text
language sql
as $$
select autopost.content_hash(autopost.normalize_payload(p_raw::jsonb))
$$;
select is(autopost.normalize_payload('{"text": "x", "variants": {"tg": {"text": " y  z "}}}'),
	'{"type": "text", "text": "x", "variants": {"tg": {"text": "y z"}}}');
select isnt(test.hash('{"text": "x", "variants": {"tg": {"link": "https://e.x/a"}}}'),
	test.hash('{"text": "x", "variants": {"tg": {"link": "https://e.x/b"}}}'));
select is(test.hash('{"text": "x", "variants": {"tg": {"link": "https://e.x/a?utm_source=1"}}}'),
	test.hash('{"text": "x", "variants": {"tg": {"link": "HTTPS://E.X/a"}}}'));
select isnt(test.hash('{"text": "x", "variants": {"tg": {"media": [0, 1]}}}'),
	test.hash('{"text": "x", "variants": {"tg": {"media": [1, 0]}}}'));
select isnt(test.hash('{"text": "x", "variants": {"tg": {"disable_preview": true}}}'), test.hash('{"text": "x"}'));
select is(test.hash('{"text": "x", "variants": {"tg": {"text": "y", "txt": "z"}}}'),
	test.hash('{"text": "x", "variants": {"tg": {"text": "y"}}}'), 'ignored fields are not content');

select * from finish();
rollback;
