create or replace function autopost.remove_recurrence(p_workspace_id text, p_recurrence_id uuid, p_operator text,
	p_reason text, p_dry_run boolean) returns jsonb
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: deletes a recurrence with its occurrences. Posts that it made stay.
-- Returns: {"applied": true, "dry_run", "before", "after": {}}, or {"applied": false, "dry_run", "reason":
--          "unknown_recurrence"}.
-- Raises:  AP001 for a wrong argument.
-- Locks:   workspaces, recurrences, audit_heads.
-- Writes:  recurrences, occurrences, admin_audit_log.
declare
	v_act jsonb;
	v_before autopost.recurrences;
begin
	perform autopost.enter_workspace(p_workspace_id);
	v_act := autopost.manual_act(p_operator, p_reason, p_dry_run);
	perform autopost.require_argument('recurrence_id', p_recurrence_id is not null);
	perform autopost.lock_configuration(p_workspace_id) where not p_dry_run;
	select r.* into v_before from autopost.recurrences r
	where r.workspace_id = p_workspace_id and r.recurrence_id = p_recurrence_id;
	if v_before.recurrence_id is null then
		return jsonb_build_object('applied', false, 'dry_run', p_dry_run, 'reason', 'unknown_recurrence');
	elsif not p_dry_run then
		delete from autopost.recurrences r
		where r.workspace_id = p_workspace_id and r.recurrence_id = p_recurrence_id;
		perform autopost.audit(p_workspace_id, 'remove_recurrence', 'recurrence:' || p_recurrence_id, v_act,
			autopost.recurrence_fields(v_before), '{}');
	end if;
	return jsonb_build_object('applied', true, 'dry_run', p_dry_run, 'before', autopost.recurrence_fields(v_before),
		'after', '{}'::jsonb);
end
$$;
