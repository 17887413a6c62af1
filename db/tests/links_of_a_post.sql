-- link and links stand in the text once, as whole URLs, in their canonical form (C-59).
begin;
\ir fake_clock.sql
\ir world.sql
select plan(16);

select test.channel('t');
select test.channel('m', p_platform => 'max');
create function test.shown(p_post jsonb) returns text
language plpgsql
as $$
begin
	perform test.tick('1 second');
	perform test.post(p_post);
	return (test.row('t')).rendered_text;
end
$$;

select is(test.shown('{"text": "one", "link": "https://a.example/x"}'), E'one\n\nhttps://a.example/x',
	'the link is the last paragraph');
select is(test.shown('{"text": "two", "link": "https://a.example/x", "links": ["https://b.example/1", "https://b.example/2"]}'),
	E'two\n\nhttps://a.example/x\nhttps://b.example/1\nhttps://b.example/2', 'links follow it, one line each');
select is(test.shown('{"text": "three", "links": ["https://b.example/1"]}'), E'three\n\nhttps://b.example/1',
	'links do not need a link');
select is(test.shown('{"text": "four https://b.example/1.", "link": "https://a.example/x", "links": ["https://b.example/1", "https://a.example/x/", "https://c.example/", "https://c.example/"]}'),
	E'four https://b.example/1.\n\nhttps://a.example/x\nhttps://c.example/', 'each link once');
select is(test.shown('{"text": "see https://a.example/xyz", "link": "https://a.example/x"}'),
	E'see https://a.example/xyz\n\nhttps://a.example/x', 'a longer URL that begins with the link is another URL');
select is(test.shown('{"text": "see https://a.example/x?p=1, then", "link": "https://a.example/x"}'),
	E'see https://a.example/x?p=1, then\n\nhttps://a.example/x', 'also one with parameters');
select is(test.shown('{"text": "see (https://a.example/x).", "link": "https://a.example/x"}'),
	'see (https://a.example/x).', 'punctuation does not belong to the URL');
select is(test.shown('{"text": "see https://A.example/x?utm_source=y", "link": "https://a.example/x"}'),
	'see https://a.example/x', 'the URL of the text that equals the link gets the canonical form');
select is(test.shown('{"text": "see https://d.example/?utm_source=y", "link": "https://a.example/y"}'),
	E'see https://d.example/?utm_source=y\n\nhttps://a.example/y', 'another URL stays as written');
select is(test.shown('{"text": "<a href=\"https://a.example/?a=1&amp;b=2&amp;utm_id=3\">here</a>", "parse_mode": "HTML", "link": "https://a.example/?a=1&b=2"}'),
	'<a href="https://a.example/?a=1&amp;b=2">here</a>', 'in markup too');
select is(test.shown('{"text": "[here](https://a.example/x) and there", "parse_mode": "Markdown", "link": "https://a.example/x"}'),
	'<a href="https://a.example/x">here</a> and there');
select is(test.shown('{"text": "own", "link": "https://a.example/x", "variants": {"telegram": {"link": ""}}}'), 'own',
	'a variant removes the link');

-- An article whose links differ in tracking parameters alone is one post.
select is(autopost.content_hash(autopost.normalize_payload(
		'{"text": "News\n\nhttps://a.example/1?utm_source=rss", "link": "https://a.example/1?utm_source=rss"}')),
	autopost.content_hash(autopost.normalize_payload(
		'{"text": "News\n\nhttps://a.example/1?utm_source=mail", "link": "https://a.example/1?utm_source=mail"}')),
	'tracking parameters do not make another post');
select isnt(autopost.content_hash(autopost.normalize_payload('{"text": "https://a.example/1", "link": "https://a.example/1"}')),
	autopost.content_hash(autopost.normalize_payload('{"text": "https://a.example/2", "link": "https://a.example/2"}')));

-- A field that a variant does not name stays that of the post.
select is(test.shown('{"text": "<b>whole</b>", "parse_mode": "HTML", "variants": {"telegram": {"disable_preview": true}}}'),
	'<b>whole</b>', 'a variant without text keeps the text');
select is(test.shown('{"text": "`code`  text", "parse_mode": "Markdown", "variants": {"telegram": {"link": "https://a.example/v"}}}'),
	E'<code>code</code> text\n\nhttps://a.example/v');
select * from finish();
rollback;
