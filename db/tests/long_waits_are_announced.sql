-- A wait of the platform is kept exactly, for any length. The operator gets an alert until it is
-- over.
begin;
\ir fake_clock.sql
\ir world.sql
select plan(11);

select test.channel('x', p_platform => 'x');
select test.channel('y', p_platform => 'x');
select test.say('A post for money');
create function test.waits(p_channel_id text, p_scope text, p_code text, p_wait interval) returns text
language sql
as $$
select test.round(p_channel_id, test.failure('TRANSIENT', p_scope, p_code,
	jsonb_build_object('message', 'The platform says so', 'retry_after_ms',
		extract(epoch from p_wait) * 1000))) ->> 'status'
$$;
create function test.open_waits() returns text[]
language sql
as $$
select autopost.check_alerts('w');
select array(select a.subject from autopost.alerts a where a.workspace_id = 'w' and a.kind = 'platform_wait'
	and a.ended_at is null order by a.subject)
$$;
select is(test.waits('x', 'platform', 'x_no_credits', '20 days'), 'retry');
select is((test.row('x')).next_retry_at between autopost.now_ts() + interval '20 days'
	and autopost.now_ts() + interval '24 days', true, 'never cut, at most a fifth more');
select is((select l.cooldown_until >= autopost.now_ts() + interval '20 days' from autopost.platform_limits l
	where l.platform = 'x' and l.cooldown_until is not null), true);
select like(a.what, 'group:x/%: the platform takes no posts for a long time: The platform says so')
	from autopost.alerts a where a.kind = 'platform_wait';
select is(cardinality(test.open_waits()), 1);
select test.tick('19 days');
select is(cardinality(test.open_waits()), 1, 'it is open while the wait lasts');
select test.tick('5 days');
select test.tick('3 minutes');
select is(test.open_waits(), '{}', 'and ends with it');
select is((select count(*) from autopost.alerts a where a.kind = 'platform_wait'), 1::bigint);

-- A channel's own wait; a short one has no event.
select is(test.waits('x', 'channel', 'x_automated', '2 hours'), 'retry');
select is(test.open_waits(), '{channel:x}');
select test.tick('3 hours');
select is(test.open_waits(), '{}');
select test.waits('y', 'channel', 'x_429', '15 minutes');
select is(test.open_waits(), '{}');

select * from finish();
rollback;
