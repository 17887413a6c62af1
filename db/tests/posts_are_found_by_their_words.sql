-- The search: posts with all words of a text, or with words that begin with them, newest first.
begin;
\ir fake_clock.sql
\ir world.sql
select plan(29);

select test.channel('a');
create function test.found(p_text text, p_filter jsonb default '{}') returns text
language sql
as $$
select string_agg(l.source_ref, ' ' order by l.message_id desc)
	from autopost.list_messages('w', p_filter || jsonb_build_object('text', p_text), 10) l
$$;
select test.post('{"source_ref": "ref-17", "text": "Ёжик в тумане: https://example.org/tales/42?id=7", "tags": ["Мульт_Фильмы"]}');
select test.post('{"source_ref": "ref-18", "text": "The <b>bridge</b> isn''t open: north-west road, v1.5", "parse_mode": "HTML"}');
select test.post('{"source_ref": "ref-19", "text": "Мост закрыт. Bridge\\road %_ 100% #ремонт"}');

select is(test.found('ежик'), 'ref-17', 'ё is е');
select is(test.found('ЁЖИК ТУМАН'), 'ref-17', 'case folds, and words match by their beginning');
select is(test.found('уман'), null, 'not by their middle');
select is(test.found('bridge'), 'ref-19 ref-18', 'the newest first');
select is(test.found('bridge мост'), 'ref-19', 'all words');
select is(test.found('example.org/tales'), 'ref-17', 'parts of an address');
select is(test.found('42'), 'ref-17');
select is(test.found('west'), 'ref-18', 'parts of a name with hyphens');
select is(test.found('isn''t'), 'ref-18', 'quotes');
select is(test.found('ref-19'), 'ref-19', 'source_ref');
select is(test.found('ref'), 'ref-19 ref-18 ref-17');
select is(test.found('#мульт_фильмы'), 'ref-17', 'a tag');
select is(test.found('#ремонт мост'), 'ref-19', 'a tag and a word');
select is(test.found('#мост'), null, 'a word is not a tag');
select is(test.found('ремонт'), 'ref-19', 'a tag is a word');
select is(test.found('bridge', '{"status": "dead"}'), null, 'with other filters');
select is(test.found('bridge', '{"channel_id": "a"}'), 'ref-19 ref-18');
select is(test.found('bridge', jsonb_build_object('before_id', (select m.message_id from autopost.messages m
	where m.source_ref = 'ref-19'))), 'ref-18', 'the next page');

-- Input that means something to tsquery, LIKE or a regular expression is text.
select is(test.found(t), null, 'finds nothing: ' || left(t, 20))
from unnest(array['', '!@#$%^&*()|<->:*', '''''''', '\', '# ## #', repeat('слово ', 1000)]) t;
select lives_ok(format('select test.found(%L)', t), 'does not fail: ' || left(t, 20))
from unnest(array[repeat('x', 5000), E'a\\''b & !c | (d:*) <-> "e"']) t;

-- No post is too long or too odd for the index.
select is(test.post(jsonb_build_object('source_ref', repeat('r', 500), 'text', (select string_agg(to_hex(n), ' ')
	from generate_series(1, 17000) n), 'tags', jsonb_build_array(repeat('t', 2048)))) -> 'errors', null);
select is((select count(*)::int from autopost.message_words), 4, 'each message has its words');
select autopost.put_workspace('other', '{}', 'ann', 'test', false);
select is((select count(*)::int from autopost.list_messages('other', '{"text": "bridge"}', 10)), 0,
	'posts of another workspace are not found');

select * from finish();
rollback;
