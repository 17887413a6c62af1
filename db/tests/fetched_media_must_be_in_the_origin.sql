-- A submission fails if a fetched medium is missing in the origin. Nothing of it is enqueued.
begin;
\ir fake_clock.sql
\ir world.sql
select plan(5);

select test.channel('a');
select autopost.receive_push('w', 'in',
	'[{"text": "x", "source_ref": "1", "media": [{"type": "image", "url": "https://e.x/1.png"}]}]');
create temp table c on commit drop as select * from autopost.claim_submissions('w', 'r', 1);
select is(autopost.commit_submission('w', c.submission_id, c.claim_token,
	jsonb_build_object('ok', true, 'media',
		jsonb_build_array(jsonb_build_object('index', 0, 'blob_ref', 'sha256:' || repeat('9', 64))))),
	'{"applied": true, "status": "failed"}') from c;
select is((select row(s.status, s.last_error ->> 'code', s.claim_token)::text from autopost.submissions s),
	'(failed,rejected,)');
select is(test.count_events('submission_failed'), 1);
select is((select count(*)::int from autopost.deliveries), 0);
select is((select count(*)::int from autopost.messages), 0);

rollback;
