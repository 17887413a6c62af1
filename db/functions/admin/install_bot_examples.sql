create or replace function autopost.bot_examples() returns jsonb
language sql immutable parallel safe
as $$
-- Purpose: the example rules: answers about delivery, payment, returns, warranty and contacts, and the
--          scenario of a return (order number, reason, instructions), each in Russian and English.
select '[
	{"rule_id": "delivery-ru", "intent": "delivery", "keywords": ["доставк", "курьер", "самовывоз"], "priority": 10,
		"response_template": "Доставляем по России за 2–5 дней, от 3000 ₽ бесплатно. Самовывоз — в день заказа.",
		"buttons": [[{"text": "Оплата", "payload": "оплата"}, {"text": "Возврат", "payload": "возврат"}]]},
	{"rule_id": "delivery-en", "intent": "delivery", "keywords": ["deliver", "shipping", "courier"], "priority": 10,
		"response_template": "We deliver in 2 to 5 days, free of charge from 3000 RUB. Pick-up is possible on the same day.",
		"buttons": [[{"text": "Payment", "payload": "payment"}, {"text": "Returns", "payload": "return"}]]},
	{"rule_id": "payment-ru", "intent": "payment", "keywords": ["оплат", "картой", "рассрочк"], "priority": 10,
		"response_template": "Принимаем карты, СБП и наличные при получении."},
	{"rule_id": "payment-en", "intent": "payment", "keywords": ["pay", "credit card"], "priority": 10,
		"response_template": "You can pay by card, by bank transfer, or in cash on delivery."},
	{"rule_id": "returns-ru", "intent": "returns", "keywords": ["возврат", "вернуть", "обмен"], "priority": 20,
		"response_template": "Вернуть товар можно в течение 14 дней. Напишите номер заказа.",
		"next_state": "returns_order_ru"},
	{"rule_id": "returns-en", "intent": "returns", "keywords": ["return", "refund", "exchange"], "priority": 20,
		"response_template": "You can return goods within 14 days. Please send the order number.",
		"next_state": "returns_order_en"},
	{"rule_id": "warranty-ru", "intent": "warranty", "keywords": ["гаранти", "слома", "ремонт"], "priority": 10,
		"response_template": "Гарантия на все товары — 12 месяцев. Сохраните чек."},
	{"rule_id": "warranty-en", "intent": "warranty", "keywords": ["warranty", "guarantee", "broken", "repair"],
		"priority": 10,
		"response_template": "All goods have a warranty of 12 months. Keep the receipt."},
	{"rule_id": "contacts-ru", "intent": "contacts", "keywords": ["контакт", "телефон", "адрес", "оператор"],
		"priority": 10,
		"response_template": "Мы на связи с 9 до 21 часа: shop@example.org, Москва, Примерная улица, 1.",
		"buttons": [[{"text": "На карте", "url": "https://example.org/map"}]]},
	{"rule_id": "contacts-en", "intent": "contacts", "keywords": ["contact", "phone", "address", "operator"],
		"priority": 10,
		"response_template": "We answer from 9 to 21 o''clock: shop@example.org, 1 Example Street, Moscow.",
		"buttons": [[{"text": "On the map", "url": "https://example.org/map"}]]},
	{"rule_id": "returns-order-ru", "intent": "returns", "state": "returns_order_ru", "priority": 100,
		"response_template": "Заказ {returns_order_ru}. Почему вы его возвращаете?", "next_state": "returns_reason_ru"},
	{"rule_id": "returns-order-en", "intent": "returns", "state": "returns_order_en", "priority": 100,
		"response_template": "Order {returns_order_en}. Why are you returning it?", "next_state": "returns_reason_en"},
	{"rule_id": "returns-reason-ru", "intent": "returns", "state": "returns_reason_ru", "priority": 100,
		"response_template": "Заявка принята: заказ {returns_order_ru}, причина: {returns_reason_ru}. Принесите товар и чек в любой наш магазин или отправьте почтой.",
		"next_state": "default"},
	{"rule_id": "returns-reason-en", "intent": "returns", "state": "returns_reason_en", "priority": 100,
		"response_template": "Request accepted: order {returns_order_en}, reason: {returns_reason_en}. Bring the goods and the receipt to any of our shops, or send them by post.",
		"next_state": "default"}
]'::jsonb
$$;

create or replace function autopost.install_bot_examples(p_workspace_id text, p_operator text, p_reason text)
	returns jsonb
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: adds the example rules of the bot that the workspace does not have: five answers and a return in
--          three steps, in Russian and English. Existing rules stay.
-- Returns: {"added": [rule ids]}.
-- Raises:  AP001 for a wrong argument; AP002, AP003, AP005 as enter_workspace.
-- Locks:   as put_bot_rule.
-- Writes:  bot_rules, admin_audit_log.
declare
	v_rule jsonb;
	v_added jsonb := '[]';
begin
	perform autopost.enter_workspace(p_workspace_id);
	perform autopost.manual_act(p_operator, p_reason, false);
	for v_rule in select r.value from jsonb_array_elements(autopost.bot_examples()) r loop
		if not exists (select 1 from autopost.bot_rules r
			where r.workspace_id = p_workspace_id and r.rule_id = v_rule ->> 'rule_id') then
			perform autopost.put_bot_rule(p_workspace_id, v_rule ->> 'rule_id', v_rule - 'rule_id', p_operator,
				p_reason,
				false);
			v_added := v_added || (v_rule -> 'rule_id');
		end if;
	end loop;
	return jsonb_build_object('added', v_added);
end
$$;
