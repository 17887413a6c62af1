-- The text comes from the post's template, else the channel's, else the default one, else the post.
-- It is rendered once, at enqueue.
begin;
\ir fake_clock.sql
\ir world.sql
select plan(59);

select test.channel('tg');
create function test.template(p_id text, p_body text, p_more jsonb default '{}', p_platform text default '*')
	returns jsonb
language sql
as $$
select autopost.put_template('w', p_id, p_platform, jsonb_build_object('body', p_body) || p_more, 'ann', 'test')
$$;
create function test.shown(p_raw jsonb, p_channel_id text default 'tg') returns text
language sql
as $$
-- The rendered text of a post for a channel, or the reason why it gets none.
select test.tick('1 second');
select test.post(p_raw);
select case r.status when 'queued' then r.rendered_text else r.last_error ->> 'message' end
	from test.row(p_channel_id) r
$$;
create function test.filled(p_id text, p_vars jsonb, p_more jsonb default '{}', p_channel_id text default 'tg')
	returns text
language sql
as $$
select test.shown(p_more || jsonb_build_object('template', jsonb_build_object('name', p_id, 'vars', p_vars)),
	p_channel_id)
$$;
create function test.rejected(p_id text, p_vars jsonb, p_more jsonb default '{}') returns text
language sql
as $$
-- The fields that a post with a template is rejected for.
select string_agg(e.value ->> 'field', ' ' order by e.ordinality)
from jsonb_array_elements(test.post(p_more || jsonb_build_object('template',
	jsonb_build_object('name', p_id, 'vars', p_vars))) -> 'errors') with ordinality e
$$;

-- Placeholders, optional ones, braces, defaults.
select test.template('digest', E'{title}\n\n{summary?}\n\n{{{title}}} by {author}',
	'{"defaults": {"author": "the desk"}}');
select is(test.filled('digest', '{"title": "One", "summary": "Two"}'), E'One\n\nTwo\n\n{One} by the desk');
select is((test.row('tg')).template_version, 'digest@1', 'what rendered it is pinned');
select is(test.filled('digest', '{"title": "One", "author": "Ann"}'), E'One\n\n{One} by Ann',
	'what is optional leaves no gap');
select is(test.filled('digest', '{"title": 7}'), E'7\n\n{7} by the desk', 'a number is text');
select is((select payload -> 'template' from autopost.messages order by created_at desc limit 1),
	'{"name": "digest", "vars": {"title": "7"}}');
select is(test.filled('digest', '{"title": "{author} {{summary}} {nobody?}"}'),
	E'{author} {{summary}} {nobody?}\n\n{{author} {{summary}} {nobody?}} by the desk', 'values are not looked into');

-- Invalid posts.
select is(test.rejected('nobody', '{}'), 'template.name');
select is(test.rejected('digest', '{}'), 'template.vars.title');
select is(test.rejected('digest', '{"title": "  "}'), 'template.vars.title', 'blank is missing');
select is(test.rejected('digest', '{"title": "x", "titel": "y"}'), 'template.vars.titel',
	'no variable comes in that the template does not declare');
select is(test.rejected('digest', '{"title": {"a": 1}}'), 'template.vars.title');
select is(test.rejected('digest', '[]'), 'template.vars');
select is(test.post('{"template": {"vars": {}}}') #>> '{errors,0,field}', 'template.name');
select is(test.post('{"template": "digest"}') #>> '{errors,0,field}', 'template');
select is((autopost.receive_push('w', 'in', '[{"template": {"name": "digest", "vars": {}}}]') #>> '{results,0,status}'),
	'rejected', 'a push is rejected');
select is((autopost.receive_push('w', 'in',
	'[{"template": {"name": "digest", "vars": {}}, "media": [{"type": "image", "url": "https://e.x/1.png"}]}]') #>>
	'{results,0,status}'), 'rejected', 'before its media are fetched');

-- Markup: values are text in it; {text} brings the post's own.
select test.template('rich', '<b>{title}</b> <a href="{link}">more</a>', '{"parse_mode": "HTML"}');
select is(test.filled('rich', '{"title": "1 < 2 & <i>x</i>"}', '{"link": "https://e.x/?a=1&b=2"}'),
	'<b>1 &lt; 2 &amp; &lt;i&gt;x&lt;/i&gt;</b> <a href="https://e.x/?a=1&amp;b=2">more</a>');
select is((test.row('tg')).render_meta ->> 'parse_mode', 'HTML');
select is(test.filled('rich', '{"title": "x", "link": "https://e.x/\" onclick=\"y"}'),
	'<b>x</b> <a href="https://e.x/&quot; onclick=&quot;y">more</a>', 'a value does not leave its attribute');
select is(test.filled('rich', '{"title": "x", "link": "javascript:alert(1)"}'),
	'can''t parse the markup: unsupported tag <a href="javascript:alert(1)">');
select test.template('marked', '**{title}** _{title}_', '{"parse_mode": "Markdown"}');
select is(test.filled('marked', '{"title": "a*b_c <d>"}'), '<b>a*b_c &lt;d&gt;</b> <i>a*b_c &lt;d&gt;</i>');
select test.template('frame', 'News & more: {text}');
select is(test.filled('frame', '{}', '{"text": "**now**", "parse_mode": "Markdown"}'), 'News &amp; more: <b>now</b>');
select is(test.filled('frame', '{}', '{"text": "<b>now</b>"}'), 'News & more: <b>now</b>', 'a plain post stays plain');
select is(test.filled('frame', '{}', '{"text": "<b>now", "parse_mode": "HTML"}'),
	'can''t parse the markup: unclosed tag <b>');
select is(test.rejected('frame', '{}'), 'template.vars.text');

-- Values that a template does not trust.
select test.template('safe', '{prompt}!', '{"sanitize": ["prompt"]}');
select is(test.filled('safe', jsonb_build_object('prompt', E'a portrait\nof @nasa, ＠esa, @@x and @a@b by me@home.org')),
	'a portrait of , , and by me@home.org!');
select is(test.filled('safe', jsonb_build_object('prompt', U&'a\202Eb @\200Bnasa c')), 'ab c!',
	'nor hidden by invisible characters');
select is(test.filled('safe', jsonb_build_object('prompt', '[x](tg://user?id=1)')), '[x](tg://user?id=1)!',
	'markup of a value is text');
select is(autopost.normalize_text(U&'a\202Eb\202Dc\0085d\007Fe\200Ff', m), U&'abcde\200Ff', 'nothing is reversed: ' || m)
	from unnest('{None,HTML,Markdown}'::text[]) m;
select is(test.rejected('safe', '{"prompt": "@nasa"}'), 'template.vars.prompt', 'nothing may be left');

-- Which one: the post's, the channel's, the default, the text; the platform's before all platforms'.
select test.channel('own');
update autopost.channels set template_ref = 'frame' where channel_id = 'own';
select is(test.shown('{"text": "plain"}', 'own'), 'News & more: plain');
select is((test.row('tg')).rendered_text, 'plain');
select is((test.row('tg')).template_version, 'text-1');
select is(test.filled('digest', '{"title": "T"}', '{"text": "x"}', 'own'), E'T\n\n{T} by the desk',
	'the post''s goes first');
select is(test.shown('{"text": "x", "variants": {"own": {"text": "variant"}}}', 'own'), 'News & more: variant',
	'a variant is its text');
select is(test.filled('digest', '{"title": "V"}', '{"variants": {"tg": {"text": "variant"}}}'), 'variant',
	'and replaces the template of its post');
select test.template('default', '{text} / {link?}', '{}', 'max');
select test.template('default', '{text} #all');
select test.channel('m', p_platform => 'max');
select is(test.shown('{"text": "d", "link": "https://e.x/d"}', 'm'), 'd / https://e.x/d');
select is((test.row('tg')).rendered_text, E'd #all\n\nhttps://e.x/d', 'the link comes where the template has none');
select is((test.row('own')).rendered_text, E'News & more: d\n\nhttps://e.x/d');
select test.template('telegram-only', 'tg {n}', '{}', 'telegram');
select is(test.filled('telegram-only', '{"n": 1}', '{"text": "words"}', 'm'), 'words /',
	'a template that the platform does not have gives way');
select is(test.filled('telegram-only', '{"n": 2}', '{}', 'm'),
	'template telegram-only does not exist for max, and the post has no text');
select is((test.row('tg')).rendered_text, 'tg 2');
update autopost.channels set template_ref = 'gone' where channel_id = 'own';
select is(test.shown('{"text": "e"}', 'own'), 'the channel names the template gone, which is not there');
update autopost.channels set template_ref = 'digest' where channel_id = 'own';
select is(test.shown('{"text": "f"}', 'own'), 'template digest@1 needs template.vars.title');

-- The newest enabled version; what is rendered stays.
select test.template('frame', 'Second: {text}');
update autopost.channels set template_ref = 'frame' where channel_id = 'own';
select is(test.shown('{"text": "g"}', 'own'), 'Second: g');
select is((test.row('own')).template_version, 'frame@2');
select autopost.enable_template('w', 'frame', '*', 2, false, 'ann', 'typo');
select is((test.row('own')).rendered_text, 'Second: g');
select is(test.shown('{"text": "h"}', 'own'), 'News & more: h');

-- Length.
select test.template('short', '{text} end', '{"max_length": 20}');
select is(test.filled('short', '{}', '{"text": "The quick brown fox jumps"}'), 'The quick brown fox…');
select is((test.row('tg')).render_meta -> 'truncated', 'true');
select is(test.filled('short', '{}', '{"text": "The quick brown fox jumps", "link": "https://e.x"}'),
	E'The…\n\nhttps://e.x/', 'the link stays whole');
select is(test.filled('short', '{}', '{"text": "Short"}'), 'Short end');
select is((test.row('tg')).render_meta -> 'truncated', null);

select test.template('many', repeat('{text} ', 20));
select is(test.filled('many', '{}', jsonb_build_object('text', repeat('x', 5001))),
	'template many@1 is longer than 100000 characters with these values');

-- The content is the template and its values, not what they look like.
select is(autopost.content_hash(autopost.normalize_payload(
	'{"template": {"name": "a", "vars": {"x": "1", "y": " "}}}')),
	autopost.content_hash(autopost.normalize_payload('{"template": {"name": "a", "vars": {"x": 1}}}')));
select isnt(autopost.content_hash(autopost.normalize_payload('{"template": {"name": "a", "vars": {"x": "1"}}}')),
	autopost.content_hash(autopost.normalize_payload('{"template": {"name": "a", "vars": {"x": "2"}}}')));
select isnt(autopost.content_hash(autopost.normalize_payload('{"template": {"name": "a", "vars": {"x": "1"}}}')),
	autopost.content_hash(autopost.normalize_payload('{"template": {"name": "b", "vars": {"x": "1"}}}')));

select * from finish();
rollback;
