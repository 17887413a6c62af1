create or replace function autopost.warn_expiring(p_workspace_id text) returns jsonb
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: warns once per credential that is not renewed automatically and expires within
--          auth_warn_days, 100 per call.
-- Returns: {"warned"}.
-- Locks:   credential_health (skip locked).
-- Writes:  credential_health, events(auth_expiring).
declare
	v_row record;
	v_count int := 0;
begin
	perform autopost.enter_workspace(p_workspace_id);
	for v_row in
		select h.auth_ref, h.valid_until from autopost.credential_health h
		where h.workspace_id = p_workspace_id and h.next_refresh_at is null
		and h.valid_until <= autopost.now_ts() + autopost.setting_interval('auth_warn_days')
		and h.warned_until is distinct from h.valid_until
		order by h.valid_until
		limit 100
		for no key update of h skip locked
	loop
		update autopost.credential_health h set warned_until = v_row.valid_until
		where h.workspace_id = p_workspace_id and h.auth_ref = v_row.auth_ref;
		perform autopost.emit_note(p_workspace_id, 'auth_expiring', 'error', null, null, null,
			jsonb_build_object('auth_ref', v_row.auth_ref, 'valid_until', v_row.valid_until));
		v_count := v_count + 1;
	end loop;
	return jsonb_build_object('warned', v_count);
end
$$;
