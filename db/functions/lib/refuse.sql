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

create or replace function autopost.require_uuid(p_argument text, p_value text) returns void
language plpgsql stable
as $$
-- Raises AP001 unless the text is a UUID.
begin
	perform autopost.require(p_argument, p_value is not null);
	if p_value !~* '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$' then
		perform autopost.refuse(p_argument, 'is no UUID', 'pass the id as it was answered');
	end if;
end
$$;
