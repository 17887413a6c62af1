create or replace function autopost.put_setting(p_key text, p_value jsonb) returns jsonb
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Changes a value that functions decide by, for the whole installation. Raises AP001 for a key that is not there, for a value that
-- guard_setting refuses, and for a retention that would break a promise: shorter than a channel's dedup window, or
-- events outliving deliveries. The audit log of the operator's workspace names the role that did it: apply_settings says who and why. Looks
-- across workspaces. Locks: settings, audit_heads. Reads: channels, workspaces. Writes: settings, admin_audit_log.
begin
	perform autopost.enter_all_workspaces();
	perform autopost.require('value', p_value is not null);
	perform autopost.change_settings(jsonb_build_object(coalesce(p_key, ''), p_value), 'put_setting',
		autopost.manual_act(autopost.speaker(), 'set by itself', false));
	return '{"applied": true}';
end
$$;
