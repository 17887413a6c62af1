create or replace function autopost.move_occurrence(p_workspace_id text, p_recurrence_id uuid, p_occurrence_id uuid,
	p_at timestamptz, p_operator text, p_reason text, p_dry_run boolean) returns jsonb
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: moves one expected occurrence to another instant, or skips it if p_at is null.
-- Returns: {"applied": true, "dry_run", "before": {"at", "status"}, "after"}, or {"applied": false,
--          "dry_run", "reason"}: unknown_occurrence, not_expected (it is a post or was skipped), or invalid
--          with "errors": [{"field", "reason", "remedy"}].
-- Raises:  AP001 for a wrong argument.
-- Locks:   recurrences, audit_heads.
-- Writes:  occurrences, recurrences, events (occurrence_skipped), admin_audit_log.
declare
	v_act jsonb;
	v_occurrence autopost.occurrences;
	v_before jsonb;
	v_after jsonb;
	v_now timestamptz;
begin
	perform autopost.enter_workspace(p_workspace_id);
	v_act := autopost.manual_act(p_operator, p_reason, p_dry_run);
	perform autopost.require_argument('recurrence_id', p_recurrence_id is not null);
	perform autopost.require_argument('occurrence_id', p_occurrence_id is not null);
	perform 1 from autopost.recurrences r
	where r.workspace_id = p_workspace_id and r.recurrence_id = p_recurrence_id for no key update;
	select o.* into v_occurrence from autopost.occurrences o
	where o.workspace_id = p_workspace_id and o.recurrence_id = p_recurrence_id and o.occurrence_id = p_occurrence_id;
	if v_occurrence.occurrence_id is null or v_occurrence.status <> 'expected' then
		return jsonb_build_object('applied', false, 'dry_run', p_dry_run, 'reason', case
			when v_occurrence.occurrence_id is null then 'unknown_occurrence' else 'not_expected' end);
	elsif p_at <= autopost.now_ts() or p_at > autopost.now_ts() + interval '2 years' then
		return jsonb_build_object('applied', false, 'dry_run', p_dry_run, 'reason', 'invalid', 'errors',
			autopost.field_error('at', 'must be in the future, at most two years ahead', 'choose another time'));
	end if;
	v_before := jsonb_build_object('at', autopost.utc(v_occurrence.at), 'status', 'expected');
	v_after := case when p_at is null then jsonb_build_object('at', autopost.utc(v_occurrence.at), 'status', 'skipped')
		else jsonb_build_object('at', autopost.utc(p_at), 'status', 'expected') end;
	if not p_dry_run then
		v_now := autopost.now_ts();
		update autopost.occurrences o
		set at = coalesce(p_at, o.at), moved = o.moved or p_at is not null, updated_at = v_now,
			status = case when p_at is null then 'skipped' else o.status end,
			reason = case when p_at is null then 'person' end
		where o.workspace_id = p_workspace_id and o.occurrence_id = p_occurrence_id;
		perform autopost.emit_note(p_workspace_id, 'occurrence_skipped', 'ok', null, null, null, v_act
			|| jsonb_build_object('recurrence_id', p_recurrence_id, 'cause', 'person', 'occurrences', 1,
				'first_at', v_before -> 'at', 'last_at', v_before -> 'at')) where p_at is null;
		perform autopost.arm_recurrence(p_workspace_id, p_recurrence_id);
		perform autopost.audit(p_workspace_id, case when p_at is null then 'skip_occurrence' else 'move_occurrence' end,
			'occurrence:' || p_occurrence_id, v_act, v_before, v_after);
	end if;
	return jsonb_build_object('applied', true, 'dry_run', p_dry_run, 'before', v_before, 'after', v_after);
end
$$;
