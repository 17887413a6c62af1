-- Conversations of the shop bot: the five questions and the return, in both languages, and what goes wrong.
begin;
\ir fake_clock.sql
\ir world.sql
\ir bot_talks.sql
select plan(53);

-- Five questions of the founding documents.
select is(test.talk(1, c.question, c.language), c.answer, c.question) from (values
	('Сколько стоит ДОСТАВКА?', 'ru',
		'Доставляем по России за 2–5 дней, от 3000 ₽ бесплатно. Самовывоз — в день заказа.'),
	('Как оплатить, можно картой?', 'ru', 'Принимаем карты, СБП и наличные при получении.'),
	('Какая гарантия?', 'ru', 'Гарантия на все товары — 12 месяцев. Сохраните чек.'),
	('Ваш телефон', 'ru', 'Мы на связи с 9 до 21 часа: shop@example.org, Москва, Примерная улица, 1.'),
	('Do you deliver on Sunday?', 'en',
		'We deliver in 2 to 5 days, free of charge from 3000 RUB. Pick-up is possible on the same day.'),
	('Which payment do you take?', 'en', 'You can pay by card, by bank transfer, or in cash on delivery.'),
	('It is broken', 'en', 'All goods have a warranty of 12 months. Keep the receipt.'),
	('Give me a contact', 'en', 'We answer from 9 to 21 o''clock: shop@example.org, 1 Example Street, Moscow.')
	) c (question, language, answer);
select is(test.state(1), 'default', 'a question changes no state, however many there are');

-- The return, in both languages.
select is(test.talk(2, c.said, c.language), c.answer, c.said) from (values
	('Хочу вернуть чайник', 'ru', 'Вернуть товар можно в течение 14 дней. Напишите номер заказа.'),
	('12345', 'ru', 'Заказ 12345. Почему вы его возвращаете?'),
	('не подошёл', 'ru', 'Заявка принята: заказ 12345, причина: не подошёл. Принесите товар и чек в любой наш магазин или отправьте почтой.'),
	('I want a refund', 'en', 'You can return goods within 14 days. Please send the order number.'),
	('A-7', 'en', 'Order A-7. Why are you returning it?'),
	('too small', 'en', 'Request accepted: order A-7, reason: too small. Bring the goods and the receipt to any of our shops, or send them by post.')
	) c (said, language, answer);
select is(test.state(2), 'default', 'the return ends');
select is((select s.context from autopost.bot_state s where s.chat_id = '2'), '{}', 'and leaves nothing behind');
select is((select array_agg(l.state_before || '>' || l.state_after order by l.ts, l.id) from autopost.bot_logs l
	where l.chat_id = '2' and l.ts < '2026-06-02' limit 1),
	'{default>returns_order_ru,returns_order_ru>returns_reason_ru,returns_reason_ru>default,default>returns_order_en,returns_order_en>returns_reason_en,returns_reason_en>default}');
select is((select l.matched_rule_id || ' ' || l.rule_version from autopost.bot_logs l where l.chat_id = '2'
	order by l.ts, l.id limit 1),
	'returns-ru 1', 'the log names rule and version');

-- Case and ё fold; contains.
select is(test.talk(3, 'ВОЗВРАТ?'), 'Вернуть товар можно в течение 14 дней. Напишите номер заказа.');
select autopost.put_bot_rule('w', 'tea', '{"keywords": ["Зелёный  чай"], "response_template": "Есть, {name}."}', 'o',
	'r', false);
select is(test.talk(4, 'есть ли ЗЕЛЕНЫЙ ЧАЙ'), 'Есть, Иван.', 'ё is е, and the name of the customer');

-- No rule: a clarification in the language of the customer.
select is(test.talk(5, 'абракадабра'), 'Я не понял вопрос. Напишите, пожалуйста, другими словами.');
select is(test.talk(5, 'gibberish', 'en'), 'I did not understand that. Please say it in other words.');
select is(test.talk(5, null, 'en'), 'I did not understand that. Please say it in other words.',
	'a picture without words');
select is(test.count_events('bot_fallback'), 3);

-- Timeout: the state ends, and the message is matched in default.
select test.talk(6, 'возврат');
select test.tick('30 minutes');
select is(test.talk(6, '777'), 'Заказ 777. Почему вы его возвращаете?', 'in time');
select test.tick('30 minutes 1 second');
select is(test.talk(6, 'доставка'),
	'Доставляем по России за 2–5 дней, от 3000 ₽ бесплатно. Самовывоз — в день заказа.');
select is(test.state(6), 'default');

-- The turn guard: a scenario that never ends is ended by max_turns of the rule that owns the state.
select autopost.put_bot_rule('w', 'quiz',
	'{"keywords": ["quiz"], "max_turns": 4, "priority": 500, "response_template": "Guess.", "next_state": "quiz"}',
	'o', 'r', false);
select autopost.put_bot_rule('w', 'quiz-again',
	'{"state": "quiz", "priority": 500, "response_template": "Wrong: {quiz}."}', 'o', 'r', false);
select is(array_agg(test.talk(7, t.t, 'en') order by n), array['Guess.', 'Wrong: a.', 'Wrong: b.',
	'We answer from 9 to 21 o''clock: shop@example.org, 1 Example Street, Moscow.',
		'I did not understand that. Please say it in other words.'],
	'the fourth turn gives the contacts, and the fifth message is a new one')
from unnest('{quiz,a,b,c,d}'::text[]) with ordinality t (t, n);
select is((select array_agg(l.kind order by l.ts, l.id) from autopost.bot_logs l where l.chat_id = '7'),
	'{matched,matched,matched,guarded,fallback}');

-- Buttons: a payload is matched as text; the keyboard goes with the reply.
select is((select o.render_meta -> 'buttons' from autopost.bot_outbox o where o.chat_id = '1'
	order by o.reply_id limit 1),
	'[[{"text": "Оплата", "payload": "оплата"}, {"text": "Возврат", "payload": "возврат"}]]');
select is(autopost.receive_update('w', 'mx',
	'{"update_type": "message_callback", "timestamp": 1795000001000, "user_locale": "ru",
	"callback": {"callback_id": "cb1", "payload": "оплата", "user": {"user_id": 7, "is_bot": false}},
	"message": {"recipient": {"chat_id": 8, "chat_type": "dialog"}, "body": {"mid": "mid.x", "text": "Выберите"},
		"sender": {"user_id": 2, "is_bot": true}}}') ->> 'bot',
	'processed');
select is(test.answer(8), 'Принимаем карты, СБП и наличные при получении.');
select is((select o.callback_id || ' ' || o.inbound_provider_message_id from autopost.bot_outbox o where o.chat_id
	= '8'), 'cb1 callback:cb1');

-- A start is answered, an edit is logged, and neither twice.
select is(autopost.receive_update('w', 'mx',
	'{"update_type": "bot_started", "timestamp": 1795000002000, "chat_id": 9, "user": {"user_id": 7, "is_bot": false}, "user_id": 7, "user_locale": "ru", "payload": "доставка"}') ->> 'bot', 'processed');
select is(test.answer(9), 'Доставляем по России за 2–5 дней, от 3000 ₽ бесплатно. Самовывоз — в день заказа.',
	'the payload of a start is matched');
select is(autopost.bot_receive('w', 'mx', e.u) ->> 'status', 'logged', 'an edit, once or twice')
from (values ('{"update_type": "message_edited", "timestamp": 1795000003000, "message": {"recipient": {"chat_id": 9, "chat_type": "dialog"}, "body": {"mid": "mid.9", "text": "возврат"}, "sender": {"user_id": 7}}}'::jsonb)) e (u),
	generate_series(1, 2);
select is((select count(*)::int from autopost.bot_logs l where l.chat_id = '9' and l.kind = 'edited'), 1);
select is((select count(*)::int from autopost.bot_outbox o where o.chat_id = '9'), 1);

-- Telegram is a second provider.
select is(autopost.receive_update('w', 'tg',
	'{"update_id": 1, "message": {"message_id": 5, "from": {"id": 7, "is_bot": false, "first_name": "Ann", "language_code": "en"}, "chat": {"id": 7, "type": "private"}, "date": 1795000000, "text": "payment"}}') ->> 'bot', 'processed');
select is((select o.rendered_text from autopost.bot_outbox o where o.provider = 'telegram' and o.chat_id = '7'),
	'You can pay by card, by bank transfer, or in cash on delivery.');

-- Dialogs only; not bots; not without rules; not if it is turned off.
select is(autopost.bot_receive('w', 'mx', test.message(10, 'доставка') || b.more) -> 'reason', b.reason,
	b.reason::text) from (values
	('{"message": {"recipient": {"chat_id": -10, "chat_type": "chat"}, "body": {"mid": "a", "text": "доставка"}, "sender": {"is_bot": false}}}'::jsonb, '"no_dialog"'::jsonb),
	('{"message": {"recipient": {"chat_id": -10, "chat_type": "channel"}, "body": {"mid": "b", "text": "доставка"}}}',
		'"no_dialog"'),
	('{"message": {"recipient": {"chat_id": 10, "chat_type": "dialog"}, "body": {"mid": "c", "text": "доставка"}, "sender": {"is_bot": true}}}', '"no_dialog"'),
	('{"update_type": "dialog_cleared"}', '"no_message"')) b (more, reason);
update autopost.workspace_endpoints set meta = '{"auth_ref": "mx", "bot": {"enabled": false}}' where endpoint_id = 'mx';
select is(autopost.bot_receive('w', 'mx', test.message(10, 'доставка')) ->> 'reason', 'disabled');
update autopost.workspace_endpoints set meta = '{"auth_ref": "mx", "bot": {"fallback_text": "Просто спросите."}}'
	where endpoint_id = 'mx';
select is(test.talk(10, 'абракадабра'), 'Просто спросите.', 'the text of the owner');
update autopost.bot_rules set enabled = false;
select is(autopost.bot_receive('w', 'mx', test.message(10, 'доставка')) ->> 'reason', 'no_rules');

-- Personal data: rules see it, the log does not.
update autopost.bot_rules set enabled = true where version = 1;
select test.talk(11, 'возврат');
select is(test.talk(11, 'заказ 8, телефон +7 999 123-45-67'),
	'Заказ заказ 8, телефон +7 999 123-45-67. Почему вы его возвращаете?');
select is((select l.message_text from autopost.bot_logs l where l.chat_id = '11' order by l.ts desc,
	l.id desc limit 1), 'заказ 8, телефон [redacted]');
select is((select count(*)::int from autopost.bot_inbox i where i.message is not null), 0,
	'a processed message keeps no text');
select is((select array_agg(t.kind || ' ' || t.reply_status order by t.ts, t.id) from autopost.bot_transcript('w',
	'max', null, '11', 10) t),
	'{"matched pending","matched pending"}');

select * from finish();
rollback;
