create or replace function autopost.counted(p_count bigint, p_one text, p_many text) returns text
language sql immutable parallel safe
as $$
-- Purpose: a count with its noun: "1 post", "2 posts".
select p_count || ' ' || case p_count when 1 then p_one else p_many end
$$;
