begin;
\ir fake_clock.sql
\ir world.sql
select plan(14);

select test.channel('idle');
select test.channel('started');
select test.say('x');
create temp table c on commit drop as select * from test.claim();
select test.start('started');

select is(autopost.release_claims('w', array(select claim_token from c)), '{"applied": true, "released": 1}');
select is((test.row('started')).status, 'sending', 'a call that began is not released');
select is((test.row('idle')).status, 'retry');
select is((test.row('idle')).attempt, 1, 'attempt only grows');
select is((test.row('idle')).granted_attempts, 1, 'so another one is granted');
select is((test.row('idle')).next_retry_at, autopost.now_ts(), 'and it is due at once');
select is(test.actions('idle'), '{released}');
select is((test.gate('idle')).inflight, 0);
select is(autopost.release_claims('w', array(select claim_token from c)) ->> 'released', '0', 'once');
select is(autopost.release_claims('w', '{}') ->> 'released', '0', 'an empty list is not an error');

select is(autopost.commit_outcome('w', delivery_id, claim_token, test.sent('1')) ->> 'reason', 'stale',
	'the released claim is over') from c where channel_id = 'idle';

-- However often it is released, five calls remain.
do $$
begin
	for n in 1..7 loop
		perform autopost.release_claims('w', array(select claim_token from test.claim() where channel_id = 'idle'));
	end loop;
	for n in 1..4 loop
		perform test.round('idle', test.failure('TRANSIENT', 'delivery', 'http_500'));
		perform test.tick('15 minutes');
	end loop;
end
$$;
select is((test.row('idle')).status, 'retry', 'four calls do not end it');
select is(test.round('idle', test.failure('TRANSIENT', 'delivery', 'http_500')) ->> 'status', 'dead', 'the fifth does');
select is((select count(*)::int from autopost.events where action = 'send_attempt' and channel_id = 'idle'), 5);

select * from finish();
rollback;
