-- An origin object is deleted if no message or waiting submission refers to it and it was not seen
-- for 30 days (large videos: 7).
begin;
\ir fake_clock.sql
\ir world.sql
select plan(42);

select test.channel('a', p_max_parallel => 100);
insert into autopost.workspaces (workspace_id) values ('v');
create function test.ref(p_digit int) returns text
language sql
as $$
select 'sha256:' || repeat(p_digit::text, 64)
$$;
create function test.put(p_digit int, p_workspace_id text default 'w', p_type text default 'image/png',
	p_bytes bigint default 10) returns jsonb
language sql
as $$
select autopost.put_media_origin(p_workspace_id, test.ref(p_digit), 'file:///' || p_digit, p_type, p_bytes,
	split_part(p_type, '/', 1), null, null)
$$;
create function test.picture(p_digit int) returns jsonb
language sql
as $$
select test.post(jsonb_build_object('text', 'picture', 'media',
	jsonb_build_array(jsonb_build_object('type', 'image', 'blob_ref', test.ref(p_digit)))))
$$;
create function test.listed(p_limit int default 10) returns text
language sql
as $$
-- The digits of what may go.
select coalesce(string_agg(substr(o.value ->> 'blob_ref', 8, 1), '' order by o.value ->> 'blob_ref'), '')
	from jsonb_array_elements(autopost.list_unreferenced_origins('w', p_limit)) o
$$;

select test.put(1), test.put(2), test.put(3, p_type => 'video/mp4', p_bytes => 52428800),
	test.put(4, p_type => 'video/mp4', p_bytes => 52428799), test.put(5), test.put(5, 'v');
select is(test.picture(1) ->> 'enqueued', '1');
select is((select array_agg(m.blob_ref) from autopost.message_media m), array[test.ref(1)]);
select is(test.listed(), '');
select test.tick('7 days 1 minute');
select is(test.listed(), '3', 'large video first');
select is(autopost.forget_media_origin('w', test.ref(4)), '{"applied": false, "reason": "seen_again"}');
select test.tick('23 days');
select is(test.listed(), '2345', 'what a message refers to stays');
select is(test.listed(2), '23');
select is(autopost.list_unreferenced_origins('w', 1) -> 0,
	jsonb_build_object('blob_ref', test.ref(2), 'origin_url', 'file:///2', 'size_bytes', 10, 'last_seen_at',
		'2026-06-01T12:00:00+00:00', 'forgotten', false));

select is(autopost.forget_media_origin('w', test.ref(1)), '{"applied": false, "reason": "referenced"}');
select is(autopost.forget_media_origin('w', test.ref(9)), '{"applied": false, "reason": "unknown"}');
select is(autopost.remove_media_origin('w', test.ref(2)), '{"applied": false, "reason": "not_forgotten"}');
select autopost.put_media_blob('w', test.ref(2), 'telegram', 'bot', 'image', 'file', null);
create temporary table removal as select autopost.forget_media_origin('w', test.ref(2)) as answer;
select is((select r.answer - 'token' from removal r), '{"applied": true}');
select isnt((select r.answer ->> 'token' from removal r), null, 'nobody else holds it: the object must go');
select is(autopost.forget_media_origin('w', test.ref(2)), '{"applied": false, "reason": "busy"}',
	'another one waits until the first is taken for dead');
select is(test.put(2), '{"applied": false, "reason": "being_removed"}', 'meanwhile it cannot be registered');
select is(test.put(2, 'v'), '{"applied": false, "reason": "being_removed"}', 'in no workspace');
select is((select count(*)::int from autopost.media_blobs), 0, 'what platforms gave for it goes, too');
select is(test.picture(2) -> 'errors' -> 0 ->> 'reason', 'is not in the media origin',
	'nobody may refer to it any more');
select is(test.listed(), '2345', 'it is listed until its row is gone');
select is(autopost.end_media_removal(test.ref(2), 'another'), '{"applied": false, "reason": "stale"}');
select is(autopost.end_media_removal(test.ref(2), r.answer ->> 'token'), '{"applied": true}') from removal r;
select is(autopost.end_media_removal(test.ref(2), r.answer ->> 'token'), '{"applied": false, "reason": "stale"}')
	from removal r;
select is(autopost.remove_media_origin('w', test.ref(2)), '{"applied": true}');
select is(autopost.remove_media_origin('w', test.ref(2)), '{"applied": false, "reason": "unknown"}');
select is(test.listed(), '345');
select is(autopost.forget_media_origin('w', test.ref(5)), '{"applied": true}',
	'the object stays: another workspace has the same content');
select is(autopost.forget_media_origin('v', test.ref(5)) - 'token', '{"applied": true}');
select is(autopost.list_media_removals(10), '[]');
select test.tick('10 minutes');
select is(autopost.list_media_removals(10), jsonb_build_array(test.ref(5)), 'the claim of the removal has expired');
select is(autopost.forget_media_origin('w', test.ref(5)) - 'token', '{"applied": true}', 'the next one takes over');
select is(autopost.list_media_removals(10), '[]');

-- A medium that is put again is available after its object was removed.
select autopost.end_media_removal(test.ref(3), autopost.forget_media_origin('w', test.ref(3)) ->> 'token');
select is(test.put(3), '{"applied": true}');
select is(test.listed(), '45');
select is(autopost.remove_media_origin('w', test.ref(3)), '{"applied": false, "reason": "not_forgotten"}');
select is(test.picture(3) ->> 'enqueued', '1');

-- A submission that waits keeps its media.
insert into autopost.submissions (workspace_id, submission_id, endpoint_id, kind, status, moderated, digest, raw_payload,
	run_id, trace_id)
values ('w', gen_random_uuid(), 'in', 'push', 'pending', true, repeat('0', 64),
	jsonb_build_object('media', jsonb_build_array(jsonb_build_object('blob_ref', test.ref(4)))), gen_random_uuid(),
	gen_random_uuid());
select is(autopost.forget_media_origin('w', test.ref(4)), '{"applied": false, "reason": "referenced"}');
update autopost.submissions set status = 'rejected';
select is(autopost.forget_media_origin('w', test.ref(4)) - 'token', '{"applied": true}');

-- A message goes, and its medium may go after it.
select test.claimed();
select autopost.commit_outcome('w', d.delivery_id, d.claim_token, test.sent('1')) from autopost.deliveries d
	where d.status = 'sending';
select test.tick('92 days');
delete from autopost.events;
select is(autopost.purge_deliveries('w', null) -> 'purged', '2');
select is(autopost.purge_messages('w', null) -> 'purged', '2');
select is((select count(*)::int from autopost.message_media), 0);
select is(test.listed(), '1345');
select is((select array_agg(v.invariant) from autopost.verify('w') v where v.violations > 0), null);

select * from finish();
rollback;
