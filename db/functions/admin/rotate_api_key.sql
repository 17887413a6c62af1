create or replace function autopost.rotate_api_key(
	p_workspace_id text, p_key_id uuid, p_secret_hash text, p_overlap_seconds int, p_operator text, p_reason text,
		p_dry_run boolean
) returns jsonb
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: adds a key with a new secret, given by its SHA-256, and the name, role and scopes of
--          another key. The old key ends p_overlap_seconds (0 to 2592000, thirty days) from now,
--          unless it ends earlier; it stays listed.
-- Returns: {"applied": true, "dry_run", "id": of the new key, "before", "after": the old key}; or
--          {"applied": false, "dry_run", "reason": "unknown_key" | "disabled" | "expired"}. A dry
--          run changes nothing and has no id.
-- Raises:  AP001 for a wrong argument.
-- Locks:   api_keys.
-- Writes:  api_keys, secret_lookup, admin_audit_log.
declare
	v_act jsonb;
	v_old autopost.api_keys;
	v_new autopost.api_keys;
	v_reason text;
	v_now timestamptz;
begin
	perform autopost.enter_workspace(p_workspace_id);
	v_act := autopost.manual_act(p_operator, p_reason, p_dry_run);
	perform autopost.require_argument('key_id', p_key_id is not null);
	if coalesce(p_overlap_seconds not between 0 and 2592000, true) then
		perform autopost.raise_argument('overlap_seconds', 'must be between 0 and 2592000',
			'pass the seconds for which both keys work, up to thirty days');
	end if;
	if not p_dry_run then
		perform 1 from autopost.api_keys k where k.workspace_id = p_workspace_id
			and k.key_id = p_key_id for no key update of k;
	end if;
	select k.* into v_old from autopost.api_keys k where k.workspace_id = p_workspace_id and k.key_id = p_key_id;
	v_reason := case when v_old.key_id is null then 'unknown_key' when not v_old.enabled then 'disabled'
		when v_old.expires_at <= autopost.now_ts() then 'expired' end;
	if v_reason is not null then
		return jsonb_build_object('applied', false, 'dry_run', p_dry_run, 'reason', v_reason);
	end if;
	v_new := v_old;
	v_new.expires_at := least(v_old.expires_at, autopost.now_ts() + make_interval(secs => p_overlap_seconds));
	if not p_dry_run then
		v_new.replaced_by := autopost.add_key(v_old, p_secret_hash);
		v_now := autopost.now_ts();
		update autopost.api_keys k
		set expires_at = v_new.expires_at, replaced_by = v_new.replaced_by, updated_at = v_now
		where k.workspace_id = p_workspace_id and k.key_id = p_key_id;
		perform autopost.audit(p_workspace_id, 'rotate_api_key', 'api_key:' || p_key_id, v_act,
			autopost.api_key_shown(v_old), autopost.api_key_shown(v_new));
	end if;
	return jsonb_strip_nulls(jsonb_build_object('applied', true, 'dry_run', p_dry_run, 'id', v_new.replaced_by))
		|| jsonb_build_object('before', autopost.api_key_shown(v_old), 'after', autopost.api_key_shown(v_new));
end
$$;
