create or replace function autopost.cancel_acts(p_workspace_id text, p_act_ids uuid[], p_operator text, p_reason text,
	p_dry_run boolean) returns jsonb
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: queued or retry -> void, by an operator: cancels waiting post changes.
-- Returns: {"applied", "dry_run", "cancelled", "results": [{"act_id", "applied", "before", "after"
--          | "reason": "unknown_act" | "not_waiting"}]}, ordered by id, each id once.
-- Raises:  AP001 without operator or reason.
-- Locks:   deliveries, post_acts.
-- Writes:  post_acts, events(act_void), admin_audit_log.
declare
	v_meta jsonb;
	v_id uuid;
	v_act autopost.post_acts;
	v_reason text;
	v_results jsonb := '[]';
	v_cancelled jsonb;
begin
	perform autopost.enter_workspace(p_workspace_id);
	v_meta := autopost.manual_act(p_operator, p_reason, p_dry_run);
	perform autopost.require_argument('act_ids', cardinality(p_act_ids) > 0);
	perform autopost.lock_for_commit(p_workspace_id, array(select a.delivery_id from autopost.post_acts a
		where a.workspace_id = p_workspace_id and a.act_id = any (p_act_ids)), false) where not p_dry_run;
	for v_id in select u.id from unnest(p_act_ids) with ordinality u (id, n) group by u.id order by min(u.n) loop
		select a.* into v_act from autopost.post_acts a where a.workspace_id = p_workspace_id and a.act_id = v_id;
		v_reason := case when v_act.act_id is null then 'unknown_act'
			when v_act.status not in ('queued', 'retry') then 'not_waiting' end;
		if v_reason is null and not p_dry_run then
			perform autopost.void_act(v_act, p_reason, v_meta);
		end if;
		v_results := v_results || jsonb_strip_nulls(jsonb_build_object('act_id', v_id, 'applied', v_reason is null,
			'reason', v_reason,
			'before', v_act.status, 'after', case when v_reason is null then 'void' end));
	end loop;
	v_cancelled := jsonb_path_query_array(v_results, '$[*] ? (@.applied == true)');
	if v_cancelled <> '[]' and not p_dry_run then
		perform autopost.audit(p_workspace_id, 'cancel_acts', 'acts', v_meta,
			autopost.changed(v_cancelled, 'act_id', 'before'), autopost.changed(v_cancelled, 'act_id', 'after'));
	end if;
	return jsonb_build_object('applied', v_cancelled <> '[]', 'dry_run', p_dry_run, 'cancelled',
		jsonb_array_length(v_cancelled), 'results', v_results);
end
$$;
