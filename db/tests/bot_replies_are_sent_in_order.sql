-- Messages of the bot are claimed, started and committed as deliveries are: in the order of each chat, within rates,
-- at most two copies after a recorded unknown outcome.
begin;
\ir fake_clock.sql
\ir world.sql
\ir bot_talks.sql
create function test.fails_later(p_chat int) returns text language sql as $$
	select test.tick('1 minute'); select test.goes(p_chat, test.failure('TRANSIENT', 'delivery', 'http_500')) $$;
create function test.unknown() returns jsonb language sql as $$
	select test.failure('TRANSIENT', 'delivery', 'timeout', '{"known": false}') $$;
select plan(65);

select test.says(1, 'доставка'), test.says(1, 'гарантия'), test.says(2, 'доставка');
select is(test.take(), '{1,2}', 'one of each chat');
select is(test.take(), '{}', 'the next one of a chat waits for the first');
select is((select c from autopost.ready_bot_workspaces(10) c), null, 'nothing is ready');
select is(test.begins(1) -> 'applied', 'true');
select is(test.begins(1) -> 'applied', 'true', 'repeatable');
select is(test.ends(1, test.sent('mid.1')) ->> 'status', 'sent');
select is((select autopost.bot_commit_reply('w', o.reply_id, o.settled ->> 'token', test.sent('mid.1')) -> 'repeated'
	from autopost.bot_outbox o where o.provider_message_id = 'mid.1'), 'true', 'a repeated commit');
select is((select autopost.bot_commit_reply('w', o.reply_id, 'x', test.sent('mid.1')) ->> 'reason'
	from autopost.bot_outbox o where o.provider_message_id = 'mid.1'), 'stale');
select is((select autopost.bot_start_reply('w', o.reply_id, o.settled ->> 'token') ->> 'reason'
	from autopost.bot_outbox o where o.provider_message_id = 'mid.1'), 'stale');
select is(autopost.bot_commit_reply('w', gen_random_uuid(), 'x', test.sent('mid.1')) ->> 'reason', 'unknown_reply');
select is(test.count_events('bot_replied'), 1);
select is(test.take(), '{1}', 'then the next one of the chat');
select is((select o.send_at - autopost.now_ts() from autopost.bot_outbox o where o.chat_id = '1' and o.status
	= 'sending'),
	interval '0.5 seconds', 'half a second after the one before');
select test.begins(1);
select is((select o.last_call_at - autopost.now_ts() from autopost.bot_outbox o where o.chat_id = '1' and o.status
	= 'sending'), interval '0.5 seconds');
select test.ends(1, test.sent('mid.2')), test.ends(2, test.sent('mid.3'));
select is((select array_agg(o.rendered_text = r.text order by o.reply_id) from autopost.bot_outbox o,
	(values ('x')) r (text)), '{f,f,f}');

-- A late start gets the next slot.
select test.tick('1 minute');
select test.says(3, 'доставка'), test.take();
select test.tick('10 seconds');
select is((test.begins(3) ->> 'send_at')::timestamptz, autopost.now_ts());
select test.ends(3, test.sent('mid.4'));

-- The rate group of the credential holds; its limit comes from the platform or from channels.
select test.publish();
select test.tick('1 minute');
select test.says(n, 'доставка') from generate_series(11, 50) n;
select is(cardinality(test.take()), 25, 'a second of the group');
select is((select max(o.send_at) - autopost.now_ts() from autopost.bot_outbox o where o.status = 'sending'),
	interval '0.96 seconds');
select is(test.take(), '{}', 'no slot is free');
select test.tick('1 second');
select is(cardinality(test.take()), 15);
update autopost.bot_outbox set status = 'dead', claim_token = null, finished_at = autopost.now_ts() where status
	= 'sending';

-- A retry keeps its place: the chat waits for it. A dead one lets the next go.
select test.tick('1 minute');
select test.says(4, 'доставка'), test.says(4, 'гарантия');
select is(test.goes(4, test.failure('TRANSIENT', 'delivery', 'http_500')), 'retry');
select is(test.take(), '{}');
select is(test.fails_later(4), 'retry', 'attempt ' || n) from generate_series(2, 4) n;
select is(test.fails_later(4), 'dead', 'after max_attempts');
select is(test.goes(4), 'sent', 'the next one goes');
select test.says(4, 'доставка'), test.tick('1 minute');
select is(test.goes(4, test.failure('PERMANENT', 'channel', 'http_403')), 'failed_permanent',
	'the customer blocked the bot');
select is((select array_agg(e.result || ' ' || (e.meta ->> 'status') order by e.ts, e.id) from autopost.events e
	where e.action = 'bot_replied' and e.meta ->> 'chat_id' = '4'),
	'{"error retry","error retry","error retry","error retry","error dead","ok sent","error failed_permanent"}');

-- A rate limit costs no attempt and pauses its scope.
select test.tick('1 minute');
select test.says(5, 'доставка'), test.says(6, 'доставка');
select is(test.take(), '{5,6}');
select is(test.ends(5, test.failure('TRANSIENT', 'platform', 'max_429', '{"retry_after_ms": 20000}')) ->> 'attempt',
	'0');
select is(test.begins(6) ->> 'reason', 'rate', 'the whole group waits');
select is(test.take(), '{}');
select test.tick('30 seconds');
select is(test.take(), '{6,5}');
select test.ends(5, test.sent('mid.5')), test.ends(6, test.sent('mid.6'));

-- Unknown outcomes: sent again once, later than the platform settles; the second is final.
select test.tick('1 minute');
select test.says(7, 'доставка');
select is(test.goes(7, test.unknown()), 'retry');
select is((test.reply(7)).next_at >= autopost.now_ts() + interval '10 seconds', true, 'MAX settles');
select test.tick('20 seconds');
select is((select c.unknown_outcomes || ' ' || (c.known_posts ->> 'others_in_doubt') || ' ' || c.on_unknown || ' '
	|| c.attempt
	from autopost.bot_claim_replies('w', 'r', 10) c), '1 false reconcile 2');
select test.begins(7);
select is(test.ends(7, test.unknown()) ->> 'status', 'failed_permanent');
select is((select o.last_error ->> 'code' || ' ' || o.unknown_outcomes from autopost.bot_outbox o where o.chat_id
	= '7'), 'unknown_outcome 2');

-- Lost claims. Not started: released, and its attempt granted. Started: an unknown outcome.
select test.tick('1 minute');
select test.says(8, 'доставка'), test.says(9, 'доставка');
select is(test.take(), '{8,9}');
select test.begins(9);
select is(autopost.bot_recover('w'), '{"processed": 0, "released": 0, "unknown": 0}');
select test.tick('5 minutes');
select is((select c from autopost.ready_bot_workspaces(10) c), 'w', 'an expired lease is due');
select is(autopost.bot_recover('w'), '{"processed": 0, "released": 1, "unknown": 1}');
select is((select r.attempt || ' ' || r.status from test.reply(8) r), '0 pending');
select is((select r.attempt || ' ' || r.unknown_outcomes || ' ' || r.status from test.reply(9) r), '1 1 retry');
select test.tick('1 minute');
select is(test.goes(8) || test.goes(9), 'sentsent');

-- A claim without an answer: what the run does not know, and what has not started, is released.
select test.says(n, 'доставка') from generate_series(11, 13) n;
select is(test.take(), '{11,12,13}');
select test.begins(13);
select is(autopost.bot_release_lost('w', 'run-2', '{}'), '{"applied": true, "released": 0}', 'of another run');
select is(autopost.bot_release_lost('w', 'run-1', array[(test.reply(11)).claim_token]),
	'{"applied": true, "released": 1}');
select is((select string_agg(r.status || ' ' || r.attempt, ', ' order by n) from generate_series(11, 13) n
	cross join lateral test.reply(n) r), 'sending 1, pending 0, sending 1');
select is(test.take(), '{12}', 'at once');
select test.begins(11), test.begins(12);
select is(test.ends(11, test.sent('m11')) ->> 'status' || (test.ends(12, test.sent('m12')) ->> 'status')
	|| (test.ends(13, test.sent('m13')) ->> 'status'), 'sentsentsent');

-- A paused workspace receives and does not send.
update autopost.workspaces set status = 'paused';
select is(test.says(21, 'доставка'), 'processed');
select is(test.take(), '{}');
select is((select c from autopost.ready_bot_workspaces(10) c), null);
update autopost.workspaces set status = 'active';
select is(test.take(), '{21}');
update autopost.workspaces set status = 'paused';
select is(test.begins(21) ->> 'reason', 'workspace', 'paused between claim and start');
update autopost.workspaces set status = 'active';

-- Quotas of the group, and its breaker.
select test.tick('1 minute');
select is(test.goes(21), 'sent');
insert into autopost.quotas (workspace_id, platform, rate_group, window_seconds, max_sends, updated_at) values ('w',
	'max', 'mx', 3600, 1, autopost.now_ts());
select test.says(22, 'доставка'), test.says(23, 'доставка');
select is(test.take(), '{22}');
select test.begins(22), test.ends(22, test.sent('mid.22'));
select is(test.take(), '{}', 'the quota is used up');
delete from autopost.quotas;
update autopost.platform_limits set breaker_opened_at = autopost.now_ts(), failing_channels = '{a,b,c}', probe_at
	= autopost.now_ts() + interval '10 seconds' where platform = 'max';
select is(test.take(), '{}', 'the breaker is open');
select test.tick('11 seconds');
select is(test.goes(23), 'sent', 'a probe');
select is((select l.breaker_opened_at from autopost.platform_limits l where l.platform = 'max'), null, 'closes it');

-- Wrong arguments.
select throws_ok($$select * from autopost.bot_claim_replies('w', 'r', 0)$$, 'AP001');
select throws_ok($$select autopost.bot_commit_reply('w', gen_random_uuid(), 'x', '{}')$$, 'AP001');

select * from finish();
rollback;
