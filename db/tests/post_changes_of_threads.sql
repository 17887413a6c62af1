-- A change of a sent thread reaches all its parts. An edit names parts by number.
begin;
\ir fake_clock.sql
\ir world.sql
select plan(30);

select test.channel('a');
select test.channel('x', p_platform => 'x');
select test.channel('yt', p_platform => 'youtube');
insert into autopost.media_origin (workspace_id, blob_ref, origin_url, size_bytes)
select 'w', 'sha256:' || repeat(d::text, 64), 'file:///' || d, 10 from generate_series(1, 2) d;
create function test.send(p_channel_id text, p_raw jsonb) returns void
language sql
as $$
-- Sends a post; message n is that of step n.
select test.tick('1 second');
select test.post(p_raw || jsonb_build_object('routing', jsonb_build_object('include_channels',
	jsonb_build_array(p_channel_id))));
select test.claimed();
select test.start(p_channel_id);
select test.commit(p_channel_id, test.sent('1') || jsonb_build_object('raw', jsonb_build_object('steps', (
	select jsonb_object_agg(s.value ->> 'step', jsonb_build_array(s.ordinality::text))
	from jsonb_array_elements((test.row(p_channel_id)).render_meta -> 'steps') with ordinality s))))
$$;
create function test.ask(p_kind text, p_changes jsonb default null, p_channel_id text default 'a') returns text
language sql
as $$
-- Asks for a change: the refusal, or "" if there is none.
select coalesce(autopost.request_acts('w', p_kind, null, array[(test.row(p_channel_id)).delivery_id], p_changes, null,
	'olga', 'wrong price', false) #>> '{results,0,message}', '')
$$;
create function test.act(p_kind text) returns autopost.post_acts
language sql as $$ select a from autopost.post_acts a where a.workspace_id = 'w' and a.kind = p_kind
	order by a.act_id desc limit 1 $$;
create function test.bodies() returns jsonb
language sql
as $$
select jsonb_path_query_array((test.act('edit')).render_meta, '$.steps[*].body')
$$;

select test.send('a', jsonb_build_object('text', 'One', 'media', jsonb_build_array(
	jsonb_build_object('type', 'image', 'blob_ref', 'sha256:' || repeat('1', 64))),
	'thread', '[{"text": "Two", "media": [1]}, {"text": "Three"}]'::jsonb, 'first_comment', 'Look'));
select is((test.row('a')).render_meta #> '{series_progress,provider_message_ids}', '["1", "2", "3", "4"]');

-- By number, or all parts in order. What an edit does not give stays.
select is(test.ask('edit', '{"thread": {"3": {"text": "Third"}}}'), '');
select is(test.bodies(), '["Two", "Third", "Look"]');
select is((test.act('edit')).rendered_text, 'One');
select is(test.ask('edit', '{"text": "First", "thread": [{"text": "Second"}, {}], "first_comment": "See"}'), '');
select is(test.bodies(), '["Second", "Three", "See"]');
select is((test.act('edit')).rendered_text, 'First');
select is(test.ask('edit', '{"first_comment": "Only this"}'), '');
select is(test.bodies(), '["Two", "Three", "Only this"]');
-- What cannot be mapped is refused.
select throws_ok($$select test.ask('edit', '{"thread": {"4": {"text": "x"}}}')$$, 'AP001',
	'argument thread.4: must have the number of a part from 2 to 3');
select throws_ok($$select test.ask('edit', '{"thread": {"1": {"text": "x"}}}')$$, 'AP001',
	'argument thread.1: must have the number of a part from 2 to 3');
select throws_ok($$select test.ask('edit', '{"thread": [{"text": "x"}]}')$$, 'AP001',
	'argument thread: must have 2 parts like the sent post, got 1');
select throws_ok($$select test.ask('edit', '{"thread": null}')$$, 'AP001',
	'argument thread: must be an array of all parts, or an object by the number of the part');
select throws_ok($$select test.ask('edit', '{"thread": {"3": "x"}}')$$, 'AP001',
	'argument thread.3: must be an object');
select throws_ok($$select test.ask('edit', '{"thread": {"3": {"media": [1]}}}')$$, 'AP001',
	'argument thread.3.media: cannot be changed in a post that was sent');
select throws_ok($$select test.ask('edit', '{"thread": {"3": {"text": ""}}}')$$, 'AP001',
	'argument thread[1]: must have text or media');
select throws_ok($$select test.ask('edit', '{"first_comment": null}')$$, 'AP001',
	'argument first_comment: must be a text: a sent comment stays');
select is(test.ask('edit', '{"thread": {"2": {"text": ""}}}'),
	'the new text does not fit the sent messages: keep their number and form, or delete the post and send it again');
select is(test.ask('edit', jsonb_build_object('thread', jsonb_build_object('3', jsonb_build_object('text', repeat('x',
	4097))))),
	'thread[1] has 4097 characters, telegram takes at most 4096');

-- Removing and pinning reach all parts; each message costs a slot.
select is(test.ask('delete'), '');
select is(autopost.act_cost(test.act('delete'), test.row('a')), 4, 'each message');
select is(test.ask('pin'), '');
select is(autopost.act_cost(test.act('pin'), test.row('a')), 3, 'the first message of each part');

-- A post that lost its first comment is edited without it.
select test.tick('1 hour');
select test.post('{"text": "Lost", "first_comment": "Gone", "routing": {"include_channels": ["a"]}}');
select test.claimed();
select test.start('a');
select autopost.record_series_progress('w', r.delivery_id, r.claim_token, '{"step": "text", "ids": ["9"]}')
	from test.row('a') r;
select test.commit('a', test.failure('PERMANENT', 'delivery', 'tg_no'));
select is(test.ask('edit', '{"text": "Found"}'), '');
select is((test.act('edit')).render_meta -> 'steps', '[{"step": "text", "text": true}]');

-- A post without a thread gets none. X takes no edits, and removes all posts.
select test.send('a', '{"text": "Single"}');
select throws_ok($$select test.ask('edit', '{"thread": [{"text": "x"}]}')$$, 'AP001',
	'argument thread: cannot be added to a post that was sent');
select is(test.ask('edit', '{"first_comment": "x"}'),
	'the new text does not fit the sent messages: keep their number and form, or delete the post and send it again');
select test.send('x', '{"text": "X", "thread": [{"text": "Two"}]}');
select is(test.ask('edit', '{"text": "Y"}', 'x'), 'x takes no edit of a post: it takes delete');
select is(test.ask('delete', null, 'x'), '');

-- YouTube: the comment of a video is not edited.
select test.send('yt', jsonb_build_object('text', 'A film', 'first_comment', 'Look', 'media', jsonb_build_array(
	jsonb_build_object('type', 'video', 'blob_ref', 'sha256:' || repeat('1', 64)))));
select is(test.ask('edit', '{"text": "B", "first_comment": "See"}', 'yt'),
	'youtube takes no edit of a first comment: edit it there by hand');

select * from finish();
rollback;
