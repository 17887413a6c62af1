begin;
\ir fake_clock.sql
\ir world.sql
select plan(14);

insert into autopost.workspaces (workspace_id) values ('v'), ('u');
insert into autopost.workspace_endpoints (workspace_id, endpoint_id, kind, secret_hash)
	values ('v', 'in', 'webhook_push', repeat('b', 64));
insert into autopost.channels (workspace_id, channel_id, platform, target_id, auth_ref, rate_group, rate_rps)
	values ('v', 'b', 'telegram', '@b', 'bot', 'bot', null);
select test.channel('a');
create function test.ready(p_limit int default 10) returns text[]
language sql
as $$
select array(select autopost.ready_workspaces(p_limit))
$$;

select is(test.ready(), '{}', 'nothing waits');
select is(test.next_wake(), null);
select autopost.enqueue_messages_and_deliveries('v', 'in', 'api', '{"text": "first"}');
select test.tick('1 second');
select test.say('second');
select is(test.ready(), '{v,w}', 'in a ring');
select is(test.ready(1), '{v}');
select is(test.next_wake(), 0::bigint);
select autopost.claim_deliveries('v', 'r', 10);
select is(test.ready(), '{w}', 'claimed: nothing left there');
select test.claimed();
select is(test.ready(), '{}');

select test.post(jsonb_build_object('text', 'later', 'scheduled_for', autopost.now_ts() + interval '90 seconds'));
select autopost.commit_outcome('w', d.delivery_id, d.claim_token, test.sent('1')) from autopost.deliveries d
	where d.workspace_id = 'w' and d.status = 'sending';
select is(test.next_wake(), 90000::bigint, 'when to look again');
select test.tick('90 seconds');
select is(test.ready(), '{w}');
insert into autopost.platform_limits (workspace_id, platform, rate_group, cooldown_until)
	values ('w', 'telegram', 'bot', autopost.now_ts() + interval '5 seconds');
select is(test.ready(), '{}', 'a group that cools down is not ready');
select is(test.next_wake(), 5000::bigint, 'until it is');
update autopost.platform_limits set cooldown_until = null, rate_rps = 1,
	next_allowed_at = autopost.now_ts() + interval '3 seconds';
select is(test.next_wake(), 2500::bigint,
	'nor one whose slots are taken for the next half second: it is asked when a claim gives many');
update autopost.platform_limits set next_allowed_at = null;
update autopost.workspaces set status = 'disabled';
select is(test.ready(), '{}', 'nor a workspace that is not active');
select is(test.next_wake(), null);

select * from finish();
rollback;
