create or replace function autopost.check_integrity(p_workspace_id text) returns jsonb
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: runs report_orphans and checks the chain of the audit log. A finding raises an alert,
--          which ends after a check without findings.
-- Returns: {"day", "orphans"} as report_orphans, and "audit": [up to five faults of the chain].
-- Locks:   alerts.
-- Writes:  alerts.
declare
	v_report jsonb := autopost.report_orphans(p_workspace_id);
	v_audit jsonb;
begin
	perform autopost.enter_workspace(p_workspace_id);
	v_audit := (select coalesce(jsonb_agg(v.found), '[]')
		from (select f.found from autopost.audit_chain_faults(p_workspace_id) f (found) limit 5) v);
	if autopost.is_looking(p_workspace_id, 'integrity') then
		perform autopost.settle_alerts(p_workspace_id, 'integrity', array(
			select autopost.finding('orphans', o.value ->> 'kind', (o.value ->> 'count')::numeric, 1,
				format('%s rows of %s refer to nothing: %s', o.value ->> 'count', o.value ->> 'kind',
					left((o.value -> 'sample')::text, 300)))
			from jsonb_array_elements(v_report -> 'orphans') o
			union all
			select autopost.finding('audit_chain', 'audit_log', 1, 1, 'the audit log is not as it was written: ' ||
				left((v_audit -> 0)::text, 300))
			where v_audit <> '[]'));
	end if;
	return v_report || jsonb_build_object('audit', v_audit);
end
$$;
