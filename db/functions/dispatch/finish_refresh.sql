create or replace function autopost.finish_refresh(p_workspace_id text, p_auth_ref text, p_sealed jsonb,
	p_valid_seconds int) returns jsonb
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: puts the renewed secret in force. p_sealed: {"version": from begin_refresh, "key_id",
--          "wrapped_key", "sealed": base64, "source"}. It counts after the end of the lease too,
--          unless a newer secret exists, because the old secret may no longer be valid.
--          p_valid_seconds: how long it is valid, or null if unknown. Channels that wait for this
--          credential resume. Repeatable with the same answer. For the engine only.
-- Returns: {"applied": true, "valid_until", "resumed", "auth_lost": as put_sealed_secret}, or
--          {"applied": false, "reason": "unknown" | "newer"}.
-- Locks:   credential_health, channels (channel_id), channel_gates.
-- Writes:  credential_health, sealed_secrets, alerts, channels, channel_gates, events
--          (auth_refreshed, channel_enabled).
declare
	v_new autopost.sealed_secrets;
	v_health autopost.credential_health;
	v_meta jsonb;
	v_until timestamptz;
begin
	perform autopost.enter_workspace(p_workspace_id);
	v_new := autopost.sealed_of(p_sealed);
	if p_valid_seconds <= 0 then
		perform autopost.raise_argument('valid_seconds', 'must be positive',
			'pass the validity of the new secret in seconds, or null');
	end if;
	v_health := autopost.lock_credential(p_workspace_id, p_auth_ref);
	if v_health.auth_ref is null then
		return '{"applied": false, "reason": "unknown"}';
	elsif (select s.sealed = v_new.sealed from autopost.sealed_in_force(p_workspace_id, p_auth_ref) s) then
		return jsonb_strip_nulls(jsonb_build_object('applied', true, 'valid_until', v_health.valid_until));
	elsif v_new.version <> v_health.last_version + 1 then
		return '{"applied": false, "reason": "newer"}';
	end if;
	perform autopost.put_in_force(p_workspace_id, p_auth_ref, v_new);
	perform autopost.forgive_credential(p_workspace_id, p_auth_ref);
	v_until := autopost.refreshed(p_workspace_id, p_auth_ref, p_valid_seconds);
	v_meta := jsonb_build_object('auth_ref', p_auth_ref, 'version', v_new.version, 'valid_until', v_until);
	perform autopost.emit_note(p_workspace_id, 'auth_refreshed', 'ok', null, null, null, v_meta);
	return jsonb_strip_nulls(jsonb_build_object('applied', true, 'valid_until', v_until)
		|| case when v_health.lost_at is not null then autopost.resume_for_auth(p_workspace_id, p_auth_ref, v_meta)
			else '{}' end);
end
$$;
