-- The utm parameters of a channel are added to each http and https link. They are not part of the
-- content.
begin;
\ir fake_clock.sql
\ir world.sql
select plan(20);

select test.channel('tg');
select test.channel('bare');
update autopost.channels set settings = '{"utm": {"utm_source": "telegram", "utm_campaign": "лето & sea"}}'
	where channel_id = 'tg';
create function test.shown(p_raw text) returns text
language sql
as $$
select test.tick('1 second');
select test.post(p_raw::jsonb);
select (test.row('tg')).rendered_text
$$;

select is(test.shown('{"text": "Read", "link": "https://e.x/a?utm_source=other&id=7#top"}'),
	E'Read\n\nhttps://e.x/a?id=7&utm_campaign=%D0%BB%D0%B5%D1%82%D0%BE%20%26%20sea&utm_source=telegram',
	'the link: in its canonical form, its query kept');
select is((test.row('bare')).rendered_text, E'Read\n\nhttps://e.x/a?id=7', 'a channel without them');
select is((select count(distinct content_hash)::int from autopost.deliveries), 1, 'one content');
select is((select payload ->> 'link' from autopost.messages), 'https://e.x/a?id=7');
update autopost.channels set settings = '{"utm": {"utm_source": "tg"}}' where channel_id = 'tg';
select is(test.shown('{"text": "See https://e.x/b, (https://e.x/c?q=1#part) and http://h."}'),
	'See https://e.x/b?utm_source=tg, (https://e.x/c?q=1&utm_source=tg#part) and http://h?utm_source=tg.',
	'links that are written out, without the punctuation around them');
select is(test.shown('{"text": "Mine https://e.x/d?utm_source=me&x=1"}'), 'Mine https://e.x/d?utm_source=me&x=1',
	'what a link has already stays');
select is(test.shown('{"text": "https://e.x/?my_utm_source=1"}'), 'https://e.x/?my_utm_source=1&utm_source=tg');
select is(test.shown('{"text": "ftp://e.x/ tg://resolve e.x/a http:// hhh"}'),
	'ftp://e.x/ tg://resolve e.x/a http:// hhh', 'nothing else');
select is(test.shown('{"text": "<a href=\"https://e.x/?a=1&amp;b=2\">go</a> <a href=\"tg://resolve\">t</a> https://e.x/q?a=1&amp;b=2 &lt;https://e.x/z&gt;", "parse_mode": "HTML"}'),
	'<a href="https://e.x/?a=1&amp;b=2&amp;utm_source=tg">go</a> <a href="tg://resolve">t</a> https://e.x/q?a=1&amp;b=2&amp;utm_source=tg &lt;https://e.x/z?utm_source=tg&gt;', 'in tags and between them');
select is(test.shown('{"text": "`https://e.x/code` [x](https://e.x/m)", "parse_mode": "Markdown"}'),
	'<code>https://e.x/code</code> <a href="https://e.x/m?utm_source=tg">x</a>', 'code stays as it is');
select is(test.shown('{"text": "Again https://e.x/e", "link": "https://e.x/e"}'), 'Again https://e.x/e?utm_source=tg',
	'a link that the text holds comes once');
select is(
	test.shown(
	'{"text": "<a href=\"https://e.x/?a=1&amp;b=2\">once</a>", "parse_mode": "HTML", "link": "https://e.x/?a=1&b=2"}'),
	'<a href="https://e.x/?a=1&amp;b=2&amp;utm_source=tg">once</a>');
select test.shown('{"text": "Buttons", "buttons": [[{"text": "Go", "url": "https://e.x/go"}, {"text": "Q", "url": "https://e.x/?q=1"}]]}');
select is((test.row('tg')).render_meta -> 'buttons', '[[{"text": "Go", "url": "https://e.x/go?utm_source=tg"}, {"text": "Q", "url": "https://e.x/?q=1&utm_source=tg"}]]');
select is((test.row('bare')).render_meta #>> '{buttons,0,0,url}', 'https://e.x/go');

-- Added parameters count as text.
select is(test.shown(format('{"text": "%s", "link": "https://e.x/"}', repeat('a', 4082))), '', 'refused with it');
select is((test.row('bare')).status, 'queued', 'taken without');
select is((test.row('tg')).last_error ->> 'message', 'text has 4110 characters, telegram takes at most 4096');

-- Invalid parameter sets are refused when they are written.
select throws_like($$update autopost.channels set settings = '{"utm": "utm_source=x"}'$$, '%channels_utm%');
select throws_like($$update autopost.channels set settings = '{"utm": {"a b": "x"}}'$$, '%channels_utm%');
select throws_like($$update autopost.channels set settings = '{"utm": {"a": 1}}'$$, '%channels_utm%');

select * from finish();
rollback;
