-- If a platform reports a new chat id, the commit moves the channels of that chat, and the delivery
-- is sent again at once.
begin;
\ir fake_clock.sql
\ir world.sql
select plan(21);

insert into autopost.channels (workspace_id, channel_id, platform, target_id, auth_ref, rate_group, rate_rps)
values ('w', 'a', 'telegram', '-100', 'bot', 'bot', null), ('w', 'topic', 'telegram', '-100:7', 'bot', 'bot', null),
	('w', 'longer', 'telegram', '-1000', 'bot', 'bot', null), ('w', 'elsewhere', 'max', '-100', 'bot', 'bot', null);
create function test.moved(p_channel text, p_from text, p_to text) returns jsonb
language sql
as $$
select test.commit(p_channel, test.failure('TRANSIENT', 'channel', 'tg_chat_migrated',
	jsonb_build_object('moved', jsonb_build_object('from', p_from, 'to', p_to))))
$$;
create function test.targets() returns text
language sql
as $$
select string_agg(c.channel_id || ' ' || c.target_id, ', ' order by c.channel_id) from autopost.channels c
$$;
select test.say('x');
select test.claimed();
select test.start('a');
select is(test.moved('a', '-100', '-1001234') ->> 'status', 'retry');
select is(test.targets(), 'a -1001234, elsewhere -100, longer -1000, topic -1001234:7',
	'every channel of that chat, with its thread, and no other');
select cmp_ok((test.row('a')).next_retry_at, '<=', autopost.now_ts() + interval '10 milliseconds', 'at once');
select is((test.row('a')).unknown_outcomes, 0, 'it is in no doubt');
select ok((test.channel_row('a')).cooldown_until is null and (test.channel_row('a')).error_streak = 0,
	'and nobody''s fault');
select is(test.count_events('channel_moved'), 2);
select is((select e.meta ->> 'from' || ' ' || (e.meta ->> 'to') from autopost.events e
	where e.action = 'channel_moved' and e.channel_id = 'topic'), '-100:7 -1001234:7');
select is((select array_agg(l.subject || ' ' || (l.before ->> 'target_id') || ' ' || (l.after ->> 'target_id') || ' '
	|| l.operator order by l.seq)
	from autopost.admin_audit_log l where l.action = 'move_target'),
		'{channel:a -100 -1001234 autopost,channel:topic -100:7 -1001234:7 autopost}');

select test.tick('1 millisecond');
select test.say('y');

-- Deliveries in flight to the old chat are sent again; waiting deliveries use the new chat.
create function test.flying(p_channel text) returns autopost.deliveries
language sql
as $$
select d from autopost.deliveries d where d.channel_id = p_channel and d.status = 'sending'
$$;
select autopost.start_call('w', d.delivery_id, d.claim_token) from test.flying('topic') d;
select is((select autopost.commit_outcome('w', d.delivery_id, d.claim_token,
	test.failure('TRANSIENT', 'channel', 'tg_chat_migrated', '{"moved": {"from": "-100", "to": "-1001234"}}'))
	from test.flying('topic') d) ->> 'status', 'retry');
select is((select count(*) from autopost.deliveries where channel_id = 'topic' and status = 'retry')::int, 1);
-- '-100', '-1001234') ->> 'status', 'retry');
select is(test.count_events('channel_moved'), 2, 'nothing is moved twice');
select test.tick('1 second');
select set_eq($$select c.target_id from test.claim() c where c.channel_id = 'a'$$, $$values ('-1001234')$$,
	'claimed for the new chat');
select autopost.start_call('w', d.delivery_id, d.claim_token) from test.flying('a') d;
select is((select autopost.commit_outcome('w', d.delivery_id, d.claim_token, test.sent('1'))
	from test.flying('a') d) ->> 'status', 'sent');

-- A chat that moves for ever ends with its attempts.
insert into autopost.channels (workspace_id, channel_id, platform, target_id, auth_ref, rate_group, rate_rps)
values ('w', 'pong', 'telegram', '-3000', 'bot', 'bot', null), ('w', 'lost', 'telegram', '-5000', 'bot', 'bot', null);
select test.post('{"text": "round and round", "routing": {"include_channels": ["pong"]}}');
create function test.pingpong(n int) returns text
language sql
as $$
select test.tick('1 second');
select test.claimed();
select test.start('pong');
select test.moved('pong', target_id, case target_id when '-3000' then '-4000' else '-3000' end) ->> 'status'
	from autopost.channels where channel_id = 'pong'
$$;
update autopost.deliveries set attempt = 4 where channel_id = 'pong';
select is(test.pingpong(1), 'retry', 'it costs no attempt');
create temp table rounds on commit drop as select n, test.pingpong(n) as status from generate_series(2, 13) n;
select is((select string_agg(status, ',' order by n) from rounds), repeat('retry,', 11) || 'dead',
	'and in the end it does');

-- An id that no channel can have, and one that another has already.
select test.post('{"text": "where to", "routing": {"include_channels": ["lost"]}}');
select test.tick('1 second');
select test.claimed();
select test.start('lost');
select is(test.moved('lost', '-5000', 'nowhere') ->> 'status', 'retry');
select is((test.channel_row('lost')).target_id, '-5000', 'an invalid address is not stored');
select cmp_ok((test.row('lost')).next_retry_at, '>', autopost.now_ts() + interval '1 second',
	'and nothing goes again at once');
insert into autopost.channels (workspace_id, channel_id, platform, target_id, auth_ref, rate_group)
	values ('w', 'holder', 'telegram', '-777', 'bot', 'bot');
select test.tick('1 minute');
select test.claimed();
select test.start('lost');
select is(test.moved('lost', '-5000', '-777') ->> 'status', 'failed_permanent', 'two channels cannot have one target');
select matches((test.row('lost')).last_error ->> 'message', 'target of channel holder already');
select ok((test.channel_row('lost')).paused_until > autopost.now_ts(), 'it waits for a person');

select * from finish();
rollback;
