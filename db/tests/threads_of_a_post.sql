-- A thread holds the later parts of a post, and a first comment replies to it. All are steps of one delivery.
begin;
\ir fake_clock.sql
\ir world.sql
select plan(84);

select test.channel('tg');
select test.channel('m', p_platform => 'max');
select test.channel('x', p_platform => 'x');
select test.channel('yt', p_platform => 'youtube');
select test.channel('hook', p_platform => 'webhook');
insert into autopost.media_origin (workspace_id, blob_ref, origin_url, size_bytes)
select 'w', 'sha256:' || repeat(d::text, 64), 'file:///' || d, 10 from generate_series(1, 4) d;
create function test.pictures(p_count int) returns jsonb
language sql
as $$
select coalesce(jsonb_agg(jsonb_build_object('type', 'image', 'blob_ref', 'sha256:' || repeat(d::text,
	64)) order by d), '[]')
	from generate_series(1, p_count) d
$$;
create function test.faults(p_raw jsonb) returns text
language sql
as $$
-- The fields and reasons of a refused post.
select string_agg((e.value ->> 'field') || ' ' || (e.value ->> 'reason'), '; ' order by e.ordinality)
from jsonb_array_elements(test.post(p_raw) -> 'errors') with ordinality e
$$;
create function test.steps(p_channel_id text) returns text
language sql
as $$
select string_agg((s.value ->> 'step') || coalesce(' ' || (s.value ->> 'items'), '')
	|| coalesce(' "' || (s.value ->> 'body') || '"', case when s.value -> 'text' = 'true' then ' text' else '' end)
	|| coalesce(' to ' || (s.value ->> 'reply_to'), ''), '; ' order by s.ordinality)
from jsonb_array_elements((test.row(p_channel_id)).render_meta -> 'steps') with ordinality s
$$;
create function test.shown(p_raw jsonb, p_channel_id text default 'tg') returns text
language sql
as $$
-- The steps of a post, or the reason why the channel does not get it.
select test.tick('1 second');
select test.post(p_raw);
select coalesce((test.row(p_channel_id)).last_error ->> 'message', test.steps(p_channel_id))
$$;

-- The form. Each error names the field.
select is(test.faults('{"text": "a", "thread": "b"}'), 'thread must be an array of parts');
select is(test.faults(jsonb_build_object('text', 'a', 'thread', (select jsonb_agg('{"text": "b"}'::jsonb)
	from generate_series(1, 1000)))), 'thread must have at most 24 parts, got 1000');
select is(test.faults('{"text": "a", "thread": [{"text": "b"}, "c"]}'), 'thread[1] must be an object');
select is(test.faults('{"text": "a", "thread": [{"text": "b"}, {"text": "  \n"}]}'),
	'thread[1] must have text or media');
select is(test.faults('{"text": "a", "thread": [{}]}'), 'thread[0] must have text or media');
select is(test.faults('{"text": "a", "thread": [{"text": 1}]}'), 'thread[0].text must be a JSON string');
select is(test.faults('{"text": "a", "thread": [{"media": 1}]}'), 'thread[0].media must be an array of numbers');
select is(test.faults(jsonb_build_object('text', 'a', 'media', test.pictures(2), 'thread',
	'[{"media": [1]}, {"media": [3]}]'::jsonb)), 'thread[1].media must have numbers of media from 1 to 2, got 3');
select is(test.faults(jsonb_build_object('text', 'a', 'media', test.pictures(2), 'thread',
	'[{"media": [0]}, {"media": ["1"]}]'::jsonb)),
	'thread[0].media must have numbers of media from 1 to 2, got 0; thread[1].media must have numbers of media from 1 to 2, got "1"');
select is(test.faults('{"text": "a", "thread": [{"media": [1]}]}'),
	'thread[0].media must have numbers of media from 1 to 0, got 1');
select is(test.faults(jsonb_build_object('text', 'a', 'media', test.pictures(2), 'thread',
	'[{"media": [2]}, {"text": "c", "media": [1, 2]}]'::jsonb)), 'thread[1].media must name medium 2 once');
select is(test.faults(jsonb_build_object('text', 'a', 'media', test.pictures(2), 'thread',
	'[{"media": [2, 2]}]'::jsonb)),
	'thread[0].media must name medium 2 once');
select is(test.faults(jsonb_build_object('media', test.pictures(1), 'thread', '[{"media": [1]}]'::jsonb)),
	'text part 1 is empty: the thread names all media');
select is(test.faults(jsonb_build_object('text', repeat('a', 60000), 'thread', jsonb_build_array(
	jsonb_build_object('text', repeat('b', 40001))))),
	'thread must have at most 100000 characters together with the text, got 100001',
		'the parts share the bound of a post');
select is(test.faults('{"text": "a", "first_comment": 1}'), 'first_comment must be a JSON string');
select is(test.faults('{"text": "a", "first_comment": " "}'), 'first_comment must not be blank');
select is(test.faults('{"text": "a", "variants": {"x": {"thread": [{}]}}}'),
	'variants.x.thread[0] must have text or media');
select is(test.faults('{"text": "a", "variants": {"x": {"first_comment": []}}}'),
	'variants.x.first_comment must be a JSON string');
select is(test.faults('{"thread": [{"text": "b"}]}'), 'text the post is empty');
select is(autopost.post_warnings('w', '{"thread": [{"text": "b", "alt": "c"}], "variants": {"x": {"thread": null}}}'),
	'["thread[0].alt"]');

-- Content: both are hashed, in their normal form.
select is(autopost.normalize_payload('{"text": "a", "thread": [{"text": " b  c ", "media": []}], "first_comment": " d "}'),
	'{"type": "text", "text": "a", "thread": [{"text": "b c"}], "first_comment": "d"}');
select is(autopost.normalize_payload('{"text": "a", "thread": [], "variants": {"x": {"thread": null, "first_comment": null}}}'),
	'{"type": "text", "text": "a", "variants": {"x": {"thread": [], "first_comment": ""}}}');
select is((select count(distinct autopost.content_hash(autopost.normalize_payload(p))) from (values
	('{"text": "a"}'::jsonb), ('{"text": "a", "thread": [{"text": "b"}]}'),
		('{"text": "a", "thread": [{"text": "c"}]}'),
	('{"text": "a", "thread": [{"text": "b"}, {"text": "c"}]}'), ('{"text": "a", "first_comment": "b"}')) v (p)),
		5::bigint);
select is(autopost.tags_of('{}', autopost.normalize_payload('{"text": "#one", "thread": [{"text": "and #two"}]}')),
	'{one,two}');

-- Steps. Media that no part names are those of part 1.
create temp table post on commit drop as select jsonb_build_object('text', 'One', 'media', test.pictures(4),
	'thread', '[{"text": "Two", "media": [2]}, {"text": "Three"}, {"media": [4, 3]}]'::jsonb, 'first_comment',
		'Look') as raw;
select is(test.shown(raw),
	'media-1 [0] text; part-2.media-1 [1] "Two" to media-1; part-3.text "Three" to part-2.media-1; part-4.media-1 [3, 2] to part-3.text; comment "Look" to media-1') from post;
select is((test.row('tg')).rendered_text, 'One', 'the text of a delivery is that of part 1');
select is(test.steps('m'), test.steps('tg'));
select is(test.steps('hook'), test.steps('tg'));
select is(test.steps('x'),
	'media-1 [0] text; part-2.media-1 [1] "Two" to media-1; part-3.text "Three" to part-2.media-1; part-4.media-1 [3, 2] to part-3.text; comment "Look" to media-1');
select is((test.row('yt')).last_error ->> 'message',
	'media: youtube needs a video; give one, or leave the channel out');
select is((select jsonb_agg(s -> 'part') from jsonb_array_elements((test.row('tg')).render_meta -> 'steps') s),
	'[null, 2, 3, 4, null]');
select is(test.shown('{"text": "One", "thread": [{"text": "<b>Two</b> &amp; more"}], "parse_mode": "HTML"}'),
	'text text; part-2.text "<b>Two</b> &amp; more" to text', 'markup as in the text');
select is(test.steps('x'), 'text text; part-2.text "Two & more" to text');
select is(test.shown('{"text": "One", "thread": [{"text": "<b>Two"}], "parse_mode": "HTML"}'),
	'thread[0]: can''t parse the markup: unclosed tag <b>');

-- Limits: each part alone, in the platform's unit.
select is(test.shown(jsonb_build_object('text', 'One', 'thread', jsonb_build_array('{"text": "b"}'::jsonb,
	jsonb_build_object('text', repeat('字', 136)))), 'x'), 'thread[1] has 272 characters, x takes at most 270');
select is(test.steps('tg'), format('text text; part-2.text "b" to text; part-3.text "%s" to part-2.text', repeat('字',
	136)));
select is(test.shown(jsonb_build_object('text', 'One', 'first_comment', repeat('b', 271)), 'x'),
	'first_comment has 271 characters, x takes at most 270');
update autopost.channels c set settings = '{"long_text": "split"}' where c.channel_id = 'x';
select is(test.shown(jsonb_build_object('text', 'One', 'thread', jsonb_build_array(jsonb_build_object('text',
	repeat('b', 269) || '. ' || repeat('c', 5)), '{"text": "last"}'::jsonb)), 'x'),
	format('text text; part-2.text-1 "%s." to text; part-2.text-2 "ccccc" to part-2.text-1; part-3.text "last" to part-2.text-2',
		repeat('b', 269)), 'a part follows the channel''s long_text');
select is(test.shown(jsonb_build_object('text', 'One', 'first_comment', repeat('b', 271)), 'x'),
	'first_comment has 271 characters, x takes at most 270', 'a comment is one message');
update autopost.channels c set settings = '{"long_text": "truncate"}' where c.channel_id = 'x';
select is(test.shown(jsonb_build_object('text', 'One', 'first_comment', repeat('b', 271)), 'x'),
	format('text text; comment "%s…" to text', repeat('b', 268)));
update autopost.channels c set settings = '{"max_weighted_length": 280}' where c.channel_id = 'x';
select is(test.shown(jsonb_build_object('text', 'One', 'thread', jsonb_build_array(jsonb_build_object('text',
	repeat('b', 280)))), 'x'),
	format('text text; part-2.text "%s" to text', repeat('b', 280)), 'the limit of the account');
select is(test.shown('{"text": "One", "thread": [{"text": "Two"}, {"text": "Two"}]}', 'x'),
	'thread: two messages say "Two", and x takes a text once; change one of them');
select is(test.shown('{"text": "One", "first_comment": "One"}', 'x'),
	'thread: two messages say "One", and x takes a text once; change one of them');
update autopost.media_origin o set size_bytes = 6000000 where o.blob_ref = 'sha256:' || repeat('2', 64);
select is(test.shown(raw || '{"text": "Heavy"}', 'x'), 'media[1]: 6000000 bytes, x takes at most 5242880',
	'the media of parts are checked, too') from post;
update autopost.media_origin o set size_bytes = 10;

-- Variants remove and replace both, and choose among the media.
select is(test.shown(raw || '{"variants": {"telegram": {"thread": null, "first_comment": null}}}'),
	'media-1 [0, 1, 2, 3] text', 'without a thread all media are the post''s') from post;
select is(test.shown('{"text": "V", "thread": [{"text": "Two"}], "variants": {"telegram": {"thread": [], "first_comment": ""}}}'),
	'text text');
select is(test.shown('{"text": "W", "thread": [{"text": "Two"}], "variants": {"tg": {"thread": [{"text": "Own"}], "first_comment": "Own, too"}}}'),
	'text text; part-2.text "Own" to text; comment "Own, too" to text');
select is(test.steps('m'), 'text text; part-2.text "Two" to text');
select is(test.shown(raw || '{"text": "Some", "variants": {"tg": {"media": [3, 1, 0]}}}'),
	'media-1 [0] text; part-2.media-1 [1] "Two" to media-1; part-3.text "Three" to part-2.media-1; part-4.media-1 [3] to part-3.text; comment "Look" to media-1') from post;
select is(test.shown(raw || '{"text": "None", "variants": {"tg": {"media": []}}}'),
	'thread[2]: nothing is left of the part; give it text, or media that the variant keeps') from post;
update autopost.channels c set send_mode = 'text' where c.channel_id = 'tg';
select is(test.shown(raw || '{"text": "Texts"}'),
	'text text; part-2.text "Two" to text; part-3.text "Three" to part-2.text; comment "Look" to text') from post;
select is((test.row('tg')).render_meta -> 'notes', '["media dropped: the channel takes text only"]');
select is(test.post(jsonb_build_object('media', test.pictures(1), 'thread', '[{"text": "Two"}]'::jsonb))
	@? '$.deliveries[*] ? (@.channel_id == "tg" && @.reason == "the channel takes text only")', true);
update autopost.channels c set send_mode = 'mixed' where c.channel_id = 'tg';
select is(test.shown(jsonb_build_object('media', test.pictures(2), 'thread', '[{"media": [2]}]'::jsonb, 'variants',
	'{"tg": {"media": [1]}}'::jsonb)), 'part 1 of the thread is empty for this channel; give it text or a medium');

-- A template makes the text of part 1. All texts of a delivery have one form.
select autopost.put_template('w', 'plain', null, '{"body": "News: {title}"}', 'ann', 'test');
select is(test.shown('{"template": {"name": "plain", "vars": {"title": "1 < 2"}}, "thread": [{"text": "<b>Two</b>"}], "parse_mode": "HTML", "link": "https://e.x/"}'),
	'text text; part-2.text "<b>Two</b>" to text');
select is((test.row('tg')).rendered_text, E'News: 1 &lt; 2\n\nhttps://e.x/', 'the link belongs to part 1');
select is((test.row('tg')).render_meta ->> 'parse_mode', 'HTML');
select is(test.shown('{"text": "Buttons", "thread": [{"text": "Two"}], "buttons": [[{"text": "Open", "url": "https://e.x/"}]]}'),
	'text text; part-2.text "Two" to text');
select is((test.row('tg')).render_meta -> 'buttons', '[[{"url": "https://e.x/", "text": "Open"}]]');

-- YouTube: no thread; the first comment is a call of its own, for a video that others can see.
create temp table video on commit drop as select jsonb_build_object('text', 'A film', 'media', jsonb_build_array(
	jsonb_build_object('type', 'video', 'blob_ref', 'sha256:' || repeat('1', 64)))) as raw;
select is(test.shown(raw || '{"thread": [{"text": "Two"}]}', 'yt'),
	'thread: youtube takes none; set variants.youtube.thread to null') from video;
select is(test.shown(raw || '{"thread": [{"text": "Two"}], "variants": {"youtube": {"thread": null}}}', 'yt'),
	'session; video [0] text') from video;
select is(test.shown(raw || '{"first_comment": "Links <here>"}', 'yt'),
	'session; video [0] text; comment "Links <here>"') from video;
select is((test.row('yt')).render_meta #> '{steps,2}',
	'{"step": "comment", "body": "Links <here>", "text": true, "aside": true, "comment": true}');
select is(test.shown(raw || jsonb_build_object('first_comment', repeat('a', 10001)), 'yt'),
	'first_comment has 10001 characters, youtube takes at most 10000') from video;
select is(test.shown(raw || '{"first_comment": "a", "variants": {"youtube": {"privacy": "private"}}}', 'yt'),
	'first_comment: a private video takes none; set variants.youtube.first_comment to null') from video;
select is(test.shown(raw || '{"first_comment": "a", "variants": {"youtube": {"made_for_kids": true}}}', 'yt'),
	'first_comment: a video made for kids takes none; set variants.youtube.first_comment to null') from video;
select is(test.shown(raw || '{"first_comment": "a", "variants": {"youtube": {"first_comment": null}}}', 'yt'),
	'session; video [0] text') from video;
select is(test.shown(raw || '{"text": "On X", "first_comment": "a"}', 'x'),
	'media-1 [0] text; comment "a" to media-1') from video;
update autopost.platforms set replies = false where platform = 'telegram';
select is(test.shown('{"text": "No replies", "thread": [{"text": "Two"}]}'), 'text text; part-2.text "Two"');
select is(test.shown('{"text": "No replies", "first_comment": "a"}'),
	'first_comment: telegram takes none; set variants.telegram.first_comment to null');
update autopost.platforms set replies = true where platform = 'telegram';

-- A dry run shows every part, and the same plan.
select is((select jsonb_path_query_array(c.value, '$.meta.steps[*].body') from jsonb_array_elements(autopost.plan('w',
	'{"text": "Plan", "thread": [{"text": "Two"}], "first_comment": "Three"}', null) -> 'channels') c
	where c.value ->> 'channel_id' = 'tg'), '["Two", "Three"]');
select is(autopost.plan('w', '{"text": "Plan", "thread": [{"text": ""}]}', null) #>> '{errors,0,field}', 'thread[0]');

-- Quotas count posts: a thread of three with a comment counts four. Further steps cost a slot each.
select autopost.put_quota('w', 'channel:tg', 3600, '{"max_sends": 10}', 'ann', 'test', false);
update autopost.deliveries d set not_before = 'infinity' where d.workspace_id = 'w' and d.status = 'queued';
update autopost.channels c set rate_rps = 1 where c.channel_id = 'tg';
select test.shown('{"text": "Q", "thread": [{"text": "Two"}, {"text": "Three"}], "first_comment": "Four", "routing": {"include_channels": ["tg"]}}');
create temp table c on commit drop as select * from test.claim();
select test.start('tg');
select is((select array_agg(u.posts) from autopost.quota_uses u), '{4}');
select is((test.channel_row('tg')).next_allowed_at - autopost.now_ts(), interval '1 second');
select autopost.record_series_progress('w', c.delivery_id, c.claim_token, '{"step": "text", "ids": ["1"]}') from c;
select autopost.record_series_progress('w', c.delivery_id, c.claim_token, '{"step": "part-2.text", "ids": ["2"]}')
	from c;
select is((test.channel_row('tg')).next_allowed_at - autopost.now_ts(), interval '3 seconds');
-- A cut thread goes on with its tail.
select test.commit('tg', test.failure('TRANSIENT', 'delivery', 'tg_500'));
select test.tick('1 minute');
delete from c;
insert into c select * from test.claim();
select is((select render_meta #> '{series_progress,provider_message_ids}' from c), '["1", "2"]');
select is((select sum(u.posts) from autopost.quota_uses u), 4::bigint, 'two that went, and two of this claim');
select test.start('tg');
select is(test.commit('tg', test.sent('1')) ->> 'reason', 'steps_missing', 'not sent before all parts are');
select is(test.commit('tg', test.sent('1')
	|| '{"raw": {"steps": {"part-3.text": ["3"], "comment": ["4"]}}}') ->> 'status', 'sent');
select is((test.row('tg')).render_meta #> '{series_progress,provider_message_ids}', '["1", "2", "3", "4"]');


-- After an unknown outcome of part 2, the parts behind it were certainly not made.
delete from autopost.quota_uses;
select test.shown('{"text": "R", "thread": [{"text": "Two"}, {"text": "Three"}], "routing": {"include_channels": ["tg"]}}');
delete from c;
insert into c select * from test.claim();
select test.start('tg');
select autopost.record_series_progress('w', c.delivery_id, c.claim_token, '{"step": "text", "ids": ["5"]}') from c;
select test.commit('tg', test.failure('TRANSIENT', 'delivery', 'timeout', '{"known": false}'));
select is((select array_agg(u.posts) from autopost.quota_uses u), '{2}');

-- An approval covers all texts.
create temp table decided on commit drop as
select autopost.submission_plan(jsonb_populate_record(null::autopost.submissions, jsonb_build_object('workspace_id', 'w',
	'run_id', autopost.new_id(), 'trace_id', autopost.new_id(), 'route_tags', '[]'::jsonb, 'raw_payload', jsonb_build_object(
	'text', 'Approve', 'thread', jsonb_build_array(jsonb_build_object('text', v.said)), 'first_comment', 'Look', 'routing',
	'{"include_channels": ["tg"]}'::jsonb)))) as plan, v.n
from (values (1, 'Two'), (2, 'Other')) v (n, said);
select is((select plan #> '{renderings,0,later}' from decided where n = 1),
	'[{"step": "part-2.text", "text": "Two"}, {"step": "comment", "text": "Look"}]');
select isnt((select autopost.plan_digest(plan) from decided where n = 1), (select autopost.plan_digest(plan) from decided where n = 2));
select is(autopost.plan_changed(jsonb_set((select plan from decided where n = 2), '{renderings,0,key}',
	(select plan #> '{renderings,0,key}' from decided where n = 1)), (select plan from decided where n = 1)), true);

select * from finish();
rollback;
