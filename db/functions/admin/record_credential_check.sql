create or replace function autopost.record_credential_check(p_workspace_id text, p_auth_ref text, p_check jsonb)
	returns jsonb
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: stores the platform's answer about a credential: {"account", "rights": [{"target",
--          "title", "may_post", "reason"}]}, or {"error"} of the error contract. Pauses or resumes
--          nothing. Only the engine may call it.
-- Returns: {"applied"}, with reason "unknown" if the credential is not bound.
-- Locks:   credential_health.
-- Writes:  credential_health.
declare
	v_health autopost.credential_health;
	v_now timestamptz;
begin
	perform autopost.enter_workspace(p_workspace_id);
	perform autopost.require_argument('check', jsonb_typeof(p_check) = 'object');
	if coalesce(jsonb_typeof(p_check -> 'rights') <> 'array', false) then
		perform autopost.raise_argument('check', 'rights must be an array', 'pass one object per target');
	end if;
	v_health := autopost.lock_credential(p_workspace_id, p_auth_ref);
	if v_health.auth_ref is null then
		return '{"applied": false, "reason": "unknown"}';
	end if;
	v_now := autopost.now_ts();
	update autopost.credential_health h
	set checked_at = v_now, account = coalesce(p_check ->> 'account', h.account),
		rights = coalesce(p_check -> 'rights', h.rights),
		error = case when p_check ? 'error' then autopost.normalised_error(p_check -> 'error') when h.lost_at is null
			and h.failures = 0 then null else h.error end
	where h.workspace_id = p_workspace_id and h.auth_ref = p_auth_ref;
	return '{"applied": true}';
end
$$;
