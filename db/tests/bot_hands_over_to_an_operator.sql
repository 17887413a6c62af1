-- A customer is handed to the operator's chat, whose replies are passed on, until the button or the time gives it back.
begin;
\ir fake_clock.sql
\ir world.sql
\ir bot_talks.sql
update autopost.workspace_endpoints set meta
	= '{"auth_ref": "mx", "bot": {"fallback": "escalate", "operator_chat_id": "-500"}}' where endpoint_id = 'mx';
create function test.operator(p_more jsonb) returns jsonb language sql as $$
	-- An update from the operator's chat.
	select autopost.bot_receive('w', 'mx', jsonb_set(test.message(-500, 'x'), '{message,recipient,chat_type}',
		'"chat"') || p_more) $$;
create function test.replies(p_text text, p_to text) returns text language sql as $$
	select test.operator(jsonb_build_object('message', (test.message(-500, p_text) -> 'message')
		|| jsonb_build_object('link', jsonb_build_object('type', 'reply', 'message', jsonb_build_object('mid',
			p_to))))) ->> 'status' $$;
create function test.hands_back(p_chat text, p_id text default 'h1') returns text language sql as $$
	select test.operator(jsonb_build_object('update_type', 'message_callback', 'callback',
		jsonb_build_object('callback_id', p_id, 'payload', 'b:' || p_chat,
		'user', '{"user_id": 9, "is_bot": false}'::jsonb))) ->> 'status' $$;
select plan(27);

select is(test.talk(1, 'где мой заказ из космоса'), 'Передаю вопрос оператору. Он ответит здесь.');
select is(test.state(1), 'operator');
select is(test.count_events('bot_escalated'), 1);
select is(test.answer(-500), e'Иван (1): где мой заказ из космоса\n\nОтветьте на это сообщение: бот передаст ответ.');
select is((select o.render_meta -> 'buttons' from autopost.bot_outbox o where o.chat_id = '-500'),
	'[[{"text": "Вернуть боту", "payload": "b:1"}]]');
select is(test.goes(-500, test.sent('mid.op')), 'sent');
select is(test.goes(1), 'sent');

-- The bot is silent; words of both sides are passed on.
select is(test.says(1, 'доставка'), 'processed');
select is((select count(*)::int from autopost.bot_outbox o where o.chat_id = '1'), 1, 'no answer of the bot');
select is(test.answer(-500), e'Иван (1): доставка\n\nОтветьте на это сообщение: бот передаст ответ.');
select is(test.replies('Он в пути', 'mid.op'), 'relayed');
select is(test.answer(1), 'Он в пути');
select is(test.replies('кому это', 'mid.unknown'), 'ignored', 'a reply to something else');
select is(test.operator('{}') ->> 'status', 'ignored', 'talk among operators');
select is((select array_agg(l.kind order by l.ts, l.id) from autopost.bot_logs l where l.chat_id = '1'),
	'{escalated,relayed,operator}');

-- The button gives the customer back, once.
select is(test.hands_back('1'), 'handed_back');
select is(test.state(1), 'default');
select is(test.answer(1), 'Снова отвечает бот. Чем помочь?');
select is(test.hands_back('1'), 'ignored');
select is(test.hands_back('2', 'h2'), 'ignored', 'not of a customer who was never there');
select is(test.talk(1, 'гарантия'), 'Гарантия на все товары — 12 месяцев. Сохраните чек.');

-- A customer cannot give herself back, nor can anybody else.
select test.says(1, 'непонятно');
select autopost.bot_receive('w', 'mx', test.message(1, 'x')
	|| '{"update_type": "message_callback", "callback": {"callback_id": "c9", "payload": "b:1", "user": {"user_id": 7}}}');
select is(test.state(1), 'operator');

-- The time gives it back; only the operator prolongs it.
select test.tick('20 minutes');
select test.says(1, 'ау');
select test.tick('11 minutes');
select is(test.talk(1, 'гарантия'), 'Гарантия на все товары — 12 месяцев. Сохраните чек.');
select test.says(1, 'непонятно');
select test.goes(-500, test.sent('mid.op2'));
select test.tick('20 minutes');
select test.replies('минуту', 'mid.op2');
select test.tick('20 minutes');
select test.says(1, 'жду');
select is(test.state(1), 'operator');

-- The turn guard hands over too, and so does a rule.
select test.says(3, t) from unnest('{возврат,1,2}'::text[]) t;
select autopost.put_bot_rule('w', 'loop',
	'{"keywords": ["loop"], "max_turns": 2, "priority": 500, "response_template": "L", "next_state": "loop"}', 'o',
	'r', false);
select is(array_agg(test.talk(4, t, 'en') order by n),
	'{L,"I am passing this on to an operator, who will answer here."}')
	from unnest('{loop,x}'::text[]) with ordinality t (t, n) where test.tick('1 second') is null or true;
select autopost.put_bot_rule('w', 'human',
	'{"keywords": ["human"], "priority": 500, "response_template": "Wait a moment.", "next_state": "operator"}', 'o',
	'r', false);
select is(test.talk(5, 'a human please', 'en') || ' ' || test.state(5), 'Wait a moment. operator');
update autopost.workspace_endpoints set meta = '{"auth_ref": "mx"}' where endpoint_id = 'mx';
select is(test.talk(6, 'a human please', 'en') || ' ' || test.state(6), 'Wait a moment. default',
	'without an operator nobody is silent');

select * from finish();
rollback;
