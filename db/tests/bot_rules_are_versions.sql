-- Rules of the bot have versions, of which one decides; they are checked, tried and replayed; a chat is erased on request.
begin;
\ir fake_clock.sql
\ir world.sql
\ir bot_talks.sql
create function test.rule(p_id text, p_fields jsonb, p_dry boolean default false) returns jsonb language sql as $$
	select autopost.put_bot_rule('w', p_id, p_fields, 'olga', 'because', p_dry) $$;
create function test.faults(p_fields jsonb) returns text language sql as $$
	select string_agg(e.value ->> 'field', ' ' order by e.value ->> 'field') from jsonb_array_elements(test.rule('new',
		'{"keywords": ["k"], "response_template": "r"}'::jsonb || p_fields, true) -> 'errors') e $$;
select plan(64);

select is((select count(*)::int from autopost.list_bot_rules('w', '{"enabled": true}', 100)), 14,
	'ten answers and a return');
select is(autopost.install_bot_examples('w', 'o', 'r'), '{"added": []}', 'once');
select is(test.rule('sale', '{"keywords": ["скидк"], "response_template": "Скидок нет."}') - 'after',
	'{"applied": true, "dry_run": false, "created": true, "before": {}, "version": 1}');
select is(test.talk(1, 'скидка?'), 'Скидок нет.');
select is(test.rule('sale', '{"response_template": "Скидки по пятницам."}', true) -> 'version', '2', 'a dry run');
select is(test.talk(1, 'скидка?'), 'Скидок нет.', 'changes nothing');
select is(test.rule('sale', '{"response_template": "Скидки по пятницам."}') - '{dry_run}'::text[],
	'{"applied": true, "created": false, "before": {"response_template": "Скидок нет."}, "after": {"response_template": "Скидки по пятницам."}, "version": 2}');
select is(test.talk(1, 'скидка?'), 'Скидки по пятницам.', 'decides at once');
select is(test.rule('sale', '{"response_template": "Скидки по пятницам."}') ->> 'reason', 'unchanged');
select is(test.rule('sale', '{"enabled": false, "priority": 7}') -> 'version', '3', 'a draft');
select is(test.talk(1, 'скидка?'), 'Скидки по пятницам.', 'beside the enabled one');
select is((select array_agg(r.version || ' ' || r.enabled) from autopost.list_bot_rules('w', '{"rule_id": "sale"}',
	10) r), '{"3 false","2 true","1 false"}');
select is((select array_agg(r.rule_id || ' ' || r.version) from autopost.list_bot_rules('w',
	'{"after": "sale", "before_version": 3}', 3) r), '{"sale 2","sale 1",warranty-en 1}', 'a page continues within a rule');
select is(autopost.enable_bot_rule('w', 'sale', 1, 'o', 'r', false),
	'{"applied": true, "dry_run": false, "version": 1, "before": 2}');
select is(test.talk(1, 'скидка?'), 'Скидок нет.', 'back');
select is(autopost.enable_bot_rule('w', 'sale', 1, 'o', 'r', false) ->> 'reason', 'unchanged');
select is(autopost.enable_bot_rule('w', 'sale', 9, 'o', 'r', false) ->> 'reason', 'unknown_rule_version');
select is(autopost.enable_bot_rule('w', 'sales', 1, 'o', 'r', false) ->> 'reason', 'unknown_rule');
select is(autopost.enable_bot_rule('w', 'sale', 0, 'o', 'r', true) -> 'applied', 'true', 'a dry run');
select is(autopost.enable_bot_rule('w', 'sale', 0, 'o', 'r', false) -> 'before', '1', 'off');
select is(test.talk(1, 'скидка?'), 'Я не понял вопрос. Напишите, пожалуйста, другими словами.');
select is((select array_agg(a.action order by a.seq) from autopost.admin_audit_log a where a.subject = 'bot_rule:sale'),
	'{put_bot_rule,put_bot_rule,put_bot_rule,enable_bot_rule,enable_bot_rule}');
select throws_ok($$insert into autopost.bot_rules (workspace_id, rule_id, version, response_template) select 'w',
	'delivery-ru', 2, 'x'$$, '23505');

-- Checks of a rule.
select is(test.faults(f.fields), f.fault, f.fields::text) from (values
	('{"state": "operator"}'::jsonb, 'state'), ('{"state": "a b"}', 'state'), ('{"next_state": "turns"}', 'next_state'),
	('{"next_state": "operator"}', null), ('{"state": "заказ", "keywords": []}', null), ('{"keywords": []}',
		'keywords'), ('{"keywords": [" "]}', 'keywords'),
	('{"response_template": ""}', 'response_template'), (jsonb_build_object('response_template', repeat('я', 3501)),
		'response_template'),
	('{"max_turns": 0}', 'max_turns'), ('{"buttons": {}}', 'buttons'), ('{"buttons": [{"text": "a"}]}', 'buttons'),
	('{"buttons": [[{"text": "a"}]]}', 'buttons'), ('{"buttons": [[{"text": "a", "url": "ftp://x"}]]}', 'buttons'),
	('{"buttons": [[{"text": "a", "payload": "m:x"}]]}', 'buttons'),
		('{"buttons": [[{"text": "a", "payload": "x"}, {"text": "b", "url": "https://example.org"}]]}',
		null)) f (fields, fault);
select throws_ok($$select test.rule('x', '{"colour": 1}')$$, 'AP001');

-- Trying decides as the bot does and stores nothing.
select is(autopost.bot_try('w', null, null, null,
	'{"text": "возврат", "language": "ru"}') - '{text,language,intent,version}'::text[],
	'{"kind": "matched", "rule_id": "returns-ru", "state": "returns_order_ru", "context": {"turns": 1, "rule_id": "returns-ru", "max_turns": 5}}');
select is(autopost.bot_try('w',
	'[{"rule_id": "hi", "keywords": ["hi"], "response_template": "Hello {name}: {missing}."}]', null, null,
	'{"text": "HI", "name": "{text}"}') ->> 'text',
	'Hello {text}: .', 'a value is not searched for names');
select is(autopost.bot_try('w',
	'[{"rule_id": "hi", "enabled": false, "keywords": ["hi"], "response_template": "Hello"}]', null, null,
	'{"text": "hi"}') ->> 'kind', 'fallback');
select is(autopost.bot_try('w',
	'[{"rule_id": "any", "state": "s", "response_template": "low"}, {"rule_id": "b", "keywords": ["x"], "response_template": "any"},
	{"rule_id": "a", "keywords": ["x"], "priority": 1,
		"response_template": "high"}]', null, s.state, '{"text": "x"}') ->> 'text', s.answer, s.answer)
from (values ('{"state": "s"}'::jsonb, 'high'), ('{"state": "t"}', 'high'), ('{"state": "s", "expired": true}',
	'high')) s (state, answer);
select is(autopost.bot_try('w',
	'[{"rule_id": "z", "state": "s", "response_template": "state"}, {"rule_id": "a", "keywords": ["x"], "response_template": "any"}]', null, '{"state": "s"}', '{"text": "x"}') ->> 'text',
	'state', 'at equal priority the rule of the state');
select throws_ok($$select autopost.bot_try('w', '[{"rule_id": "hi", "response_template": "Hello"}]', null, null,
	'{"text": "hi"}')$$, 'AP001', 'argument rules: hi: keywords is missing: a rule of any state needs one');

-- Replay of stored conversations.
select test.says(2, t) from unnest('{возврат,12,мал,доставка}'::text[]) t;
select is((select count(*)::int from autopost.replay_bot_rules('w', null, '{"chat_id": "2", "changed": true}', 100)),
	0, 'the same rules give the same answers');
select is((select array_agg(r.changed order by r.ts, r.id) from autopost.replay_bot_rules('w',
	'[{"rule_id": "delivery-ru", "keywords": ["доставк"], "response_template": "Сами."}]', '{"chat_id": "2"}',
	100) r), '{t,t,t,t}');
select is((select r.before ->> 'text' || ' → ' || (r.after ->> 'text') from autopost.replay_bot_rules('w',
	'[{"rule_id": "delivery-ru", "keywords": ["доставк"], "response_template": "Сами."}]', '{"chat_id": "2"}', 100) r
	order by r.ts desc, r.id desc limit 1),
	'Доставляем по России за 2–5 дней, от 3000 ₽ бесплатно. Самовывоз — в день заказа. → Сами.');

-- The report counts what no rule answers, by its words.
select test.tick('1 minute');
select test.says(5, t, 'en') from unnest('{"A blue kettle?","kettle: BLUE, a","socks","payment"}'::text[]) t;
select is(r.r -> 'kinds', '{"matched": 1, "fallback": 3}'), is(r.r -> 'fallback_rate', '0.7500'),
	is(jsonb_path_query_array(r.r, '$.unmatched[*].words'), '[["a", "blue", "kettle"], ["socks"]]')
from (select autopost.bot_report('w', jsonb_build_object('since', autopost.now_ts()), 10) as r) r;
delete from autopost.bot_state where chat_id = '5';

-- Chats are listed, the latest first, in pages.
select is((with recursive page (chat, at, n) as (
	select c.chat_id, c.updated_at, 1 from autopost.list_bot_chats('w', '{}', 1) c
	union all
	select c.chat_id, c.updated_at, p.n + 1 from page p, autopost.list_bot_chats('w', jsonb_build_object('before', p.at,
		'before_chat', p.chat), 1) c)
	select array_agg(p.chat order by p.n) from page p), '{1,2}');

-- A chat is erased.
select is(autopost.bot_forget('w', 'max', null, '404', 'o', 'r', false) ->> 'reason', 'unknown_chat');
select is(autopost.bot_forget('w', 'max', null, '2', 'o', 'r', true) -> 'erased',
	'{"bot_inbox": 4, "bot_outbox": 4, "bot_state": 1, "bot_logs": 4}');
select test.says(3, 'доставка', 'ru', 'mid.forget');
select is(autopost.bot_forget('w', 'max', 'mx', '3', 'o', 'r', false) -> 'applied', 'true');
select is((select count(*)::int from autopost.bot_logs l where l.chat_id = '3') + (select count(u.payload)::int
	from autopost.bot_updates u where u.chat_id = '3'), 0);
select is(test.says(3, 'доставка', 'ru', 'mid.forget'), null, 'and a repeat of its message does not bring it back');
select is((select count(*)::int from autopost.bot_inbox i where i.chat_id = '3'), 0);

-- Retention.
select test.says(4, 'возврат');
select test.take(), test.begins(2), test.ends(2, test.sent('x'));
select test.tick('29 days');
select is(autopost.purge_conversations('w') -> 'purged', '1', 'a state that has expired goes at once');
select test.tick('2 days');
select autopost.purge_conversations('w');
select is((select array[(select count(*) from autopost.bot_logs), (select count(*) from autopost.bot_inbox),
	(select count(*) filter (where finished_at is not null) from autopost.bot_outbox), (select count(*)
		from autopost.bot_state)]), '{0,0,0,0}');
select is((select count(*) > 0 from autopost.bot_outbox), true, 'what was not sent stays');

select * from finish();
rollback;
