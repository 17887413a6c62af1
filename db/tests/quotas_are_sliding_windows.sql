-- In each window, a channel or a rate group starts at most as many posts or calls as its quota allows.
begin;
\ir fake_clock.sql
\ir world.sql
select plan(65);

create function test.send(p_channel_id text) returns text
language sql
as $$
-- Claims, and calls and sends the channel's delivery in flight: its status, or nothing when none was claimed.
select test.claimed();
select autopost.start_call('w', d.delivery_id, d.claim_token) from autopost.deliveries d
	where d.channel_id = p_channel_id and d.status = 'sending';
select autopost.commit_outcome('w', d.delivery_id, d.claim_token, test.sent('1')) ->> 'status'
from autopost.deliveries d where d.channel_id = p_channel_id and d.status = 'sending'
$$;
create function test.waits(p_channel_id text) returns int
language sql
as $$
select count(*)::int from autopost.deliveries d where d.channel_id = p_channel_id and d.status in ('queued', 'retry')
$$;

-- A channel: two in an hour, three in a day.
select test.channel('x', p_max_parallel => 10);
select test.channel('free', p_max_parallel => 10, p_rate_group => 'another');
insert into autopost.quotas (workspace_id, channel_id, window_seconds, max_sends)
	values ('w', 'x', 3600, 2), ('w', 'x', 86400, 3);
select test.posts('post', 6);
create temp table t on commit drop as select autopost.now_ts() as at;

select is((select array_agg(channel_id order by channel_id) from test.claim()), '{free,free,free,free,free,free,x,x}',
	'no more than its window leaves; who has no quota notices nothing');
select is((select count(*)::int from autopost.quota_uses), 2, 'a claim counts from its beginning');
select is((test.gate('x')).ready_at, (select at + interval '10 minutes' from t), 'its gate waits, ten minutes at most');
select is(test.waits('x'), 4, 'and nothing is dropped');
select test.tick('1 second');
select autopost.commit_outcome('w', delivery_id, claim_token, test.sent('1')) from autopost.deliveries
	where channel_id = 'free' and status = 'sending';
select is(test.send('x'), 'sent');
select is(test.send('x'), 'sent');
select is((select array_agg(distinct used_at) from autopost.quota_uses), array[autopost.now_ts()],
	'the call counts from when it began');
select test.tick('10 minutes');
select is(test.claimed(), '{}');
select is((test.gate('x')).ready_at, (select at + interval '20 minutes 1 second' from t));
select is(autopost.rearm_gates('w'), '{"rearmed": 0}', 'the net knows why the gate is shut');
select test.set_clock((select at + interval '1 hour' from t));
select is(test.claimed(), '{}', 'a moment before the window has passed');
select is((test.gate('x')).ready_at, (select at + interval '1 hour 1 second' from t),
	'until the next free instant when it is nearer');
select test.tick('999.999 milliseconds');
select is(test.claimed(), '{}', 'up to the last microsecond');
select test.tick('0.001 milliseconds');
select is(test.claimed(), '{x}', 'the window has slid: the hour has room for two, the day for one');
select is(test.send('x'), 'sent');
select test.tick('2 hours');
select is(test.claimed(), '{}', 'the day is full');
select test.set_clock((select at + interval '1 day' from t));
select is(test.claimed(), '{}');
select test.tick('1 second');
select is(test.claimed(), '{x,x}', 'and frees after a day');
select is((select count(*)::int from autopost.quota_uses), 3, 'what no window reaches any more is forgotten');

-- Refund: a claim whose call did not start does not use the quota.
select is(autopost.release_claims('w', array(select claim_token from autopost.deliveries
	where channel_id = 'x' and status = 'sending')) ->> 'released', '2');
select is((select count(*)::int from autopost.quota_uses), 1, 'released claims are given back');
select is(test.claimed(), '{x,x}', 'and may be claimed again at once');
select test.tick('10 minutes');
select is(autopost.recover_sending_leases('w') ->> 'recovered', '2');
select is((select count(*)::int from autopost.quota_uses), 1, 'so are those whose lease ran out before the call');
select test.tick('1 minute');
select is(test.claimed(), '{x,x}');
update autopost.channels set paused_until = autopost.now_ts() + interval '1 minute' where channel_id = 'x';
select is((select array_agg(s ->> 'reason') from (select autopost.start_call('w', delivery_id, claim_token) as s
	from autopost.deliveries where channel_id = 'x' and status = 'sending') c),
	'{paused,paused}');
select is((select count(*)::int from autopost.quota_uses), 1, 'and those that start_call hands back');
select ok((select not bool_or(quota_held) from autopost.deliveries), 'nothing in flight holds a quota');

-- A failed call is a call, and no post.
update autopost.quotas set counts = 'calls';
select test.tick('2 minutes');
select test.claimed();
select autopost.start_call('w', delivery_id, claim_token),
	autopost.commit_outcome('w', delivery_id, claim_token, test.failure('TRANSIENT', 'delivery', 'http_500'))
from autopost.deliveries where channel_id = 'x' and status = 'sending';
select is((select count(*)::int from autopost.quota_uses), 3, 'a call that failed has used its place');
select test.tick('1 minute');
select is(test.claimed(), '{}');

-- Changes by an operator apply at once.
update autopost.quotas set max_sends = 5;
select is((test.gate('x')).ready_at <= autopost.now_ts(), true, 'a quota that was raised opens the gate');
select is(test.claimed(), '{x,x}', 'as far as it was raised');
delete from autopost.quotas;
select is((select count(*)::int from autopost.quota_uses), 0, 'without a quota nothing is counted');
select is(test.claimed(), '{x}', 'nor held back');

-- A rate group: three in an hour, for all its channels together.
select test.channel('g' || n, p_max_parallel => 2, p_rate_group => 'group') from generate_series(1, 4) n;
insert into autopost.quotas (workspace_id, platform, rate_group, window_seconds, max_sends)
	values ('w', 'telegram', 'group', 3600, 3);
select test.posts('more', 2, '{"include_channels": ["g1", "g2", "g3", "g4", "free"]}');
select is((select count(distinct channel_id)::int from test.claim() where rate_group = 'group'), 3,
	'by turns, until the group''s quota is used up');
select is((select quota_until from autopost.platform_limits where rate_group = 'group'),
	autopost.now_ts() + interval '10 minutes', 'then the group waits as one');
select ok((select min(g.ready_at) from autopost.ready_groups('w') g) > autopost.now_ts(),
	'and nobody is called for it');
select test.tick('1 second');
select is(autopost.release_claims('w', array(select claim_token from autopost.deliveries
	where channel_id like 'g%' and status = 'sending' order by channel_id limit 1)) ->> 'released', '1');
select is((select quota_until from autopost.platform_limits where rate_group = 'group'), null,
	'what is given back is free for all of them');
select is((select count(*)::int from test.claim() where rate_group = 'group'), 1);

-- A quota of posts: a definite failure gives the post back, an unknown outcome does not.
delete from autopost.quotas;
create function test.claimed_of(p_channel_id text) returns int
language sql
as $$
select count(*)::int from test.claim() c where c.channel_id = p_channel_id
$$;
select test.channel('p', p_max_parallel => 10, p_rate_group => 'posts');
insert into autopost.quotas (workspace_id, channel_id, window_seconds, max_sends) values ('w', 'p', 3600, 3);
select is((select counts from autopost.quotas), 'posts', 'quotas count posts by default');
select test.posts('p', 8, '{"include_channels": ["p"]}');
select test.tick('1 second');
select is(test.claimed_of('p'), 3);
create temp table held on commit drop as
	select row_number() over (order by delivery_id) as n, delivery_id, claim_token, autopost.now_ts() as at
	from autopost.deliveries where channel_id = 'p' and status = 'sending';
select autopost.start_call('w', delivery_id, claim_token) from held;
select test.tick('1 second');
select is(autopost.commit_outcome('w', delivery_id, claim_token, test.failure('TRANSIENT', 'delivery', 'http_500'))
	->> 'status', 'retry') from held where n = 1;
select is((select array_agg(u.posts order by h.n) from autopost.quota_uses u join held h using (delivery_id)), '{0,1,1}',
	'the platform has no post');
select ok((test.gate('p')).ready_at <= autopost.now_ts(), 'the next post may go');
select is(test.claimed_of('p'), 1, 'in its place');
select is(autopost.commit_outcome('w', delivery_id, claim_token,
	'{"ok": false, "error": {"category": "TRANSIENT", "scope": "delivery", "code": "timeout", "known": false}}') ->> 'status',
	'retry') from held where n = 2;
select is(autopost.commit_outcome('w', delivery_id, claim_token, test.sent('3')) ->> 'status', 'sent') from held where n = 3;
select is((select array_agg(u.posts order by h.n) from autopost.quota_uses u join held h using (delivery_id)), '{0,1,1}',
	'the platform may have the second and has the third');
select is(test.claimed_of('p'), 0);
select is((select used from autopost.list_quotas('w', 10)), 3);

-- A sent post without start_call counts.
select is(autopost.commit_outcome('w', delivery_id, claim_token, test.sent('4')) ->> 'status', 'sent')
from autopost.deliveries where channel_id = 'p' and status = 'sending';
select is((select used from autopost.list_quotas('w', 10)), 3);

-- A post that was found instead of sent counts for the call that made it.
select test.set_clock((select at + interval '30 minutes' from held limit 1));
update autopost.quotas set max_sends = 9 where channel_id = 'p';
select is(test.claimed_of('p'), 6);
select autopost.start_call('w', delivery_id, claim_token), autopost.commit_outcome('w', delivery_id, claim_token,
	test.sent('2') || '{"raw": {"reconciled": true}}')
from autopost.deliveries where channel_id = 'p' and status = 'sending' and unknown_outcomes = 1;
select is((select array_agg(u.posts order by u.attempt) from autopost.quota_uses u
	where u.delivery_id in (select delivery_id from autopost.deliveries where channel_id = 'p' and unknown_outcomes = 1)),
	'{1,0}');

-- A series counts its posts and waits until all fit. Those behind it wait too.
select test.channel('s', p_max_parallel => 10, p_rate_group => 'series');
insert into autopost.quotas (workspace_id, channel_id, window_seconds, max_sends) values ('w', 's', 3600, 4);
select test.posts('s', 4, '{"include_channels": ["s"]}');
create temp table series on commit drop as
	select row_number() over (order by due_at, delivery_id) as n, delivery_id from autopost.deliveries where channel_id = 's';
update autopost.deliveries d set render_meta = jsonb_set(d.render_meta, '{steps}',
	'[{"step": "1"}, {"step": "2"}, {"step": "3"}]')
from series s where s.delivery_id = d.delivery_id and s.n = 3;
select test.tick('1 second');
select is(test.claimed_of('s'), 2, 'two of four; three more do not fit');
select is((test.gate('s')).ready_at, autopost.now_ts() + interval '10 minutes', 'the gate waits for the series');
select is((select free_at from autopost.list_quotas('w', 10) where subject = 'channel:s'), null);
select autopost.start_call('w', delivery_id, claim_token),
	autopost.commit_outcome('w', delivery_id, claim_token, test.failure('PERMANENT', 'delivery', 'bad'))
from autopost.deliveries where channel_id = 's' and status = 'sending' and delivery_id = (select delivery_id from series where n = 1);
select is(test.claimed_of('s'), 1, 'one was given back: the series fits');
select is((select u.posts from autopost.quota_uses u join series s using (delivery_id) where s.n = 3), 3);
select autopost.start_call('w', delivery_id, claim_token), autopost.commit_outcome('w', delivery_id, claim_token,
	test.failure('TRANSIENT', 'delivery', 'http_500') || '{"raw": {"steps": {"1": ["1"]}}}')
from autopost.deliveries where channel_id = 's' and status = 'sending' and delivery_id = (select delivery_id from series where n = 3);
select is((select u.posts from autopost.quota_uses u join series s using (delivery_id) where s.n = 3), 1,
	'the platform has its first post');
select is((select posts_left from autopost.deliveries d join series s using (delivery_id),
	autopost.posts_left(d.render_meta) where s.n = 3), 2, 'the next attempt makes the others');

-- A longer series than the quota takes all of it.
update autopost.quotas set max_sends = 2 where channel_id = 's';
select test.set_clock((select max(used_at) from autopost.quota_uses where isfinite(used_at)) + interval '2 days');
select autopost.recover_sending_leases('w');
update autopost.deliveries d set render_meta = jsonb_set(d.render_meta, '{steps}',
	'[{"step": "1"}, {"step": "2"}, {"step": "3"}, {"step": "4"}]')
where d.channel_id = 's' and d.status in ('queued', 'retry');
select test.tick('1 second');
select is(test.claimed_of('s'), 1);
select is((select used from autopost.list_quotas('w', 10) where subject = 'channel:s'), 2);
select is((select jsonb_agg(v) from autopost.verify('w') v where v.invariant = 'I29' and v.violations > 0), null);

select * from finish();
rollback;
