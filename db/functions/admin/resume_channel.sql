create or replace function autopost.resume_channel(p_workspace_id text, p_channel_id text, p_operator text,
	p_reason text, p_dry_run boolean) returns jsonb
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: enables a channel, ends its pause and its error streak, and makes its waiting deliveries
--          due. A cooldown from the platform stays.
-- Returns: as pause_channel.
-- Raises:  AP001 without operator or reason.
-- Locks:   channels, channel_gates.
-- Writes:  channels, channel_gates, events(channel_enabled), admin_audit_log.
declare
	v_meta jsonb;
begin
	perform autopost.enter_workspace(p_workspace_id);
	v_meta := autopost.manual_act(p_operator, p_reason, p_dry_run);
	perform autopost.require_argument('channel_id', p_channel_id is not null);
	perform autopost.lock_channels(p_workspace_id, array[p_channel_id]) where not p_dry_run;
	if not exists (select 1 from autopost.channels c where c.workspace_id = p_workspace_id
		and c.channel_id = p_channel_id) then
		return jsonb_build_object('applied', false, 'dry_run', p_dry_run, 'reason', 'unknown_channel');
	end if;
	return autopost.act_on_channels(p_workspace_id, array[p_channel_id], autopost.resumed(),
		jsonb_build_object('function', 'resume_channel', 'subject', 'channel:' || p_channel_id, 'event',
			'channel_enabled', 'meta', v_meta, 'dry_run', p_dry_run));
end
$$;
