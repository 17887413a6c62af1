create or replace function autopost.fail_refresh(
	p_workspace_id text, p_auth_ref text, p_token text, p_version int, p_source text, p_error jsonb
) returns jsonb
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: ends a renewal that begin_refresh granted with p_error (the error contract). If the
--          platform refuses the credential, its channels pause at once with one event and one
--          alert, and this secret is not renewed again. Any other failure waits as its retry policy
--          says. For the engine only.
-- Returns: {"applied": true, "lost", "paused": channels}, or {"applied": false, "reason": "unknown"
--          | "stale"}.
-- Locks:   credential_health, channels (channel_id), deliveries (skip locked).
-- Writes:  credential_health, channels, deliveries, alerts, events (auth_lost, channel_paused,
--          failed_permanent).
declare
	v_health autopost.credential_health;
	v_lost boolean;
	v_paused text[];
begin
	perform autopost.enter_workspace(p_workspace_id);
	perform autopost.require_argument('token', p_token <> ''), autopost.require_argument('version', p_version >= 0),
		autopost.require_argument('source', p_source is not null);
	perform autopost.require_argument('error', jsonb_typeof(p_error) = 'object');
	v_health := autopost.lock_credential(p_workspace_id, p_auth_ref);
	if v_health.auth_ref is null then
		return '{"applied": false, "reason": "unknown"}';
	elsif v_health.lease_token is distinct from p_token then
		return '{"applied": false, "reason": "stale"}';
	end if;
	v_lost := autopost.is_auth_lost(p_error);
	perform autopost.record_refresh_failure(p_workspace_id, v_health, p_error);
	if v_lost then
		update autopost.credential_health h set lost_version = p_version, lost_source = p_source
		where h.workspace_id = p_workspace_id and h.auth_ref = p_auth_ref;
		v_health.failures := v_health.failures + 1;
		perform autopost.note_auth_lost(p_workspace_id, v_health, p_error);
		v_paused := autopost.pause_credential(p_workspace_id, p_auth_ref, p_error);
	end if;
	return jsonb_build_object('applied', true, 'lost', v_lost, 'paused', coalesce(cardinality(v_paused), 0));
end
$$;
