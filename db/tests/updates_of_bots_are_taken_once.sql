-- Platform updates are deduplicated by id as long as the platform repeats them, in any format.
begin;
\ir fake_clock.sql
\ir world.sql
insert into autopost.credential_bindings (workspace_id, auth_ref, platform, secret_ref)
	values ('w', 'tg', 'telegram', 'env:TG'), ('w', 'mx', 'max', 'env:MX'), ('w', 'x', 'x', 'env:X');
insert into autopost.workspace_endpoints (workspace_id, endpoint_id, kind, secret_hash, meta) values
	('w', 'tg', 'bot_webhook', repeat('1', 64), '{"auth_ref": "tg"}'), ('w', 'tg-2', 'bot_webhook', repeat('2', 64),
		'{"auth_ref": "tg"}'),
	('w', 'mx', 'bot_webhook', repeat('3', 64), '{"auth_ref": "mx"}'), ('w', 'x', 'bot_webhook', repeat('4', 64),
		'{"auth_ref": "x"}'),
	('w', 'none', 'bot_webhook', repeat('5', 64), '{}');
create function test.received(p_endpoint_id text, p_update jsonb) returns text language sql as $$
	select autopost.receive_update('w', p_endpoint_id, p_update) ->> 'status' $$;
select plan(37);

select is(autopost.resolve_endpoint('bot_webhook', repeat('1', 64)),
	'{"workspace_id": "w", "endpoint_id": "tg", "max_payload_bytes": 262144, "platform": "telegram"}');
select is(autopost.resolve_endpoint('bot_webhook', repeat('3', 64)) ->> 'platform', 'max',
	'whose updates it takes is its credential''s platform');
select is(autopost.resolve_endpoint('bot_webhook', repeat(h, 64)), null, 'no bot of a messenger: ' || h)
	from unnest(array['4', '5', '9']) h;
select is(autopost.resolve_endpoint('webhook_push', repeat('1', 64)), null, 'a secret of another kind');

select is(autopost.receive_update('w', 'tg', '{"update_id": 1, "message": {"message_id": 5, "chat": {"id": 7, "type": "private"}, "date": 1795000000, "text": "hi"}}'),
	'{"status": "stored", "kind": "message"}');
select is(test.received('tg', '{"update_id": 1, "message": {"text": "hi"}}'), 'duplicate',
	'the id decides, not the body');
select is(test.received('tg-2', '{"update_id": 1, "message": {"text": "hi"}}'), 'duplicate',
	'nor the endpoint: the bot is the same');
select is(test.received('tg', '{"update_id": 2, "message": {"text": "hi"}}'), 'stored');
select is((select array[u.kind, u.chat_id, u.payload -> 'message' ->> 'text', u.endpoint_id] from autopost.bot_updates u
	where u.auth_ref = 'tg' and u.update_key = '1'),
	'{message,7,hi,tg}', 'it is kept as it came');
select is((select count(*)::int from autopost.discovered_chats), 0, 'a customer is not a discovered chat');
select is(test.received('tg', '{"update_id": 3, "chat_boost_of_2031": {"deep": [1]}}'), 'stored',
	'an unknown type is stored');
select is((select u.kind from autopost.bot_updates u where u.update_key = '3'), 'chat_boost_of_2031');
select test.tick('71 hours');
select is(test.received('tg', '{"update_id": 1, "message": {}}'), 'duplicate', 'for as long as receipt_ttl_hours');
select is(autopost.purge_receipts('w') -> 'purged', '0');
select test.tick('1 hour');
select is(test.received('tg', '{"update_id": 1, "message": {}}'), 'stored', 'ids may repeat later');
select is(autopost.purge_receipts('w') -> 'purged', '2', 'what is past its time goes');

-- MAX numbers nothing.
select is(test.received('mx', m.u::jsonb), 'stored', m.u) from (values
	('{"update_type": "message_created", "timestamp": 1795000000123, "message": {"recipient": {"chat_id": 1, "chat_type": "dialog"}, "body": {"mid": "mid.1", "text": "a"}}}'),
	('{"update_type": "message_edited", "timestamp": 1795000000124, "message": {"recipient": {"chat_id": 1, "chat_type": "dialog"}, "body": {"mid": "mid.1", "text": "b"}}}'),
	('{"update_type": "message_edited", "timestamp": 1795000000125, "message": {"recipient": {"chat_id": 1, "chat_type": "dialog"}, "body": {"mid": "mid.1", "text": "c"}}}'),
	('{"update_type": "message_callback", "timestamp": 1795000000126, "callback": {"callback_id": "c1"}, "message": null}'),
	('{"update_type": "message_callback", "timestamp": 1795000000126, "callback": {"callback_id": "c2"}, "message": null}'),
	('{"update_type": "bot_started", "timestamp": 1795000000127, "chat_id": 1, "user_id": 9}'),
	('{"update_type": "bot_started", "timestamp": 1795000000128, "chat_id": 1, "user_id": 9}')) m (u);
select is(test.received('mx',
	'{"update_type": "message_created", "timestamp": 5, "message": {"body": {"mid": "mid.1"}}}'), 'duplicate',
	'a message is its mid');
select is(test.received('mx', '{"update_type": "message_callback", "timestamp": 6, "callback": {"callback_id": "c1"}}'),
	'duplicate', 'a callback is its own');

-- Each update gets an answer.
select lives_ok(format('select test.received(%L, %L)', e, u), e || ' ' || left(u, 60)) from unnest(array['tg', 'mx']) e
	cross join unnest(array[
	'{}', '{"update_id": "7", "my_chat_member": {"chat": 5, "date": [], "new_chat_member": "x"}, "update_type": {}, "chat_id": {}, "message": [[]], "timestamp": 1e308}',
	'{"update_id": 1e400, "my_chat_member": {"chat": {"id": 99999999999999999999999, "title": 7, "type": []}, "date": -1}, "update_type": "bot_added", "chat_id": "x"}'
	]) u;
select is(length(u.payload -> 'message' ->> 'text'), 4096, 'no text is kept that no message can have')
	from (select autopost.receive_update('w', 'tg',
	jsonb_build_object('update_id', 500, 'message', jsonb_build_object('text', repeat('ж', 9000))))) r, lateral (
		select * from autopost.bot_updates where update_key = '500') u;

select test.received('tg', jsonb_build_object('update_id', 600 + n, 'message',
	'{"chat": {"id": -5, "type": "group", "title": "Loud"}, "text": "a"}'::jsonb)) from generate_series(1, 121) n;
select is((select count(u.payload)::int || ' of ' || count(*) || ', not ' || max(u.update_key)
	filter (where u.payload is null) from autopost.bot_updates u
	where u.chat_id = '-5'), '120 of 121, not 721', 'of a loud chat only that it spoke is kept');
select throws_ok($$select autopost.receive_update('w', 'in', '{}')$$, 'AP001');
select throws_ok($$select autopost.receive_update('w', 'none', '{}')$$, 'AP001');
select throws_ok($$select autopost.receive_update('w', 'tg', '[]')$$, 'AP001');

select * from finish();
rollback;
