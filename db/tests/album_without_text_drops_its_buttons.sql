-- If neither an album nor a text can carry the buttons of a post, the delivery drops them and
-- records it.
begin;
\ir fake_clock.sql
\ir world.sql
select plan(3);

select test.channel('tg'), test.channel('max', p_platform => 'max');
insert into autopost.media_origin (workspace_id, blob_ref, origin_url, size_bytes)
	values ('w', 'sha256:' || repeat('1', 64), 'file:///1', 10);
create function test.notes(p_channel_id text) returns jsonb
language sql
as $$
select (test.row(p_channel_id)).render_meta -> 'notes'
$$;
select is(test.post(jsonb_build_object('buttons', '[[{"text": "Go", "url": "https://e.x/"}]]'::jsonb,
	'media', (select jsonb_agg(jsonb_build_object('type', 'image', 'blob_ref', 'sha256:' || repeat('1', 64)))
		from generate_series(1, 2)))) ->> 'enqueued', '2');
select is(test.notes('tg'), '["buttons dropped: an album cannot carry them"]');
select is(test.notes('max'), null, 'where an album can, they stay');

rollback;
