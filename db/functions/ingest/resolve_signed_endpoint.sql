create or replace function autopost.resolve_signed_endpoint(p_signed_at timestamptz, p_workspace_id text,
	p_endpoint_id text) returns jsonb
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: finds the enabled endpoint for signed requests with this name, in a workspace that is
--          not disabled. For the engine only: the name is not secret, and the request is not
--          verified yet.
-- Returns: {"workspace_id", "endpoint_id", "max_payload_bytes", "auth_refs": credentials of the
--          valid keys, newest first, "bound": get_credential of each, "skew_seconds": the database's time minus p_signed_at,
--          "tolerance_seconds", "fresh": true if the skew is tolerable}; null without a reason if
--          not found.
-- Reads:   workspace_endpoints, workspaces, as get_credential.
declare
	v_now timestamptz := autopost.now_ts();
	v_tolerance constant interval := interval '5 minutes'; -- as Standard Webhooks recommends
	v_answer jsonb;
begin
	perform autopost.enter_all_workspaces();
	perform autopost.require_argument('signed_at', isfinite(p_signed_at)),
		autopost.require_argument('workspace_id', p_workspace_id is not null),
		autopost.require_argument('endpoint_id', p_endpoint_id is not null);
	if not autopost.may_access(p_workspace_id) then
		return null;
	end if;
	select jsonb_build_object('workspace_id', e.workspace_id, 'endpoint_id', e.endpoint_id, 'max_payload_bytes',
		e.max_payload_bytes,
		'skew_seconds', round(extract(epoch from v_now - p_signed_at)), 'tolerance_seconds',
			round(extract(epoch from v_tolerance)),
		'fresh', p_signed_at between v_now - v_tolerance and v_now + v_tolerance,
		'auth_refs', coalesce(k.auth_refs, '[]'), 'bound', coalesce(k.bound, '[]'))
	into v_answer
	from autopost.workspace_endpoints e
	join autopost.workspaces w on w.workspace_id = p_workspace_id
	cross join lateral (
		select jsonb_agg(b.auth_ref order by b.auth_ref <> e.signing_ref) as auth_refs,
			jsonb_agg(autopost.credential_of(p_workspace_id, b.auth_ref) order by b.auth_ref <> e.signing_ref) as bound
		from autopost.credential_bindings b
		where b.workspace_id = p_workspace_id and b.platform = 'webhook'
		and (b.auth_ref = e.signing_ref or (b.auth_ref = e.old_signing_ref and e.old_signing_until > v_now))) k
	where e.workspace_id = p_workspace_id and e.endpoint_id = p_endpoint_id and e.kind = 'webhook_push' and e.enabled
	and e.signing_ref is not null and w.status <> 'disabled';
	return v_answer;
end
$$;
