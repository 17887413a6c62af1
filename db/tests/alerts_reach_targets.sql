-- A target gets each new alert once, then reminders and its end. Quiet hours and limits apply.
-- Failed sends do not loop.
begin;
\ir fake_clock.sql
\ir world.sql
select plan(81);
select test.set_clock('2026-01-10 12:00:00+00');
insert into autopost.credential_bindings (workspace_id, auth_ref, platform, secret_ref)
	values ('w', 'bot', 'telegram', 'env:BOT'), ('w', 'key', 'webhook', 'env:KEY');

create function test.target(p_id text, p_fields jsonb default '{}') returns jsonb
language sql
as $$
select autopost.put_alert_target('w', p_id, '{"kind": "telegram", "address": "-1001", "auth_ref": "bot"}' || p_fields,
	'ann', 'test', false)
$$;
create function test.raise(p_kind text, p_subject text default 'x') returns void
language sql
as $$
select autopost.raise_alert('w', p_kind, p_subject, null, '{}')
$$;
create function test.claims() returns text[]
language sql
as $$
-- Claims; "target: subject" of each message.
select coalesce(array_agg(format('%s: %s', c ->> 'target_id', c ->> 'subject') order by c ->> 'target_id'), '{}')
	from autopost.claim_notices('w', 10) c
$$;
create function test.finish(p_target_id text, p_error jsonb default null) returns text
language sql
as $$
-- Finishes the message of a target that is being sent.
select autopost.finish_notice('w', m.message_id, m.claim_token, p_error) ->> 'status'
from autopost.alert_messages m where m.target_id = p_target_id and m.status = 'sending'
$$;
create function test.claimed_lines(p_target_id text default 'ops') returns text[]
language sql
as $$
-- Claims the message of one target; returns its text, a line for each alert.
select test.claims();
select coalesce(array_agg(l.line), '{}') from (
	select l.line from autopost.alert_messages m
	cross join lateral regexp_split_to_table(m.text, '\n') with ordinality l (line, n)
	where m.target_id = p_target_id and m.status = 'sending' and l.line ~ '^(NEW|MORE|STILL|OVER|HEALTH|…|This is)'
	order by l.n) l
$$;
create function test.notified(p_target_id text default 'ops') returns text[]
language plpgsql
as $$
declare
	v_lines text[] := test.claimed_lines(p_target_id);
begin
	perform test.finish(p_target_id);
	return v_lines;
end
$$;
create function test.down(p_more jsonb default '{}') returns jsonb
language sql
as $$
select '{"category": "TRANSIENT", "scope": "channel", "code": "http_500", "known": true, "message": "no"}' || p_more
$$;

-- A target is put like all configuration.
select is(test.target('ops', '{"address": "nowhere at all", "auth_ref": "key", "timezone": "Mars", "quiet_hours": "22-7", "health_at": "25:00", "kinds": ["ded"]}') -> 'errors' @> '[{"field": "address"}, {"field": "auth_ref"}, {"field": "timezone"}, {"field": "quiet_hours"}, {"field": "health_at"}, {"field": "kinds"}]', true);
select is(autopost.put_alert_target('w', 'm', '{"kind": "email", "address": "ops@example.com\r\nBcc: all@example.com"}',
	'ann', 'test', false) ->> 'reason', 'invalid', 'a header that is smuggled in is refused');
select is(autopost.put_alert_target('w', 'm', '{"kind": "email", "address": "<ops@example.com>"}', 'ann', 'test',
	false) -> 'errors' -> 0 ->> 'field', 'address');
select is(autopost.put_alert_target('w', 'm', '{"kind": "email", "address": "ops@example.com"}', 'ann', 'test',
	true) -> 'applied', 'true');
select is(autopost.put_alert_target('w', 'm',
	'{"kind": "webhook", "address": "https://u@example.com/", "auth_ref": "key"}', 'ann', 'test',
	true) -> 'errors' -> 0 ->> 'field', 'address');
select is(test.target('ops') -> 'created', 'true');
select is(test.target('ops') ->> 'reason', 'unchanged');
select test.channel('posts', p_rate_group => 'bot');
select is(autopost.put_alert_target('w', 'ops', '{"daily_limit": 49}', 'ann', 'test', true) ->> 'note',
	'if credential bot is refused, this target cannot be reached: add another one with another credential');
update autopost.channels set auth_ref = 'another' where channel_id = 'posts';
select is(autopost.put_alert_target('w', 'ops', '{"daily_limit": 49}', 'ann', 'test', true) -> 'note', null);
select is((select count(*)::int from autopost.admin_audit_log l where l.action = 'put_alert_target'), 1);

-- New, once; a reminder; over, once.
select is(test.claims(), '{}', 'nothing is wrong');
select test.raise('duty_failing', 'duty:leases');
select is(test.notified(), array['NEW error duty_failing: duty:leases: the monitor cannot do a duty']);
select is(test.notified(), '{}', 'once');
select test.tick('23 hours');
select is(test.notified(), '{}');
select test.tick('1 hour');
select is(test.notified(), array['STILL error duty_failing: duty:leases: the monitor cannot do a duty']);
select autopost.acknowledge_alert('w', (select a.alert_id from autopost.alerts a), 'ann', 'seen', false);
select test.tick('25 hours');
select is(test.notified(), '{}', 'an acknowledged alert has no reminder');
update autopost.alerts set amount = 10;
select is(test.notified(), array['MORE error duty_failing: duty:leases: the monitor cannot do a duty'],
	'but a tenfold amount is announced');
select autopost.end_alert('w', 'duty_failing', 'duty:leases');
select is(test.notified(), array['OVER error duty_failing: duty leases: the monitor cannot do a duty']);
select is(test.notified(), '{}');
select ok((select a.last_notified_at = autopost.now_ts() from autopost.alerts a));
select test.raise('duty_failing', 'duty:leases');
select autopost.end_alert('w', 'duty_failing', 'duty:leases');
select is(test.notified(), '{}', 'an alert that ends before its notice is not announced');

-- By severity and by kind.
select test.target('ops', '{"min_severity": "critical"}');
select test.raise('duty_failing'), test.raise('audit_chain');
select is(test.notified(), array['NEW critical audit_chain: x: the audit log was changed, or rows of it are missing']);
select test.target('ops', '{"min_severity": "warning", "kinds": ["duty_failing"]}');
select is(test.notified(), array['NEW error duty_failing: x: the monitor cannot do a duty']);
select autopost.end_alert('w', 'duty_failing', 'x'), autopost.end_alert('w', 'audit_chain', 'x');
select is(cardinality(test.notified()), 2, 'the end of both announced alerts');

-- Quiet hours by the clock of the zone, over the change to summer time: Berlin leaves out 02:00 to 03:00 on 2026-03-29.
select test.target('ops', '{"kinds": null, "quiet_hours": "22:00-07:00", "timezone": "Europe/Berlin"}');
update autopost.alert_targets set next_try_at = '-infinity', told_at = null;
select test.set_clock('2026-03-28 20:59:59+00');
select test.raise('duty_failing', '1');
select is(test.notified(), array['NEW error duty_failing: 1: the monitor cannot do a duty'], '21:59:59 is not quiet');
update autopost.alert_targets set next_try_at = '-infinity';
select test.set_clock('2026-03-28 21:00:00+00');
select test.raise('duty_failing', '2');
select is(test.notified(), '{}', '22:00 is');
select test.raise('audit_chain', '2');
select is(test.notified(), array['NEW critical audit_chain: 2: the audit log was changed, or rows of it are missing'],
	'a critical alert is sent');
select autopost.end_alert('w', 'duty_failing', '1');
select test.set_clock('2026-03-29 04:59:59+00');
select is(test.notified(), '{}', '06:59:59 by the new clock');
select test.set_clock('2026-03-29 05:00:00+00');
select is(test.notified(), array['NEW error duty_failing: 2: the monitor cannot do a duty',
	'OVER error duty_failing: the monitor cannot do a duty'], '07:00: all at once');
select test.target('ops', '{"quiet_critical": false}');
select test.set_clock('2026-03-29 21:00:00+00');
select test.raise('audit_chain', '3');
select is(test.notified(), '{}', '23:00: nothing is sent');
select test.target('ops', '{"quiet_hours": null}');
select is(cardinality(test.notified()), 2, 'the new one, and a reminder of yesterday''s');
delete from autopost.alerts;

-- A digest: at most so often, but for what is critical.
select test.target('ops', '{"digest_minutes": 60}');
select test.raise('duty_failing', '1');
select is(test.notified(), '{}');
select test.tick('59 minutes');
select is(test.notified(), '{}');
select test.raise('orphans', '2');
select test.tick('1 minute');
select is(cardinality(test.notified()), 2, 'together, after an hour');
select test.raise('audit_chain', '3');
select is(cardinality(test.notified()), 1, 'a critical alert does not wait');
select test.target('ops', '{"digest_minutes": 0}');
delete from autopost.alerts;

-- A storm is one message, and a day has so many.
select test.tick('25 hours');
select test.raise('source_failing', 'source:' || lpad(n::text, 2, '0')) from generate_series(1, 25) n;
select test.target('ops', '{"daily_limit": 2}');
select is((test.notified())[7:], array['NEW warning source_failing: source:07: a source cannot be polled',
	'… and 18 more: autopost alert list --workspace w']);
select is(test.notified(), '{}', 'alerts that were not shown count as announced');
select test.raise('orphans', '1');
select is(test.notified(), array['NEW error orphans: 1: rows refer to nothing',
	'This is the last of 2 messages in 24 hours. What comes now waits: autopost alert list --workspace w']);
select test.raise('orphans', '2');
select is(test.notified(), '{}');
select test.tick('24 hours');
select is((test.notified())[1], 'NEW error orphans: 2: rows refer to nothing', 'it is announced the next day');
delete from autopost.alerts;
select test.target('ops', '{"daily_limit": 50}');

-- A daemon that dies between the send and its record: the same message once more, and no third time.
select test.raise('orphans', '1');
select is(cardinality(test.claims()), 1);
select is(test.claims(), '{}', 'leased: two monitors at once send one');
select test.tick('121 seconds');
select is(cardinality(test.claims()), 1, 'once more');
select is((select m.attempt from autopost.alert_messages m where m.status = 'sending'), 2);
select test.tick('121 seconds');
select is(test.claims(), '{}', 'and no third time');
select is((select m.status from autopost.alert_messages m order by m.created_at desc, m.message_id desc limit 1),
	'unknown');
select is(autopost.finish_notice('w', (select m.message_id from autopost.alert_messages m where m.status = 'unknown'),
	'old', null), '{"applied": false, "reason": "stale"}');
delete from autopost.alerts;

-- Retries to an unreachable target are spaced and carry the current alerts. Other targets get an alert about it.
select test.target('second', '{"kinds": ["alert_target_failing"]}');
select test.raise('orphans', '1');
select test.claims();
select is(test.finish('ops', test.down()), 'failed');
select is(test.claims(), '{}');
select test.tick('1 minute');
select autopost.end_alert('w', 'orphans', '1'), test.raise('orphans', '2');
select is(test.claimed_lines(), array['NEW error orphans: 2: rows refer to nothing'], 'the current alert');
select test.finish('ops', test.down());
select test.tick('2 minutes');
select test.claims();
select test.finish('ops', test.down('{"retry_after_ms": 7200000}'));
select is(test.notified('second'),
	array['NEW error alert_target_failing: target:ops: alerts do not reach a target: no'], 'three times');
select test.tick('1 hour');
select is(test.claims(), '{}', 'the requested wait is a minimum');
select test.tick('1 hour');
select is(test.claimed_lines(), array['NEW error orphans: 2: rows refer to nothing'], 'it gets no alert about itself');
select is(test.finish('ops', test.down('{"known": false}')), 'pending', 'unknown outcome: once more');
select test.tick('1 hour');
select test.claims();
select is(test.finish('ops'), 'sent');
select is((select jsonb_build_array(t.last_error, m.error) from autopost.alert_targets t
	join autopost.alert_messages m using (workspace_id, target_id)
	where t.target_id = 'ops' order by m.message_id desc limit 1), '[null, null]', 'a sent message has no error');
select is(test.notified('second'),
	array['OVER error alert_target_failing: target ops: alerts do not reach a target']);

-- Health, every day; a test, at any time.
delete from autopost.alerts;
select test.set_clock('2026-06-01 06:30:00+00');
select test.target('ops', '{"health_at": "09:00", "timezone": "Europe/Moscow"}');
select test.tick('23 hours 30 minutes');
select is(test.notified(), array['HEALTH at 2026-06-02 09:00 Europe/Moscow']);
select is(test.notified(), '{}');
select is(autopost.test_alert_target('w', 'ops', 'ann', 'test', false) -> 'applied', 'true');
select is(autopost.test_alert_target('w', 'ops', 'ann', 'test', false) ->> 'reason', 'busy');
select is(test.claims(), '{"ops: [autopost w] test"}');
select is(autopost.remove_alert_target('w', 'ops', 'ann', 'test', false) -> 'applied', 'true');
select is(autopost.remove_alert_target('w', 'ops', 'ann', 'test', false) ->> 'reason', 'unknown_target');

-- A mail address gets a code first, and alerts once its reader has confirmed it.
create function test.mailed(p_target_id text) returns text[]
language sql
as $$
-- Takes and ends what is due for a target: its kinds and subjects.
select coalesce(array_agg(x.c ->> 'subject'), '{}') from (
	select c.value as c from autopost.claim_notices('w', 100) c (value)) x
cross join lateral autopost.finish_notice('w', (x.c ->> 'message_id')::uuid, x.c ->> 'token', null) f
where x.c ->> 'target_id' = p_target_id
$$;
create function test.code(p_target_id text) returns text
language sql
as $$
select substring(m.text from '--code ([0-9a-f]+)') from autopost.alert_messages m
where m.target_id = p_target_id and m.kind = 'confirm' order by m.created_at desc, m.message_id desc limit 1
$$;
create function test.confirm(p_code text) returns text
language sql
as $$
select coalesce(a.answer ->> 'reason', 'applied')
from (select autopost.confirm_alert_target('w', 'mail', p_code, 'ann', 'test', false) as answer) a
$$;
select autopost.put_alert_target('w', 'ops', '{"enabled": false}', 'ann', 'test', false);
select autopost.put_alert_target('w', 'mail', '{"kind": "email", "address": "ops@example.com"}', 'ann', 'test', false);
select test.raise('duty_failing', 'mail');
select is(test.confirm('0'), 'no_code');
select is(test.mailed('mail'), array['[autopost w] confirm this address']);
select is(test.mailed('mail'), '{}', 'one mail, and no alert');
select is(autopost.test_alert_target('w', 'mail', 'ann', 'test', false) ->> 'reason', 'code_sent');
select is(test.confirm('wrong'), 'wrong_code');
select test.tick('10 minutes');
select is(autopost.test_alert_target('w', 'mail', 'ann', 'test', false) -> 'applied', 'true', 'another code');
select is(test.mailed('mail'), array['[autopost w] confirm this address']);
select is((select array_agg(test.confirm('wrong')) from generate_series(1, 11)),
	array_fill('wrong_code'::text, array[10]) || array['no_code'], 'ten tries');
select is(test.confirm(test.code('mail')), 'no_code', 'then the code is void');
select test.tick('10 minutes');
select autopost.test_alert_target('w', 'mail', 'ann', 'test', false);
select is(test.mailed('mail'), array['[autopost w] confirm this address']);
select is(test.confirm(upper(test.code('mail'))), 'applied');
select is(test.confirm(test.code('mail')), 'unchanged');
select is(test.mailed('mail'), array['[autopost w] NEW error duty_failing: mail: the monitor cannot do a duty']);
-- Another address is another reader, also for a message that waits already.
select autopost.test_alert_target('w', 'mail', 'ann', 'test', false);
select autopost.put_alert_target('w', 'mail', '{"address": "other@example.com"}', 'ann', 'test', false);
select is(test.mailed('mail'), array['[autopost w] confirm this address']);
select test.tick('1 day');
select is(test.confirm(test.code('mail')), 'no_code', 'a code is valid for a day');
select is((select t.confirmed_at is null from autopost.alert_targets t where t.target_id = 'mail'), true);
select throws_ok($$update autopost.alert_targets set kind = 'webhook' where target_id = 'mail'$$, '23514');

select * from finish();
rollback;
