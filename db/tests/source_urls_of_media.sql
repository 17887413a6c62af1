-- The URL of a fetched medium is not stored with the post. Where the upload policy allows it, the platform may
-- fetch it for a day.
begin;
\ir fake_clock.sql
\ir world.sql
select plan(24);

select test.channel('mx', p_platform => 'max', p_rate_group => 'max-bot'), test.channel('tg');
create function test.fetched(p_text text, p_type text default 'image') returns void
language sql
as $$
-- Posts a medium by URL and fetches it.
select autopost.submit_post('w', 'in', 'api', jsonb_build_object('text', p_text, 'media', jsonb_build_array(
	jsonb_build_object('type', p_type, 'url', 'https://e.x/a.bin?signature=' || p_text))));
select autopost.put_media_origin('w', 'sha256:' || repeat('1', 64), 'file:///1', 'image/png', 10, 'image', 1, 1);
select autopost.commit_submission('w', c.submission_id, c.claim_token,
	'{"ok": true, "media": [{"index": 0, "blob_ref": "sha256:1111111111111111111111111111111111111111111111111111111111111111", "filename": "a.bin"}]}')
from autopost.claim_submissions('w', 'r', 1) c;
select test.tick('1 second')
$$;
create function test.blob(p_kind text default 'image', p_auth_ref text default 'max-bot') returns jsonb
language sql
as $$
select autopost.get_media_blob('w', 'sha256:' || repeat('1', 64), 'max', p_auth_ref, p_kind) - 'expires_at'
$$;
create function test.policy(p_image text) returns void
language sql
as $$
select autopost.apply_settings(jsonb_build_object('upload_policy_max', jsonb_build_object('image', p_image)), 'test', 'test', false)
$$;

select is((select count(*)::int from autopost.platforms p, jsonb_each_text(p.upload_policy) e
	where e.value = 'upload_required'), 25, 'every platform gets uploads by default');
select throws_ok($$update autopost.platforms set upload_policy = upload_policy || '{"video": "url_allowed"}' where platform = 'max'$$,
	'23514', null, 'MAX fetches images only');
select throws_ok($$update autopost.platforms set upload_policy = upload_policy || '{"image": "url_allowed"}' where platform = 'telegram'$$,
	'23514', null, 'no other adapter sends URLs');
select throws_ok($$update autopost.platforms set upload_policy = upload_policy || '{"image": "maybe"}'$$, '23514');
select throws_ok($$update autopost.platforms set upload_policy = '{"image": "upload_required"}'$$, '23514');

select test.fetched('one');
select is((select m.payload -> 'media' -> 0 from autopost.messages m), jsonb_build_object('type', 'image', 'blob_ref',
	'sha256:' || repeat('1', 64), 'fingerprint', 'sha256:' || repeat('1', 64), 'meta', '{"filename": "a.bin"}'::jsonb),
	'the message has the content and its name');
select is((select s.raw_payload #> '{media,0,url}' from autopost.submissions s), null, 'nor does the submission keep it');
select is((select count(*)::int from test.claim() c where c.payload::text like '%signature%'), 0);
select is((select count(*)::int from autopost.media_blobs), 0);

select test.policy('url_allowed');
select test.fetched('two');
select is(test.blob(), '{"file_id": null, "url": "https://e.x/a.bin?signature=two"}');
select is((select b.expires_at - b.created_at from autopost.media_blobs b), interval '1 day');
select is((select array_agg(b.auth_ref) from autopost.media_blobs b), '{max-bot}', 'only for the platform that fetches');
select is((select count(*)::int from autopost.messages m where m.payload::text like '%signature%'), 0);
select test.fetched('file', 'file');
select is((select count(*)::int from autopost.media_blobs), 1, 'a file is uploaded');

select test.policy('upload_required');
select is(test.blob(), null, 'a policy that changed back holds at once');
select test.policy('url_allowed');
select autopost.put_media_blob('w', 'sha256:' || repeat('1', 64), 'max', 'max-bot', 'image', 'tok', null);
select is(test.blob(), '{"file_id": "tok", "url": null}', 'an id takes its place');
select test.fetched('three');
select is(test.blob(), '{"file_id": "tok", "url": null}', 'and is not replaced');
select autopost.put_media_blob('w', 'sha256:' || repeat('1', 64), 'max', 'max-bot', 'image', null, null);
select is(test.blob(), null);
select test.fetched('four');
select is(test.blob() ->> 'url', 'https://e.x/a.bin?signature=four');
select test.tick('1 day');
select is(test.blob(), null, 'it expires');
select autopost.purge_receipts('w');
select is((select count(*)::int from autopost.media_blobs where url is not null), 0, 'and is deleted');

-- A fan-out in ranges keeps it, too.
select test.set('fanout_chunk_channels', '1');
select test.fetched('five');
select autopost.run_fanout('w', 1), autopost.run_fanout('w', 1), autopost.run_fanout('w', 1);
select is(test.blob() ->> 'url', 'https://e.x/a.bin?signature=five');

-- References are counted.
select is((select o.ref_count from autopost.media_origin o), (select count(*) from autopost.message_media));
select is((select x -> 'messages' from autopost.list_media_origins('w', '{}', 10) x), '6');

select * from finish();
rollback;
