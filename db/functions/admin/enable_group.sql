create or replace function autopost.enable_group(
	p_workspace_id text, p_platform text, p_rate_group text, p_operator text, p_reason text, p_dry_run boolean
) returns jsonb
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: resumes all channels of a rate group as resume_channel does, of one platform or
--          (p_platform null) of all platforms.
-- Returns: {"applied": true, "dry_run", "waiting", "sending", "channels": [{"channel_id", "before",
--          "after"}]}, also for a dry run, which changes nothing; or {"applied": false, "dry_run",
--          "reason": "unknown_group"}.
-- Raises:  AP001 without operator or reason.
-- Locks:   channels (channel_id), channel_gates.
-- Writes:  channels, channel_gates, events(channel_enabled), admin_audit_log.
declare
	v_meta jsonb;
begin
	perform autopost.enter_workspace(p_workspace_id);
	v_meta := autopost.manual_act(p_operator, p_reason, p_dry_run);
	perform autopost.require_argument('rate_group', p_rate_group is not null);
	return autopost.act_on_group(p_workspace_id, p_platform, p_rate_group, autopost.resumed(),
		jsonb_build_object('function', 'enable_group', 'event', 'channel_enabled', 'meta', v_meta, 'dry_run',
			p_dry_run));
end
$$;
