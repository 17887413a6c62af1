create or replace function autopost.put_setting(p_key text, p_value jsonb) returns jsonb
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Changes a value that functions decide by, for the whole installation. Raises AP001 for a key that is not there.
-- Writes: settings.
begin
	perform autopost.require('value', p_value is not null);
	update autopost.settings s set value = p_value, updated_at = autopost.now_ts() where s.key = p_key and s.value is distinct from p_value;
	if not found then
		perform autopost.setting(p_key);
	end if;
	return '{"applied": true}';
end
$$;
