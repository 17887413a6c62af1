create or replace function autopost.put_sealed_secret(
	p_workspace_id text, p_auth_ref text, p_platform text, p_sealed jsonb, p_made_by text, p_valid_seconds int,
	p_operator text, p_reason text, p_dry_run boolean, p_hosts text[] default null
) returns jsonb
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: stores a sealed secret from an operator ("set") or from an authorisation on the platform
--          ("link"), and binds the credential to it. p_sealed: see sealed_of; its version is
--          last_version of get_credential plus 1. p_valid_seconds: its lifetime, null if unknown. A
--          linked secret is renewed before it expires, a set one only after a refusal. Channels
--          that wait because of the old secret resume. p_hosts: the hosts that get a secret of platform
--          http; null: as before. Only the engine may call it.
-- Returns: {"applied": true, "dry_run", "created", "version", "resumed": channels, "auth_lost":
--          number of deliveries for requeue_auth_lost}; or {"applied": false, "dry_run", "reason":
--          "other_platform" with "platform", or "newer": a concurrent change}.
-- Raises:  AP001 for a wrong argument.
-- Locks:   credential_bindings, credential_health, channels (channel_id), channel_gates.
-- Reads:   platforms.
-- Writes:  credential_bindings, credential_health, sealed_secrets, alerts, channels, channel_gates,
--          events(auth_rotated, channel_enabled), admin_audit_log.
declare
	v_act jsonb;
	v_new autopost.sealed_secrets;
	v_old autopost.credential_bindings;
	v_answer jsonb;
begin
	perform autopost.enter_workspace(p_workspace_id);
	v_act := autopost.manual_act(p_operator, p_reason, p_dry_run);
	perform autopost.require_argument('auth_ref', p_auth_ref <> ''),
		autopost.require_argument('platform', p_platform <> '');
	if p_platform <> all (autopost.credential_platforms()) then
		perform autopost.raise_argument('platform', format('%s is unknown', p_platform),
			'use ' || array_to_string(autopost.credential_platforms(), ', '));
	end if;
	v_new := autopost.sealed_of(p_sealed);
	if coalesce(p_made_by not in ('set', 'link'), true) then
		perform autopost.raise_argument('made_by', 'must be set or link', 'pass set or link');
	elsif p_valid_seconds <= 0 then
		perform autopost.raise_argument('valid_seconds', 'must be positive',
			'pass the lifetime of the secret, or null');
	end if;
	select b.* into v_old from autopost.credential_bindings b
	where b.workspace_id = p_workspace_id and b.auth_ref = p_auth_ref
	for no key update of b;
	perform autopost.check_new_id('auth_ref', p_auth_ref) where v_old.auth_ref is null;
	if v_old.platform <> p_platform then
		return jsonb_build_object('applied', false, 'dry_run', p_dry_run, 'reason', 'other_platform', 'platform',
			v_old.platform);
	elsif v_new.version <> coalesce((autopost.lock_credential(p_workspace_id, p_auth_ref)).last_version, 0) + 1 then
		return jsonb_build_object('applied', false, 'dry_run', p_dry_run, 'reason', 'newer');
	end if;
	p_hosts := coalesce(p_hosts, v_old.hosts);
	if autopost.hosts_fault(p_platform, p_hosts) is not null then
		perform autopost.raise_argument('hosts', autopost.hosts_fault(p_platform, p_hosts), autopost.hosts_remedy());
	end if;
	v_answer := jsonb_build_object('applied', true, 'dry_run', p_dry_run, 'created', v_old.auth_ref is null, 'version',
		v_new.version);
	if p_dry_run then
		return v_answer;
	end if;
	insert into autopost.credential_bindings (workspace_id, auth_ref, platform, secret_ref, hosts, rotated_at, updated_at)
	values (p_workspace_id, p_auth_ref, p_platform, 'sealed:' || p_auth_ref, p_hosts, autopost.now_ts(),
		autopost.now_ts())
	on conflict (workspace_id, auth_ref) do update
	set secret_ref = excluded.secret_ref, hosts = excluded.hosts, rotated_at = excluded.rotated_at, updated_at = excluded.updated_at;
	perform autopost.reset_credential(p_workspace_id, p_auth_ref);
	perform autopost.put_in_force(p_workspace_id, p_auth_ref, v_new);
	perform autopost.refreshed(p_workspace_id, p_auth_ref, p_valid_seconds);
	if p_made_by = 'set' then
		update autopost.credential_health h set refreshed_at = null, next_refresh_at = null
		where h.workspace_id = p_workspace_id and h.auth_ref = p_auth_ref;
	end if;
	perform autopost.emit_note(p_workspace_id, 'auth_rotated', 'ok', null, null, null,
		v_act || jsonb_build_object('auth_ref', p_auth_ref, 'version', v_new.version, 'made_by', p_made_by));
	v_answer := v_answer || autopost.resume_for_auth(p_workspace_id, p_auth_ref, v_act);
	perform autopost.audit(p_workspace_id, 'put_sealed_secret', 'credential:' || p_auth_ref, v_act,
		jsonb_strip_nulls(jsonb_build_object('kept', v_old.secret_ref, 'hosts', v_old.hosts)),
		jsonb_strip_nulls(jsonb_build_object('kept', 'sealed:' || p_auth_ref, 'version', v_new.version, 'hosts', p_hosts)));
	return v_answer;
end
$$;
