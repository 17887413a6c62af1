create or replace function autopost.purge_audit_log(p_workspace_id text) returns jsonb
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: deletes up to 5,000 oldest consecutive rows of the audit log past audit_retention_days.
--          The chain continues from the seal of the last deleted row.
-- Returns: {"purged", "more"}.
-- Locks:   audit_heads.
-- Writes:  admin_audit_log, audit_heads.
declare
	v_before timestamptz;
	v_base bigint;
	v_last bigint;
begin
	perform autopost.enter_workspace(p_workspace_id);
	select h.base_seq into v_base from autopost.audit_heads h
		where h.workspace_id = p_workspace_id for no key update of h;
	v_before := autopost.kept_from('audit_retention_days');
	select max(x.seq) into v_last
	from (
		select l.seq, bool_and(l.ts < v_before) over (order by l.seq)
			and l.seq = v_base + row_number() over (order by l.seq) as past
		from autopost.admin_audit_log l
		where l.workspace_id = p_workspace_id and l.seq between v_base + 1 and v_base + 5000) x
	where x.past;
	if v_last is null then
		return '{"purged": 0, "more": false}';
	end if;
	update autopost.audit_heads h
	set base_seq = v_last, base_hash = (
		select l.hash from autopost.admin_audit_log l where l.workspace_id = p_workspace_id and l.seq = v_last)
	where h.workspace_id = p_workspace_id;
	delete from autopost.admin_audit_log l
	where l.workspace_id = p_workspace_id and l.seq between v_base + 1 and v_last;
	return jsonb_build_object('purged', v_last - v_base, 'more', v_last = v_base + 5000);
end
$$;
