create or replace function autopost.rotate_endpoint(
	p_workspace_id text, p_endpoint_id text, p_fields jsonb, p_operator text, p_reason text, p_dry_run boolean
) returns jsonb
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: replaces the secret of an enabled endpoint without a gap. Either {"secret_hash",
--          "new_endpoint_id"}: a copy of the endpoint under another id (default "id-2", "id-3", …)
--          gets the new secret; both accept posts until disable_endpoint disables the old one. The
--          new endpoint knows each source_ref of the old one. Or {"signing_ref", "keep_seconds"}:
--          the endpoint verifies with the new key, and with the previous one for keep_seconds
--          (default: the setting signing_overlap_hours; 0 ends it at once). An endpoint that awaits
--          its first secret keeps its id and is enabled.
-- Returns: as put_endpoint, with endpoint_id of the new secret; further reasons:
--          "unknown_endpoint", "disabled", "id_in_use", "rotating" (a third signing key while two
--          are valid: pass keep_seconds 0).
-- Raises:  AP001 for wrong fields.
-- Locks:   workspaces, workspace_endpoints, audit_heads.
-- Writes:  workspace_endpoints, secret_lookup, admin_audit_log.
declare
	v_act jsonb;
	v_refusal jsonb := jsonb_build_object('applied', false, 'dry_run', p_dry_run);
	v_old autopost.workspace_endpoints;
	v_new autopost.workspace_endpoints;
	v_now timestamptz;
	v_keep interval;
begin
	perform autopost.enter_workspace(p_workspace_id);
	v_act := jsonb_build_object('function', 'rotate_endpoint', 'meta',
		autopost.manual_act(p_operator, p_reason, p_dry_run), 'dry_run', p_dry_run);
	perform autopost.check_rotation(p_fields), autopost.check_new_id('new_endpoint_id', p_fields ->> 'new_endpoint_id');
	v_old := autopost.endpoint_to_change(p_workspace_id, p_endpoint_id, p_dry_run);
	v_new := v_old;
	if v_old.endpoint_id is null then
		return v_refusal || '{"reason": "unknown_endpoint"}';
	elsif v_old.awaits_secret then
		if p_fields ? 'new_endpoint_id' then
			perform autopost.raise_argument('fields', 'must not have new_endpoint_id without an old secret',
				'omit new_endpoint_id');
		end if;
		v_new.secret_hash := p_fields ->> 'secret_hash';
		v_new.signing_ref := p_fields ->> 'signing_ref';
		v_new.enabled := true;
		v_new.awaits_secret := false;
		perform autopost.check_rotated(v_new);
		return autopost.change_endpoint(v_old, v_new, v_act);
	elsif not v_old.enabled then
		return v_refusal || '{"reason": "disabled"}';
	elsif p_fields ? 'secret_hash' then
		v_new.secret_hash := p_fields ->> 'secret_hash';
		v_new.endpoint_id := coalesce(p_fields ->> 'new_endpoint_id',
			autopost.next_endpoint_id(p_workspace_id, p_endpoint_id));
		if exists (select 1 from autopost.workspace_endpoints e
			where e.workspace_id = p_workspace_id and e.endpoint_id = v_new.endpoint_id) then
			return v_refusal || '{"reason": "id_in_use"}';
		end if;
		v_new.rotated_from := p_endpoint_id;
		v_new.old_signing_ref := null;
		v_new.old_signing_until := null;
		perform autopost.check_rotated(v_new);
		return autopost.change_endpoint(null, v_new, v_act);
	end if;
	v_now := autopost.now_ts();
	v_keep := coalesce(make_interval(secs => (p_fields ->> 'keep_seconds')::int),
		autopost.setting_interval('signing_overlap_hours'));
	v_new.signing_ref := p_fields ->> 'signing_ref';
	if v_new.signing_ref = v_old.signing_ref then
		return v_refusal || '{"reason": "unchanged"}';
	elsif v_old.old_signing_until > v_now and v_keep > '0' then
		return v_refusal || jsonb_build_object('reason', 'rotating', 'until', v_old.old_signing_until);
	end if;
	v_new.old_signing_ref := case when v_keep > '0' then v_old.signing_ref end;
	v_new.old_signing_until := case when v_keep > '0' and v_old.signing_ref is not null then v_now + v_keep end;
	perform autopost.check_rotated(v_new);
	return autopost.change_endpoint(v_old, v_new, v_act);
end
$$;
