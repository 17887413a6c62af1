-- Helpers for contracts of the shop bot: bots of MAX and Telegram, the example rules, and short functions. Included
-- after world.sql.
insert into autopost.credential_bindings (workspace_id, auth_ref, platform, secret_ref)
	values ('w', 'mx', 'max', 'env:MX'), ('w', 'tg', 'telegram', 'env:TG');
insert into autopost.workspace_endpoints (workspace_id, endpoint_id, kind, secret_hash, meta) values
	('w', 'mx', 'bot_webhook', repeat('3', 64), '{"auth_ref": "mx"}'),
	('w', 'tg', 'bot_webhook', repeat('1', 64), '{"auth_ref": "tg"}');
select autopost.install_bot_examples('w', 'test', 'test');
create table test.said (n int generated always as identity);

create function test.message(p_chat int, p_text text, p_language text default 'ru',
	p_mid text default null) returns jsonb
language sql
as $$
-- An update of MAX: a message in a dialog.
insert into test.said default values;
select jsonb_build_object('update_type', 'message_created', 'timestamp', 1795000000000 + n, 'user_locale', p_language,
	'message', jsonb_build_object('recipient', jsonb_build_object('chat_id', p_chat, 'chat_type', 'dialog', 'user_id',
		1),
	'body', jsonb_build_object('mid', coalesce(p_mid, 'mid.' || n), 'seq', n, 'text', p_text), 'sender',
	'{"user_id": 7, "first_name": "Иван", "is_bot": false}'::jsonb))
from (select max(n) as n from test.said) s
$$;

create function test.says(p_chat int, p_text text, p_language text default 'ru', p_mid text default null) returns text
language sql
as $$
-- Says a text to the bot of MAX: its result.
select autopost.receive_update('w', 'mx', test.message(p_chat, p_text, p_language, p_mid)) ->> 'bot'
$$;

create function test.answer(p_chat int) returns text
language sql
as $$
-- The newest message of the bot in a chat.
select o.rendered_text from autopost.bot_outbox o where o.workspace_id = 'w' and o.chat_id = p_chat::text
order by o.reply_id desc limit 1
$$;

create function test.talk(p_chat int, p_text text, p_language text default 'ru') returns text
language sql
as $$
-- Says a text, and the answer to it.
select test.says(p_chat, p_text, p_language);
select test.answer(p_chat)
$$;

create function test.state(p_chat int) returns text
language sql
as $$
select s.state from autopost.bot_state s where s.workspace_id = 'w' and s.chat_id = p_chat::text
$$;

create function test.reply(p_chat int) returns autopost.bot_outbox
language sql
as $$
-- The oldest open message of the bot in a chat, else the newest one.
select o from autopost.bot_outbox o where o.workspace_id = 'w' and o.chat_id = p_chat::text
order by o.finished_at is not null, case when o.finished_at is null then o.reply_id end,
	case when o.finished_at is not null then o.reply_id end desc limit 1
$$;

create function test.take(p_limit int default 100, p_run_id text default 'run-1') returns text[]
language sql
as $$
-- Claims messages of bots: their chats.
select coalesce(array_agg(c.target_id), '{}') from autopost.bot_claim_replies('w', p_run_id, p_limit) c
$$;

create function test.begins(p_chat int) returns jsonb
language sql
as $$
select autopost.bot_start_reply('w', r.reply_id, r.claim_token) from test.reply(p_chat) r
$$;

create function test.ends(p_chat int, p_outcome jsonb) returns jsonb
language sql
as $$
select autopost.bot_commit_reply('w', r.reply_id, r.claim_token, p_outcome) from test.reply(p_chat) r
$$;

create function test.goes(p_chat int, p_outcome jsonb default '{"ok": true, "provider_message_id": "mid.sent"}')
	returns text
language sql
as $$
-- Claims, starts and commits the oldest open message of a chat: its status.
select test.take();
select test.begins(p_chat);
select test.ends(p_chat, p_outcome) ->> 'status'
$$;
