-- A worker can renew the lease of a submission with slow media. Only the holder can.
begin;
\ir fake_clock.sql
\ir world.sql
select plan(8);

select test.channel('a');
select autopost.receive_push('w', 'in', '[{"text": "x", "media": [{"type": "video", "url": "https://e.x/1.mp4"}]}]');
create temp table c on commit drop as select w.* from autopost.claim_submissions('w', 'slow', 1) w;
select test.tick('100 seconds');
select is(autopost.extend_submission('w', c.submission_id, c.claim_token) ->> 'applied', 'true') from c;
select is((select s.lease_until from autopost.submissions s), autopost.now_ts() + interval '120 seconds');
select is(autopost.extend_submission('w', c.submission_id, 'another'), '{"applied": false, "reason": "stale"}') from c;
select test.tick('119 seconds');
select is((select count(*)::int from autopost.claim_submissions('w', 'other', 1)), 0, 'still the first one''s');
select test.tick('1 second');
create temp table d on commit drop as select w.* from autopost.claim_submissions('w', 'other', 1) w;
select is((select d.attempt from d), 2, 'silent for too long');
select is(autopost.extend_submission('w', c.submission_id, c.claim_token), '{"applied": false, "reason": "stale"}')
	from c;
select is(autopost.commit_submission('w', d.submission_id, d.claim_token,
	test.failure('PERMANENT', 'delivery', 'media_fetch_410')) ->> 'status', 'failed') from d;
select is(autopost.extend_submission('w', d.submission_id, d.claim_token), '{"applied": false, "reason": "stale"}',
	'nor when it is decided') from d;

select * from finish();
rollback;
