-- References to missing rows without a foreign key are found on the next day.
begin;
\ir fake_clock.sql
\ir world.sql
select plan(8);

select test.channel('a', p_max_parallel => 100);
insert into autopost.media_origin (workspace_id, blob_ref, origin_url, size_bytes)
	values ('w', 'sha256:' || repeat('1', 64), 'file:///1', 10);
create function test.kinds() returns jsonb
language sql
as $$
select coalesce(jsonb_object_agg(o.value ->> 'kind', o.value -> 'count'), '{}')
	from jsonb_array_elements(autopost.report_orphans('w') -> 'orphans') o
$$;

select test.say('one');
select test.round('a', test.sent('1'));
select test.post('{"text": "picture", "media": [{"type": "image", "blob_ref": "sha256:1111111111111111111111111111111111111111111111111111111111111111"}]}');
select autopost.receive_push('w', 'in', '[{"source_ref": "a", "text": "pushed"}, {"source_ref": "b", "media": [{"type": "image", "url": "https://e.x/1.png"}]}]');
select autopost.commit_submission('w', c.submission_id, c.claim_token, '{"ok": true, "media": [{"index": 0, "blob_ref": "sha256:1111111111111111111111111111111111111111111111111111111111111111"}]}')
from autopost.claim_submissions('w', 'r', 1) c;
select autopost.put_media_blob('w', 'sha256:' || repeat('1', 64), 'telegram', 'bot', 'image', 'file', null);
select is(autopost.report_orphans('w'), '{"day": "2026-05-31", "orphans": []}');
select test.tick('1 day');
select is(autopost.report_orphans('w'), '{"day": "2026-06-01", "orphans": []}', 'a sound day has none');

-- Rows are lost behind everybody's back.
set local session_replication_role = replica;
delete from autopost.messages;
delete from autopost.deliveries where status = 'sent';
delete from autopost.submissions where source_ref = 'a';
delete from autopost.ingest_runs where kind = 'push';
update autopost.media_origin set deleted_at = now();
update autopost.submissions set answer = '{}', message_id = gen_random_uuid();
set local session_replication_role = origin;
select is(test.kinds() - 'events.message_id', '{"events.delivery_id": 2, "ingress_receipts.answer": 1, "submissions.message_id": 1, "deliveries.ingest_run_id": 2, "media_blobs.blob_ref": 1}');
select ok((test.kinds() -> 'events.message_id')::int >= 5);
select is((select o.value - 'sample' from jsonb_array_elements(autopost.report_orphans('w') -> 'orphans') o
	where o.value ->> 'kind' = 'events.message_id'),
	jsonb_build_object('kind', 'events.message_id', 'count', test.kinds() -> 'events.message_id'));
select is((select jsonb_array_length(o.value -> 'sample')
	from jsonb_array_elements(autopost.report_orphans('w') -> 'orphans') o
	where o.value ->> 'kind' = 'events.message_id'), 5, 'of many, five are shown');
select is((select o.value -> 'sample' -> 0 from jsonb_array_elements(autopost.report_orphans('w') -> 'orphans') o
	where o.value ->> 'kind' = 'media_blobs.blob_ref'),
	jsonb_build_object('id', 'telegram/bot/image', 'refers_to', 'sha256:' || repeat('1', 64)));
select test.tick('1 day');
select is(autopost.report_orphans('w'), '{"day": "2026-06-02", "orphans": []}', 'each day is looked at once');

select * from finish();
rollback;
