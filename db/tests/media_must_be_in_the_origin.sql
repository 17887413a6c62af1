-- A post may refer only to content in the workspace's origin. Media with a URL are fetched first.
begin;
\ir fake_clock.sql
\ir world.sql
select plan(5);

select test.channel('a');
create function test.refer() returns jsonb
language sql
as $$
select autopost.enqueue_messages_and_deliveries('w', 'in', 'push',
	jsonb_build_object('text', 'x', 'media', jsonb_build_array(
	jsonb_build_object('type', 'image', 'blob_ref', 'sha256:' || repeat('1', 64)))))
$$;
select is(test.refer() ->> 'status', 'rejected');
select is(test.refer() -> 'errors' -> 0 ->> 'field', 'media[0].blob_ref', 'and the field is named');
select is((select count(*)::int from autopost.messages), 0, 'nothing half done');
select autopost.put_media_origin('w', 'sha256:' || repeat('1', 64), 'file:///1', 'image/png', 10, 'image', 1, 1);
select is(test.refer() ->> 'status', 'enqueued');
update autopost.media_origin set deleted_at = autopost.now_ts();
select is(test.refer() ->> 'status', 'rejected', 'what was swept is gone');
rollback;
