-- Normal form, tags, hash and markup do not depend on the collation of the database or of the
-- argument.
begin;
select plan(12);

create temp table words (c text collate "C", i text collate "und-x-icu") on commit drop;
insert into words select t, t from unnest(array[
	'Слово_внутри_слова, _курсив_ и **жирно** #Тег_Один #ТегДва İ I ı ß Σ',
	'HTTPS://ПРИМЕР.Example/I?UTM_CAMPAIGN=I&FBCLID=1&id=I',
	'a' || U&'\00a0\2003' || 'b']) t;

select is(autopost.markdown_to_html(c), autopost.markdown_to_html(i), 'markup: ' || c) from words;
select is(autopost.normalize_text(c, 'Markdown'), autopost.normalize_text(i, 'Markdown'), 'normal form: ' || c)
	from words;
select is(autopost.canonical_url(c), autopost.canonical_url(i), 'URL: ' || c) from words;
select is(autopost.tags_of('{}', jsonb_build_object('text', c)), autopost.tags_of('{}', jsonb_build_object('text', i)),
	'tags: ' || c) from words;

select * from finish();
rollback;
