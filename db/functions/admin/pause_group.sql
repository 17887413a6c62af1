create or replace function autopost.pause_group(
	p_workspace_id text, p_platform text, p_rate_group text, p_seconds int, p_operator text, p_reason text,
	p_dry_run boolean
) returns jsonb
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: pauses all channels of a rate group, of one platform or (p_platform null) of all
--          platforms, for p_seconds (1 to 31536000, a year) from now. It replaces previous pauses.
--          Calls in flight finish; waiting deliveries stay.
-- Returns: {"applied": true, "dry_run", "waiting", "sending", "channels": [{"channel_id", "before",
--          "after"}]}, also for a dry run, which changes nothing; or {"applied": false, "dry_run",
--          "reason": "unknown_group"}.
-- Raises:  AP001 for a wrong argument.
-- Locks:   channels (channel_id), channel_gates.
-- Writes:  channels, channel_gates, events(channel_paused), admin_audit_log.
declare
	v_meta jsonb;
	v_until timestamptz;
begin
	perform autopost.enter_workspace(p_workspace_id);
	v_meta := autopost.manual_act(p_operator, p_reason, p_dry_run);
	perform autopost.require_argument('rate_group', p_rate_group is not null), autopost.check_pause(p_seconds);
	v_until := autopost.now_ts() + make_interval(secs => p_seconds);
	return autopost.act_on_group(p_workspace_id, p_platform, p_rate_group, jsonb_build_object('paused_until', v_until),
		jsonb_build_object('function', 'pause_group', 'event', 'channel_paused',
			'meta', v_meta || jsonb_build_object('until', v_until), 'dry_run', p_dry_run));
end
$$;
