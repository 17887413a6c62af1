-- A template is validated on write. Versions do not change; each write creates the next version.
begin;
\ir fake_clock.sql
\ir world.sql
select plan(42);

create function test.put(p_template text, p_id text default 't', p_platform text default null) returns jsonb
language sql
as $$
select autopost.put_template('w', p_id, p_platform, p_template::jsonb, 'ann', 'test')
$$;
create function test.faults(p_template text, p_id text default 't') returns text
language sql
as $$
select string_agg((e.value ->> 'field') || ': ' || (e.value ->> 'reason'), '; ' order by e.ordinality)
	from jsonb_array_elements(test.put(p_template, p_id) -> 'errors') with ordinality e
$$;

select is(test.put('{"body": "{title}"}'), '{"applied": true, "template_id": "t", "platform": "*", "version": 1}');
select is(test.put('{"body": "{title}"}'),
	'{"applied": false, "reason": "unchanged", "template_id": "t", "platform": "*", "version": 1}');
select is(test.put('{"body": "{title}!"}') ->> 'version', '2');
select is(test.put('{"body": "{title}!"}', 't', 'max') ->> 'version', '1', 'a platform counts for itself');
select is((select count(*)::int from autopost.admin_audit_log where action = 'put_template'), 3,
	'every writing is recorded');
select is((select array[operator, reason, subject, before ->> 'body', after ->> 'body'] from autopost.admin_audit_log
	where subject = 'template:t/*' order by id desc limit 1),
	'{ann,test,template:t/*,"{title}","{title}!"}');

-- Invalid templates.
select is(test.faults('{"body": "{bad name}"}'), 'body: has a brace outside a placeholder: {bad name}');
select is(test.faults('{"body": "a } b"}'), 'body: has a brace outside a placeholder: } b');
select is(test.faults('{"body": "{title"}'), 'body: has a brace outside a placeholder: {title');
select is(test.faults('{"body": "{title}} x"}'), 'body: has a brace outside a placeholder: } x');
select is(test.faults('{"body": "{1st}"}'), 'body: has a brace outside a placeholder: {1st}');
select is(test.faults('{"body": "{}"}'), 'body: has a brace outside a placeholder: {}');
select is(test.faults('{"body": "{{a}} {text} {link?}"}'), null, 'braces and the post''s own');
select is(test.faults('{"body": " "}'), 'body: must have 1 to 20000 characters and no private-use ones');
select is(test.faults('{}'), 'body: must have 1 to 20000 characters and no private-use ones');
select is(test.faults(format('{"body": "%s"}', repeat('{a}', 101))), 'body: has more than 100 placeholders');
select is(test.faults('{"body": "x"}', 'a b'), 'template_id: must be a name');
select is(test.faults('{"body": "{titel}", "vars": ["title"]}'), 'body: uses the undeclared variable {titel}',
	'unknown tokens are refused');
select is(test.faults('{"body": "{a}", "vars": ["a", "b-c"]}'), 'vars: must contain only names');
select is(test.faults('{"body": "{a}", "vars": ["a"], "defaults": {"b": "x"}}'),
	'defaults: must contain only declared variables with text values');
select is(test.faults('{"body": "{a}", "defaults": {"a": ["x"]}}'),
	'defaults: must contain only declared variables with text values');
select is(test.faults('{"body": "{a}", "sanitize": ["b"]}'), 'sanitize: must contain only declared variables');

-- The same rules apply to direct writes.
select throws_like($$insert into autopost.templates (workspace_id, template_id, version, body)
	values ('w', 'row', 1, '{bad name}')$$, 'argument body: has a brace%');
insert into autopost.templates (workspace_id, template_id, version, body)
	values ('w', 'row', 1, 'written by hand: {title}');
select throws_ok($$update autopost.templates set body = 'x'
	where template_id = 'row'$$, '42501', 'version 1 of template row must not change');
select lives_ok($$update autopost.templates set enabled = false where template_id = 'row'$$);
select is(autopost.enable_template('w', 'row', null, 1, true, 'ann', 'back'), '{"applied": true}');
select is(autopost.enable_template('w', 'row', null, 1, true, 'ann', 'back'),
	'{"applied": false, "reason": "unchanged"}');
select is(autopost.enable_template('w', 'row', null, 9, true, 'ann', 'back'),
	'{"applied": false, "reason": "unknown_version"}');
select is((select array[action, before ->> 'enabled', after ->> 'enabled'] from autopost.admin_audit_log
	where subject = 'template:row/*@1'), '{enable_template,false,true}');

-- A new workspace has none.
insert into autopost.workspaces (workspace_id, name) values ('new', 'New');
select is((select count(*)::int from autopost.list_templates('new', '{}', 100)), 0);
select is(test.put('{"body": "{avatar_name}: {prompt}", "vars": ["avatar_name", "prompt", "short_hash"],
	"sanitize": ["prompt"]}', 'image') ->> 'version', '1');
select is(test.put('{"body": "{winner_name} defeated {loser_name} in {rounds} rounds!",
	"vars": ["winner_name", "loser_name", "rounds", "summary"], "sanitize": ["summary"]}', 'combat') ->> 'version', '1');
select is((select array_agg(platform || '@' || version) from autopost.list_templates('w', '{"template_id": "t"}', 100)),
	'{*@3,*@2,*@1,max@1}');
select is(test.faults('{"body": "{avatar_name}: {title}", "vars": ["avatar_name"]}', 'image'),
	'body: uses the undeclared variable {title}');

-- A preview is what a post would get, and writes nothing.
create function test.preview(p_id text, p_vars text, p_template text default null, p_platform text default 'x')
	returns text
language sql
as $$
select coalesce(a.answer ->> 'text', (select string_agg(e.value ->> 'field', ' ')
	from jsonb_array_elements(a.answer -> 'errors') e))
from (select autopost.preview_template('w', p_id, p_platform, p_template::jsonb,
	jsonb_build_object('template', jsonb_build_object('vars', p_vars::jsonb))) as answer) a
$$;
select is(test.preview('combat', '{"winner_name": "Nyx", "loser_name": "Helion", "rounds": 7}'),
	'Nyx defeated Helion in 7 rounds!');
select is(test.preview('combat', '{"winner_name": "Nyx", "prompt": "p"}'),
	'template.vars.prompt template.vars.loser_name template.vars.rounds');
select is(test.preview('draft', '{"a": "1 < 2"}', '{"body": "<i>{a}</i>", "parse_mode": "HTML"}', 'telegram'),
	'<i>1 &lt; 2</i>', 'one that is being written');
select is(test.preview('draft', '{}', '{"body": "{a", "parse_mode": "HTML"}'), 'body');
select is(test.preview('none', '{}'), 'template.name');
select is((select array[a ->> 'truncated', a ->> 'length', a ->> 'limit', right(a ->> 'text', 9)]
	from autopost.preview_template('w', 'image', 'x', null,
	jsonb_build_object('template', jsonb_build_object('vars',
		jsonb_build_object('avatar_name', 'Nyx', 'prompt', repeat('dark sea ', 60))))) a), '{true,258,260,"dark sea…"}',
	'a prompt that overflows is cut to 260');
select is((select count(*)::int from autopost.messages), 0);
select is((select count(*)::int from autopost.templates where template_id = 'draft'), 0);

select * from finish();
rollback;
