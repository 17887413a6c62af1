-- A step without a message takes no message id and no rate slot. An interrupted call
-- with a lookup before the retry is a transient failure.
begin;
\ir fake_clock.sql
\ir world.sql
select plan(10);

select test.channel('yt', p_rate_rps => 0.001, p_platform => 'youtube');
insert into autopost.media_origin (workspace_id, blob_ref, origin_url, size_bytes)
select 'w', 'sha256:' || repeat(d::text, 64), 'file:///' || d, 10 from generate_series(1, 2) d;
select test.post(jsonb_build_object('text', 'A show', 'media', jsonb_build_array(
	jsonb_build_object('type', 'video', 'blob_ref', 'sha256:' || repeat('1', 64)),
		jsonb_build_object('type', 'image', 'blob_ref', 'sha256:' || repeat('2', 64)))));
create function test.acknowledge(p_step text, p_id text) returns jsonb
language sql
as $$
select autopost.record_series_progress('w', r.delivery_id, r.claim_token,
	jsonb_build_object('step', p_step, 'ids', jsonb_build_array(p_id))) from test.row('yt') r
$$;
select test.claimed();
select test.start('yt');

select is(test.acknowledge('session', 'sealed:x') ->> 'applied', 'true');
select is(test.acknowledge('session-2', 'sealed:y') -> 'send_at', 'null', 'another session goes on at once');
select is(test.acknowledge('video', 'v1') -> 'send_at', 'null', 'and so does the thumbnail');
select is((test.row('yt')).render_meta -> 'series_progress' -> 'provider_message_ids', '["v1"]');
select is((test.row('yt')).render_meta -> 'series_progress' -> 'steps',
	'{"session": ["sealed:x"], "session-2": ["sealed:y"], "video": ["v1"]}');
select is((test.row('yt')).render_meta -> 'series_progress' -> 'sent_items', '[0]');

select test.tick('10 minutes');
select is(autopost.recover_sending_leases('w'), '{"recovered": 1, "unknown": 0, "dead": 0}');
select is(array[(test.row('yt')).status, (test.row('yt')).last_error ->> 'code',
	(test.row('yt')).unknown_outcomes::text], '{retry,lease_expired,0}');
select is((select count(*)::int from autopost.verify_i20('w')), 0);
update autopost.platforms set resumes = false where platform = 'youtube';
select is((select count(*)::int from autopost.verify_i20('w')), 1, 'which elsewhere it would not be');

select * from finish();
rollback;
