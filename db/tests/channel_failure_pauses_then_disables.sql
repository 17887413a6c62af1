begin;
\ir fake_clock.sql
\ir world.sql
select plan(19);

select test.channel('a', p_max_parallel => 10);
select test.channel('b', p_max_parallel => 10);
select test.say('post ' || n) from generate_series(1, 5) n;
create temp table c on commit drop as select * from test.claim() where channel_id = 'a';
create function test.refused(p_n int) returns jsonb
language sql
as $$
-- The platform refuses the channel for its n-th post.
select autopost.commit_outcome('w', c.delivery_id, c.claim_token, test.failure('PERMANENT', 'channel', 'http_403'))
from c where c.rendered_text = 'post ' || p_n
$$;

select is(test.refused(1) ->> 'status', 'failed_permanent');
select is((test.channel_row('a')).error_streak, 1);
select is((test.channel_row('a')).paused_until, autopost.now_ts() + interval '1 hour', 'the channel pauses');
select ok((test.channel_row('a')).enabled);
select is(test.count_events('channel_paused', 'a'), 1);
select is((test.channel_row('b')).error_streak, 0, 'the others do not notice');
select test.tick('1 second');
select test.say('post 6');
select is(test.claimed(), '{b}', 'its queue waits, theirs moves');
select is((test.gate('a')).ready_at, (test.channel_row('a')).paused_until, 'until the pause runs out');

select test.refused(2);
select is((test.channel_row('a')).error_streak, 2);
select is(test.count_events('channel_disabled'), 0);
select is(test.refused(3) ->> 'status', 'failed_permanent');
select ok(not (test.channel_row('a')).enabled, 'the third in a row disables it');
select is(test.count_events('channel_disabled', 'a'), 1);
select test.refused(4);
select is(test.count_events('channel_disabled', 'a'), 1, 'once');
select test.tick('2 hours');
select is(test.claimed(), '{}', 'a pause that ran out does not revive a disabled channel');
select is(test.say('post 7') -> 'deliveries' -> 0 ->> 'channel_id', 'b', 'nor does it get new posts');

-- sent ends the streak; the pause alone does not.
update autopost.channels set enabled = true, error_streak = 0 where channel_id = 'a';
select test.round('a', test.failure('PERMANENT', 'channel', 'http_403'));
select test.post('{"text": "next", "routing": {"include_channels": ["a"]}}');
select test.tick('1 hour');
select test.claimed();
select is((test.channel_row('a')).error_streak, 1, 'a pause that ran out keeps the streak');
select test.start('a');
select test.commit('a', test.sent('1'));
select is((test.channel_row('a')).error_streak, 0, 'a post that was sent ends it');
select is((test.channel_row('a')).paused_until, autopost.now_ts());

select * from finish();
rollback;
