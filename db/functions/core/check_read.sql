create or replace function autopost.check_read(p_filter jsonb, p_keys text[], p_limit int) returns void
language plpgsql stable
as $$
-- Purpose: checks the arguments of a list.
-- Raises:  AP001 unless p_filter is an object with known keys and p_limit is 1 to 10000.
declare
	v_key text;
begin
	if jsonb_typeof(p_filter) is distinct from 'object' then
		perform autopost.raise_argument('filter', 'must be a JSON object', 'pass {} for all rows');
	end if;
	select k.key into v_key from jsonb_object_keys(p_filter) k (key) where k.key <> all (p_keys) limit 1;
	if v_key is not null then
		perform autopost.raise_argument('filter', format('has the unknown key %L', v_key),
			'use ' || array_to_string(p_keys, ', '));
	end if;
	if coalesce(p_limit not between 1 and 10000, true) then
		perform autopost.raise_argument('limit', 'must be from 1 to 10000', 'pass the largest number of rows');
	end if;
end
$$;

create or replace function autopost.delivery_statuses() returns text[]
language sql immutable parallel safe
as $$
-- Purpose: the statuses of deliveries in the order of their life.
select '{queued,claimed,sending,retry,sent,deduped,failed_permanent,dead}'::text[]
$$;

create or replace function autopost.check_status(p_filter jsonb, p_statuses text[]) returns void
language plpgsql stable
as $$
-- Purpose: checks the status of a filter.
-- Raises:  AP001 for an unknown status.
begin
	if p_filter ? 'status' and coalesce(p_filter ->> 'status' <> all (p_statuses), true) then
		perform autopost.raise_argument('filter', format('unknown status %s', p_filter -> 'status'),
			'use ' || array_to_string(p_statuses, ', '));
	end if;
end
$$;

create or replace function autopost.check_result(p_filter jsonb) returns void
language plpgsql stable
as $$
-- Purpose: checks the result of a filter.
-- Raises:  AP001 for an unknown result.
begin
	if p_filter ? 'result' and coalesce(p_filter ->> 'result' not in ('ok', 'error'), true) then
		perform autopost.raise_argument('filter', format('unknown result %s', p_filter -> 'result'),
			'use ok or error');
	end if;
end
$$;

create or replace function autopost.uuid_in(p_filter jsonb, p_key text) returns uuid
language plpgsql stable
as $$
-- Purpose: the UUID under a key of a filter, else null.
-- Raises:  AP001 if it is not a UUID.
begin
	if (p_filter ? p_key) is not true then
		return null;
	elsif not autopost.is_uuid(p_filter ->> p_key) then
		perform autopost.raise_argument('filter', format('%s must be a UUID', p_key), 'pass an id from an answer');
	end if;
	return (p_filter ->> p_key)::uuid;
end
$$;

create or replace function autopost.instant_in(p_filter jsonb, p_key text) returns timestamptz
language plpgsql stable
as $$
-- Purpose: the instant under a key of a filter, else null.
-- Raises:  AP001 if it is not an instant with an offset.
declare
	v_at timestamptz := autopost.timestamp_of(p_filter ->> p_key);
begin
	if p_filter ? p_key and v_at is null then
		perform autopost.raise_argument('filter', format('%s must be a time with an offset', p_key),
			'write 2026-12-01T10:00:00+03:00');
	end if;
	return v_at;
end
$$;
