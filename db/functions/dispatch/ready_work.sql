create or replace function autopost.ready_work(p_after text, p_limit int, p_rooms jsonb) returns jsonb
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- What a daemon asks between two rounds: whose deliveries it can claim now, a ring from the one that follows p_after, the last workspace that it served; and
-- how long it may sleep when there are none. p_rooms: as in claim_within, also by "workspace_id"; a group without room is passed over.
-- Returns {"workspaces": ["…"], "platforms": {workspace: ["…"]}, "next_wake_ms"}: those of each workspace that have something; 0 = now, null = nothing waits.
-- Looks across workspaces. Reads: what armed_parts reads.
declare
	v_now timestamptz;
	v_answer jsonb;
begin
	perform autopost.enter_all_workspaces();
	perform autopost.require('after', p_after is not null), autopost.require('limit', p_limit > 0), autopost.require('rooms', jsonb_typeof(p_rooms) = 'array');
	v_now := autopost.now_ts();
	with armed as materialized (
		select r.workspace_id, r.platform, r.ready_at from autopost.armed_parts(p_rooms) r
	), ready as materialized (
		select a.workspace_id, jsonb_agg(a.platform order by a.platform) as platforms from armed a
		where a.ready_at <= v_now
		group by a.workspace_id
		order by a.workspace_id <= p_after, a.workspace_id
		limit p_limit
	)
	select jsonb_build_object(
		'workspaces', array(select r.workspace_id from ready r order by r.workspace_id <= p_after, r.workspace_id),
		'platforms', (select coalesce(jsonb_object_agg(r.workspace_id, r.platforms), '{}') from ready r),
		'next_wake_ms', (
			select case when isfinite(min(a.ready_at)) then greatest(0, ceil(extract(epoch from min(a.ready_at) - v_now) * 1000))::bigint end
			from armed a))
	into v_answer;
	return v_answer;
end
$$;
