-- Silent failures raise alerts: a refused channel, posts that wait for a person, a lost webhook
-- receiver, a dead daemon.
begin;
\ir fake_clock.sql
\ir world.sql
select plan(31);

create function test.look() returns text[]
language sql
as $$
select autopost.check_alerts('w');
select coalesce(array_agg(format('%s %s', a.kind, a.subject) order by a.kind, a.subject), '{}') from autopost.alerts a
	where a.ended_at is null
$$;
create function test.over() returns text[]
language sql
as $$
select test.look();
select test.tick('3 minutes');
select test.look()
$$;
create function test.alert(p_kind text) returns autopost.alerts
language sql
as $$
select a from autopost.alerts a where a.kind = p_kind order by a.raised_at desc limit 1
$$;

-- Refused.
update autopost.settings set value = '0' where key = 'alert_oldest_due_seconds';
select test.channel('a');
select test.channel('b');
select test.say('one');
select test.claimed();
select test.start('a');
select test.commit('a', test.failure('PERMANENT', 'channel', 'tg_forbidden'));
select test.start('b');
select test.commit('b', test.sent('16'));
select test.tick('1 second');
select test.say('two');
select is(test.look(), '{channel_refused channel:a}', 'at the first refusal');
select matches((test.alert('channel_refused')).what,
	'^channel a: telegram refuses its posts \(.+\): it is paused until 20.* UTC, 1 post waits$');
select matches((test.alert('channel_refused')).remedy,
	'autopost channel resume a --workspace w --reason fixed;.*requeue --channel a --code tg_forbidden --workspace w');
select test.tick('2 hours');
select is(test.over(), '{channel_refused channel:a}', 'the end of the pause does not end the alert');
select matches((test.alert('channel_refused')).what, 'it is tried again with the next post');
update autopost.channels set auth_held = true where channel_id = 'a';
select is(test.over(), '{}', 'a refused credential has its own alert');
update autopost.channels set auth_held = false, enabled = false where channel_id = 'a';
select is(test.over(), '{}', 'who disables it has looked after it');
update autopost.channels set error_streak = 3 where channel_id = 'a';
select is(test.look(), '{channel_refused channel:a}', 'unless it was the engine');
select matches((test.alert('channel_refused')).what, 'it is disabled, 1 post waits');
select is(autopost.resume_channel('w', 'a', 'ann', 'mended', false) -> 'applied', 'true');
select is(test.over(), '{}', 'what the remedy says ends it');

-- Held.
update autopost.channels set on_unknown = 'hold' where channel_id = 'b';
select is(test.claimed(), '{a,b}');
select test.start('b');
select test.commit('b', test.failure('TRANSIENT', 'delivery', 'timeout', '{"known": false}'));
select is(test.look(), '{outcome_held deliveries}');
select is((test.alert('outcome_held')).what,
	format('1 post waits for a person, it is unknown if it was published: %s in b', (select d.delivery_id
		from autopost.deliveries d where d.next_retry_at = 'infinity')));
select matches((test.alert('outcome_held')).remedy,
	'autopost deliveries resolve ID --absent --workspace w --reason missing');
update autopost.settings set value = '0' where key = 'alert_unknown_waiting';
select is(test.over(), '{}', 'a level of 0 is for never');
update autopost.settings set value = '1' where key = 'alert_unknown_waiting';
select is(test.look(), '{outcome_held deliveries}');
select is(autopost.resolve_unknown('w', (select d.delivery_id from autopost.deliveries d
	where d.next_retry_at = 'infinity'), 'found', '17', 'ann', 'seen') ->> 'status', 'sent');
select is(test.over(), '{}');

-- A receiver that is gone.
insert into autopost.credential_bindings (workspace_id, auth_ref, platform, secret_ref)
	values ('w', 'key', 'webhook', 'env:KEY');
select is(autopost.put_webhook('w', 'crm', '{"url": "https://crm.example.com", "signing_ref": "key"}', 'ann', 'r',
	false) -> 'applied', 'true');
update autopost.result_webhooks set failing_since = autopost.now_ts() - interval '899 seconds';
select is(test.look(), '{}');
select test.tick('1 second');
select is(test.look(), '{webhook_failing webhook:crm}');
select is((test.alert('webhook_failing')).what,
	'result webhook crm has accepted nothing for 15 minutes, its events wait: no call succeeds');
update autopost.result_webhooks set failing_since = null;
select is(test.over(), '{}');

-- A daemon that died while another goes on.
create function test.lost() returns text[]
language sql
as $$
select autopost.touch_run('other', 'west');
select autopost.check_installation();
select set_config('autopost.workspace_id', '', true);
select coalesce(array_agg(a.what || ' ' || a.severity), '{}') from autopost.alerts a
	where a.ended_at is null and a.kind = 'daemon_lost'
$$;
select autopost.touch_run('dead', 'east'), autopost.touch_run('moved', 'north'), autopost.touch_run('done', 'south'),
	autopost.touch_run('unknown'), autopost.touch_run('other', 'west');
select is(autopost.touch_run('done', 'south', true) -> 'applied', 'true');
select test.tick('3 minutes');
select autopost.touch_run('again', 'north');
select matches(test.lost()::text,
	'^{"the daemon on east has not been heard of since 20[^"]* UTC; others go on. Its run was dead error"}$',
	'not a daemon that stopped normally or was replaced on its machine');
select autopost.touch_run('later', 'east');
select test.lost();
select test.tick('3 minutes');
select autopost.touch_run('later'), autopost.touch_run('again');
select is(test.lost(), '{}', 'it was started again');
select is((select r.host from autopost.dispatch_runs r where r.run_id = 'later'), 'east',
	'a heartbeat without a host keeps it');
select test.tick('4 minutes');
select is((select count(*)::int from unnest(test.lost())), 2);
select test.tick('25 hours');
select test.lost();
select test.tick('3 minutes');
select is(test.lost(), '{}', 'after a day it is missed no more');
update autopost.settings set value = '0' where key = 'alert_daemon_lost_hours';
select test.tick('10 minutes');
select is(test.lost(), '{}', '0 is for never');

select * from finish();
rollback;
