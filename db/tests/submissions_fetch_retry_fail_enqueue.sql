-- A post with media to fetch is durable at once, processed under a lease, and finally enqueued or
-- failed.
begin;
\ir fake_clock.sql
\ir world.sql
select plan(48);

select test.channel('a');
insert into autopost.media_origin (workspace_id, blob_ref, origin_url, size_bytes)
	values ('w', 'sha256:' || repeat('1', 64), 'file:///1', 10);
create function test.push(p_text text) returns jsonb
language sql
as $$
select autopost.receive_push('w', 'in', jsonb_build_array(jsonb_build_object('text', p_text, 'source_ref', p_text,
	'media', '[{"type": "image", "url": "https://e.x/1.png"}, {"type": "image", "blob_ref": "sha256:1111111111111111111111111111111111111111111111111111111111111111"}]'::jsonb))) -> 'results' -> 0
$$;
create function test.work(p_run text default 'r') returns autopost.claimed_submission
language sql
as $$
select c from autopost.claim_submissions('w', p_run, 1) c
$$;
create function test.failed(p_code text, p_category text default 'TRANSIENT', p_more jsonb default '{}') returns jsonb
language sql
as $$
-- Claims one submission, whose fetch fails.
select autopost.commit_submission('w', c.submission_id, c.claim_token,
	test.failure(p_category, 'delivery', p_code, p_more)) from test.work() c where c.submission_id is not null
$$;

create temp table p on commit drop as select test.push('x') as answer;
select is((select answer ->> 'status' from p), 'accepted');
select is((select answer ->> 'message_id' from p), null);
select is((select count(*)::int from autopost.submissions s, p
	where s.submission_id = (p.answer ->> 'submission_id')::uuid and s.status = 'fetching'), 1,
	'kept before it is answered');
select is((select count(*)::int from autopost.messages), 0);
select is(test.push('x') ->> 'status', 'duplicate', 'its receipt holds already');
select is(array(select autopost.ready_submission_workspaces(5)), '{w}');

create temp table c on commit drop as select w.* from test.work() w;
select is((select row(attempt, kind, endpoint_id)::text from c), '(1,push,in)');
select is((select lease_until from c), autopost.now_ts() + interval '120 seconds');
select is((test.work('other')).submission_id, null, 'leased: nobody else gets it');
select is(array(select autopost.ready_submission_workspaces(5)), '{}');

-- A worker that is gone.
select test.tick('120 seconds');
create temp table d on commit drop as select w.* from test.work('other') w;
select is((select attempt from d), 2, 'after its lease the next one takes it');
select is(autopost.commit_submission('w', submission_id, claim_token, '{"ok": true, "media": [{"index": 0, "blob_ref": "sha256:1111111111111111111111111111111111111111111111111111111111111111"}]}') ->> 'reason', 'stale', 'the first commit is stale') from c;
select is((select status from autopost.submissions), 'fetching');

-- Fetched.
select autopost.put_media_origin('w', 'sha256:' || repeat('2', 64), 'file:///2', 'image/png', 10, 'image', 1, 1);
create temp table e on commit drop as
select autopost.commit_submission('w', submission_id, claim_token, '{"ok": true, "media": [{"index": 0, "blob_ref": "sha256:2222222222222222222222222222222222222222222222222222222222222222"}]}') as answer from d;
select is((select answer ->> 'status' from e), 'enqueued');
select is((select answer ->> 'enqueued' from e), '1');
select is((select s.status || ' ' || (s.message_id = (e.answer ->> 'message_id')::uuid) from autopost.submissions s, e),
	'enqueued true');
select is((select jsonb_path_query_array(payload, '$.media[*].blob_ref') from autopost.messages),
	jsonb_build_array('sha256:' || repeat('2', 64), 'sha256:' || repeat('1', 64)), 'in the order of the post');
select is((select payload -> 'media' -> 0 ->> 'fingerprint' from autopost.messages), 'sha256:' || repeat('2', 64),
	'known by its content');
select is((select trace_id::text from autopost.deliveries), (select answer ->> 'trace_id' from p),
	'under the trace of the push');
select is((select ingest_run_id::text from autopost.deliveries), (select answer ->> 'run_id' from p), 'and its run');
select is((select r.stats_json -> 'enqueued' from autopost.ingest_runs r, p
	where r.run_id = (p.answer ->> 'run_id')::uuid), '1', 'whose counts grow');
create temp table again on commit drop as
select autopost.commit_submission('w', submission_id, claim_token, '{"ok": true, "media": []}') as answer from d;
select is((select answer ->> 'applied' from again), 'false', 'a repeated commit');
select is((select answer ->> 'message_id' from again), (select answer ->> 'message_id' from e), 'gets the same result');
select is((select count(*)::int from autopost.deliveries), 1, 'and does nothing');
select is(autopost.get_run('w', (answer ->> 'run_id')::uuid) -> 'items' -> 0 ->> 'submission_status', 'enqueued',
	'the run shows it, too') from p;
select is(autopost.get_run('w', (answer ->> 'run_id')::uuid) -> 'items' -> 0 ->> 'message_id',
	(select answer ->> 'message_id' from e)) from p;

-- A fetch that fails is tried again later.
select test.push('y');
select is(test.failed('http_503') ->> 'status', 'fetching');
select ok((select next_attempt_at from autopost.submissions
	where source_ref = 'y') between autopost.now_ts() + interval '1.6 seconds'
	and autopost.now_ts() + interval '2.4 seconds');
select is((test.work()).submission_id, null, 'not before');
select test.tick('3 seconds');
select is(test.failed('http_429', 'TRANSIENT', '{"retry_after_ms": 60000}') ->> 'status', 'fetching');
select ok((select next_attempt_at from autopost.submissions
	where source_ref = 'y') >= autopost.now_ts() + interval '60 seconds', 'and not before the source allows');
do $$
begin
	for n in 3..7 loop
		perform test.tick('20 minutes');
		if test.failed('http_503') ->> 'status' <> 'fetching' then
			raise 'failed after % attempts', n;
		end if;
	end loop;
	perform test.tick('20 minutes');
end
$$;
select is(test.failed('http_503') ->> 'status', 'failed', 'the eighth attempt is the last');
select is(test.count_events('submission_failed'), 1);
select is((select e.meta ->> 'submission_id' from autopost.events e
	where e.action = 'submission_failed'), (select submission_id::text from autopost.submissions
	where source_ref = 'y'));
select test.tick('1 day');
select is((test.work()).submission_id, null, 'failed stays failed');

-- Permanent errors fail at once. Missing media get one more try.
select test.push('z');
select is(test.failed('media_too_large', 'PERMANENT') ->> 'status', 'failed');
select test.push('q');
select is(test.failed('media_fetch_404') ->> 'status', 'fetching');
select test.tick('1 hour');
select is(test.failed('media_fetch_404') ->> 'status', 'failed', 'twice not found');

-- A worker that omits a medium, or names it wrongly, gets an error; the post is not lost.
select test.push('u');
create temp table u on commit drop as select w.* from test.work() w;
select throws_ok(format($$select autopost.commit_submission('w', %L, %L, '{"ok": true, "media": []}')$$, submission_id,
	claim_token), 'AP001', null, 'a medium is missing') from u;
select throws_ok(format($$select autopost.commit_submission('w', %L, %L,
	'{"ok": true, "media": [{"index": 0, "blob_ref": "1.png"}]}')$$, submission_id, claim_token), 'AP001', null,
	'no such reference') from u;
select is((select status from autopost.submissions where source_ref = 'u'), 'fetching');
select is(autopost.commit_submission('w', submission_id, claim_token,
	test.failure('PERMANENT', 'delivery', 'x')) ->> 'status', 'failed') from u;

-- A platform's refusal is found at the enqueue, as ever.
insert into autopost.media_origin (workspace_id, blob_ref, origin_url, size_bytes)
	values ('w', 'sha256:' || repeat('3', 64), 'file:///3', 99999999);
select test.push('w');
create temp table big on commit drop as select w.* from test.work() w;
create temp table f on commit drop as
select autopost.commit_submission('w', submission_id, claim_token,
	jsonb_build_object('ok', true, 'media',
	jsonb_build_array(jsonb_build_object('index', 0, 'blob_ref', 'sha256:' || repeat('3', 64))))) as answer from big;
select is((select answer ->> 'invalid' from f), '1');
select is((select status from autopost.submissions where source_ref = 'w'), 'enqueued',
	'the post is taken all the same');

-- The workspace's status: a paused one still works on what it took, a disabled one does not.
select test.push('v');
update autopost.workspaces set status = 'paused';
select is(array(select autopost.ready_submission_workspaces(5)), '{w}');
update autopost.workspaces set status = 'disabled';
select is(array(select autopost.ready_submission_workspaces(5)), '{}');
update autopost.workspaces set status = 'active';
select throws_ok($$select autopost.claim_submissions('w', '', 1)$$, 'AP001');
select throws_ok($$select autopost.claim_submissions('w', 'r', 0)$$, 'AP001');

select * from finish();
rollback;
