create or replace function autopost.touch_api_key(p_workspace_id text, p_key_id uuid) returns jsonb
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: records the use of a key, at most once an hour. Only one of several concurrent calls
--          writes.
-- Returns: {"applied"}.
-- Raises:  AP001 for a wrong argument.
-- Locks:   api_keys (skip locked).
-- Writes:  api_keys.
declare
	v_found boolean;
	v_now timestamptz;
begin
	perform autopost.enter_workspace(p_workspace_id);
	perform autopost.require_argument('key_id', p_key_id is not null);
	perform 1 from autopost.api_keys k
	where k.workspace_id = p_workspace_id and k.key_id = p_key_id and autopost.is_unseen(row(k.*)::autopost.api_keys)
	for no key update of k skip locked;
	v_found := found;
	if v_found then
		v_now := autopost.now_ts();
		update autopost.api_keys k
		set last_used_at = v_now
		where k.workspace_id = p_workspace_id and k.key_id = p_key_id;
	end if;
	return jsonb_build_object('applied', v_found);
end
$$;
