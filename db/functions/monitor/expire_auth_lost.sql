create or replace function autopost.expire_auth_lost(p_workspace_id text) returns jsonb
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: ends deliveries that wait too long for a refused or missing credential: dead after
--          auth_lost_hold_days; failed_permanent at once if it is refused and on_auth_lost is fail.
--          Up to 500 deliveries of 1,000 channels per call.
-- Returns: {"ended", "failed", "dead"}.
-- Locks:   channels (channel_id), deliveries (skip locked).
-- Writes:  deliveries, events(failed_permanent, dead_letter).
declare
	v_ids text[];
	v_answer jsonb;
begin
	perform autopost.enter_workspace(p_workspace_id);
	v_ids := array(
		select c.channel_id from autopost.channels c
		where c.workspace_id = p_workspace_id and (c.auth_held or c.credential_missing_at is not null)
		and (c.auth_held and c.paused_until > autopost.now_ts() or c.credential_until > autopost.now_ts())
		and exists (
			select 1 from autopost.deliveries d
			where d.workspace_id = p_workspace_id and d.channel_id = c.channel_id
				and d.phase in ('active', 'retry') and d.status <> 'sending'
			and (c.on_auth_lost = 'fail'
				or d.due_at <= autopost.now_ts() - autopost.setting_interval('auth_lost_hold_days')))
		order by c.channel_id
		limit 1000);
	perform autopost.lock_channels(p_workspace_id, v_ids);
	v_answer := autopost.end_held(p_workspace_id, v_ids, 500);
	return v_answer || jsonb_build_object('ended', (v_answer -> 'failed')::int + (v_answer -> 'dead')::int);
end
$$;
