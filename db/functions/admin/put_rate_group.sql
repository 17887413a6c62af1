create or replace function autopost.put_rate_group(
	p_workspace_id text, p_platform text, p_rate_group text, p_fields jsonb, p_operator text, p_reason text,
		p_dry_run boolean
) returns jsonb
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: sets the limit that the channels of a rate group share. p_fields: rate_rps, messages per
--          second; 0 removes the limit, null restores that of the platform, which a new group has. A
--          group exists once a channel names it.
-- Returns: {"applied": true, "dry_run", "created", "before", "after"}, or {"applied": false,
--          "dry_run"} with reason unchanged, or invalid and "errors": [{"field", "reason",
--          "remedy"}].
-- Raises:  AP001 for a wrong argument.
-- Locks:   workspaces, platform_limits.
-- Reads:   platforms.
-- Writes:  platform_limits, admin_audit_log.
declare
	v_act jsonb;
	v_rules constant jsonb := '{"rate_rps": {"is": "number", "default": 0, "min": 0, "max": 1000000, "remedy": "write messages a second, 0 for no limit"}}';
	v_known boolean;
	v_rps numeric;
	v_put jsonb;
	v_answer jsonb;
begin
	perform autopost.enter_workspace(p_workspace_id);
	v_act := autopost.manual_act(p_operator, p_reason, p_dry_run);
	perform autopost.require_platform(p_platform), autopost.require_argument('rate_group', p_rate_group <> '');
	if p_fields -> 'rate_rps' = 'null' then
		p_fields := p_fields || jsonb_build_object('rate_rps', coalesce(autopost.platform_rate(p_platform), 0));
	end if;
	if not p_dry_run then
		perform autopost.lock_configuration(p_workspace_id);
		perform 1 from autopost.platform_limits l
		where l.workspace_id = p_workspace_id and l.platform = p_platform
			and l.rate_group = p_rate_group for no key update of l;
	end if;
	select true, l.rate_rps into v_known, v_rps from autopost.platform_limits l
	where l.workspace_id = p_workspace_id and l.platform = p_platform and l.rate_group = p_rate_group;
	v_put := autopost.put_row(p_fields, v_rules, jsonb_build_object('rate_rps',
		coalesce(case when v_known then v_rps else autopost.platform_rate(p_platform) end, 0)))
		|| jsonb_build_object('created', v_known is null);
	v_answer := autopost.put_answer(v_put, null, p_dry_run);
	if v_answer -> 'applied' = 'true' and not p_dry_run then
		insert into autopost.platform_limits (workspace_id, platform, rate_group, rate_rps, updated_at)
		values (p_workspace_id, p_platform, p_rate_group, nullif((v_put -> 'after' ->> 'rate_rps')::numeric, 0),
			autopost.now_ts())
		on conflict (workspace_id, platform, rate_group) do update set rate_rps = excluded.rate_rps,
			updated_at = excluded.updated_at;
		perform autopost.audit(p_workspace_id, 'put_rate_group', format('group:%s/%s', p_platform, p_rate_group), v_act,
			v_answer -> 'before', v_answer -> 'after');
	end if;
	return v_answer;
end
$$;
