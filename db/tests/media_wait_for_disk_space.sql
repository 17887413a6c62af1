-- A medium without disk space is fetched again later. Its post keeps its attempts.
begin;
\ir fake_clock.sql
\ir world.sql
select plan(8);

select test.channel('a');
select autopost.receive_push('w', 'in', '[{"text": "x", "media": [{"type": "image", "url": "https://e.x/1.png"}]}]');
create function test.failed(p_code text, p_category text default 'TRANSIENT') returns jsonb
language sql
as $$
-- Claims the submission, whose fetch fails.
select autopost.commit_submission('w', c.submission_id, c.claim_token, test.failure(p_category, 'delivery', p_code))
	from autopost.claim_submissions('w', 'r', 1) c
$$;

select is(test.failed('media_no_room') ->> 'status', 'fetching');
select ok((select s.next_attempt_at from autopost.submissions s) between autopost.now_ts() + interval '24 seconds'
	and autopost.now_ts() + interval '36 seconds');
do $$
begin
	for n in 1..20 loop
		perform test.tick('1 minute');
		if test.failed('media_no_room') ->> 'status' <> 'fetching' then
			raise 'failed after % tries', n;
		end if;
	end loop;
end
$$;
select is((select s.status || ' ' || s.attempt from autopost.submissions s), 'fetching 0', 'however often');
select ok((select s.next_attempt_at from autopost.submissions s) <= autopost.now_ts() + interval '36 seconds',
	'and soon again');
select is((select s.last_error ->> 'code' from autopost.submissions s), 'media_no_room',
	'the submission has the error');

-- Its source still has all attempts.
do $$
begin
	for n in 1..7 loop
		perform test.tick('20 minutes');
		perform test.failed('http_503');
	end loop;
end
$$;
select is((select s.status || ' ' || s.attempt from autopost.submissions s), 'fetching 7');
select test.tick('20 minutes');
select is(test.failed('media_no_room') ->> 'status', 'fetching', 'not even the last one is lost');
select test.tick('20 minutes');
select is(test.failed('http_503') ->> 'status', 'failed');

select * from finish();
rollback;
