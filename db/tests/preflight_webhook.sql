-- A signed webhook takes any media together with the text in one call; the format of its address.
begin;
\ir fake_clock.sql
\ir world.sql
select plan(22);

select test.channel('hook', p_platform => 'webhook');
insert into autopost.media_origin (workspace_id, blob_ref, origin_url, size_bytes)
values ('w', 'sha256:' || repeat('1', 64), 'file:///1', 4294967296), ('w', 'sha256:' || repeat('2', 64), 'file:///2',
	4294967297);
create function test.verdict(p_raw jsonb) returns text
language sql
as $$
-- The result of a post: its status, or its error.
select test.tick('1 second');
select coalesce(d.value ->> 'reason', d.value ->> 'status')
	from jsonb_array_elements(test.post(p_raw) -> 'deliveries') d
$$;
create function test.steps() returns text
language sql
as $$
-- The calls of the last post.
select string_agg((s.value ->> 'step') || coalesce(' ' || (s.value ->> 'items'), '') || case
	when s.value -> 'text' = 'true' then ' text' else '' end, '; ' order by s.ordinality)
from jsonb_array_elements((test.row('hook')).render_meta -> 'steps') with ordinality s
$$;
create function test.media(p_types text[], p_digit int default 1) returns jsonb
language sql
as $$
select jsonb_agg(jsonb_build_object('type', t, 'blob_ref', 'sha256:' || repeat(p_digit::text, 64)) order by n)
	from unnest(p_types) with ordinality x (t, n)
$$;

select is(test.verdict('{"text": "**Bold** & [link](https://e.x/?a=1&b=2)", "parse_mode": "Markdown"}'), 'queued');
select is((test.row('hook')).rendered_text, '<b>Bold</b> &amp; <a href="https://e.x/?a=1&amp;b=2">link</a>',
	'markup is plain HTML');
select is(test.verdict(jsonb_build_object('text', repeat('я', 65536))), 'queued');
select is(test.verdict(jsonb_build_object('text', repeat('я', 65537))),
	'text has 65537 characters, webhook takes at most 65536');
select is(test.verdict(jsonb_build_object('text', 'all kinds', 'buttons',
	'[[{"text": "Go", "url": "https://e.x/"}]]'::jsonb,
	'media', test.media('{image,video,audio,file,animation}'))), 'queued');
select is(test.steps(), 'media-1 [0, 1, 2, 3, 4] text', 'one call');
select is((test.row('hook')).render_meta #>> '{buttons,0,0,text}', 'Go');
select is(test.verdict(jsonb_build_object('text', 'eleven', 'media', test.media(array_fill('image'::text, array[11])))),
	'queued');
select is(test.steps(), 'media-1 [0, 1, 2, 3, 4, 5, 6, 7, 8, 9] text; media-2 [10]');
select is(test.verdict(jsonb_build_object('text', 'large', 'media', test.media('{file}', 2))),
	'media[0]: 4294967297 bytes, webhook takes at most 4294967296');

-- The form of an address; whether it may be reached, and without TLS, is known when it is dialled.
select is(t ~ p.target_form, fits, format('%s: %s', left(t, 60), fits))
from autopost.platforms p, (values
	('https://example.com', true), ('https://example.com:8443/hooks/a?key=b', true), ('http://10.0.0.7/hook', true),
		('https://[2001:db8::1]/a', true),
	('https://example.com/' || repeat('a', 1980), true), ('https://example.com/' || repeat('a', 1981), false),
	('example.com/hook', false), ('ftp://example.com/', false), ('https://user:word@example.com/', false),
		('https://example.com/#part', false),
	('https://example.com/a b', false), ('https:///hook', false)) c (t, fits)
where p.platform = 'webhook';

select * from finish();
rollback;
