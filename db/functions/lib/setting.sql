create or replace function autopost.setting(p_key text) returns numeric
language plpgsql stable
as $$
-- The value of a numeric setting. Raises AP001 for a key that autopost.settings does not have.
declare
	v_value numeric;
begin
	select (s.value #>> '{}')::numeric into v_value from autopost.settings s where s.key = p_key;
	if v_value is null then
		perform autopost.refuse('key', format('there is no setting %L', p_key), 'see autopost.settings');
	end if;
	return v_value;
end
$$;

create or replace function autopost.setting_interval(p_key text) returns interval
language plpgsql stable
as $$
-- A setting whose key ends in its unit, as an interval.
begin
	return (
		select autopost.setting(p_key) * case
			when p_key like '%\_ms' then interval '1 millisecond'
			when p_key like '%\_hours' then interval '1 hour'
			when p_key like '%\_days' then interval '1 day'
			else interval '1 second' end);
end
$$;
