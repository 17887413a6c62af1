create or replace function autopost.search_words(p_text text) returns text[]
language sql immutable parallel safe
as $$
-- Purpose: the words of a text for the search: without markup, case folded, ё as е. What joins words, as in
--          addresses and names with hyphens, parts them.
select tsvector_to_array(to_tsvector('simple', translate(autopost.fold(p_text), 'ё/.:@-+', 'е      ')))
$$;

create or replace function autopost.search_tag(p_tag text) returns text
language sql immutable parallel safe
as $$
-- Purpose: the word that a tag has in the index, so that #tag does not find texts with the word.
select '#' || translate(autopost.fold(left(p_tag, 100)), 'ё', 'е')
$$;

create or replace function autopost.search_period(p_id uuid) returns int
language sql immutable parallel safe
as $$
-- Purpose: the number of the 12.4 days (2^30 ms) of an id.
select (('x' || left(replace(p_id::text, '-', ''), 12))::bit(48)::bigint >> 30)::int
$$;

create or replace function autopost.search_key(p_workspace_id text, p_period int) returns text
language sql immutable parallel safe
as $$
-- Purpose: the beginning of all words of a workspace and a period in the index. Periods are read from the
--          newest, so that a frequent word costs no more than a rare one.
select left(md5(p_workspace_id), 4) || lpad(to_hex(p_period), 4, '0')
$$;

create or replace function autopost.search_lexemes(p_key text, p_words text[]) returns text[]
language plpgsql immutable parallel safe
as $$
-- Purpose: words as the index has them: with their key, cut to 100 characters.
begin
	return array(select left(p_key || w.word, 108) from unnest(p_words) w (word));
end
$$;

create or replace function autopost.search_query(p_key text, p_words text[]) returns tsquery
language sql immutable parallel safe
as $$
-- Purpose: the condition that a message has all words, or words that begin with them.
select string_agg('''' || replace(replace(w.word, '\', '\\'), '''', '''''') || ''':*', ' & ')::tsquery
from unnest(autopost.search_lexemes(p_key, p_words)) w (word)
$$;

create or replace function autopost.search_terms(p_text text) returns text[]
language plpgsql immutable parallel safe
as $$
-- Purpose: the words that a person searches for: of at most 200 characters, the first 16. "#tag" is a tag.
declare
	v_text text := left(p_text, 200);
	v_tags text[] := array(select autopost.search_tag(t[1]) from regexp_matches(v_text, '#([^\s#]+)', 'g') t);
begin
	return (v_tags || autopost.search_words(regexp_replace(v_text, '#[^\s#]+', ' ', 'g')))[1:16];
end
$$;

create or replace function autopost.index_words() returns trigger
language plpgsql
as $$
-- Purpose: stores the words of a new message: of its source_ref, its tags and its text, the first 20,000
--          characters together. More would not fit into one value.
-- Writes:  message_words.
declare
	v_key text := autopost.search_key(new.workspace_id, autopost.search_period(new.message_id));
	v_words text[] := autopost.search_words(left(concat_ws(' ', new.source_ref, array_to_string(new.tags, ' '),
		new.payload ->> 'text'), 20000)) || array(select autopost.search_tag(t.tag)
			from unnest(new.tags[:100]) t (tag));
	v_stored tsvector := array_to_tsvector(autopost.search_lexemes(v_key, v_words));
begin
	insert into autopost.message_words (workspace_id, message_id, words)
	values (new.workspace_id, new.message_id, v_stored);
	return null;
end
$$;

create or replace trigger index_words after insert on autopost.messages
	for each row execute function autopost.index_words();
