create or replace function autopost.pause_channel(
	p_workspace_id text, p_channel_id text, p_seconds int, p_operator text, p_reason text, p_dry_run boolean
) returns jsonb
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: starts no call of the channel for p_seconds (1 to 31536000, a year) from now and
--          replaces a previous pause. Calls in flight finish.
-- Returns: {"applied": true, "dry_run", "waiting", "sending", "channels": [{"channel_id", "before",
--          "after"}]}, also for a dry run, which changes nothing; or {"applied": false, "dry_run",
--          "reason": "unknown_channel"}.
-- Raises:  AP001 without operator or reason.
-- Locks:   channels, channel_gates.
-- Writes:  channels, channel_gates, events(channel_paused), admin_audit_log.
declare
	v_meta jsonb;
	v_until timestamptz;
begin
	perform autopost.enter_workspace(p_workspace_id);
	v_meta := autopost.manual_act(p_operator, p_reason, p_dry_run);
	perform autopost.require_argument('channel_id', p_channel_id is not null);
	perform autopost.check_pause(p_seconds);
	perform autopost.lock_channels(p_workspace_id, array[p_channel_id]) where not p_dry_run;
	if not exists (select 1 from autopost.channels c where c.workspace_id = p_workspace_id
		and c.channel_id = p_channel_id) then
		return jsonb_build_object('applied', false, 'dry_run', p_dry_run, 'reason', 'unknown_channel');
	end if;
	v_until := autopost.now_ts() + make_interval(secs => p_seconds);
	return autopost.act_on_channels(p_workspace_id, array[p_channel_id], jsonb_build_object('paused_until', v_until),
		jsonb_build_object('function', 'pause_channel', 'subject', 'channel:' || p_channel_id, 'event',
			'channel_paused',
			'meta', v_meta || jsonb_build_object('until', v_until), 'dry_run', p_dry_run));
end
$$;
