create or replace function autopost.use_raw_link(p_workspace_id text, p_token text) returns jsonb
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: uses up a link to a raw payload and records who reads it, by the operator and the reason
--          of the link. Call it before the payload is read. Only the engine may call it.
-- Returns: {"applied": true, "event_id", "payload_ref"}; or {"applied": false, "reason":
--          "unknown_link"}: unknown, used or expired.
-- Raises:  AP001 for a wrong argument.
-- Locks:   raw_links, audit_heads.
-- Writes:  raw_links, admin_audit_log.
declare
	v_link autopost.raw_links;
	v_now timestamptz;
begin
	perform autopost.enter_workspace(p_workspace_id);
	perform autopost.require_argument('token', p_token is not null);
	select l.* into v_link from autopost.raw_links l
	where l.workspace_id = p_workspace_id and l.token_hash = encode(sha256(convert_to(p_token, 'UTF8')), 'hex')
	for no key update of l;
	v_now := autopost.now_ts();
	if v_link.used_at is not null or coalesce(v_link.expires_at <= v_now, true) then
		return '{"applied": false, "reason": "unknown_link"}';
	end if;
	update autopost.raw_links l set used_at = v_now
	where l.workspace_id = p_workspace_id and l.token_hash = v_link.token_hash;
	perform autopost.audit(p_workspace_id, 'read_raw', 'event:' || v_link.event_id,
		jsonb_build_object('operator', v_link.operator, 'reason', v_link.reason), '{}',
		jsonb_build_object('payload_ref', v_link.payload_ref));
	return jsonb_build_object('applied', true, 'event_id', v_link.event_id, 'payload_ref', v_link.payload_ref);
end
$$;
