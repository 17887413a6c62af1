-- forecast returns when a queue will be sent, from rates, quotas and posting windows. The real
-- times match.
begin;
\ir fake_clock.sql
\ir world.sql
select plan(36);

create function test.forecast(p_channel_id text) returns jsonb
language sql
as $$
select c.value from jsonb_array_elements(autopost.forecast('w') -> 'channels') c
	where c.value ->> 'channel_id' = p_channel_id
$$;
create function test.drains(p_channel_id text) returns text
language sql
as $$
-- By what, and how long from now.
select (f ->> 'limited_by') || coalesce(' ' || ((f ->> 'drains_at')::timestamptz - autopost.now_ts())::text, '')
	from test.forecast(p_channel_id) f
$$;
create function test.at(p_channel_id text) returns timestamptz
language sql
as $$
select (test.forecast(p_channel_id) ->> 'drains_at')::timestamptz
$$;

-- Nothing waits.
select is(autopost.forecast('w') - 'as_of'::text,
	'{"status": "forecast", "waiting": 0, "held": 0, "drains_at": null, "groups": [], "channels": [], "more": 0}');

-- A rate: the first goes now, each of the others a step later.
select test.channel('r', p_rate_rps => 0.5);
select test.channel('free', p_rate_group => 'free');
select test.posts('r', 4, '{"include_channels": ["r", "free"]}');
select is(test.drains('r'), 'channel_rate 00:00:06');
select is(test.drains('free'), 'nothing 00:00:00', 'how long calls take is not known');
select is((autopost.forecast('w') ->> 'waiting')::int, 8);
select is((autopost.forecast('w') ->> 'drains_at')::timestamptz, autopost.now_ts() + interval '6 seconds',
	'the last of all');
select is((select g.value - 'drains_at'::text - 'oldest_due_at'::text from jsonb_array_elements(autopost.forecast('w') -> 'groups') g
	where g.value ->> 'rate_group' = 'bot'),
	'{"platform": "telegram", "rate_group": "bot", "channels": 1, "waiting": 4, "limited_by": "channel_rate"}');
select is((select (g.value ->> 'oldest_due_at')::timestamptz from jsonb_array_elements(autopost.forecast('w') -> 'groups') g
	where g.value ->> 'rate_group' = 'bot'),
	(select min(d.due_at) from autopost.deliveries d where d.channel_id = 'r'), 'the oldest of the group');

-- It keeps its word.
create temp table foretold on commit drop as select test.at('r') as at;
do $$
begin
	for v_second in 0..10 loop
		perform test.claim();
		perform autopost.start_call('w', d.delivery_id, d.claim_token),
			autopost.mark_sent('w', d.delivery_id, d.claim_token, '1', null, null)
		from autopost.deliveries d where d.channel_id = 'r' and d.status = 'sending';
		perform test.tick('1 second');
	end loop;
end
$$;
select is((select max((e.meta ->> 'send_at')::timestamptz) from autopost.events e
	where e.channel_id = 'r' and e.action = 'send_attempt'), (select at
	from foretold), 'the last went when it was said');
delete from autopost.events where delivery_id is not null;
delete from autopost.deliveries;

-- A group's rate: its channels in turn, so that the shorter queue is through before the longer one.
select test.channel('g1', p_rate_group => 'g');
select test.channel('g2', p_rate_group => 'g');
insert into autopost.platform_limits (workspace_id, platform, rate_group, rate_rps) values ('w', 'telegram', 'g', 1);
select test.posts('both', 2, '{"include_channels": ["g1", "g2"]}');
select test.posts('one', 6, '{"include_channels": ["g2"]}');
select is(test.drains('g1'), 'group_rate 00:00:03', 'two of its own and two of the other');
select is(test.drains('g2'), 'group_rate 00:00:09', 'ten in all');
update autopost.channels set rate_rps = 0.1 where channel_id = 'g1';
select is(test.drains('g1'), 'channel_rate 00:00:10', 'its own rate is the slower');
update autopost.platform_limits set cooldown_until = autopost.now_ts() + interval '1 minute';
select is(test.drains('g2'), 'group_rate 00:01:09', 'after what the platform asked for');
delete from autopost.events where delivery_id is not null;
delete from autopost.deliveries;

-- Quotas: a window after the other.
select test.channel('q');
insert into autopost.quotas (workspace_id, channel_id, window_seconds, max_sends) values ('w', 'q', 3600, 10);
select test.posts('quota', 25, '{"include_channels": ["q"]}');
select is(test.drains('q'), 'channel_quota 02:00:00', 'ten now, ten in an hour, five in two');
insert into autopost.quota_uses (workspace_id, delivery_id, attempt, subject, used_at)
select 'w', gen_random_uuid(), 1, 'channel:q', autopost.now_ts() - interval '30 minutes' from generate_series(1, 10);
select is((test.forecast('q') ->> 'starts_at')::timestamptz, autopost.now_ts() + interval '30 minutes',
	'not before the used ones leave their window');
select is(test.drains('q'), 'channel_quota 02:30:00');
update autopost.deliveries set render_meta = jsonb_set(render_meta, '{steps}', '[{"step": "1"}, {"step": "2"}]')
where channel_id = 'q';
select is(test.drains('q'), 'channel_quota 04:30:00', 'fifty posts in series of two');
update autopost.quotas set counts = 'calls';
select is(test.drains('q'), 'channel_quota 02:30:00', 'twenty-five calls');
update autopost.deliveries set render_meta = jsonb_set(render_meta, '{steps}', '[{"step": "1"}]') where channel_id = 'q';
delete from autopost.quotas;
insert into autopost.quotas (workspace_id, platform, rate_group, window_seconds, max_sends)
	values ('w', 'telegram', 'bot', 86400, 5);
select is(test.drains('q'), 'group_quota 4 days');
delete from autopost.quotas;
delete from autopost.events where delivery_id is not null;
delete from autopost.deliveries;

-- Posting windows: only open time counts. It is Monday noon.
select test.channel('win', p_rate_rps => 0.01);
update autopost.channels set window_mode = 'windowed',
	posting_window = '{"mon": [["12:00", "12:30"]], "tue": [["09:00", "10:00"]]}' where channel_id = 'win';
select test.posts('win', 30, '{"include_channels": ["win"]}');
create temp table opened on commit drop as select autopost.now_ts() as at;
select is(test.at('win') at time zone 'UTC',
	(select timestamp '2026-06-02 09:00' + (interval '2900 seconds' - (timestamptz '2026-06-01 12:30+00' - at))
	from opened), 'half of it tomorrow');
select is(test.forecast('win') ->> 'limited_by', 'channel_rate');
update autopost.channels set posting_window = '{"wed": [["09:00", "09:10"]]}' where channel_id = 'win';
select is((test.forecast('win') ->> 'starts_at')::timestamptz, timestamptz '2026-06-03 09:00+00');
select is(test.at('win'), timestamptz '2026-06-03 09:00+00' + interval '4 weeks' + interval '8 minutes 20 seconds',
	'six a week');
update autopost.channels set posting_window = '{"wed": [["09:00", "09:01"]]}' where channel_id = 'win';
select is(test.drains('win'), 'window', 'not in three months');
update autopost.channels set rate_rps = null, posting_window = '{"tue": [["09:00", "10:00"]]}' where channel_id = 'win';
select is(test.at('win'), timestamptz '2026-06-02 09:00+00', 'without a rate, when it opens');
select is(autopost.posting_spans('UTC',
	'{"mon": [["12:00", "13:00"], ["12:30", "14:00"]], "sun": [["23:00", "01:00"]]}', '2026-06-01 00:30+00', 7)::text,
	'{["2026-06-01 00:30:00+00","2026-06-01 01:00:00+00"),["2026-06-01 12:00:00+00","2026-06-01 14:00:00+00"),["2026-06-07 23:00:00+00","2026-06-08 00:30:00+00")}',
	'spans that overlap are one, and one goes over midnight');
select is(autopost.posting_spans('Europe/Berlin', '{"sun": [["02:00", "03:00"]]}', '2026-03-29 00:00+00', 1)::text,
	'{}', 'a skipped hour has no span');
delete from autopost.events where delivery_id is not null;
delete from autopost.deliveries;

-- Scheduled posts, and posts that time alone does not send.
select test.channel('s', p_rate_rps => 1);
select test.post(jsonb_build_object('text', 'later', 'scheduled_for', '2026-06-05T13:00:00Z', 'routing',
	'{"include_channels": ["s"]}'::jsonb));
select is(test.at('s'), timestamptz '2026-06-05 13:00+00');
select test.posts('s', 2, '{"include_channels": ["s"]}');
select is(test.forecast('s') ->> 'limited_by', 'scheduled_for');
update autopost.channels set paused_until = autopost.now_ts() + interval '10 days' where channel_id = 's';
select is(test.drains('s'), 'channel_rate 10 days 00:00:02', 'a pause is waited for');
update autopost.channels set paused_until = 'infinity' where channel_id = 's';
select is(test.drains('s'), 'channel_paused');
update autopost.channels set paused_until = null, enabled = false where channel_id = 's';
select is(test.drains('s'), 'channel_disabled');
update autopost.channels set enabled = true, auth_held = true where channel_id = 's';
select is(test.drains('s'), 'auth_lost');
update autopost.channels set auth_held = false where channel_id = 's';
update autopost.workspaces set status = 'paused';
select is(test.drains('s'), 'workspace');
update autopost.workspaces set status = 'active';
select test.channel('h');
update autopost.channels set on_unknown = 'hold' where channel_id = 'h';
select test.post('{"text": "held", "routing": {"include_channels": ["h"]}}');
select test.round('h', test.failure('TRANSIENT', 'delivery', 'timeout', '{"known": false}'));
select is(test.drains('h'), 'unknown_outcome');
select is((autopost.forecast('w') ->> 'held')::int, 1);

-- One workspace's own.
insert into autopost.workspaces (workspace_id) values ('v');
select is((autopost.forecast('v') ->> 'waiting')::int, 0);

select * from finish();
rollback;
