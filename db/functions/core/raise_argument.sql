create or replace function autopost.raise_argument(p_argument text, p_reason text, p_remedy text) returns void
language plpgsql stable
as $$
-- Purpose: refuses an argument with its name, the reason and the remedy as hint.
-- Raises:  AP001.
begin
	raise exception 'argument %: %', p_argument, p_reason using errcode = 'AP001', hint = p_remedy;
end
$$;

create or replace function autopost.require_argument(p_argument text, p_given boolean) returns void
language plpgsql stable
as $$
-- Purpose: checks that an argument was given.
-- Raises:  AP001.
begin
	if p_given is not true then
		perform autopost.raise_argument(p_argument, 'is missing', format('pass a value for p_%s', p_argument));
	end if;
end
$$;

create or replace function autopost.check_new_id(p_argument text, p_id text) returns void
language plpgsql stable
as $$
-- Purpose: checks the id of a new object. Existing ids are not checked again.
-- Raises:  AP001 for control characters, outer spaces or more than 200 characters.
declare
	v_fault text := case
		when p_id ~ '[\u0001-\u001F\u007F-\u009F]' then 'must not have control characters'
		when p_id <> btrim(p_id) then 'must not start or end with a space'
		when length(p_id) > 200 then 'must have at most 200 characters' end;
begin
	if v_fault is not null then
		perform autopost.raise_argument(p_argument, v_fault,
			'choose an id of 1 to 200 characters, in one line and without spaces around it');
	end if;
end
$$;

create or replace function autopost.require_limit(p_limit int) returns void
language plpgsql immutable
as $$
-- Purpose: checks the argument limit of a claim.
-- Raises:  AP001 unless it is between 1 and 1000.
begin
	if coalesce(p_limit not between 1 and 1000, true) then
		perform autopost.raise_argument('limit',
			format('must be between 1 and 1000, got %s', coalesce(p_limit::text, 'null')), 'pass a limit from 1 to 1000');
	end if;
end
$$;

create or replace function autopost.require_array(p_argument text, p_value jsonb) returns void
language plpgsql stable
as $$
-- Purpose: checks that an argument is a JSON array.
-- Raises:  AP001.
begin
	perform autopost.require_argument(p_argument, p_value is not null);
	if jsonb_typeof(p_value) <> 'array' then
		perform autopost.raise_argument(p_argument, 'must be a JSON array', 'pass a JSON array of objects');
	end if;
end
$$;

create or replace function autopost.is_uuid(p_value text) returns boolean
language sql immutable parallel safe
as $$
-- Purpose: true if the text is a UUID in its usual form; false for null.
select coalesce(p_value ~* '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$', false)
$$;

create or replace function autopost.require_uuid(p_argument text, p_value text) returns void
language plpgsql stable
as $$
-- Purpose: checks that a text is a UUID.
-- Raises:  AP001.
begin
	perform autopost.require_argument(p_argument, p_value is not null);
	if not autopost.is_uuid(p_value) then
		perform autopost.raise_argument(p_argument, 'must be a UUID', 'pass an id from an answer');
	end if;
end
$$;

create or replace function autopost.uuids_of(p_items jsonb, p_argument text) returns uuid[]
language plpgsql stable
as $$
-- Purpose: the UUIDs under a key of an array of objects, in their order.
-- Raises:  AP001 for the first object without a UUID.
declare
	v_ids uuid[];
begin
	v_ids := array(select (i.value ->> p_argument)::uuid from jsonb_array_elements(p_items) with ordinality i
		order by i.ordinality);
	perform autopost.require_argument(p_argument, array_position(v_ids, null) is null);
	return v_ids;
exception when invalid_text_representation then
	perform autopost.require_uuid(p_argument, i.value ->> p_argument) from jsonb_array_elements(p_items) i;
	raise;
end
$$;
