create or replace function autopost.resolve_signed_endpoint(p_signed_at timestamptz, p_workspace_id text, p_endpoint_id text) returns jsonb
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- The enabled endpoint of that name that takes signed requests, in a workspace that is not disabled: {"workspace_id", "endpoint_id",
-- "max_payload_bytes", "auth_refs": the credentials of the keys that are good now, the newest first, "skew_seconds": how far the database's clock is
-- past p_signed_at, "tolerance_seconds", "fresh": whether that is near enough}; null for anything else, with no word on why. The engine alone
-- may ask: a name is no secret, and whoever calls has proven nothing yet. Looks across workspaces.
-- Reads: workspace_endpoints, workspaces, credential_bindings.
declare
	v_now timestamptz := autopost.now_ts();
	v_tolerance interval := autopost.setting_interval('signature_tolerance_seconds');
	v_answer jsonb;
begin
	perform autopost.enter_all_workspaces();
	perform autopost.require('signed_at', isfinite(p_signed_at)), autopost.require('workspace_id', p_workspace_id is not null),
		autopost.require('endpoint_id', p_endpoint_id is not null);
	select jsonb_build_object('workspace_id', e.workspace_id, 'endpoint_id', e.endpoint_id, 'max_payload_bytes', e.max_payload_bytes,
		'skew_seconds', round(extract(epoch from v_now - p_signed_at)), 'tolerance_seconds', round(extract(epoch from v_tolerance)),
		'fresh', p_signed_at between v_now - v_tolerance and v_now + v_tolerance,
		'auth_refs', (
			select coalesce(jsonb_agg(b.auth_ref order by b.auth_ref <> e.signing_ref), '[]') from autopost.credential_bindings b
			where b.workspace_id = e.workspace_id and b.platform = 'webhook'
			and (b.auth_ref = e.signing_ref or (b.auth_ref = e.old_signing_ref and e.old_signing_until > v_now))))
	into v_answer
	from autopost.workspace_endpoints e
	join autopost.workspaces w on w.workspace_id = e.workspace_id
	where e.workspace_id = p_workspace_id and e.endpoint_id = p_endpoint_id and e.kind = 'webhook_push' and e.enabled
	and e.signing_ref is not null and w.status <> 'disabled'
	and autopost.may_speak_for(e.workspace_id);
	return v_answer;
end
$$;
