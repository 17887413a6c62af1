-- A configuration file has the rules of the bot as they answer: all of it is applied or nothing, and an export
-- is unchanged.
begin;
\ir fake_clock.sql
\ir world.sql
\ir bot_talks.sql
create function test.rules(p_items jsonb, p_dry boolean default false) returns jsonb language sql as $$
	select autopost.apply_config('w', (select jsonb_agg('{"kind": "bot_rule"}' || i.value order by i.ordinality)
		from jsonb_array_elements(p_items) with ordinality i), 'olga', 'because', p_dry) $$;
create function test.exported() returns jsonb language sql as $$
	select coalesce(jsonb_agg(i.value order by i.ordinality), '[]')
	from jsonb_array_elements(autopost.export_config('w')) with ordinality i where i.value ->> 'kind' = 'bot_rule' $$;
create function test.versions(p_id text) returns text language sql as $$
	select string_agg(r.version || case when r.enabled then ' on' else ' off' end, ', ')
	from autopost.list_bot_rules('w', jsonb_build_object('rule_id', p_id), 10) r $$;
select plan(21);

select is(jsonb_array_length(test.exported()), 14, 'the rules that answer');
select is(test.exported() -> 3, '{"kind": "bot_rule", "id": "delivery-ru", "fields": {"intent": "delivery",
	"keywords": ["доставк", "курьер", "самовывоз"], "priority": 10,
	"response_template": "Доставляем по России за 2–5 дней, от 3000 ₽ бесплатно. Самовывоз — в день заказа.",
	"buttons": [[{"text": "Оплата", "payload": "оплата"}, {"text": "Возврат", "payload": "возврат"}]]}}',
	'without defaults');
select is(test.rules(test.exported()), '{"applied": false, "dry_run": false, "reason": "unchanged"}',
	'an export changes nothing');

-- A draft beside the version that answers is not part of the file.
select autopost.put_bot_rule('w', 'delivery-ru', '{"enabled": false, "response_template": "Нет."}', 'o', 'r', false);
select is(test.versions('delivery-ru'), '2 off, 1 on');
select is(test.exported() -> 3 #>> '{fields,response_template}',
	'Доставляем по России за 2–5 дней, от 3000 ₽ бесплатно. Самовывоз — в день заказа.',
	'a draft is not exported');
select is(test.rules(test.exported()) ->> 'reason', 'unchanged', 'and stays beside an applied export');
select is(test.rules('[{"id": "delivery-ru", "fields": {"enabled": false, "response_template":
	"Нет."}}]') ->> 'reason', 'unchanged',
	'a draft of a file is compared with the draft');
select is((test.rules('[{"id": "delivery-ru", "fields": {"enabled": null, "response_template": "Нет."}}]') ->
	'items' -> 0) - '{kind,id}'::text[],
	'{"created": false, "before": {"response_template":
	"Доставляем по России за 2–5 дней, от 3000 ₽ бесплатно. Самовывоз — в день заказа."}, "after":
	{"response_template": "Нет."}}',
	'a change is shown against the version that answers');
select is(test.versions('delivery-ru'), '3 on, 2 off, 1 off');
select is(test.talk(1, 'доставка?'), 'Нет.');

-- All or nothing.
select is(test.rules('[{"id": "new", "fields": {"keywords": ["k"], "response_template": "r"}}, {"id": "bad",
	"fields": {"keywords": ["k"], "response_template": ""}}]')
	- 'errors', '{"applied": false, "dry_run": false, "reason": "invalid", "item": 1}');
select is(test.versions('new'), null, 'nothing is written');
select is(test.rules('[{"id": "new", "fields": {"keywords": ["k"], "response_template": "r", "buttons": []}},
	{"id": "delivery-en", "fields": {"priority": 11}}]', true) -> 'unchanged', '0');
select is(test.versions('new'), null, 'a dry run');
select is(jsonb_array_length(test.rules('[{"id": "new", "fields": {"keywords": ["k"], "response_template": "r",
	"buttons": []}},
	{"id": "delivery-en", "fields": {"priority": 11}}]') -> 'items'), 2);
select is(test.versions('new') || '; ' || test.versions('delivery-en'), '1 on; 2 on, 1 off');
select is(test.rules('[{"id": "new", "fields": {"keywords": ["k"], "response_template": "r",
	"buttons": []}}]') ->> 'reason', 'unchanged',
	'no buttons are the default');

-- Pruning disables a rule, and the file enables it again.
select is(test.rules('[{"id": "new", "retire": true}]') -> 'items' -> 0 -> 'after', '{"enabled": false}');
select is(test.versions('new'), '1 off', 'without a version');
select is(test.rules('[{"id": "new", "retire": true}]') ->> 'reason', 'unchanged');
select is(test.rules('[{"id": "new", "fields": {"keywords": ["k"], "response_template": "r",
	"enabled": null}}]') -> 'items' -> 0 -> 'after', '{"enabled": true}');
select * from finish();
rollback;
