begin;
\ir fake_clock.sql
\ir world.sql
select plan(11);

select test.channel('a', p_max_parallel => 10);
select test.say('due');
select test.post('{"text": "later", "scheduled_for": "2026-06-01T13:00:00Z"}');

create temp table c on commit drop as select * from test.claim();
select is((select count(*)::int from c), 1, 'only what is due is claimed');
select is((select rendered_text from c), 'due', 'with the text that was rendered at enqueue');
select is((select attempt from c), 1, 'claiming is what counts an attempt');
select is((select sending_lease_until from c), autopost.now_ts() + interval '300 seconds', 'under a lease');
select is((select send_at from c), null, 'an unlimited channel needs no slot');
select is((test.gate('a')).inflight, 1, 'its place in flight is counted');
select is(test.claimed(), '{}', 'nothing is claimed twice');
select is((test.gate('a')).ready_at, '2026-06-01 13:00:00+00'::timestamptz, 'the gate opens when the next is due');
select test.set_clock('2026-06-01 12:59:59.999+00');
select is(test.claimed(), '{}', 'not a moment early');
select test.set_clock('2026-06-01 13:00:00+00');
select is(test.claimed(), '{a}', 'and then at once');
select is((select count(distinct claim_token)::int from autopost.deliveries), 2, 'each claim has a token of its own');

select * from finish();
rollback;
