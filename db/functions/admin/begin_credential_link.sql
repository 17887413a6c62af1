create or replace function autopost.begin_credential_link(p_workspace_id text, p_auth_ref text, p_fields jsonb,
	p_operator text, p_reason text) returns jsonb
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: stores what the answer of a platform about an account needs, for ten minutes: {"platform",
--          "state_hash": the SHA-256 of the state in the address, "redirect", "sealed": the app and the
--          verifier as sealed_of takes them, "requeue": send again what failed}. It removes what is older.
--          Only the engine may call it.
-- Returns: {"applied": true, "expires_at"}; or {"applied": false, "reason": "other_platform", "platform"}.
-- Raises:  AP001 for a wrong argument.
-- Locks:   audit_heads.
-- Reads:   credential_bindings.
-- Writes:  credential_links, admin_audit_log.
declare
	v_act jsonb;
	v_until timestamptz := autopost.now_ts() + interval '10 minutes';
	v_bound text;
	v_now timestamptz;
begin
	perform autopost.enter_workspace(p_workspace_id);
	v_act := autopost.manual_act(p_operator, p_reason, false);
	perform autopost.require_argument('auth_ref', p_auth_ref <> ''),
		autopost.require_argument('fields', jsonb_typeof(p_fields) = 'object'),
		autopost.require_argument('platform', p_fields ->> 'platform' in ('x', 'youtube')),
		autopost.require_argument('redirect', p_fields ->> 'redirect' <> ''),
		autopost.check_token_hash(p_fields ->> 'state_hash'), autopost.sealed_of(p_fields -> 'sealed');
	select b.platform into v_bound from autopost.credential_bindings b
	where b.workspace_id = p_workspace_id and b.auth_ref = p_auth_ref;
	perform autopost.check_new_id('auth_ref', p_auth_ref) where v_bound is null;
	if v_bound <> p_fields ->> 'platform' then
		return jsonb_build_object('applied', false, 'reason', 'other_platform', 'platform', v_bound);
	end if;
	v_now := autopost.now_ts();
	delete from autopost.credential_links l
	where l.workspace_id = p_workspace_id and l.expires_at <= v_now;
	insert into autopost.credential_links (workspace_id, state_hash, auth_ref, platform, redirect, sealed, requeue,
		operator, reason, expires_at)
	values (p_workspace_id, p_fields ->> 'state_hash', p_auth_ref, p_fields ->> 'platform', p_fields ->> 'redirect',
		p_fields -> 'sealed', coalesce((p_fields -> 'requeue')::boolean, false), p_operator, p_reason, v_until);
	perform autopost.audit(p_workspace_id, 'begin_credential_link', 'credential:' || p_auth_ref, v_act, '{}',
		jsonb_build_object('platform', p_fields ->> 'platform', 'redirect', p_fields ->> 'redirect'));
	return jsonb_build_object('applied', true, 'expires_at', v_until);
end
$$;
