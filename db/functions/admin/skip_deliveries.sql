create or replace function autopost.skip_deliveries(p_workspace_id text, p_delivery_ids uuid[], p_operator text,
	p_reason text, p_dry_run boolean) returns jsonb
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: queued or retry (also held) -> dead, by an operator: the delivery is not sent unless
--          manual_requeue restores it.
-- Returns: {"applied", "dry_run", "skipped", "results": [{"delivery_id", "applied", "before",
--          "after" | "reason": "unknown_delivery" | "not_waiting"}]}, ordered by id, each id once.
--          A dry run changes nothing and has the same answer.
-- Raises:  AP001 without operator or reason.
-- Locks:   channels, deliveries.
-- Writes:  deliveries, events(manual_skip), admin_audit_log.
declare
	v_meta jsonb;
	v_id uuid;
	v_delivery autopost.deliveries;
	v_reason text;
	v_results jsonb := '[]';
	v_skipped jsonb;
	v_now timestamptz;
begin
	perform autopost.enter_workspace(p_workspace_id);
	v_meta := autopost.manual_act(p_operator, p_reason, p_dry_run);
	perform autopost.require_argument('delivery_ids', cardinality(p_delivery_ids) > 0);
	perform autopost.lock_for_commit(p_workspace_id, p_delivery_ids, false) where not p_dry_run;
	for v_id in select u.id from unnest(p_delivery_ids) with ordinality u (id, n) group by u.id order by min(u.n) loop
		select d.* into v_delivery from autopost.deliveries d
			where d.workspace_id = p_workspace_id and d.delivery_id = v_id;
		v_reason := case when v_delivery.delivery_id is null then 'unknown_delivery'
			when v_delivery.status not in ('queued', 'retry') then 'not_waiting' end;
		if v_reason is null and not p_dry_run then
			v_now := autopost.now_ts();
			update autopost.deliveries d
			set status = 'dead', next_retry_at = null, finished_at = v_now, updated_at = v_now,
				last_error = autopost.normalised_error(jsonb_build_object('category', 'PERMANENT', 'scope', 'delivery',
					'code', 'manual_skip', 'known', true, 'message', p_reason))
			where d.workspace_id = p_workspace_id and d.delivery_id = v_id;
			perform autopost.emit_event(p_workspace_id, 'manual_skip', 'ok', v_delivery, null,
				v_meta || jsonb_build_object('from_status', v_delivery.status));
		end if;
		v_results := v_results || jsonb_strip_nulls(jsonb_build_object('delivery_id', v_id, 'applied', v_reason is null,
			'reason', v_reason,
			'before', v_delivery.status, 'after', case when v_reason is null then 'dead' end));
	end loop;
	v_skipped := jsonb_path_query_array(v_results, '$[*] ? (@.applied == true)');
	if v_skipped <> '[]' and not p_dry_run then
		perform autopost.audit(p_workspace_id, 'skip_deliveries', 'deliveries', v_meta,
			autopost.changed(v_skipped, 'delivery_id', 'before'), autopost.changed(v_skipped, 'delivery_id', 'after'));
	end if;
	return jsonb_build_object('applied', v_skipped <> '[]', 'dry_run', p_dry_run, 'skipped',
		jsonb_array_length(v_skipped), 'results', v_results);
end
$$;
