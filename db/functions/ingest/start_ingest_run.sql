create or replace function autopost.start_ingest_run(p_workspace_id text, p_kind text, p_endpoint_id text,
	p_source_id text) returns jsonb
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: opens a run of push or pull for a caller with several calls.
-- Returns: {"run_id"}.
begin
	perform autopost.enter_workspace(p_workspace_id);
	return jsonb_build_object('run_id', autopost.open_run(p_workspace_id, p_kind, p_endpoint_id, p_source_id));
end
$$;
