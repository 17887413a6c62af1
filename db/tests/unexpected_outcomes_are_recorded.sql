-- A commit is stored with any error content. Ignored fields are recorded.
begin;
\ir fake_clock.sql
\ir world.sql
select plan(29);

select test.channel('a', p_max_parallel => 100);
select test.channel('b', p_rate_group => 'other');
create function test.odd(p_error jsonb) returns jsonb
language sql
as $$
-- One more post, and the answer to a commit of this error.
select test.tick('10 days');
update autopost.channels set error_streak = 0, paused_until = null, enabled = channel_id = 'a';
select test.say(clock_timestamp()::text);
select test.claimed();
select test.start('a');
select test.commit('a', jsonb_build_object('ok', false, 'error', p_error));
$$;
create function test.kept() returns jsonb
language sql
as $$
select jsonb_build_object('category', r.last_error -> 'category', 'scope', r.last_error -> 'scope', 'known',
	r.last_error -> 'known',
	'wait', r.last_error -> 'retry_after_ms', 'misread', r.last_error -> 'misread')
from test.row('a') r
$$;

select is(test.odd('{"category": "WEIRD", "scope": "galaxy", "code": "x", "retry_after_ms": "abc"}') ->> 'status',
	'retry');
select is(test.kept(), '{"category": "TRANSIENT", "scope": "delivery", "known": true, "wait": null, "misread": {"category": "WEIRD", "scope": "galaxy", "retry_after_ms": "abc"}}');
select is((select e.error -> 'misread' ->> 'scope' from autopost.events e, test.row('a') d
	where e.delivery_id = d.delivery_id and e.action = 'retry_scheduled'), 'galaxy', 'also in its event');
select is(test.odd('{"category": "TRANSIENT", "scope": "delivery", "code": "x", "retry_after_ms": -5}') ->> 'status',
	'retry');
select is(test.kept() -> 'misread', '{"retry_after_ms": "-5"}');
select is(
	test.odd(
	'{"category": "TRANSIENT", "scope": "platform", "code": "x", "retry_after_ms": 5000, "known": true}') ->> 'status',
	'retry');
select is(test.kept() -> 'misread', 'null', 'all was understood');
select is(
	test.odd(
	'{"category": "TRANSIENT", "code": "x", "message": "m", "known": null, "retry_after_ms": null, "scope": null}') ->>
	'status', 'retry');
select is(test.kept() -> 'misread', 'null', 'nothing was said');
select is(test.odd('{"category": "bot token 123456789:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"}') ->> 'status', 'retry');
select is(test.kept() -> 'misread' ->> 'category', 'bot token [redacted]');

-- A wait is believed up to 366 days.
create temp table year on commit drop as
	select test.odd(
	'{"category": "TRANSIENT", "scope": "platform", "code": "http_503", "retry_after_ms": 99999999999999}') as answer;
select ok((select (answer ->> 'next_retry_at')::timestamptz from year) between autopost.now_ts() + interval '366 days'
	and autopost.now_ts() + interval '439.2 days', 'and the jitter');
select is(test.kept(), '{"category": "TRANSIENT", "scope": "platform", "known": true, "wait": 31622400000, "misread": {"retry_after_ms": "99999999999999"}}');
select ok((select l.cooldown_until < autopost.now_ts() + interval '439.3 days' from autopost.platform_limits l
	where l.rate_group = 'bot'), 'nor does its group rest for longer');
select test.tick('430 days');
select test.odd('{"category": "TRANSIENT", "code": "x", "retry_after_ms": 31622400000}');
select is(test.kept() -> 'misread', 'null');

-- A timeout alone does not show whether the post exists.
select is(test.odd('{"category": "TRANSIENT", "scope": "platform", "code": "timeout"}') ->> 'status', 'retry');
select is((test.row('a')).unknown_outcomes, 1);
select is(test.kept() -> 'known', 'false');
select is((select failing_channels from autopost.platform_limits where rate_group = 'bot'), '{a}',
	'the platform is suspected as after any other');
select test.odd('{"category": "TRANSIENT", "scope": "platform", "code": "timeout", "known": true}');
select is((test.row('a')).unknown_outcomes, 0, 'who knows, says so');
select test.odd('{"category": "TRANSIENT", "scope": "platform", "code": "http_500"}');
select is((test.row('a')).unknown_outcomes, 0, 'an answer came');
select test.odd('{"category": "TRANSIENT", "code": "x", "known": "false"}');
select is((test.row('a')).unknown_outcomes, 1);
select is(test.kept() -> 'misread', '{"known": "false"}');

-- The lookup goes before the reported error.
create function test.asked(p_what text, p_error jsonb) returns text
language plpgsql
as $$
begin
	perform test.tick('10 days'), test.say(clock_timestamp()::text), test.claimed(), test.start('a');
	return case p_what when 'retry'
		then autopost.schedule_retry('w', (test.row('a')).delivery_id, (test.row('a')).claim_token, p_error)
		else autopost.fail_permanent('w', (test.row('a')).delivery_id, (test.row('a')).claim_token,
			p_error) end ->> 'status';
end
$$;
select is(test.asked('retry', '{"category": "PERMANENT", "scope": "delivery", "code": "x"}'), 'retry');
select is(test.kept(), '{"category": "TRANSIENT", "scope": "delivery", "known": true, "wait": null, "misread": {"category": "PERMANENT"}}');
select is(test.asked('fail', '{"category": "TRANSIENT", "scope": "galaxy", "code": "timeout"}'), 'failed_permanent');
select is(test.kept(), '{"category": "PERMANENT", "scope": "delivery", "known": true, "wait": null, "misread": {"category": "TRANSIENT", "scope": "galaxy"}}');
select is(test.asked('fail', '{"code": "x"}'), 'failed_permanent');
select is(test.kept() -> 'misread', 'null', 'nothing was said against it');

select * from finish();
rollback;
