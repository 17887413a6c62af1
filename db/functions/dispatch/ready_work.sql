create or replace function autopost.ready_work(p_after text, p_limit int, p_capacity jsonb) returns jsonb
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: lists the workspaces with deliveries that the daemon can claim now, starting after
--          p_after, the last served one, and wrapping around. p_capacity: as in claim_within, also
--          by "workspace_id"; a group without free capacity is left out.
-- Returns: {"workspaces": ["…"], "platforms": {workspace: ["…"]}, "next_wake_ms"}: the platforms
--          with work of each workspace; how long the daemon may sleep: 0 = now, null = nothing
--          waits.
-- Reads:   as armed_parts.
declare
	v_now timestamptz;
	v_answer jsonb;
begin
	perform autopost.enter_all_workspaces();
	perform autopost.require_argument('after', p_after is not null), autopost.require_argument('limit', p_limit > 0),
		autopost.require_argument('capacity', jsonb_typeof(p_capacity) = 'array');
	v_now := autopost.now_ts();
	with armed as materialized (
		select r.workspace_id, r.platform, min(r.ready_at) as ready_at from autopost.armed_parts(p_capacity) r
		group by r.workspace_id, r.platform
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
			select case when isfinite(min(a.ready_at))
				then greatest(0, ceil(extract(epoch from min(a.ready_at) - v_now) * 1000))::bigint end
			from armed a))
	into v_answer;
	return v_answer;
end
$$;
