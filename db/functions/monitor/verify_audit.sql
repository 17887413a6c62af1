create or replace function autopost.verify_audit(p_workspace_id text, p_head jsonb) returns jsonb
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: checks the chain of the audit log from its oldest row to its head. p_head, or null, is an
--          earlier answer of audit_head that was kept outside: the chain must contain it.
-- Returns: {"ok", "rows", "seq", "hash", "faults": [{"what", "seq", "id"}, the first 100]}.
-- Raises:  AP001 for a wrong head.
-- Reads:   admin_audit_log, audit_heads.
declare
	v_faults jsonb;
begin
	perform autopost.enter_workspace(p_workspace_id);
	if p_head is not null
		and not coalesce(jsonb_typeof(p_head -> 'seq') = 'number' and p_head ->> 'hash' ~ '^[0-9a-f]{64}$', false) then
		perform autopost.raise_argument('head', 'must have seq and hash', 'pass an answer of audit_head');
	end if;
	v_faults := (select coalesce(jsonb_agg(f.fault), '[]')
		from (select x.fault from autopost.audit_chain_faults(p_workspace_id) x (fault) limit 100) f);
	if (p_head ->> 'seq')::numeric > 0 and not exists (
		select 1 from autopost.admin_audit_log l
		where l.workspace_id = p_workspace_id and l.seq = (p_head ->> 'seq')::numeric and l.hash = p_head ->> 'hash')
	then
		v_faults := v_faults || jsonb_build_object('what', 'the row of the given head is missing or was changed',
			'seq', p_head -> 'seq', 'id', null);
	end if;
	return autopost.audit_head(p_workspace_id) || jsonb_build_object('ok', v_faults = '[]', 'faults', v_faults, 'rows',
		(select count(*) from autopost.admin_audit_log l where l.workspace_id = p_workspace_id));
end
$$;
