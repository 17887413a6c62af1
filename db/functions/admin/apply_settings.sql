create or replace function autopost.apply_settings(p_values jsonb, p_dry_run boolean) returns jsonb
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Changes settings together, {key: value}; null puts one back to its default. A dry run is the same, undone.
-- Returns {"applied": true, "dry_run", "changes": [{"key", "before", "after"}]}, or {"applied": false, "dry_run", "reason": "unchanged"}. Raises AP001 as
-- put_setting does. Looks across workspaces. Locks: settings. Reads: channels. Writes: settings.
declare
	v_changes jsonb;
begin
	perform autopost.enter_all_workspaces();
	perform autopost.require('dry_run', p_dry_run is not null);
	if jsonb_typeof(p_values) is distinct from 'object' then
		perform autopost.refuse('values', 'are no JSON object', 'pass {"key": value}');
	end if;
	begin
		v_changes := autopost.change_settings(p_values);
		if p_dry_run then
			raise exception 'planned' using errcode = 'AP900';
		end if;
	exception when sqlstate 'AP900' then
		null; -- all that was done is undone; what is known stays
	end;
	if v_changes = '[]' then
		return jsonb_build_object('applied', false, 'dry_run', p_dry_run, 'reason', 'unchanged');
	end if;
	return jsonb_build_object('applied', true, 'dry_run', p_dry_run, 'changes', v_changes);
end
$$;
