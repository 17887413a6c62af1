create or replace function autopost.get_channel(p_workspace_id text, p_channel_id text) returns jsonb
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: returns a channel.
-- Returns: {"channel_id", "fields": as put_channel takes them, "state": its present state with
--          counts of waiting and sending deliveries}; null if the channel does not exist.
-- Reads:   channels, channel_auth, deliveries.
declare
	v_channel autopost.channels;
begin
	perform autopost.enter_workspace(p_workspace_id);
	perform autopost.require_argument('channel_id', p_channel_id is not null);
	select c.* into v_channel from autopost.channels c where c.workspace_id = p_workspace_id
		and c.channel_id = p_channel_id;
	if v_channel.channel_id is null then
		return null;
	end if;
	return jsonb_build_object('channel_id', p_channel_id, 'fields', autopost.channel_fields(v_channel),
		'state', autopost.queue_of(p_workspace_id, array[p_channel_id]) || jsonb_build_object(
			'paused_until', v_channel.paused_until, 'cooldown_until', v_channel.cooldown_until, 'error_streak',
				v_channel.error_streak,
			'auth_held', v_channel.auth_held, 'credential_missing_at', v_channel.credential_missing_at,
			'created_at', v_channel.created_at, 'updated_at', v_channel.updated_at));
end
$$;
