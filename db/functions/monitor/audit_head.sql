create or replace function autopost.audit_head(p_workspace_id text) returns jsonb
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: the end of the audit log's chain. An external copy shows later if earlier rows were
--          changed or removed.
-- Returns: {"seq", "hash"}; seq is 0 for an empty log.
-- Reads:   audit_heads.
begin
	perform autopost.enter_workspace(p_workspace_id);
	return coalesce(
		(select jsonb_build_object('seq', h.seq, 'hash', h.hash) from autopost.audit_heads h
			where h.workspace_id = p_workspace_id),
		jsonb_build_object('seq', 0, 'hash', repeat('0', 64)));
end
$$;
