create or replace function autopost.put_setting(p_key text, p_value jsonb) returns jsonb
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Changes a value that functions decide by, for the whole installation. Raises AP001 for a key that is not there, and for a retention
-- that would break a promise: shorter than a channel's dedup window, or events outliving deliveries. Looks across workspaces.
-- Locks: settings. Reads: channels. Writes: settings.
begin
	perform autopost.enter_all_workspaces();
	perform autopost.require('value', p_value is not null);
	if p_key like '%\_retention\_days' then
		-- One of them at a time: they are judged together, and so is a channel's dedup window meanwhile.
		perform 1 from autopost.settings s where s.key = 'delivery_retention_days' for no key update of s;
	end if;
	update autopost.settings s set value = p_value, updated_at = autopost.now_ts() where s.key = p_key and s.value is distinct from p_value;
	if not found then
		perform autopost.setting(p_key);
	elsif p_key like '%\_retention\_days' then
		perform autopost.check_retention(p_key);
	end if;
	return '{"applied": true}';
end
$$;
