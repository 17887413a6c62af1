-- A check raises one alert per problem, updates it, and ends it after the problem is over for a
-- while.
begin;
\ir fake_clock.sql
\ir world.sql
select plan(59);

create function test.look() returns text[]
language sql
as $$
-- Looks, and what is open then: "kind subject amount".
select autopost.check_alerts('w');
select coalesce(array_agg(format('%s %s %s', a.kind, a.subject, a.amount) order by a.kind, a.subject), '{}')
	from autopost.alerts a where a.ended_at is null
$$;
create function test.over() returns text[]
language sql
as $$
-- Alerts that are still open after the calm period.
select test.look();
select test.tick('3 minutes');
select test.look()
$$;
create function test.rows() returns int
language sql
as $$
select count(*)::int from autopost.alerts
$$;
create function test.put(p_key text, p_value text) returns jsonb
language sql
as $$
select test.set(p_key, p_value::jsonb)
$$;
create function test.die(p_channel_id text) returns jsonb
language sql
as $$
-- Its newest delivery fails as often as it may.
update autopost.deliveries set attempt = 5, status = 'dead', sent_at = null, finished_at = autopost.now_ts(),
	updated_at = autopost.now_ts(),
	last_error = '{"code": "tg_timeout", "message": "no answer"}'
		where delivery_id = (test.row(p_channel_id)).delivery_id;
select '{}'::jsonb
$$;

select is(test.look(), '{}', 'in a quiet workspace there is nothing to see');
select test.channel('a');
select test.channel('b');

-- dead
select test.say('one');
set local session_replication_role = replica;
select test.die('a');
select is(test.look(), '{dead deliveries 1}');
select is((select array[a.severity, a.what, a.look] from autopost.alerts a),
	array['error', '1 dead delivery: tg_timeout in a (1)', 'workspace']);
select matches((select a.remedy from autopost.alerts a),
	'autopost deliveries list --status dead --workspace w; .*autopost deliveries requeue');
select is(test.look(), '{dead deliveries 1}');
select is(test.rows(), 1, 'the same thing is one alert');
select test.die('b');
select is(test.look(), '{dead deliveries 2}');
select is((select a.what from autopost.alerts a), '2 dead deliveries: tg_timeout in a (1), tg_timeout in b (1)',
	'it is brought up to date');
select is(test.rows(), 1);
select is(test.put('alert_dead_threshold', '3') -> 'applied', 'true');
select is(test.look(), '{dead deliveries 2}', 'below its level by less than the slack it is not over yet');
select is(test.over(), '{}', 'two of three are below four fifths');
select is((select array_agg(a.ended_at = autopost.now_ts()) from autopost.alerts a), '{t}');
select is(test.look(), '{}');
select is(test.rows(), 1, 'below the level none is raised');
select test.put('alert_dead_threshold', '0');
select is(test.look(), '{}', 'a level of 0 is for never');
select test.put('alert_dead_threshold', '1');
select test.put('alert_dead_many', '2');
select is(test.look(), '{dead deliveries 2,dead_many deliveries 2}');
select is((select a.severity from autopost.alerts a where a.kind = 'dead_many'), 'critical');
select test.put('alert_dead_many', '1000');

-- after an acknowledgement of dead deliveries, only the next one raises an alert
select is(autopost.acknowledge_alert('w', (select a.alert_id from autopost.alerts a
	where a.kind = 'dead' and a.ended_at is null), 'ann', 'seen', true) -> 'dry_run', 'true');
select is((select count(a.acknowledged_at)::int from autopost.alerts a), 0, 'a dry run changes nothing');
select is(autopost.acknowledge_alert('w', (select a.alert_id from autopost.alerts a
	where a.kind = 'dead' and a.ended_at is null), 'ann', 'seen', false) -> 'applied', 'true');
select is(autopost.acknowledge_alert('w', (select a.alert_id from autopost.alerts a
	where a.kind = 'dead' and a.ended_at is null), 'ann', 'seen', false) ->> 'reason', 'unchanged');
select is(autopost.acknowledge_alert('w', gen_random_uuid(), 'ann', 'seen', false) ->> 'reason', 'unknown_alert');
select is((select l.subject from autopost.admin_audit_log l where l.action = 'acknowledge_alert'),
	'alert:dead/deliveries');
select is(test.over(), '{}');
select is(autopost.acknowledge_alert('w', (select a.alert_id from autopost.alerts a
	where a.acknowledged_at is not null), 'ann', 'seen', false) ->> 'reason', 'ended');
select test.die('a');
select is(test.look(), '{dead deliveries 1}');
update autopost.deliveries set status = 'sent', sent_at = autopost.now_ts(), provider_message_id = '1';

-- what comes and goes does not flap
select test.look();
select test.tick('1 minute');
select is(test.look(), '{dead deliveries 1}', 'not over for long enough');
select test.die('a');
select is(test.look(), '{dead deliveries 1}');
select test.tick('90 seconds');
update autopost.deliveries set status = 'sent', sent_at = autopost.now_ts(), provider_message_id = '1';
select is(test.look(), '{dead deliveries 1}', 'a recurrence restarts the calm period');
select is(test.over(), '{}');

-- a person who skips deliveries gets no alert about them
update autopost.deliveries set status = 'dead', sent_at = null, finished_at = autopost.now_ts(), updated_at = autopost.now_ts(),
	last_error = '{"code": "manual_skip"}';
select is(test.look(), '{}');
select is(autopost.newest_failures('w', 'dead', '-infinity'), null);
update autopost.deliveries set status = 'sent', sent_at = autopost.now_ts(), provider_message_id = '1';

-- failed for good, within ten minutes
select test.put('alert_failed_perm_10m', '1');
update autopost.deliveries set status = 'failed_permanent', sent_at = null, finished_at = autopost.now_ts(), updated_at = autopost.now_ts(),
	last_error = '{"code": "tg_forbidden"}' where channel_id = 'a';
select is(test.look(), '{}', 'as many as the setting are let pass');
update autopost.deliveries set status = 'failed_permanent', sent_at = null, finished_at = autopost.now_ts(), updated_at = autopost.now_ts(),
	last_error = '{"code": "tg_forbidden"}' where channel_id = 'b';
select is(test.look(), '{failed_permanent deliveries 2}');
select test.tick('11 minutes');
select is(test.over(), '{}');

-- unknown outcomes that wait for a person
update autopost.deliveries set outcome_unknown_at = autopost.now_ts(), last_error = '{"code": "unknown_outcome"}'
	where channel_id = 'a';
select is(test.look(), '{unknown_outcome deliveries 1}');
update autopost.deliveries set status = 'sent', sent_at = autopost.now_ts(), provider_message_id = '1';
select is(test.over(), '{}');

-- paused channels
select test.put('alert_paused_channels', '1');
update autopost.channels set paused_until = autopost.now_ts() + interval '1 hour' where channel_id = 'a';
select is(test.look(), '{}');
update autopost.channels set paused_until = autopost.now_ts() + interval '1 hour';
select is(test.look(), '{paused_channels channels 2}');
select test.tick('1 hour');
select is(test.over(), '{}', 'an expired pause does not count');
update autopost.channels set enabled = false, error_streak = 10;
select is(test.look(), '{channel_refused channel:a 1,channel_refused channel:b 1,paused_channels channels 2}',
	'a series of failures that disabled channels counts');
update autopost.channels set error_streak = 0;
select is(test.over(), '{}', 'a person who disabled them does not');
update autopost.channels set enabled = true;
select test.put('alert_paused_channels', '10');

-- posts that are late, where nothing holds them
set local session_replication_role = origin;
select test.say('late');
select test.tick('31 minutes');
select is(test.look(), '{"oldest_due deliveries 1860"}');
update autopost.channel_gates set ready_at = autopost.now_ts();
select is(test.over(), '{}', 'its gate was just moved, as a claim does');
select autopost.rearm_gates('w');
select is(test.look(), '{"oldest_due deliveries 2040"}', 'it is served, but behind');
select is((select array_agg(g.ready_at < autopost.now_ts()) from autopost.channel_gates g), '{t,t}',
	'no gate loses its turn by being noted');
update autopost.channels set paused_until = autopost.now_ts() + interval '10 hours';
select is(test.over(), '{}', 'what is paused is not late');
select autopost.rearm_gates('w');
select is((select count(*)::int from autopost.channel_gates g where g.late), 0);

-- posts that wait for a decision
select test.put('alert_moderation_backlog', '2');
insert into autopost.submissions (workspace_id, submission_id, endpoint_id, kind, status, moderated, digest, raw_payload,
	run_id, trace_id)
select 'w', gen_random_uuid(), 'in', 'push', 'pending', true, repeat('0', 64), '{}', gen_random_uuid(), gen_random_uuid()
	from generate_series(1, 2);
select is(test.look(), '{moderation_backlog submissions 2}');
update autopost.submissions set status = 'rejected';
select is(test.over(), '{}');

-- sources, credentials, breakers
insert into autopost.pull_sources (workspace_id, source_id, kind) values ('w', 'feed', 'rss'), ('w', 'gone', 'rss');
insert into autopost.pull_cursors as c (workspace_id, source_id, failures, last_error)
	values ('w', 'feed', 5, '{"message": "HTTP 500"}')
on conflict (workspace_id, source_id) do update set failures = excluded.failures, last_error = excluded.last_error;
update autopost.pull_sources set enabled = false, stopped = '{"message": "HTTP 410"}' where source_id = 'gone';
insert into autopost.credential_bindings (workspace_id, auth_ref, platform, secret_ref)
	values ('w', 'x1', 'x', 'env:X'), ('w', 'x2', 'x', 'env:X');
update autopost.credential_health set valid_until = autopost.now_ts() + interval '3 days' where auth_ref = 'x1';
update autopost.credential_health set failures = 3, next_refresh_at = autopost.now_ts(), error = '{"message": "no"}'
	where auth_ref = 'x2';
insert into autopost.platform_limits (workspace_id, platform, rate_group, rate_rps, breaker_opened_at)
	values ('w', 'telegram', 'g', 1, autopost.now_ts() - interval '11 minutes');
select is(test.look(), '{auth_expiring credential:x1 1,auth_not_renewed credential:x2 3,breaker_open group:telegram/g 660,source_failing source:feed 5,source_stopped source:gone 1}');
select is((select a.what from autopost.alerts a where a.kind = 'source_failing'),
	'source feed failed 5 times in a row, nothing comes from it: HTTP 500');
select is((select a.what from autopost.alerts a where a.kind = 'auth_expiring'),
	'credential x1 expires on ' || to_char(autopost.now_ts() + interval '3 days', 'YYYY-MM-DD HH24:MI')
	|| ' UTC, its channels stop with it');
update autopost.pull_cursors set failures = 0;
update autopost.pull_sources set stopped = null;
update autopost.credential_health set valid_until = null, failures = 0;
update autopost.platform_limits set breaker_opened_at = null;
select is(test.over(), '{}');

-- every kind says what to do, and what is over long enough goes
select is((select array_agg(k.kind) from autopost.alert_kinds() k
	where k.remedy = '' or k.title = '' or autopost.severity_rank(k.severity) is null), null);
select is((select count(*)::int from autopost.alerts a where a.remedy = '' or a.what = ''
	or not exists (select 1 from autopost.alert_kinds() k where k.kind = a.kind)), 0);
update autopost.channels set enabled = false;
select test.tick('92 days');
select is(test.look(), '{}');
select is(test.rows(), 0);

select * from finish();
rollback;
