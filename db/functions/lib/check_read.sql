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

create or replace function autopost.delivery_statuses() returns text[]
language sql immutable parallel safe
as $$
-- The statuses of deliveries, in the order of their life.
select '{queued,claimed,sending,retry,sent,deduped,failed_permanent,dead}'::text[]
$$;

create or replace function autopost.check_status(p_filter jsonb, p_statuses text[]) returns void
language plpgsql stable
as $$
-- Raises AP001 for a filter by a status that no row can have.
begin
	if p_filter ? 'status' and coalesce(p_filter ->> 'status' <> all (p_statuses), true) then
		perform autopost.refuse('filter', format('status %s is unknown', p_filter -> 'status'), 'use ' || array_to_string(p_statuses, ', '));
	end if;
end
$$;

create or replace function autopost.uuid_in(p_filter jsonb, p_key text) returns uuid
language plpgsql stable
as $$
-- The id that a filter names under this key; null where it names none. Raises AP001 for one that is no UUID.
begin
	if (p_filter ? p_key) is not true then
		return null;
	elsif not autopost.is_uuid(p_filter ->> p_key) then
		perform autopost.refuse('filter', format('%s is no UUID', p_key), 'pass the id as it was answered');
	end if;
	return (p_filter ->> p_key)::uuid;
end
$$;

create or replace function autopost.instant_in(p_filter jsonb, p_key text) returns timestamptz
language plpgsql stable
as $$
-- The instant that a filter names under this key; null where it names none. Raises AP001 for one without an offset.
declare
	v_at timestamptz := autopost.timestamp_of(p_filter ->> p_key);
begin
	if p_filter ? p_key and v_at is null then
		perform autopost.refuse('filter', format('%s is no time with an offset', p_key), 'write 2026-12-01T10:00:00+03:00');
	end if;
	return v_at;
end
$$;
