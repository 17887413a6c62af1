-- Two-phase callers and older versions may leave rows in claimed. These rows return.
begin;
\ir fake_clock.sql
\ir world.sql
select plan(8);

select test.channel('a');
select test.channel('b');
select test.say('x');
update autopost.deliveries set status = 'claimed', claim_token = 't' || channel_id, claimed_by = 'old',
	claimed_at = autopost.now_ts();
update autopost.deliveries set claimed_at = autopost.now_ts() + interval '1 second' where channel_id = 'b';
select test.tick('299.9 seconds');
select is(autopost.recover_claimed_leases('w'), '{"recovered": 0}');
select test.tick('0.1 seconds');
select is(autopost.recover_claimed_leases('w'), '{"recovered": 1}', 'after claimed_lease_seconds');
select is((test.row('a')).status, 'queued');
select is((test.row('a')).claim_token, null);
select is((test.row('a')).attempt, 0, 'no call, no attempt');
select is(test.actions('a'), '{claimed_lease_expired}');
select is((test.row('b')).status, 'claimed');
select ok('a' = any (test.claimed()), 'and it is taken again');

select * from finish();
rollback;
