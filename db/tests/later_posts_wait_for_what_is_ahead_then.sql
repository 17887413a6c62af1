-- plan and why of a post for later count the deliveries that are still before it then.
begin;
\ir fake_clock.sql
\ir world.sql
select plan(23);
select test.bind();

create function test.backlog(p_channel_id text, p_count int, p_scheduled_for timestamptz default null) returns void
language sql
as $$
select autopost.enqueue_messages_and_deliveries_batch('w', 'in', 'api', jsonb_agg(jsonb_strip_nulls(
	jsonb_build_object('text', gen_random_uuid(), 'scheduled_for', p_scheduled_for, 'routing',
		jsonb_build_object('include_channels', jsonb_build_array(p_channel_id))))))
from generate_series(1, p_count) n;
select test.tick('1 millisecond')
$$;
create function test.later(p_channel_id text, p_at timestamptz, p_now timestamptz default null) returns text
language sql
as $$
-- The delay of a planned post, and its wait reasons with the number ahead.
select coalesce(((c ->> 'send_at')::timestamptz - greatest(p_at, p_now))::text, 'never') || ' ' || (
	select coalesce(string_agg((h.value ->> 'gate') || coalesce(' ' || (h.value ->> 'ahead'), ''), ', '
		order by h.ordinality), '') from jsonb_array_elements(c -> 'held_by') with ordinality h)
from jsonb_array_elements(autopost.plan('w', jsonb_strip_nulls(jsonb_build_object('text', 'later',
	'scheduled_for', p_at, 'routing', jsonb_build_object('include_channels', jsonb_build_array(p_channel_id)))), p_now) -> 'channels') c
where c ->> 'verdict' = 'queued'
$$;
create function test.noon() returns timestamptz language sql as $$ select timestamptz '2026-06-11 12:00:00Z' $$;

-- A channel with a rate: 600 wait, one a second.
select test.channel('a', p_rate_rps => 1);
select test.backlog('a', 600);
select is(test.later('a', autopost.now_ts()), '00:10:00 queue 600, channel_rate', 'now: all of them');
select is(test.later('a', test.noon()), '00:00:00 scheduled_for', 'in ten days: none of them');
select is(test.later('a', autopost.now_ts() + interval '4 minutes'), '00:06:00 scheduled_for, queue 360, channel_rate',
	'in four minutes: those that have not gone by then');
select is(test.later('a', null, autopost.now_ts() + interval '4 minutes'), '00:06:00 queue 360, channel_rate',
	'as a plan for a later time');
select is(test.later('a', null, autopost.now_ts() + interval '1 hour'), '00:00:00 ');
select test.backlog('a', 3, test.noon());
select is(test.later('a', test.noon()), '00:00:03 scheduled_for, queue 3, channel_rate', 'those of the same time');
select test.backlog('a', 5, test.noon() - interval '2 seconds');
select is(test.later('a', test.noon()), '00:00:06 scheduled_for, queue 6, channel_rate',
	'and those that come just before, from their time on');
select is(test.later('a', test.noon() + interval '1 hour'), '00:00:00 scheduled_for');
select autopost.enqueue_messages_and_deliveries('w', 'in', 'api', jsonb_build_object('text', 'why', 'scheduled_for',
	test.noon(), 'routing', '{"include_channels": ["a"]}'::jsonb));
select test.tick('1 millisecond');
select is((select array[w -> 'now' ->> 'send_at', w #>> '{now,held_by,1,ahead}'] from autopost.why('w', (
	select d.delivery_id from autopost.deliveries d join autopost.messages m using (workspace_id, message_id)
	where m.payload ->> 'text' = 'why')) w), array['2026-06-11T12:00:06+00:00', '6'], 'why says the same');

-- A paused channel sends nothing meanwhile.
update autopost.channels set paused_until = test.noon() - interval '1 minute' where channel_id = 'a';
select is(test.later('a', test.noon()), '00:09:09 scheduled_for, channel_paused, queue 549, channel_rate',
	'a minute is left for 609');
update autopost.channels set paused_until = null where channel_id = 'a';

-- A posting window: 33 minutes a day.
update autopost.channels set window_mode = 'windowed', posting_window = (select jsonb_object_agg(d,
	'[["11:00", "11:02"], ["11:59", "12:30"]]'::jsonb) from unnest('{mon,tue,wed,thu,fri,sat,sun}'::text[]) d)
	where channel_id = 'a';
select is(test.later('a', test.noon()), '00:00:07 scheduled_for, queue 7, channel_rate');
update autopost.channels set rate_rps = 0.05 where channel_id = 'a';
select is(test.later('a', '2026-06-03 12:00Z'), '4 days 00:02:00.004 scheduled_for, queue 600, channel_rate',
	'the queue moves only in the window');
update autopost.channels set window_mode = 'immediate' where channel_id = 'a';

-- No rate: what is due has gone, what is scheduled for the same time has not.
select test.channel('free', p_rate_group => 'bot');
select test.backlog('free', 5);
select is(test.later('free', autopost.now_ts()), '00:00:00 queue 5');
select is(test.later('free', test.noon()), '00:00:00 scheduled_for');
select test.backlog('free', 2, test.noon());
select is(test.later('free', test.noon()), '00:00:00 scheduled_for, queue 2');
update autopost.channels set paused_until = test.noon() + interval '1 day' where channel_id = 'free';
select is(test.later('free', test.noon()), '1 day scheduled_for, channel_paused, queue 7');
update autopost.channels set paused_until = null where channel_id = 'free';
select test.claimed();
select is(test.later('free', autopost.now_ts()), '00:00:00 max_parallel, queue 4');
select is(test.later('free', test.noon()), '00:00:00 scheduled_for, queue 2', 'the call in flight is over then');

-- A rate group: one in two seconds for all its channels.
select test.bind('g');
select test.channel('g' || n, p_rate_group => 'g') from generate_series(1, 2) n;
insert into autopost.platform_limits (workspace_id, platform, rate_group, rate_rps) values ('w', 'telegram', 'g', 0.5);
select test.backlog('g1', 100), test.backlog('g2', 50);
select is(test.later('g1', autopost.now_ts()), '00:05:00 queue 100, group_rate 150');
select is(test.later('g1', test.noon()), '00:00:00 scheduled_for');
select is(test.later('g1', autopost.now_ts() + interval '4 minutes'), '00:01:00 scheduled_for, group_rate 30');
select test.backlog('g2', 4, test.noon());
select is(test.later('g1', test.noon()), '00:00:08 scheduled_for, group_rate 4');
select is((select (p ->> 'last_at')::timestamptz - test.noon() from autopost.plan('w', jsonb_build_object('text', 'both',
	'scheduled_for', test.noon(), 'routing', '{"include_channels": ["g1", "g2"]}'::jsonb), null) p), '10 seconds',
	'the second of the plan goes after the first');
select * from finish();
rollback;
