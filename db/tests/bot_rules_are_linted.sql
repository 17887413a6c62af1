-- Faults that rules of the bot have together are found: unreachable states, shadowed keywords, missing
-- variables, loops.
begin;
\ir fake_clock.sql
\ir world.sql
\ir bot_talks.sql
create function test.lint(p_rules jsonb) returns text language sql as $$
	-- The findings about rules, whose texts are r unless given.
	select coalesce(string_agg(concat_ws(' ', f.value ->> 'kind', f.value ->> 'rule_id', f.value ->> 'field',
		f.value ->> 'reason'), '; ' order by f.ordinality), 'clean')
	from jsonb_array_elements(autopost.lint_bot_rules('w', (select jsonb_agg('{"response_template": "r"}' || r.value)
		from jsonb_array_elements(p_rules) r)) -> 'findings') with ordinality f $$;
select plan(29);

select is(autopost.lint_bot_rules('w', null), '{"rules": 14, "findings": []}', 'the examples are clean');
select is(autopost.lint_bot_rules('w', '[]'), '{"rules": 0, "findings": []}', 'no rules');
select is(test.lint('[{"rule_id": "a", "keywords": ["k"], "next_state": "s"},
	{"rule_id": "b", "state": "s", "response_template": "{s} {name} {text} {turns}", "next_state": "default"}]'),
	'clean');

-- Unreachable states.
select is(test.lint('[{"rule_id": "a", "keywords": ["k"]}, {"rule_id": "b", "state": "s", "next_state": "default"}]'),
	'unreachable_state b state is s, to which no rule leads');
select is(test.lint('[{"rule_id": "b", "state": "s", "next_state": "t"}, {"rule_id": "c", "state": "t",
	"next_state": "s"}]'),
	'unreachable_state b state is s, to which no rule leads; unreachable_state c state is t, to which no rule leads',
	'states that lead to each other only');
select is(test.lint('[{"rule_id": "a", "keywords": ["k"], "next_state": "s", "enabled": false},
	{"rule_id": "b", "state": "s", "next_state": "default"}]'),
	'unreachable_state b state is s, to which no rule leads', 'a disabled rule does not count');
select is(test.lint('[{"rule_id": "a", "keywords": ["kit"], "next_state": "s"}, {"rule_id": "b", "keywords": ["k"],
	"priority": 1},
	{"rule_id": "c", "state": "s", "next_state": "default"}]'),
	'shadowed_keyword a keywords must not contain "kit": rule b takes all its texts first; '
	'unreachable_state c state is s, to which no rule leads',
	'a rule that never decides leads nowhere');
select is(test.lint('[{"rule_id": "a", "keywords": ["k"], "next_state": "operator"}]'), 'clean', 'a person answers');

-- Shadowed keywords.
select is(test.lint('[{"rule_id": "a", "keywords": ["ёлка", "x"]}, {"rule_id": "b", "keywords": ["ЕЛКА у дома"],
	"priority": -1}]'),
	'shadowed_keyword b keywords must not contain "ЕЛКА у дома": rule a takes all its texts first',
	'case and ё are folded');
select is(test.lint('[{"rule_id": "a", "keywords": ["ёлка у дома"]}, {"rule_id": "b", "keywords": ["елка"],
	"priority": -1}]'), 'clean',
	'a longer keyword that goes first takes some texts only');
select is(test.lint('[{"rule_id": "a", "keywords": ["deliver"]}, {"rule_id": "b", "keywords": ["delivery"]}]'),
	'shadowed_keyword b keywords must not contain "delivery": rule a takes all its texts first',
	'at equal priority the lower id');
select is(test.lint('[{"rule_id": "a", "keywords": ["delivery"]}, {"rule_id": "b", "keywords": ["deliver"]}]'),
	'clean');
select is(test.lint('[{"rule_id": "a", "keywords": ["delivery", "deliver", "Deliver"]}]'),
	'shadowed_keyword a keywords must not contain "Deliver": rule a takes all its texts first; '
	'shadowed_keyword a keywords must not contain "delivery": rule a takes all its texts first',
	'two keywords of a rule');
select is(test.lint('[{"rule_id": "a", "keywords": ["go"], "next_state": "s"}, {"rule_id": "b", "state": "s",
	"keywords": ["end"], "next_state": "default"},
	{"rule_id": "c", "keywords": ["ending"], "priority": -1}]'), 'clean',
	'a rule of a state shadows in this state only');
select is(test.lint('[{"rule_id": "b", "state": "default", "keywords": ["end"]}, {"rule_id": "c",
	"keywords": ["ending"]}]'),
	'shadowed_keyword c keywords must not contain "ending": rule b takes all its texts first',
	'or in all states that there are');
select is(test.lint('[{"rule_id": "a", "keywords": ["go"], "next_state": "s"}, {"rule_id": "b", "state": "s",
	"next_state": "default"},
	{"rule_id": "c", "state": "s", "priority": -1}]'),
	'shadowed_keyword c keywords never decide: rule b takes every text first', 'any text');
select is(test.lint('[{"rule_id": "a", "keywords": ["go"], "next_state": "s"}, {"rule_id": "b", "state": "s",
	"next_state": "default", "priority": 1},
	{"rule_id": "c", "state": "s", "keywords": ["stop"]}]'),
	'shadowed_keyword c keywords must not contain "stop": rule b takes all its texts first',
	'a rule of any text takes keywords too');
select is((autopost.bot_try('w', '[{"rule_id": "a", "keywords": ["ёлка"], "response_template": "a"},
	{"rule_id": "b", "keywords": ["ЕЛКА у дома"], "priority": -1, "response_template": "b"}]', null, null,
	'{"text": "Елка у дома"}') ->> 'rule_id'), 'a', 'the bot decides like that');

-- Missing variables.
select is(test.lint('[{"rule_id": "a", "keywords": ["k"], "response_template": "Dear {nmae}"}]'),
	'missing_variable a response_template may show {nmae} without a text, in state default');
select is(test.lint('[{"rule_id": "a", "keywords": ["k"], "next_state": "s", "response_template": "{s}?"},
	{"rule_id": "b", "state": "s", "response_template": "{s}!", "next_state": "default"}]'),
	'missing_variable a response_template may show {s} without a text, in state default', 'before the state');
select is(test.lint('[{"rule_id": "a", "keywords": ["k"], "next_state": "s"}, {"rule_id": "b", "state": "s",
	"next_state": "t"},
	{"rule_id": "c", "state": "t", "response_template": "{s} {t}", "next_state": "default"}]'), 'clean',
	'along a scenario');
select is(test.lint('[{"rule_id": "a", "keywords": ["k"], "next_state": "s"}, {"rule_id": "b", "state": "s",
	"next_state": "t"},
	{"rule_id": "c", "state": "t", "response_template": "{s} {t}", "next_state": "default"}, {"rule_id": "d",
	"keywords": ["short"], "next_state": "t"}]'),
	'missing_variable c response_template may show {s} without a text, in state t', 'on one of two ways');
select is(test.lint('[{"rule_id": "a", "keywords": ["k"], "next_state": "s"}, {"rule_id": "b", "state": "s",
	"next_state": "default"},
	{"rule_id": "c", "keywords": ["k2"], "response_template": "{s}", "priority": 9}]'),
	'missing_variable c response_template may show {s} without a text, in state default', 'default keeps nothing');
select is(autopost.bot_try('w', '[{"rule_id": "a", "keywords": ["k"], "response_template": "Dear {nmae}!"}]',
	null, null,
	'{"text": "k"}') ->> 'text', 'Dear !', 'the bot shows nothing there');

-- Loops without an exit.
select is(test.lint('[{"rule_id": "a", "keywords": ["k"], "next_state": "s"}, {"rule_id": "b", "state": "s",
	"next_state": "t"},
	{"rule_id": "c", "state": "t", "next_state": "s"}]'),
	'endless_loop a next_state is s, from which no rule leads to default or operator; '
	'endless_loop b next_state is t, from which no rule leads to default or operator');
select is(test.lint('[{"rule_id": "a", "keywords": ["k"], "next_state": "s"}, {"rule_id": "b", "state": "s"}]'),
	'endless_loop a next_state is s, from which no rule leads to default or operator', 'a state that stays');
select is(test.lint('[{"rule_id": "a", "keywords": ["k"], "next_state": "typo"}]'),
	'endless_loop a next_state is typo, from which no rule leads to default or operator', 'a state without rules');
select is(test.lint('[{"rule_id": "a", "keywords": ["k"], "next_state": "s"}, {"rule_id": "b", "state": "s",
	"keywords": ["more"]},
	{"rule_id": "c", "keywords": ["stop"], "next_state": "default"}]'), 'clean', 'a rule of any state ends it');

select throws_ok($$select autopost.lint_bot_rules('w', '[{"rule_id": "a", "keywords": ["k"], "response_template":
	"r"},
	{"rule_id": "a", "keywords": ["l"], "response_template": "r"}]')$$, 'AP001', null, 'a rule is given once');
select * from finish();
rollback;
