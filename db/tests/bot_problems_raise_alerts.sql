-- Messages to the bot that fail, replies that fail and questions without a rule raise alerts and are counted.
begin;
\ir fake_clock.sql
\ir world.sql
\ir bot_talks.sql
create function test.broken() returns trigger language plpgsql as $$
begin
	raise exception 'the template of ann@example.org is broken';
end $$;
create function test.look() returns text[] language sql as $$
	select autopost.check_alerts('w');
	select coalesce(array_agg(concat_ws(' ', a.kind, a.subject, a.amount) order by a.kind, a.subject), '{}')
	from autopost.alerts a where a.ended_at is null $$;
create function test.over() returns text[] language sql as $$
	select test.look(); select test.tick('3 minutes'); select test.look() $$;
create function test.alert(p_kind text) returns autopost.alerts language sql as $$
	select a from autopost.alerts a where a.kind = p_kind order by a.raised_at desc limit 1 $$;
create function test.gauges() returns text[] language sql as $$
	select coalesce(array_agg(concat_ws(' ', m.workspace_id, m.line, m.messages) order by m.line), '{}')
	from autopost.bot_metrics() m $$;
select plan(35);

update autopost.settings set value = '0' where key = 'alert_oldest_due_seconds';
select is(test.look(), '{}', 'nothing is wrong');
select is(test.gauges(), '{}');

-- A spike of failures, then messages that are given up.
create trigger broken before insert on autopost.bot_outbox for each row execute function test.broken();
select test.says(n, 'доставка') from generate_series(1, 4) n;
select is(test.look(), '{}', 'a few failures are tried again');
select is(test.gauges(), '{"w failing 4"}');
select test.says(5, 'доставка');
select is(test.look(), '{"bot_errors bot 5"}', 'a spike');
select is((test.alert('bot_errors')).what,
	'the processing of 5 messages to the bot failed in 10 minutes: the template of [redacted] is broken');
select matches((test.alert('bot_errors')).remedy, 'autopost bot lint --workspace w');
create function test.recovers() returns jsonb language sql as $$
	select test.tick('1 minute'); select autopost.bot_recover('w') $$;
select test.recovers() from generate_series(1, 7);
select is(test.look(), '{"bot_errors bot 5","bot_given_up bot 5"}', 'after five tries');
select is(test.gauges(), '{"w given_up 5"}');
select matches((test.alert('bot_given_up')).remedy, 'autopost bot chats --workspace w.*autopost alert ack');
select test.tick('11 minutes');
select is(test.over(), '{"bot_given_up bot 5"}', 'a spike ends');
select is(autopost.acknowledge_alert('w', (test.alert('bot_given_up')).alert_id, 'ann', 'answered', false) ->
	'applied',
	'true');
select is(test.over(), '{}', 'until a person has answered them');
drop trigger broken on autopost.bot_outbox;

-- Replies of a bot.
select test.says(10 + n, 'доставка') from generate_series(1, 5) n;
select test.tick('1 second');
select is(cardinality(test.take()), 5);
select test.begins(10 + n) from generate_series(1, 5) n;
select test.ends(10 + n, test.failure('TRANSIENT', 'delivery', 'http_500')) from generate_series(1, 4) n;
select is(test.look(), '{}', 'four failures');
select test.ends(15, test.failure('TRANSIENT', 'channel', 'http_429', '{"retry_after_ms": 60000}'));
select is(test.look(), '{}', 'a rate limit is not a failure');
select test.says(16, 'доставка');
select test.tick('2 seconds');
select test.take();
select test.begins(16);
select test.ends(16, test.failure('PERMANENT', 'channel', 'max_chat_denied'));
select is(test.look(), '{"bot_replies_failing bot:max/mx 5"}', 'a refused reply counts');
select matches((test.alert('bot_replies_failing')).what,
	'^bot max/mx: the calls of 5 replies failed in 10 minutes: ');
select is((test.alert('bot_replies_failing')).meta, '{"code": "max_chat_denied"}');
select test.tick('12 minutes');
select is(test.over(), '{}', 'later there are no failures');

-- Messages without a rule.
select test.tick('1 hour');
select test.says(100 + n, 'доставка') from generate_series(1, 10) n;
select test.says(200 + n, 'Есть ли ёлки? ' || n) from generate_series(1, 9) n;
select is(test.look(), '{}', 'nineteen messages say nothing');
select test.says(300, 'где вы');
select is(test.look(), '{"bot_fallback_rate bot 50"}', 'half of twenty');
select is((test.alert('bot_fallback_rate')).what, 'no rule answered 10 of the last 20 messages to the bot');
select is(test.gauges(), '{"w given_up 5","w matched 10","w unmatched 10"}');
select test.tick('2 hours');
select is(test.over(), '{}', 'of the last hour');
select is(test.gauges(), '{"w given_up 5"}', 'of the last ten minutes');
select test.says(400 + n, case when n % 2 = 0 then 'Ёлка, есть?' else 'есть елка' end) from generate_series(1, 19) n;
select test.tick('61 minutes');
select is(test.look(), '{}', 'nineteen times');
update autopost.workspace_endpoints set meta = meta || '{"bot": {"fallback": "escalate", "operator_chat_id": "9"}}'
	where endpoint_id = 'mx';
select test.says(500, 'есть елка');
select is(test.look(), '{"bot_unmatched bot 20"}', 'the same words, also if an operator was called');
select is((test.alert('bot_unmatched')).what, 'messages with the same words had no rule 20 times in a day',
	'without words of a customer');
select is(autopost.bot_report('w', jsonb_build_object('since',
	autopost.now_ts() - interval '2 hours'), 1) #> '{unmatched,0,words}',
	'["елка", "есть"]', 'the report has them');
select is(autopost.acknowledge_alert('w', (test.alert('bot_unmatched')).alert_id, 'ann', 'seen', false) -> 'applied',
	'true');
select is(test.over(), '{}', 'an acknowledged question is counted again');

-- The turn guard that calls an operator is not an unmatched message.
update autopost.bot_rules set max_turns = 1 where rule_id = 'returns-ru';
select test.says(600, 'возврат');
select test.says(600, '12345');
select is(test.state(600), 'operator');
select is((autopost.bot_report('w', jsonb_build_object('since', autopost.now_ts()), 1)) -> 'fallback_rate', '0.0000');
select is((select l.meta -> 'guard' from autopost.bot_logs l where l.chat_id = '600' and l.kind = 'escalated'),
	'true');
select * from finish();
rollback;
