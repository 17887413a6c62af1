create or replace function autopost.purge_sealed_secrets(p_workspace_id text) returns jsonb
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: deletes up to 1,000 sealed secrets that were replaced 24 hours ago, and up to 1,000 links of
--          accounts that expired, with the secrets of apps in them.
-- Returns: {"purged", "more"}.
-- Locks:   sealed_secrets, credential_links (skip locked).
-- Writes:  sealed_secrets, credential_links.
declare
	v_purged int;
	v_now timestamptz;
	v_links int;
begin
	perform autopost.enter_workspace(p_workspace_id);
	v_now := autopost.now_ts();
	delete from autopost.sealed_secrets s
	using (
		select x.auth_ref, x.version from autopost.sealed_secrets x
		-- so that an operator can restore it
		where x.workspace_id = p_workspace_id and x.retired_at <= v_now - interval '24 hours'
		limit 1000
		for update of x skip locked) old
	where s.workspace_id = p_workspace_id and s.auth_ref = old.auth_ref and s.version = old.version;
	get diagnostics v_purged = row_count;
	delete from autopost.credential_links l
	using (
		select x.state_hash from autopost.credential_links x
		where x.workspace_id = p_workspace_id and x.expires_at <= v_now
		limit 1000
		for update of x skip locked) old
	where l.workspace_id = p_workspace_id and l.state_hash = old.state_hash;
	get diagnostics v_links = row_count;
	return jsonb_build_object('purged', v_purged + v_links, 'more', greatest(v_purged, v_links) = 1000);
end
$$;
