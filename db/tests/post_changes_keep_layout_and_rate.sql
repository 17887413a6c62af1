begin;
\ir fake_clock.sql
\ir world.sql
select plan(32);

create function test.edit(p_channel_id text, p_changes jsonb) returns jsonb
language sql as $$
-- Answer of an edit request for the channel's newest delivery.
select autopost.request_acts('w', 'edit', null, array[(test.row(p_channel_id)).delivery_id], p_changes, null, 'o', 'r',
	false) -> 'results' -> 0
$$;
create function test.remove(p_message_id uuid) returns jsonb
language sql as $$ select autopost.request_acts('w', 'delete', p_message_id, null, null, null, 'o', 'r',
	false) - 'results' $$;

-- An edit keeps the messages that were sent, and what stands in them.
select test.channel('a'), test.channel('m', p_platform => 'max', p_rate_group => 'm');
select autopost.put_media_origin('w', 'sha256:' || repeat(n::text, 64), 'file:///x', 'image/png', 10, 'image', 1, 1)
	from generate_series(1, 2) n;
select test.post(jsonb_build_object('text', 'two views', 'link', 'https://example.org/1', 'buttons',
	'[[{"text": "Open", "url": "https://example.org/1"}]]'::jsonb,
	'media', (select jsonb_agg(jsonb_build_object('type', 'image', 'blob_ref', 'sha256:' || repeat(n::text, 64)))
		from generate_series(1, 2) n),
	'variants', '{"max": {"text": "two views, MAX", "parse_mode": "None"}}'::jsonb));
select test.tick('1 second'), test.round('m', '{"ok": true, "provider_message_id": "mid.1"}');
select test.commit('a', '{"ok": true, "provider_message_id": "5", "raw": {"steps": {"text": ["5"]}}}');
select is(test.edit('a', '{"text": "changed"}') ->> 'reason', 'ids_unknown', 'an album of which one id is known');
update autopost.deliveries d set render_meta = autopost.with_progress(d.render_meta, '{"media-1": ["6", "7"]}')
	where d.channel_id = 'a';
select is(test.edit('a', '{"text": "changed"}') -> 'applied', 'true');
select is((select a.rendered_text from autopost.post_acts a where a.channel_id = 'a'),
	E'changed\n\nhttps://example.org/1', 'what is not named stays');
select is(test.edit('a', jsonb_build_object('text', repeat('x', 3000))) -> 'applied', 'true',
	'it was ahead of its media already');
select is(test.edit('a', '{"text": "changed", "buttons": null}') ->> 'reason', 'validation_failed',
	'without buttons it would be a caption, and one message less');
select is(test.edit('m', '{"text": "changed"}') -> 'applied', 'true');
select is((select a.rendered_text from autopost.post_acts a where a.channel_id = 'm'),
	E'changed\n\nhttps://example.org/1', 'a new text is the text of all variants');
select is(test.edit('m', '{"text": "changed", "variants": {"max": {"text": "MAX"}}}') -> 'applied', 'true');
select is((select array_agg(a.rendered_text order by a.act_id) from autopost.post_acts a where a.channel_id = 'm'),
	array[E'changed\n\nhttps://example.org/1', E'MAX\n\nhttps://example.org/1']);
select is(test.edit('m', '{"buttons": [[{"text": "Shut", "url": "https://example.org/2"}]]}') ->> 'reason',
	'validation_failed', 'buttons are one with the media there');
select is(test.edit('a', '{"parse_mode": "HTML", "text": "<b>"}') ->> 'reason', 'validation_failed');
select is(test.edit('a', '{"template": {"name": "none"}, "text": null}') ->> 'reason', 'validation_failed',
	'the template is unknown and the text is missing');

-- Buttons are removed if the edit has none, also buttons of another edit.
select test.channel('b', p_rate_group => 'b');
select test.tick('1 second'), test.post('{"text": "bare", "routing": {"include_channels": ["b"]}}'),
	test.tick('1 second'), test.round('b', '{"ok": true, "provider_message_id": "1"}');
select test.edit('b', '{"text": "one"}'),
	test.edit('b', '{"text": "two", "buttons": [[{"text": "Open", "url": "https://example.org/1"}]]}'),
	test.edit('b', '{"text": "three"}');
select is((select array_agg(a.render_meta -> 'buttons' order by a.act_id) from autopost.post_acts a
	where a.channel_id = 'b'),
	array[null, '[[{"url": "https://example.org/1", "text": "Open"}]]', '[]']::jsonb[]);
select is((select count(*)::int from autopost.post_acts a where a.render_meta ? 'series_progress'), 0);

-- A video's title follows its new text.
select test.channel('y', p_platform => 'youtube', p_rate_group => 'y');
select autopost.put_media_origin('w', 'sha256:' || repeat('3', 64), 'file:///x', 'video/mp4', 10, 'video', 1, 1);
select test.tick('1 second'),
	test.post(jsonb_build_object('text', 'old title', 'routing', '{"include_channels": ["y"]}'::jsonb,
	'media', jsonb_build_array(jsonb_build_object('type', 'video', 'blob_ref', 'sha256:' || repeat('3', 64)))));
select test.tick('1 second'),
	test.round('y', '{"ok": true, "provider_message_id": "vid", "raw": {"steps": {"session": ["s"]}}}');
select is(test.edit('y', '{"text": "new title\nand more"}') -> 'applied', 'true');
select is((select a.render_meta ->> 'title' from autopost.post_acts a where a.channel_id = 'y'), 'new title');

-- Acts and posts share the slots of a group: a post reserves a second ahead, an act two, so that both get on.
delete from autopost.post_acts;
insert into autopost.platform_limits (workspace_id, platform, rate_group, rate_rps) values ('w', 'telegram', 'bot', 5);
select test.channel('c' || n, p_max_parallel => 10) from generate_series(1, 30) n;
select test.tick('1 second'), test.post('{"text": "wrong", "routing": {"exclude_channels": ["a", "b", "m", "y"]}}');
create function test.send_all() returns void
language plpgsql as $$
begin
	while exists (select 1 from autopost.deliveries d where d.status = 'queued') loop
		perform test.tick('1 second');
		perform autopost.commit_outcome('w', c.delivery_id, c.claim_token, '{"ok": true, "provider_message_id": "1"}')
			from autopost.claim_deliveries('w', 'run-1', 100) c;
	end loop;
end
$$;
select test.send_all(), test.tick('10 seconds');
select is(test.remove((test.row('c1')).message_id),
	'{"applied": true, "dry_run": false, "requested": 30, "refused": 0}');
select test.post('{"text": "right", "routing": {"exclude_channels": ["a", "b", "m", "y"]}}');
create temporary table slots as select 'post' as what, c.send_at from autopost.claim_deliveries('w', 'run-1', 100) c;
select is((select count(*)::int from slots), 5, 'a second''s posts');
insert into slots select 'act', a.send_at from autopost.claim_acts('w', 'run-1', 100) c
	join autopost.post_acts a using (act_id);
select is((select count(*)::int from slots where what = 'act'), 6, 'and behind them the acts of the next');
select is(array(select autopost.claim_acts('w', 'run-1', 100))::text, '{}', 'no more than may begin soon');
select is((select min(d.gap) from (select send_at - lag(send_at) over (order by send_at) as gap from slots) d),
	interval '200 milliseconds', 'each a slot of its own');
select is((select count(*)::int from autopost.claim_deliveries('w', 'run-1', 100)), 0);
select test.edit('b', '{"text": "of another group"}');
select is((select array_agg(c.kind || ' ' || c.channel_id) from autopost.claim_acts('w', 'run-1', 5) c), '{"edit b"}',
	'which do not wait behind those of a group that is full');
select is((select count(*)::int from autopost.post_acts a where a.status = 'queued' and a.next_at > autopost.now_ts()),
	0, 'nor are these touched');
-- A late change gets the next slot.
select test.tick('5 seconds');
select is((autopost.start_act('w', a.act_id, a.claim_token) ->> 'send_at')::timestamptz, autopost.now_ts(),
	'late: the next free one')
from autopost.post_acts a where a.status = 'sending' order by a.send_at limit 1;
select is((select l.next_allowed_at from autopost.platform_limits l where l.rate_group = 'bot'),
	autopost.now_ts() + interval '200 milliseconds');

-- A post may say when it is to be taken down again.
select is(test.post('{"text": "sale", "remove_at": "tomorrow"}') -> 'errors' -> 0 ->> 'field', 'remove_at');
select is(
	test.post(
	'{"text": "sale", "remove_at": "2026-06-01T10:00:00Z", "scheduled_for": "2026-06-01T11:00:00Z"}') -> 'errors' -> 0
	->> 'reason', 'is not after scheduled_for');
select is(test.post('{"text": "sale", "remove_at": "2026-05-31T10:00:00Z"}') -> 'errors' -> 0 ->> 'reason',
	'must be in the future');
delete from autopost.post_acts;
select test.post(jsonb_build_object('text', 'sale', 'remove_at',
	to_char(autopost.now_ts() at time zone 'UTC' + interval '1 hour', 'YYYY-MM-DD"T"HH24:MI:SS"Z"'), 'routing',
	'{"include_channels": ["a", "y"]}'::jsonb));
select is((select array_agg(a.channel_id || ' ' || a.kind || ' '
	|| (a.due_at - date_trunc('second', autopost.now_ts())))
	from autopost.post_acts a), '{"a delete 01:00:00"}', 'for each delivery that was made');
select test.tick('61 minutes');
select is((select count(*)::int from autopost.claim_acts('w', 'run-1', 10)), 0, 'it waits until the post is sent');
select test.send_all(), test.tick('31 seconds');
select is((select c.kind || ' ' || c.provider_message_id from autopost.claim_acts('w', 'run-1', 10) c), 'delete 1');

select * from finish();
rollback;
