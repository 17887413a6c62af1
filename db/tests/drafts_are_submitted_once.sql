-- A draft belongs to one person, may be unfinished, keeps its media, and becomes one post.
begin;
\ir fake_clock.sql
\ir world.sql
select plan(30);

select test.channel('a');
create function test.put(p_id uuid, p_fields text, p_author text default 'user:olga') returns jsonb
language sql
as $$
select autopost.put_draft('w', p_id, p_fields::jsonb, p_author)
$$;
create function test.only() returns uuid
language sql
as $$
select d.draft_id from autopost.drafts d order by d.draft_id limit 1
$$;
select is(test.put(null, '{}') - 'draft_id', '{"applied": true, "version": 1}', 'an empty draft');
select is(test.put(test.only(), '{"payload": {"text": 7, "media": [{}]}, "version": 1}') -> 'version', '2',
	'a post that is not valid yet');
select is(test.put(test.only(), '{"payload": {"text": "late"}, "version": 1}') - 'draft_id',
	'{"applied": false, "reason": "changed", "version": 2}', 'another page has changed it');
select is(test.put(test.only(), '{"endpoint_id": "in"}') -> 'version', '3', 'no version: the last one wins');
select is((select (d.payload, d.endpoint_id)::text from autopost.drafts d),
	'("{""text"": 7, ""media"": [{}]}",in)', 'missing fields stay');
select is(test.put(test.only(), '{"payload": []}') #>> '{errors,0,field}', 'payload');
select is(test.put(test.only(), '{"endpoint_id": 7}') #>> '{errors,0,field}', 'endpoint_id');
select is(test.put(test.only(), '{"version": "x"}') #>> '{errors,0,field}', 'version');
select is(test.put(test.only(), jsonb_build_object('payload', jsonb_build_object('text', repeat('x', 262144)))::text)
	#>> '{errors,0,reason}', 'is longer than 262144 bytes');
select throws_ok($$select test.put(null, '{"colour": 1}')$$, 'AP001');

-- Nobody else sees it.
select is(test.put(test.only(), '{"payload": {}}', 'user:ivan') ->> 'reason', 'unknown_draft');
select is(autopost.get_draft('w', test.only(), 'user:ivan'), null);
select is(autopost.submit_draft('w', test.only(), 'api', 'user:ivan') ->> 'reason', 'unknown_draft');
select is(autopost.remove_draft('w', test.only(), 'user:ivan') ->> 'reason', 'unknown_draft');
select is((select count(*)::int from autopost.list_drafts('w', '{"author": "user:ivan"}', 10)), 0);
select is((select count(*)::int from autopost.list_drafts('w', '{"author": "user:olga"}', 10)), 1);

-- What is wrong stays a draft; what is right becomes one post.
select is(autopost.submit_draft('w', test.only(), 'api', 'user:olga') ->> 'status', 'rejected');
select is(autopost.get_draft('w', test.only(), 'user:olga') ->> 'submitted_at', null, 'it stays a draft');
select test.put(test.only(), '{"payload": {"text": "done"}}');
select is(autopost.submit_draft('w', test.only(), 'api', 'user:olga') ->> 'status', 'enqueued');
select is(autopost.submit_draft('w', test.only(), 'api', 'user:olga') - array['run_id', 'trace_id', 'message_id',
	'deliveries', 'draft_id'], '{"status": "enqueued", "enqueued": 1, "deduped": 0, "invalid": 0, "skipped": 0,
	"fanout": "done", "repeated": true}', 'a second press gets the first answer');
select is((select count(*)::int from autopost.deliveries), 1);
select is(test.put(test.only(), '{"payload": {}}') ->> 'reason', 'submitted');
select is(autopost.remove_draft('w', test.only(), 'user:olga') ->> 'reason', 'submitted');

-- The media of an open draft stay.
select autopost.put_media_origin('w', 'sha256:' || repeat('a', 64), 'file:///x', 'image/png', 10, 'image', 1, 1);
select test.put(null, jsonb_build_object('payload', jsonb_build_object('media', jsonb_build_array(
	jsonb_build_object('type', 'image', 'blob_ref', 'sha256:' || repeat('a', 64)))))::text);
select test.tick('400 days');
select is(autopost.list_unreferenced_origins('w', 10), '[]', 'a draft uses it');
select is(autopost.purge_submissions('w') -> 'purged', '0');
select is((select count(*)::int from autopost.drafts), 1, 'the submitted one is gone, the open one stays');
select is(autopost.remove_draft('w', test.only(), 'user:olga') -> 'applied', 'true');
select isnt(autopost.list_unreferenced_origins('w', 10), '[]', 'nobody uses it');

-- A person has a bounded number.
insert into autopost.drafts (workspace_id, draft_id, author, payload, created_at, updated_at)
select 'w', autopost.new_id(), 'user:olga', '{}', now(), now() from generate_series(1, 500);
select is(test.put(null, '{}') ->> 'reason', 'too_many_drafts');

-- The author of a moderated post cannot be one of two who approve.
update autopost.workspaces set approvals_needed = 2 where workspace_id = 'w';
update autopost.workspace_endpoints set moderated = true where endpoint_id = 'in';
select autopost.submit_post('w', 'in', 'api', '{"text": "mine"}', 'user:olga');
select is(autopost.decide_submission('w', s.submission_id, 'approve', '{}', 'user:olga', 'r') ->> 'reason',
	'own_approval') from autopost.submissions s where s.status in ('fetching', 'pending');
select * from finish();
rollback;
