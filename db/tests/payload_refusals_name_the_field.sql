-- A refusal names each field with a remedy. Nothing of the post is stored.
begin;
\ir fake_clock.sql
\ir world.sql
select plan(29);

create function test.refused(p_raw jsonb) returns text
language sql
as $$
-- "field: reason" of everything that is wrong with a raw payload.
select string_agg((e.value ->> 'field') || ': ' || (e.value ->> 'reason'), '; ' order by e.ordinality)
from jsonb_array_elements(autopost.payload_errors(p_raw)) with ordinality e
$$;
create function test.medium(p_medium jsonb) returns text
language sql
as $$
select test.refused(jsonb_build_object('text', 'x', 'media', jsonb_build_array(p_medium)))
$$;

select is(test.refused('[]'), ': a post must be a JSON object');
select is(test.refused('{"text": 7, "variants": [], "disable_preview": "no"}'),
	'text: must be a JSON string; variants: must be a JSON object; disable_preview: must be a JSON boolean',
		'all wrong types at once');
select is(test.refused('{}'), 'text: the post is empty');
select is(test.refused('{"text": " ", "link": "", "media": []}'), 'text: the post is empty', 'blanks are nothing');
select is(test.refused(jsonb_build_object('text', repeat('x', 100001))), 'text: is longer than 100000 characters');
select is(test.refused(jsonb_build_object('text', repeat('x', 100000))), null, 'the longest is taken');
select is(test.refused(jsonb_build_object('text', 'x', 'source_ref', repeat('x', 513))),
	'source_ref: must have 1 to 512 characters');
select is(test.refused('{"text": "x", "source_ref": ""}'), 'source_ref: must have 1 to 512 characters');
select is(test.refused('{"text": "x", "parse_mode": "BBCode"}'), 'parse_mode: is unknown');
select is(test.refused('{"link": "ftp://e.x/"}'), 'link: must be an http or https URL');
select is(test.refused('{"text": "x", "scheduled_for": "2026-12-01T10:00:00"}'),
	'scheduled_for: must be a time with an offset');
select is(test.refused('{"text": "x", "scheduled_for": "2026-13-01T10:00:00Z"}'),
	'scheduled_for: must be a time with an offset', 'no such month');
select is(test.refused('{"text": "x", "scheduled_for": "2026-12-01T10:00+20:00"}'),
	'scheduled_for: must be a time with an offset', 'no such offset');
select is(test.refused('{"text": "x", "variants": {"a": "text"}}'), 'variants.a: must be an object');
select is(test.refused('{"text": "x", "routing": {"include_channels": "a", "exclude_channels": [7]}}'),
	'routing.include_channels: must be an array of strings; routing.exclude_channels: must contain only strings of 1 to 2048 characters');

select is(test.refused('{"text": "x", "media": {}}'), 'media: must be an array');
select is(test.refused(jsonb_build_object('media',
	array_to_json(array_fill('{"type": "image", "file_id": "1"}'::json, array[51])))), 'media: has more than 50 items');
select is(test.medium('"https://e.x/1.png"'), 'media[0]: must be an object');
select is(test.medium('{"url": "https://e.x/1.png"}'), 'media[0].type: is unknown or missing');
select is(test.medium('{"type": "image"}'), 'media[0]: has no content');
select is(test.medium('{"type": "image", "url": "/1.png"}'), 'media[0].url: must be an http or https URL');
select is(test.medium('{"type": "image", "blob_ref": "sha256:1"}'), 'media[0].blob_ref: must be a media reference');
select is(test.medium('{"type": "image", "file_id": 7}'), 'media[0]: caption, alt, file_id, attachment_token and auth_ref must be strings, and ids must not be empty');

select is(test.refused('{"text": "x", "buttons": {}}'), 'buttons: must be an array of rows');
select is(test.refused('{"text": "x", "buttons": [{"text": "a", "url": "https://e.x"}]}'),
	'buttons: must be an array of rows', 'rows are arrays');
select is(test.refused('{"text": "x", "buttons": [[{"text": "a"}]]}'),
	'buttons: every button needs a text of 1 to 128 characters and an http or https URL');
select is(test.refused('{"text": "x", "buttons": [[{"text": "a", "url": "https://e.x"}]]}'), null);

select is((select array_agg(e.value ->> 'field') || array[a.answer ->> 'status']
	from (select test.post('{"media": [{"type": "image"}], "parse_mode": "?"}') as answer) a,
	jsonb_array_elements(a.answer -> 'errors') e group by a.answer), '{media[0],parse_mode,rejected}',
		'the enqueue says the same');
select is((select count(*)::int from autopost.messages), 0, 'and keeps nothing');

rollback;
