create or replace function autopost.take_credential_link(p_state_hash text, p_operator text) returns jsonb
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: takes the link with this SHA-256 of a state, once. A link of a person is for that person
--          (p_operator "user:ID"); others are for the owner of the state. Works across workspaces. Only
--          the engine may call it.
-- Returns: {"workspace_id", "auth_ref", "platform", "redirect", "sealed", "requeue", "operator",
--          "reason"}; null without one.
-- Raises:  AP001 for a malformed hash.
-- Writes:  credential_links.
declare
	v_mine text[];
	v_link autopost.credential_links;
begin
	perform autopost.enter_all_workspaces();
	v_mine := autopost.own_workspaces();
	perform autopost.check_token_hash(p_state_hash);
	select l.* into v_link from autopost.credential_links l
	where l.state_hash = p_state_hash and l.expires_at > autopost.now_ts()
	and (v_mine is null or l.workspace_id = any (v_mine)) and (l.operator not like 'user:%' or l.operator = p_operator);
	delete from autopost.credential_links l
	where l.workspace_id = v_link.workspace_id and l.state_hash = p_state_hash
	returning l.* into v_link; -- none if another call took it
	return case when v_link.state_hash is not null then
		to_jsonb(v_link) - '{state_hash,expires_at}'::text[] end;
end
$$;
