begin;
\ir fake_clock.sql
\ir world.sql
select plan(65);

select test.channel('a');
select test.channel('b');
select test.channel('c', p_platform => 'max');
select test.channel('d', p_rate_group => 'other');
create function test.state() returns jsonb
language sql
as $$
-- All that an act may change.
select jsonb_build_array((select jsonb_agg(c order by c.channel_id) from autopost.channels c), (select jsonb_agg(a)
	from autopost.channel_auth a),
	(select jsonb_agg(g order by g.channel_id) from autopost.channel_gates g), (select count(*)
		from autopost.events), (select count(*) from autopost.admin_audit_log))
$$;
create function test.note(p_action text) returns jsonb
language sql
as $$
-- The latest event of an action, without its ids.
select to_jsonb(e) - '{id,workspace_id,delivery_id,message_id,ts,payload_ref,error}'::text[] from autopost.events e
	where e.action = p_action order by e.cmin::text::int desc, e.ctid desc limit 1
$$;
create function test.logged() returns autopost.admin_audit_log
language sql
as $$
select l from autopost.admin_audit_log l order by l.seq desc limit 1
$$;

-- pause
select test.say('x');
select test.tick('1 millisecond');
create temp table before on commit drop as select test.state() as s;
create temp table dry on commit drop as select autopost.pause_channel('w', 'a', 60, 'olga', 'odd answers',
	true) as answer;
select is(test.state(), (select s from before), 'a dry run changes nothing');
create temp table wet on commit drop as select autopost.pause_channel('w', 'a', 60, 'olga', 'odd answers',
	false) as answer;
select is((select answer || '{"dry_run": false}' from dry), (select answer from wet), 'and answers what the act would');
select is((select answer -> 'applied' from wet), 'true');
select is((select answer -> 'waiting' from wet), '1');
select is((select answer -> 'sending' from wet), '0');
select is((test.channel_row('a')).paused_until, autopost.now_ts() + interval '1 minute');
select is(test.note('channel_paused') - 'meta',
	'{"action": "channel_paused", "result": "ok", "attempt": 0, "channel_id": "a"}');
select is((test.note('channel_paused') -> 'meta') - 'until',
	'{"manual": true, "operator": "olga", "reason": "odd answers"}');
select is((test.logged()).action, 'pause_channel');
select is((test.logged()).operator, 'olga');
select is((test.logged()).reason, 'odd answers');
select is((test.logged()).subject, 'channel:a');
select is((test.logged()).ts, autopost.now_ts());
select is((test.logged()).before -> 'a' ->> 'paused_until', null);
select is(((test.logged()).after -> 'a' ->> 'paused_until')::timestamptz, autopost.now_ts() + interval '1 minute');
select is(test.claimed(), '{b,c,d}', 'nothing of it is claimed, all else is');
select is((autopost.pause_channel('w', 'nobody', 60, 'o', 'r', false)) ->> 'reason', 'unknown_channel');
select autopost.pause_channel('w', 'a', 30, 'olga', 'shorter', false);
select is((test.channel_row('a')).paused_until, autopost.now_ts() + interval '30 seconds', 'the latest word counts');

-- resume
update autopost.channels set enabled = false, error_streak = 3, cooldown_until = autopost.now_ts() - interval '1 hour'
	where channel_id = 'a';
select is(test.claimed(), '{}');
update before set s = test.state();
update dry set answer = autopost.resume_channel('w', 'a', 'olga', 'mended', true);
select is(test.state(), (select s from before), 'a dry run changes nothing');
update wet set answer = autopost.resume_channel('w', 'a', 'olga', 'mended', false);
select is((select answer || '{"dry_run": false}' from dry), (select answer from wet));
select ok(c.enabled and c.paused_until is null and c.error_streak = 0 and c.cooldown_until is not null,
	'enabled, no pause, no streak; a cooldown stays') from test.channel_row('a') c;
select is(test.note('channel_enabled') -> 'meta', '{"manual": true, "operator": "olga", "reason": "mended"}');
select is((test.logged()).before -> 'a' -> 'error_streak', '3');
select is((test.logged()).after -> 'a', '{"enabled": true, "paused_until": null, "error_streak": 0}');
select ok((test.gate('a')).ready_at <= autopost.now_ts(), 'its gate is open at once');
select is(test.claimed(), '{a}', 'and what waited goes');
select is((autopost.resume_channel('w', 'nobody', 'o', 'r', false)) ->> 'reason', 'unknown_channel');

-- a group: of one platform, then of all
update before set s = test.state();
update dry set answer = autopost.disable_group('w', 'telegram', 'bot', 'olga', 'token leaked', true);
select is(test.state(), (select s from before), 'a dry run changes nothing');
update wet set answer = autopost.disable_group('w', 'telegram', 'bot', 'olga', 'token leaked', false);
select is((select answer || '{"dry_run": false}' from dry), (select answer from wet));
select is((select jsonb_path_query_array(answer, '$.channels[*].channel_id') from wet), '["a", "b"]', 'in their order');
select is((select array_agg(channel_id order by channel_id) from autopost.channels where not enabled), '{a,b}');
select is(test.count_events('channel_disabled'), 2, 'an event a channel');
select is(test.note('channel_disabled') -> 'meta',
	'{"manual": true, "operator": "olga", "reason": "token leaked", "rate_group": "bot"}');
select is((test.logged()).subject, 'group:telegram/bot');
select is((test.logged()).after -> 'b' -> 'enabled', 'false', 'one row of the log for all');
select autopost.disable_group('w', null, 'bot', 'olga', 'all of them', false);
select is((select array_agg(channel_id order by channel_id) from autopost.channels where not enabled), '{a,b,c}',
	'no platform: of every platform');
select is((autopost.disable_group('w', 'max', 'nobody', 'o', 'r', false)) ->> 'reason', 'unknown_group');
select autopost.release_claims('w', array(select claim_token from autopost.deliveries where claim_token is not null));
select is(test.claimed(), '{d}');
update before set s = test.state();
update dry set answer = autopost.enable_group('w', null, 'bot', 'olga', 'new token', true);
select is(test.state(), (select s from before), 'a dry run changes nothing');
update wet set answer = autopost.enable_group('w', null, 'bot', 'olga', 'new token', false);
select is((select answer || '{"dry_run": false}' from dry), (select answer from wet));
select is(test.count_events('channel_enabled'), 4);
select is(test.claimed(), '{a,b,c}', 'all of it wakes up at once');
select is((autopost.enable_group('w', null, 'nobody', 'o', 'r', false)) ->> 'reason', 'unknown_group');

-- a pause of a group
update before set s = test.state();
update dry set answer = autopost.pause_group('w', 'telegram', 'bot', 600, 'olga', 'storm', true);
select is(test.state(), (select s from before), 'a dry run changes nothing');
update wet set answer = autopost.pause_group('w', 'telegram', 'bot', 600, 'olga', 'storm', false);
select is((select answer || '{"dry_run": false}' from dry), (select answer from wet));
select is((select array_agg(channel_id order by channel_id) from autopost.channels
	where paused_until = autopost.now_ts() + interval '10 minutes' and enabled), '{a,b}', 'of this platform alone');
select is((test.logged()).subject, 'group:telegram/bot');
select is(test.note('channel_paused') -> 'meta' ->> 'rate_group', 'bot');
select is((select shown ->> 'paused' from autopost.configuration_of('w', 'group', null, '', 1000) where id = 'telegram/bot'), '2',
	'the list of groups counts them');
select is((autopost.pause_group('w', 'max', 'nobody', 600, 'o', 'r', false)) ->> 'reason', 'unknown_group');
select autopost.enable_group('w', 'telegram', 'bot', 'olga', 'over', false);

-- a credential: one that is there and of this platform, and not while something is being sent
insert into autopost.credential_bindings (workspace_id, auth_ref, platform, secret_ref)
values ('w', 'bot2', 'telegram', 'env:X'), ('w', 'bot3', 'telegram', 'env:X'), ('w', 'max', 'max', 'env:X'), ('w',
	'sign', 'webhook', 'env:X');
update before set s = test.state();
select is(autopost.rotate_auth('w', 'a', r, null, 'olga', 'leaked', false) #- '{errors,0,remedy}',
	jsonb_build_object('applied', false, 'dry_run', false, 'reason', 'invalid', 'errors',
		jsonb_build_array(jsonb_build_object('field', 'auth_ref', 'reason', says))))
from (values ('nope', 'must be a credential of this workspace, got nope'), ('max',
	'max is a credential of platform max'), ('sign', 'sign is a credential of platform webhook')) x (r, says);
select is(test.state(), (select s from before), 'what is refused does not even pause');
update wet set answer = autopost.rotate_auth('w', 'a', 'bot2', null, 'olga', 'leaked', true);
select is((test.channel_row('a')).paused_until, null, 'a dry run does not pause');
update wet set answer = autopost.rotate_auth('w', 'a', 'bot2', null, 'olga', 'leaked', false);
select is((select answer from wet), '{"applied": false, "dry_run": false, "reason": "sending", "sending": 1}');
select is((test.channel_row('a')).paused_until, autopost.now_ts() + interval '2 minutes', 'it drains');
select test.start('a');
select autopost.release_claims('w', array(select claim_token from autopost.deliveries where claim_token is not null));
update before set s = test.state();
select autopost.rotate_auth('w', 'a', 'bot2', null, 'olga', 'leaked', true);
select is(test.state(), (select s from before), 'a dry run changes nothing');
update wet set answer = autopost.rotate_auth('w', 'a', 'bot2', null, 'olga', 'leaked', false);
update wet set answer = autopost.rotate_auth('w', 'a', 'bot3', 'g3', 'olga', 'again', false);
select is((select answer from wet), '{"applied": true, "dry_run": false, "before": {"auth_ref": "bot2", "rate_group": "bot"}, "after": {"auth_ref": "bot3", "rate_group": "g3"}}');
select is((select array[a.auth_ref, c.auth_ref, c.rate_group, g.rate_group] from autopost.channel_auth a
	join autopost.channels c using (channel_id)
	join autopost.channel_gates g using (channel_id)), '{bot3,bot3,g3,g3}');
select is(test.note('auth_rotated') -> 'meta', '{"manual": true, "operator": "olga", "reason": "again", "old_auth_ref": "bot2", "new_auth_ref": "bot3", "old_rate_group": "bot", "new_rate_group": "g3"}');
select is((autopost.rotate_auth('w', 'nobody', 'x', null, 'o', 'r', false)) ->> 'reason', 'unknown_channel');

-- the log only grows
select throws_ok($$update autopost.admin_audit_log set reason = 'else'$$, '42501');
select throws_ok($$delete from autopost.admin_audit_log$$, '42501');

select * from finish();
rollback;
