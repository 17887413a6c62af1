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
	v_link autopost.credential_links;
	v_now timestamptz;
begin
	perform autopost.enter_all_workspaces();
	perform autopost.check_token_hash(p_state_hash);
	v_now := autopost.now_ts();
	delete from autopost.credential_links l
	where l.state_hash = p_state_hash and l.expires_at > v_now and autopost.may_access(l.workspace_id)
	and (l.operator not like 'user:%' or l.operator = p_operator)
	returning l.* into v_link;
	return case when v_link.state_hash is not null then
		to_jsonb(v_link) - '{state_hash,expires_at}'::text[] end;
end
$$;
