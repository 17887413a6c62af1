-- Webhook subscriptions of bots: one daemon at a time checks them and subscribes again with a new secret if needed.
begin;
\ir fake_clock.sql
\ir world.sql
insert into autopost.credential_bindings (workspace_id, auth_ref, platform, secret_ref)
	values ('w', 'bot', 'telegram', 'env:TG'), ('w', 'mx', 'max', 'env:MX');
insert into autopost.workspace_endpoints (workspace_id, endpoint_id, kind, secret_hash, meta, created_at) values
	('w', 'tg', 'bot_webhook', repeat('1', 64), '{"auth_ref": "bot"}', '2026-06-01'), ('w', 'mx', 'bot_webhook',
		repeat('3', 64), '{"auth_ref": "mx"}', '2026-06-01'),
	('w', 'tg-old', 'bot_webhook', repeat('4', 64), '{"auth_ref": "bot"}', '2026-01-01'), ('w', 'x', 'bot_webhook',
		repeat('5', 64), '{"auth_ref": "nobody"}', '2026-01-01');
create function test.due() returns text language sql as $$
	select string_agg(d.value ->> 'endpoint_id', ',' order by d.ordinality)
	from jsonb_array_elements(autopost.list_due_subscriptions('w', 10)) with ordinality d $$;
create function test.begin(p_seen jsonb, p_secret text default '7') returns text language sql as $$
select coalesce(b.answer ->> 'why', b.answer ->> 'reason')
	from (select autopost.begin_subscription('w', 'tg',
	'{"url": "https://a/hooks/telegram", "updates": ["message", "my_chat_member"]}', p_seen,
	repeat(p_secret, 64)) as answer) b $$;
create function test.taken(p_secret text) returns text language sql as $$
	select autopost.resolve_endpoint('bot_webhook', repeat(p_secret, 64)) ->> 'endpoint_id' $$;
create temp table fine on commit drop as
	select '{"url": "https://a/hooks/telegram", "updates": ["my_chat_member", "message"]}'::jsonb as seen;
select plan(41);

select is(autopost.list_due_subscriptions('w', 10) -> 1,
	'{"endpoint_id": "tg", "platform": "telegram", "auth_ref": "bot"}',
	'a bot has one subscription, that of its newest endpoint');
select is(test.due(), null, 'one daemon at a time');
select test.tick('299 seconds');
select is(test.due(), null);
select test.tick('1 second');
select is(test.due(), 'mx,tg', 'every subscription_check_seconds');

select is(test.begin('{"url": ""}'), 'it is missing');
select is(test.taken('1') || test.taken('7'), 'tgtg', 'while it is being subscribed both secrets are good');
select is(test.begin('{"url": ""}', '6'), 'it is missing', 'the daemon died over it');
select is(test.taken('7'), null);
select is(autopost.finish_subscription('w', 'tg', repeat('7', 64), null), '{"applied": false, "reason": "stale"}',
	'a late answer is refused');
select is(test.due(), 'tg', 'and it is looked at again at once');
select is(autopost.finish_subscription('w', 'tg', repeat('6', 64), null), '{"applied": true}');
select is(coalesce(test.taken('1'), '-') || test.taken('6'), '-tg', 'from then on the new one alone');
select is((select a.operator || ': ' || a.reason || ', ' || (a.after ->> 'url') from autopost.admin_audit_log a
	where a.action = 'subscribed'), 'autopost: it is missing, https://a/hooks/telegram');
select is(test.begin(seen), 'fine') from fine;
select is(test.taken('7'), null);
select is(test.begin(seen || '{"url": "https://b/hooks/telegram"}'), 'it goes elsewhere') from fine;
select is(test.begin(seen || '{"updates": ["message"]}'), 'it is for other updates') from fine;
select is(test.begin(seen || '{"updates": ["message", "my_chat_member", "poll"]}'), 'it is for other updates')
	from fine;
select is(test.begin(seen - 'updates'), 'it is for other updates') from fine;
select is(test.begin(seen || jsonb_build_object('error', 'Wrong response from the webhook: 401 Unauthorized',
	'error_at', to_char(autopost.now_ts() - interval '1 second', 'YYYY-MM-DD"T"HH24:MI:SSOF":00"'))), 'fine',
	'refused before it was subscribed') from fine;
select test.tick('1 minute');
select is(test.begin(seen || jsonb_build_object('error', 'Wrong response from the webhook: 401 Unauthorized',
	'error_at', to_char(autopost.now_ts() - interval '1 second', 'YYYY-MM-DD"T"HH24:MI:SSOF":00"'))),
	'its secret was refused') from fine;
select is(
	test.begin(seen || '{"error": "Wrong response from the webhook: 503", "error_at": "2026-07-01T00:00:00+00:00"}'),
	'fine') from fine;
update autopost.workspace_endpoints set secret_hash = repeat('8', 64) where endpoint_id = 'tg';
select is(test.begin(seen), 'it has another secret', 'rotated by hand') from fine;
select is(test.begin('{"url": ""}', '3'), 'secret_in_use');
select is(autopost.finish_subscription('w', 'tg', repeat('7', 64),
	'{"category": "TRANSIENT", "scope": "platform", "code": "tg_502"}') -> 'applied', 'true');
select is((select count(*)::int from autopost.alerts), 0, 'a transient error raises no alert at once');
select ok(s.next_check_at < autopost.now_ts() + interval '30 seconds', 'and is tried again soon')
	from autopost.bot_subscriptions s where s.endpoint_id = 'tg';
select is(autopost.finish_subscription('w', 'tg', null,
	'{"category": "TRANSIENT", "scope": "platform", "code": "tg_502"}') -> 'applied', 'true');
select is((select array_agg(a.subject) from autopost.alerts a where a.ended_at is null), '{endpoint:tg}',
	'in a row it is');
select is(test.begin('{"url": ""}'), 'it is missing');
select is(autopost.finish_subscription('w', 'tg', repeat('7', 64), null) -> 'applied', 'true');
select is((select count(*)::int from autopost.alerts where ended_at is null), 0, 'and it is over');
select is(autopost.finish_subscription('w', 'tg', null,
	'{"category": "PERMANENT", "scope": "channel", "code": "tg_unauthorized"}') -> 'applied', 'true');
select is((select count(*)::int from autopost.alerts where ended_at is null), 1,
	'a permanent error raises an alert at once');
update autopost.workspace_endpoints set enabled = false where endpoint_id = 'tg';
select is(test.begin('{"url": ""}') || (autopost.finish_subscription('w', 'tg', repeat('7', 64), null) ->> 'reason'),
	'unknownunknown');


-- One that a file of configuration made has no secret: its first subscription gives it one.
update autopost.workspace_endpoints set secret_hash = null, awaits_secret = true where endpoint_id = 'tg';
update autopost.bot_subscriptions set given_hash = null, next_hash = null where endpoint_id = 'tg';
select test.tick('1 hour');
select is(test.due(), 'mx,tg');
select is(test.begin(seen), 'it has another secret') from fine;
select is(test.begin(seen, '9'), 'it has another secret') from fine;
select is(autopost.finish_subscription('w', 'tg', repeat('9', 64), null) -> 'applied', 'true');
select is(test.taken('9'), 'tg');
select ok(e.enabled and not e.awaits_secret, 'and it is enabled') from autopost.workspace_endpoints e
	where e.endpoint_id = 'tg';

select * from finish();
rollback;
