-- Each message is answered once, in its order, at most twenty a minute; a failure keeps it, and it is tried five times.
begin;
\ir fake_clock.sql
\ir world.sql
\ir bot_talks.sql
create function test.inbox(p_chat int) returns text[] language sql as $$
	select array_agg(i.status || ' ' || i.tries order by i.ts, i.inbox_id) from autopost.bot_inbox i where i.chat_id
		= p_chat::text $$;
select plan(27);

-- Repeats, by the same update and by the same message.
select is(test.says(1, 'доставка', 'ru', 'mid.a'), 'processed');
select is(test.says(1, 'доставка', 'ru', 'mid.a'), null, 'the update is a duplicate');
select is(autopost.bot_receive('w', 'mx', test.message(1, 'доставка', 'ru', 'mid.a')), '{"status": "duplicate"}');
select is((select count(*)::int from autopost.bot_outbox), 1);
select is((select autopost.bot_receive('w', 'mx', test.message(2, 'доставка', 'ru', 'mid.a')) ->> 'status'),
	'processed', 'ids repeat between chats');
insert into autopost.credential_bindings (workspace_id, auth_ref, platform, secret_ref) values ('w', 'mx2', 'max',
	'env:MX2');
insert into autopost.workspace_endpoints (workspace_id, endpoint_id, kind, secret_hash, meta) values ('w', 'mx2',
	'bot_webhook', repeat('4', 64), '{"auth_ref": "mx2"}');
select is((select autopost.bot_receive('w', 'mx2', test.message(1, 'доставка', 'ru', 'mid.a')) ->> 'status'),
	'processed', 'and between bots');

-- A failure in processing keeps the message and its error, and those behind it keep their order.
create function test.broken() returns trigger language plpgsql as $$ begin raise exception 'disk of +7 999 123-45-67 is full'; end $$;
create trigger broken before insert on autopost.bot_outbox for each row execute function test.broken();
select is(test.says(3, 'возврат'), 'received', 'stored, and acknowledged');
select is((select i.error from autopost.bot_inbox i where i.chat_id = '3'),
	'{"code": "P0001", "message": "disk of [redacted] is full"}');
select is((select count(*)::int from autopost.bot_logs l where l.chat_id = '3'), 0, 'no half of it');
select is(test.says(3, '555'), 'received');
select is(test.inbox(3), '{"received 1","received 0"}');
drop trigger broken on autopost.bot_outbox;
select is(test.says(3, 'мал'), 'received', 'a later one does not overtake');
select is(autopost.bot_recover('w') -> 'processed', '0', 'not yet');
select test.tick('3 seconds');
select is((select c from autopost.ready_bot_workspaces(10) c), 'w');
select is(autopost.bot_recover('w') -> 'processed', '3');
select is((select array_agg(l.state_after order by l.ts, l.id) from autopost.bot_logs l where l.chat_id = '3'),
	'{returns_order_ru,returns_reason_ru,default}');

-- A repeat of a stored message resumes it.
create trigger broken before insert on autopost.bot_outbox for each row execute function test.broken();
select is(test.says(4, 'доставка', 'ru', 'mid.b'), 'received');
drop trigger broken on autopost.bot_outbox;
select test.tick('3 seconds');
select is(autopost.bot_receive('w', 'mx', test.message(4, 'доставка', 'ru', 'mid.b')), '{"status": "duplicate"}');
select is(test.inbox(4), '{"processed 1"}');

-- Five tries.
create trigger broken before insert on autopost.bot_outbox for each row execute function test.broken();
select test.says(5, 'доставка');
create function test.recovers() returns jsonb language sql as $$ select test.tick('1 minute'); select autopost.bot_recover('w') $$;
select test.recovers() from generate_series(1, 7);
select is(test.inbox(5), '{"received 5"}');
drop trigger broken on autopost.bot_outbox;
select test.tick('1 minute');
select autopost.bot_recover('w');
select is(test.inbox(5), '{"received 5"}', 'then it is left');
select is(test.says(5, 'доставка'), 'processed', 'and the chat goes on');
select is((select c.failing || ' ' || c.waiting from autopost.list_bot_chats('w', '{}', 100) c where c.chat_id = '5'),
	'1 0');

-- More than twenty a minute: stored, processed later, in order.
select test.tick('1 hour');
select is(array_agg(test.says(6, 'вопрос ' || n) = 'processed' order by n), array_fill(true, array[20])
	|| array_fill(false, array[5])) from generate_series(1, 25) n;
select test.tick('59 seconds');
select is(autopost.bot_recover('w') -> 'processed', '0');
select test.tick('2 seconds');
select is(autopost.bot_recover('w') -> 'processed', '5');
select is((select array_agg(substr(l.message_text, 8)::int order by l.ts, l.id) from autopost.bot_logs l
	where l.chat_id = '6'),
	array(select generate_series(1, 25)));

select * from finish();
rollback;
