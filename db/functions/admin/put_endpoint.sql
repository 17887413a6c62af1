create or replace function autopost.put_endpoint(
	p_workspace_id text, p_endpoint_id text, p_fields jsonb, p_operator text, p_reason text, p_dry_run boolean
) returns jsonb
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Makes an endpoint, or changes the fields of it that p_fields holds: kind and source_id (of a new one), secret_hash and signing_ref (where it has
-- none; rotate_endpoint exchanges them), enabled, ingress_rps, max_payload_bytes, hash_drop_window_sec, moderated, meta. The secret itself
-- never comes here: secret_hash is its SHA-256, signing_ref the auth_ref of a credential of platform webhook (null takes it away).
-- Returns {"applied": true, "dry_run", "endpoint_id", "created", "before", "after", "bound": whether signing_ref has its credential}, or
-- {"applied": false, "dry_run", "reason": "unchanged" | "secret_in_use" | "source_in_use"}. Raises AP001 for wrong fields.
-- Locks: workspaces, workspace_endpoints, audit_heads. Writes: workspace_endpoints, secret_lookup, admin_audit_log.
declare
	v_act jsonb;
	v_old autopost.workspace_endpoints;
	v_new autopost.workspace_endpoints;
begin
	perform autopost.enter_workspace(p_workspace_id);
	v_act := jsonb_build_object('function', 'put_endpoint', 'meta', autopost.manual_act(p_operator, p_reason, p_dry_run), 'dry_run', p_dry_run);
	perform autopost.check_endpoint_fields(p_fields,
		'{kind,source_id,secret_hash,signing_ref,enabled,ingress_rps,max_payload_bytes,hash_drop_window_sec,moderated,meta}');
	v_old := autopost.endpoint_to_change(p_workspace_id, p_endpoint_id, p_dry_run);
	v_new := v_old;
	if v_old.endpoint_id is null then
		v_new := jsonb_populate_record(v_new, jsonb_build_object('workspace_id', p_workspace_id, 'endpoint_id', p_endpoint_id, 'enabled', true,
			'ingress_rps', 5, 'max_payload_bytes', 262144, 'hash_drop_window_sec', 10, 'moderated', false, 'meta', '{}'::jsonb));
	end if;
	v_new := jsonb_populate_record(v_new, p_fields);
	if v_old.kind <> v_new.kind or v_old.source_id <> v_new.source_id then
		perform autopost.refuse('fields', 'kind and source_id of an endpoint stay', 'make another endpoint and disable this one');
	elsif v_old.secret_hash <> v_new.secret_hash or v_old.signing_ref <> v_new.signing_ref then
		perform autopost.refuse('fields', 'the endpoint has a secret already', 'use rotate_endpoint, which leaves no gap');
	elsif v_new.signing_ref is null then
		v_new.old_signing_ref := null;
		v_new.old_signing_until := null;
	end if;
	perform autopost.check_endpoint(v_new);
	return autopost.change_endpoint(v_old, v_new, v_act);
end
$$;
