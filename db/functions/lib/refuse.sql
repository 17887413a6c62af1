create or replace function autopost.refuse(p_argument text, p_reason text, p_remedy text) returns void
language plpgsql stable
as $$
-- Raises AP001: a wrong argument, naming it, the reason and the remedy.
begin
	raise exception 'argument %: %', p_argument, p_reason using errcode = 'AP001', hint = p_remedy;
end
$$;

create or replace function autopost.require(p_argument text, p_given boolean) returns void
language plpgsql stable
as $$
-- Raises AP001 unless the argument was given.
begin
	if p_given is not true then
		perform autopost.refuse(p_argument, 'is missing', format('pass a value for p_%s', p_argument));
	end if;
end
$$;

create or replace function autopost.check_new_id(p_argument text, p_id text) returns void
language plpgsql stable
as $$
-- Raises AP001 for what nobody should have to type or read as the id of something new: what is there already goes by the id that it has.
declare
	v_fault text := case
		when p_id ~ '[\u0001-\u001F\u007F-\u009F]' then 'holds control characters'
		when p_id <> btrim(p_id) then 'begins or ends with a space'
		when length(p_id) > 200 then 'is longer than 200 characters' end;
begin
	if v_fault is not null then
		perform autopost.refuse(p_argument, v_fault, 'choose an id of 1 to 200 characters, in one line and without spaces around it');
	end if;
end
$$;

create or replace function autopost.is_uuid(p_value text) returns boolean
language sql immutable parallel safe
as $$
-- Whether the text is a UUID in its common form; no text is none.
select coalesce(p_value ~* '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$', false)
$$;

create or replace function autopost.require_uuid(p_argument text, p_value text) returns void
language plpgsql stable
as $$
-- Raises AP001 unless the text is a UUID.
begin
	perform autopost.require(p_argument, p_value is not null);
	if not autopost.is_uuid(p_value) then
		perform autopost.refuse(p_argument, 'is no UUID', 'pass the id as it was answered');
	end if;
end
$$;

create or replace function autopost.uuids_of(p_items jsonb, p_argument text) returns uuid[]
language plpgsql stable
as $$
-- The UUIDs under this key of the objects of an array, in their order. Raises AP001 for the first that has none.
declare
	v_ids uuid[];
begin
	v_ids := array(select (i.value ->> p_argument)::uuid from jsonb_array_elements(p_items) with ordinality i order by i.ordinality);
	perform autopost.require(p_argument, array_position(v_ids, null) is null);
	return v_ids;
exception when invalid_text_representation then
	perform autopost.require_uuid(p_argument, i.value ->> p_argument) from jsonb_array_elements(p_items) i;
	raise;
end
$$;
