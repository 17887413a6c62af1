-- When a platform is down, its rate group sends one probe at a time, and posts do not use up their attempts.
begin;
\ir fake_clock.sql
\ir world.sql
select plan(55);

select test.channel(c, p_max_parallel => 100) from unnest('{a,b,c,d}'::text[]) c;
select test.channel('other', p_max_parallel => 100, p_rate_group => 'another');
create function test.group() returns autopost.platform_limits
language sql
as $$
select l from autopost.platform_limits l where l.workspace_id = 'w' and l.rate_group = 'bot'
$$;
create function test.down(p_channel_id text, p_more jsonb default '{}') returns text
language sql
as $$
-- One call of the channel, of those in flight the oldest, fails because the platform does not
-- answer: the status after that.
select autopost.start_call('w', d.delivery_id, d.claim_token) from (
	select d.* from autopost.deliveries d where d.channel_id = p_channel_id and d.status = 'sending'
		order by d.delivery_id limit 1) d;
select autopost.commit_outcome('w', d.delivery_id, d.claim_token,
	test.failure('TRANSIENT', 'platform', 'tg_5xx', p_more)) ->> 'status' from (
	select d.* from autopost.deliveries d where d.channel_id = p_channel_id and d.status = 'sending'
		order by d.delivery_id limit 1) d
$$;
create function test.up(p_channel_id text) returns text
language sql
as $$
-- The same, but it is sent.
select autopost.start_call('w', d.delivery_id, d.claim_token) from (
	select d.* from autopost.deliveries d where d.channel_id = p_channel_id and d.status = 'sending'
		order by d.delivery_id limit 1) d;
select autopost.commit_outcome('w', d.delivery_id, d.claim_token, test.sent('1')) ->> 'status' from (
	select d.* from autopost.deliveries d where d.channel_id = p_channel_id and d.status = 'sending'
		order by d.delivery_id limit 1) d
$$;

-- Failures that do not open it.
select test.posts('post', 8);
select is(cardinality(test.claimed()), 40);
select test.down('a'), test.down('a'), test.down('a'), test.down('b');
select is((test.group()).failing_channels, '{a,b}');
select is((test.group()).breaker_opened_at, null, 'two channels are no outage, however often they fail');
select test.up('d');
select is((test.group()).failing_channels, '{}', 'one post that is sent ends the row of failures');
select test.down('c'), test.down('d');
select is((test.group()).breaker_opened_at, null, 'so that two more do not make it three');
select is(test.commit('a', test.failure('TRANSIENT', 'platform', 'x_429')) ->> 'status', 'retry');
select is(test.commit('b', test.failure('TRANSIENT', 'delivery', 'http_500')) ->> 'status', 'retry');
select is((test.group()).failing_channels, '{c,d}', 'neither a rate limit nor what concerns one post is an outage');
select test.up('other');
select is((test.group()).failing_channels, '{c,d}', 'another group''s success says nothing of this one');
select is((select count(*)::int from autopost.deliveries where granted_attempts > 0 and last_error ->> 'code' <> 'x_429'),
	0, 'before it opens every failure counts, except a rate limit');

-- The third channel opens it; an unknown outcome counts as well.
select is(test.down('b', '{"known": false}'), 'retry');
select is((test.group()).breaker_opened_at, autopost.now_ts(), 'three channels in a row are one');
select is(test.count_events('breaker'), 1);
select is((select meta - 'channels' || jsonb_build_object('n', jsonb_array_length(meta -> 'channels'))
	from autopost.events where action = 'breaker'),
	jsonb_build_object('state', 'open', 'platform', 'telegram', 'rate_group', 'bot', 'n', 3, 'probe_at',
		autopost.now_ts() + interval '10 seconds'));
select is((select min((autopost.start_call('w', delivery_id, claim_token)) ->> 'reason') from autopost.deliveries
	where channel_id in ('a', 'b', 'c', 'd') and status = 'sending'
	and not exists (select 1 from autopost.events e where e.delivery_id = deliveries.delivery_id
		and e.action = 'send_attempt' and e.attempt = deliveries.attempt)),
	'rate', 'what is claimed and not begun is handed back');
select is((select count(*)::int from autopost.deliveries where channel_id in ('a', 'b', 'c', 'd')
	and status = 'sending'), 0);
select is((select count(*)::int from autopost.deliveries where channel_id = 'other' and status = 'sending'), 7,
	'another group goes on');

-- One probe at a time, with growing pauses.
select test.tick('9 seconds');
select is(test.claimed(), '{}');
select is((select min(g.ready_at) from autopost.ready_groups('w') g), autopost.now_ts() + interval '1 second',
	'the engine sleeps until the probe');
select test.tick('1 second');
select is(cardinality(test.claimed()), 1, 'one probe');
create function test.probe() returns text language sql as $$ select channel_id from autopost.deliveries
	where delivery_id = (test.group()).probe_id $$;
create function test.probed() returns interval
language sql
as $$
-- Waits for the next probe, which fails: how long the pause after it is.
select test.set_clock((test.group()).probe_at);
select test.claimed();
select test.down(test.probe());
select (test.group()).probe_at - autopost.now_ts()
$$;
select test.tick('1 second');
select is(test.claimed(), '{}', 'not a second one while it is in flight');
select is(test.down(test.probe()), 'retry');
select is((test.group()).probe_at, autopost.now_ts() + interval '20 seconds', 'it failed: the next one waits longer');
select is(test.probed(), '40 seconds');
select is(test.probed(), '80 seconds');
select is(test.probed(), '160 seconds');
select is(test.probed(), '300 seconds', 'up to a bound');
select is(test.probed(), '300 seconds');
select is(test.count_events('breaker'), 1, 'it opened once');

-- Attempts are not burnt.
select is((select count(*)::int from autopost.events e where e.action = 'retry_scheduled'
	and e.meta -> 'granted' = 'true'), 7, 'a failed probe grants the attempt again, as does a rate limit');
select is((select count(*)::int from autopost.deliveries where status = 'dead'), 0);
select is((select sum(granted_attempts)::int from autopost.deliveries where channel_id in ('a', 'b', 'c', 'd')),
	(select count(*)::int from autopost.events e where e.channel_id in ('a', 'b', 'c', 'd')
		and (e.action = 'released' or e.meta -> 'granted' = 'true')),
	'each granted attempt has an event');

-- A probe that never ends, or does not begin.
select test.set_clock((test.group()).probe_at);
select is(cardinality(test.claimed()), 1);
select test.set_clock((test.group()).probe_at);
select is(test.claimed(), '{}', 'only one probe is in flight, for any time');
select is((test.group()).probe_at, autopost.now_ts() + interval '5 minutes', 'the next check is later');
select test.tick('5 minutes');
select is(autopost.recover_sending_leases('w') ->> 'recovered', '8', 'its lease ran out, as those of the other group');
update autopost.channels set enabled = false where channel_id = 'other';
select is(cardinality(test.claimed()), 1, 'then the next one goes');
select is((select count(*)::int from test.claim()), 0);
select is(autopost.release_claims('w', array(select claim_token from autopost.deliveries
	where delivery_id = (test.group()).probe_id)) ->> 'released', '1');
select test.set_clock((test.group()).probe_at);
select is(cardinality(test.claimed()), 1, 'a probe that was handed back is followed by another');

-- A failure that is not the platform's changes nothing.
create function test.finish_probe(p_outcome jsonb) returns text
language sql
as $$
select autopost.start_call('w', delivery_id, claim_token) from autopost.deliveries
	where delivery_id = (test.group()).probe_id;
select autopost.commit_outcome('w', delivery_id, claim_token, p_outcome) ->> 'status' from autopost.deliveries
	where delivery_id = (test.group()).probe_id
$$;
select is(test.finish_probe(test.failure('PERMANENT', 'delivery', 'media_missing_origin')), 'failed_permanent');
select isnt((test.group()).breaker_opened_at, null, 'it may have been found out before the platform was asked');
select is(autopost.commit_outcome('w', (test.group()).probe_id, 'stale', test.sent('2')) ->> 'reason', 'stale');
select isnt((test.group()).breaker_opened_at, null, 'nor does a commit that is stale');

-- One success closes it.
select test.set_clock((test.group()).probe_at);
select is(cardinality(test.claimed()), 1);
select is(test.finish_probe(test.sent('3')), 'sent');
select is((select array[breaker_opened_at::text, probe_at::text, probe_id::text, probes::text, failing_channels::text]
	from test.group()), array[null, null, null, '0', '{}']);
select is((select meta ->> 'state' from autopost.events where action = 'breaker' order by ts desc limit 1), 'closed');
select is(test.count_events('breaker'), 2);
select test.tick('10 minutes');
select ok(cardinality(test.claimed()) > 10, 'and everybody goes on');
select is((test.group()).breaker_opened_at, null);

-- A success writes nothing where nothing fails.
create temp table quiet on commit drop as select array_agg(l.ctid::text || '/' || l.xmin::text || '/' || l.xmax::text
	order by l.rate_group) as versions from autopost.platform_limits l;
select is(test.up('a'), 'sent');
select is(test.up('b'), 'sent');
select is((select array_agg(l.ctid::text || '/' || l.xmin::text || '/' || l.xmax::text order by l.rate_group)
	from autopost.platform_limits l), (select versions from quiet),
	'a post that is sent writes nothing where nothing fails');
select is((select count(*)::int from autopost.verify('w') v
	where v.invariant in ('I1', 'I2', 'I3', 'I24', 'I25') and v.violations > 0), 0);

select * from finish();
rollback;
