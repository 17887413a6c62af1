create or replace function autopost.disable_group(
	p_workspace_id text, p_platform text, p_rate_group text, p_operator text, p_reason text, p_dry_run boolean
) returns jsonb
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: disables all channels of a rate group, of one platform or (p_platform null) of all
--          platforms. They get no new deliveries and no call starts; waiting deliveries stay.
-- Returns: {"applied": true, "dry_run", "waiting", "sending", "channels": [{"channel_id", "before",
--          "after"}]}, also for a dry run, which changes nothing; or {"applied": false, "dry_run",
--          "reason": "unknown_group"}.
-- Raises:  AP001 without operator or reason.
-- Locks:   channels (channel_id), channel_gates.
-- Writes:  channels, channel_gates, events(channel_disabled), admin_audit_log.
declare
	v_meta jsonb;
begin
	perform autopost.enter_workspace(p_workspace_id);
	v_meta := autopost.manual_act(p_operator, p_reason, p_dry_run);
	perform autopost.require_argument('rate_group', p_rate_group is not null);
	return autopost.act_on_group(p_workspace_id, p_platform, p_rate_group, '{"enabled": false}',
		jsonb_build_object('function', 'disable_group', 'event', 'channel_disabled', 'meta', v_meta, 'dry_run',
			p_dry_run));
end
$$;
