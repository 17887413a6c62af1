create or replace function autopost.get_credential_binding(p_workspace_id text, p_auth_ref text) returns jsonb
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Where a credential's secret is kept: {"platform", "secret_ref"}, or null. The engine alone may ask.
-- Reads: credential_bindings.
declare
	v_answer jsonb;
begin
	perform autopost.enter_workspace(p_workspace_id);
	select jsonb_build_object('platform', b.platform, 'secret_ref', b.secret_ref) into v_answer from autopost.credential_bindings b
	where b.workspace_id = p_workspace_id and b.auth_ref = p_auth_ref;
	return v_answer;
end
$$;
