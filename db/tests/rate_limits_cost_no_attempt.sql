-- A rate limit says nothing about the post: it costs no attempt. Only another failure does.
begin;
\ir fake_clock.sql
\ir world.sql
select plan(9);

create function test.limited(p_channel_id text, p_times int, p_error jsonb) returns text
language plpgsql
as $$
-- Lets the platform limit the next calls of a channel. Returns the last status.
declare
	v_status text;
begin
	for n in 1..p_times loop
		perform test.tick('1 hour');
		v_status := test.round(p_channel_id, p_error) ->> 'status';
	end loop;
	return v_status;
end
$$;

select test.channel('t');
select test.say('to a group that is full');
select is(test.limited('t', 30, test.failure('TRANSIENT', 'channel', 'tg_429', '{"retry_after_ms": 3000}')), 'retry',
	'thirty limits, each waited out, do not kill a post');
select is((test.row('t')).attempt, 30);
select is((test.row('t')).granted_attempts, 30, 'each attempt is granted again');
select is(test.limited('t', 4, test.failure('TRANSIENT', 'delivery', 'http_500')), 'retry', 'the own attempts are all left');
select is(test.limited('t', 1, test.failure('TRANSIENT', 'delivery', 'http_500')), 'dead');

-- A platform that states no wait counts too.
select test.channel('m', p_platform => 'max');
select test.post('{"text": "to MAX", "routing": {"include_channels": ["m"]}}');
select is(test.limited('m', 30, test.failure('TRANSIENT', 'channel', 'max_429')), 'retry');

-- The number is bounded.
update autopost.deliveries set granted_attempts = autopost.limits_of_a_post() where channel_id = 'm';
update autopost.deliveries set attempt = autopost.limits_of_a_post() + 4 where channel_id = 'm';
select is(test.limited('m', 1, test.failure('TRANSIENT', 'channel', 'max_429')), 'dead');

-- Post changes: thirty limits with a stated wait do not end an edit.
select test.channel('e');
select test.post('{"text": "to edit", "routing": {"include_channels": ["e"]}}');
select test.tick('1 second');
select test.round('e', '{"ok": true, "provider_message_id": "7", "raw": {"ids": ["7"], "steps": {"text": ["7"]}}}');
select is(autopost.request_acts('w', 'edit', null, array[(test.row('e')).delivery_id], '{"text": "new"}', null, 'olga',
	'wrong price', false) ->> 'refused', '0');
do $$
declare
	v_act autopost.post_acts;
begin
	for n in 1..30 loop
		perform test.tick('1 hour');
		perform autopost.claim_acts('w', 'run-1', 100);
		select a.* into strict v_act from autopost.post_acts a where a.kind = 'edit';
		perform autopost.start_act('w', v_act.act_id, v_act.claim_token);
		perform autopost.commit_act('w', v_act.act_id, v_act.claim_token,
			test.failure('TRANSIENT', 'channel', 'tg_429', '{"retry_after_ms": 3000}'));
	end loop;
end
$$;
select is((select a.status from autopost.post_acts a where a.kind = 'edit'), 'retry');
select * from finish();
rollback;
