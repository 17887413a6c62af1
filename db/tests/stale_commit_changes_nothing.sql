-- Each commit function refuses a worker with an expired claim while another worker has the
-- delivery.
begin;
\ir fake_clock.sql
\ir world.sql
select plan(27);

select test.channel('a');
select test.say('x');
create temp table old on commit drop as select * from test.claim();
select autopost.release_claims('w', array(select claim_token from old));
create temp table present on commit drop as select * from test.claim();
create temp table before on commit drop as select to_jsonb(d) as d, to_jsonb(c) as c, to_jsonb(g) as g
from test.row('a') d, test.channel_row('a') c, test.gate('a') g;

create function test.stale(p_what text, p_answer jsonb, p_reason text default 'stale') returns setof text
language plpgsql
as $$
begin
	return next is(p_answer ->> 'applied', 'false', p_what || ' of a lost claim is refused');
	return next is(p_answer ->> 'reason', p_reason, p_what || ' says why');
	return next is((select jsonb_build_array(to_jsonb(d), to_jsonb(c), to_jsonb(g))
		from test.row('a') d, test.channel_row('a') c, test.gate('a') g),
		(select jsonb_build_array(b.d, b.c, b.g) from before b), p_what || ' changes nothing');
end
$$;

select test.stale('commit_outcome', autopost.commit_outcome('w', delivery_id, claim_token, test.sent('1'))) from old;
select test.stale('mark_sent', autopost.mark_sent('w', delivery_id, claim_token, '1', autopost.now_ts(), '{}'))
	from old;
select test.stale('schedule_retry', autopost.schedule_retry('w', delivery_id, claim_token,
	test.failure('TRANSIENT', 'channel', '429', '{"retry_after_ms": 9000}') -> 'error')) from old;
select test.stale('fail_permanent', autopost.fail_permanent('w', delivery_id, claim_token,
	test.failure('PERMANENT', 'channel', '403') -> 'error')) from old;
select test.stale('start_call', autopost.start_call('w', delivery_id, claim_token)) from old;
select test.stale('extend_lease', autopost.extend_lease('w', delivery_id, claim_token, 900)) from old;
select is(autopost.release_claims('w', array(select claim_token from old)) ->> 'released', '0',
	'nothing of a lost claim is released');
select is(test.count_events('stale_commit'), 4, 'each refused commit leaves an event');
select is(autopost.commit_outcome('w', '00000000-0000-7000-8000-000000000000', 'x', test.sent('1')) ->> 'reason',
	'unknown_delivery', 'a delivery that is not there');
select is(autopost.commit_outcome('w', delivery_id, 'invented', test.sent('1')) ->> 'applied', 'false',
	'a token that never was') from present;

select is(autopost.commit_outcome('w', delivery_id, claim_token, test.sent('7')) ->> 'applied', 'true',
	'the holder commits') from present;
select is(autopost.commit_outcome('w', delivery_id, claim_token,
	test.failure('PERMANENT', 'channel', '403')) ->> 'applied', 'false', 'the old one still cannot') from old;
select is((test.row('a')).provider_message_id, '7');
select is((test.row('a')).status, 'sent');
select is((test.channel_row('a')).error_streak, 0);

select * from finish();
rollback;
