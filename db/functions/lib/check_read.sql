create or replace function autopost.check_read(p_filter jsonb, p_keys text[], p_limit int) returns void
language plpgsql stable
as $$
-- Raises AP001 for a filter that is no object or has a key that the read model does not know, and for a limit out of 1 to 10000.
declare
	v_key text;
begin
	if jsonb_typeof(p_filter) is distinct from 'object' then
		perform autopost.refuse('filter', 'is no JSON object', 'pass {} for all rows');
	end if;
	select k.key into v_key from jsonb_object_keys(p_filter) k (key) where k.key <> all (p_keys) limit 1;
	if v_key is not null then
		perform autopost.refuse('filter', format('has the unknown key %L', v_key), 'use ' || array_to_string(p_keys, ', '));
	end if;
	if coalesce(p_limit not between 1 and 10000, true) then
		perform autopost.refuse('limit', 'is not between 1 and 10000', 'pass how many rows you want at most');
	end if;
end
$$;
