create or replace function autopost.begin_refresh(p_workspace_id text, p_auth_ref text, p_version int, p_source text,
	p_refused jsonb, p_run_id text default null) returns jsonb
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: asks for the right to renew a secret: the sealed one of p_version, or for version 0 the
--          unsealed one with the digest p_source ('' if a sealed secret has no digest). p_refused
--          is the failure (error contract) that made it necessary, or null to renew ahead of time.
--          One renewal runs at a time: the grant is a lease that finish_refresh or fail_refresh
--          ends, or the silence of the run p_run_id (end_silent_leases). For the engine only.
-- Returns: {"granted": true, "token", "version": for the new secret, "wait_ms": duration of the
--          lease}, or {"granted": false, "reason"}: "unknown"; "other": the failure does not
--          concern the credential; "newer": a newer secret is in force; "leased": another caller
--          renews, ask again after wait_ms; "waiting": the last try failed, the next is allowed
--          after wait_ms; "lost": the platform refused this secret. "waiting" and "lost" include
--          "error".
-- Locks:   credential_health.
-- Reads:   sealed_secrets.
-- Writes:  credential_health.
declare
	v_health autopost.credential_health;
	v_sealed autopost.sealed_secrets;
	v_now timestamptz;
	v_token text;
begin
	perform autopost.enter_workspace(p_workspace_id);
	perform autopost.require_argument('version', p_version >= 0),
		autopost.require_argument('source', p_source is not null);
	v_health := autopost.lock_credential(p_workspace_id, p_auth_ref);
	v_now := autopost.now_ts();
	v_sealed := autopost.sealed_in_force(p_workspace_id, p_auth_ref);
	if v_health.auth_ref is null then
		return '{"granted": false, "reason": "unknown"}';
	elsif p_refused is not null and not autopost.is_auth_lost(p_refused) then
		return '{"granted": false, "reason": "other"}';
	elsif v_sealed.version > p_version and (p_version > 0 or v_sealed.source = p_source) then
		return '{"granted": false, "reason": "newer"}';
	elsif v_health.lost_version = p_version and v_health.lost_source = p_source then
		return jsonb_build_object('granted', false, 'reason', 'lost', 'error', v_health.error);
	elsif v_health.lease_until > v_now then
		return jsonb_build_object('granted', false, 'reason', 'leased', 'wait_ms',
			autopost.milliseconds(v_health.lease_until - v_now));
	elsif v_health.failures > 0 and v_health.next_refresh_at > v_now then
		return jsonb_build_object('granted', false, 'reason', 'waiting', 'wait_ms',
			autopost.milliseconds(v_health.next_refresh_at - v_now), 'error', v_health.error);
	end if;
	v_token := autopost.new_id()::text;
	update autopost.credential_health h
	set lease_token = v_token, lease_until = v_now + autopost.setting_interval('auth_refresh_lease_seconds'),
		leased_by = p_run_id
	where h.workspace_id = p_workspace_id and h.auth_ref = p_auth_ref;
	return jsonb_build_object('granted', true, 'token', v_token, 'version', v_health.last_version + 1,
		'wait_ms', autopost.milliseconds(autopost.setting_interval('auth_refresh_lease_seconds')));
end
$$;
