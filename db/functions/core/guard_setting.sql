create or replace function autopost.guard_setting() returns trigger
language plpgsql
as $$
-- Purpose: checks the type and the bounds of every written setting.
-- Raises:  AP001.
declare
	v_kind text := coalesce(jsonb_typeof(new.default_value), 'number');
	v_unit text := (regexp_match(new.key, '_(seconds|ms|minutes|hours|days|bytes)(_|$)'))[1];
	v_good boolean := jsonb_typeof(new.value) = v_kind;
begin
	if v_good and v_kind = 'number' then
		v_good := (new.value #>> '{}')::numeric % 1 = 0 and coalesce((new.value #>> '{}')::numeric >= new.least, true)
			and coalesce((new.value #>> '{}')::numeric <= new.most, true);
	end if;
	if not v_good then
		perform autopost.raise_argument('value', format('%s must be %s, got %s', new.key, case v_kind
			when 'number' then concat_ws(' ', 'a whole number', 'of ' || replace(v_unit, 'ms', 'milliseconds'),
				'from ' || new.least, 'to ' || new.most)
			when 'boolean' then 'true or false' else 'a ' || v_kind end, left(new.value::text, 100)),
			format('write a value such as the default %s', coalesce(new.default_value, to_jsonb(new.least))));
	end if;
	return new;
end
$$;

create or replace trigger guard_setting before insert or update of value on autopost.settings
	for each row execute function autopost.guard_setting();
