-- If each call has the delivery's key, a resend is safe: an unknown outcome spends no allowance,
-- and the attempts are limited.
begin;
\ir fake_clock.sql
\ir world.sql
select plan(8);

insert into autopost.channels (workspace_id, channel_id, platform, target_id, auth_ref, rate_group, rate_rps)
values ('w', 'hook', 'webhook', 'https://crm.example.com/posts', 'k', 'k', null);
select test.channel('tg');
create function test.lost(p_channel text) returns jsonb
language sql
as $$
select test.tick('1 hour');
select test.round(p_channel, test.failure('TRANSIENT', 'delivery', 'timeout', '{"known": false}'))
$$;
select is((select array_agg(platform order by platform) from autopost.platforms where idempotent), '{webhook}');
select test.say('Did you get this?');
create temp table lost on commit drop as select n, test.lost('hook') ->> 'status' as status
	from generate_series(1, autopost.setting('max_attempts')::int) n;
select is((select count(*) from lost where status = 'retry')::numeric, autopost.setting('max_attempts') - 1,
	'as often as attempts allow');
select is((select status from lost order by n desc limit 1), 'failed_permanent', 'which bounds it');
select is((test.row('hook')).last_error ->> 'code', 'unknown_outcome',
	'and it is never called dead: somebody may have it');
select is((test.row('hook')).unknown_outcomes::numeric, autopost.setting('max_attempts'), 'each is counted');
select is((select distinct e.meta ->> 'policy' from autopost.events e
	where e.channel_id = 'hook' and e.action = 'unknown_outcome'), 'resend', 'the event names the policy');
select is((select status from autopost.deliveries where channel_id = 'tg'), 'sending');

-- The policy hold still applies.
update autopost.channels set on_unknown = 'hold' where channel_id = 'hook';
select test.post('{"text": "hold this", "routing": {"include_channels": ["hook"]}}');
select test.lost('hook');
select is((test.row('hook')).next_retry_at, 'infinity'::timestamptz, 'hold waits for a person');

select * from finish();
rollback;
