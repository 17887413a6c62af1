-- get_summary and get_overview return what pages show: what waits for a person, the worst alerts, and
-- calls per minute and platform.
begin;
\ir fake_clock.sql
\ir world.sql
select plan(16);

select is(autopost.get_summary('w'),
	'{"pending": 0, "alerts": 0, "refused_credentials": [], "x_posts": false, "bot": false}', 'an empty workspace');
select is(autopost.get_overview('w') -> 'flow', '[]');
-- The pages of the bot are shown while a rule answers, and as long as its messages are kept.
select autopost.put_bot_rule('w', 'r', '{"keywords": ["k"], "response_template": "r", "enabled": false}', 'o', 'r', false);
select is(autopost.get_summary('w') -> 'bot', 'false', 'a draft is not enough');
select autopost.enable_bot_rule('w', 'r', 1, 'o', 'r', false);
select is(autopost.get_summary('w') -> 'bot', 'true');
select autopost.enable_bot_rule('w', 'r', 0, 'o', 'r', false);
select is(autopost.get_summary('w') -> 'bot', 'false');
insert into autopost.bot_inbox (workspace_id, provider, chat_id, provider_message_id, inbox_id, ts, next_at, trace_id)
values ('w', 'max', '1', '1', autopost.new_id(), autopost.now_ts(), autopost.now_ts(), autopost.new_id());
select is(autopost.get_summary('w') -> 'bot', 'true');
select throws_ok($$select autopost.get_summary('nowhere')$$, 'AP003');

insert into autopost.workspace_endpoints (workspace_id, endpoint_id, kind, secret_hash, moderated)
values ('w', 'mod', 'webhook_push', repeat('b', 64), true);
select autopost.receive_push('w', 'mod', '[{"text": "One"}, {"text": "Two"}]');
select autopost.raise_alert('w', 'dead', 'deliveries', '{"message": "1 dead"}', '{}');
select autopost.raise_alert('w', 'auth_lost', 'credential:bot', '{"message": "no"}', '{}');
select is(autopost.get_summary('w') -> 'pending', '2');
select is(autopost.get_summary('w') -> 'alerts', '2');
select is(jsonb_path_query_array(autopost.get_summary('w'), '$.refused_credentials[*].subject'), '["credential:bot"]');
select is(jsonb_path_query_array(autopost.get_overview('w'), '$.alerts[*].kind'), '["auth_lost", "dead"]',
	'the worst first');
select is(autopost.get_overview('w') ->> 'status', 'active');
select is(autopost.get_overview('w') #> '{health,submissions}', '{"pending": 2}');

-- Calls of a quarter of an hour ago.
select test.channel('a', p_max_parallel => 2);
select test.say('Sent');
select test.round('a', test.sent('7'));
select test.tick('1 minute');
select test.say('Not sent');
select test.round('a', test.failure('TRANSIENT', 'delivery', 'http_502'));
select test.tick('15 minutes');
create function test.total(p_numbers jsonb) returns int
language sql
as $$
select sum(n::int)::int from jsonb_array_elements_text(p_numbers) n
$$;
select is(array(select format('%s %s %s', f ->> 'platform', test.total(f -> 'sent'), test.total(f -> 'failed'))
	from jsonb_array_elements(autopost.get_overview('w') -> 'flow') f), '{telegram 1 1}');
select is((select jsonb_array_length(f -> 'sent') from jsonb_array_elements(autopost.get_overview('w') -> 'flow') f), 60);
select test.tick('1 hour');
select is(autopost.get_overview('w') -> 'flow', '[]', 'only the last hour');
select * from finish();
rollback;
