create or replace function autopost.create_raw_link(p_workspace_id text, p_event_id uuid, p_token text,
	p_operator text, p_reason text) returns jsonb
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: makes a link to the raw payload of an event that works once, for five minutes. p_token:
--          32 random bytes in hexadecimal, of which only a hash is stored. Links that ended a day
--          ago are removed, up to 1,000. Only the engine may call it.
-- Returns: {"applied": true, "event_id", "payload_ref", "token", "expires_at"}; or {"applied":
--          false, "reason": "unknown_raw"}: the workspace has no such event with a raw payload.
-- Raises:  AP001 for a wrong argument.
-- Locks:   audit_heads.
-- Reads:   events.
-- Writes:  raw_links, admin_audit_log.
declare
	v_act jsonb;
	v_ref text;
	v_now timestamptz;
	v_until timestamptz;
begin
	perform autopost.enter_workspace(p_workspace_id);
	v_act := autopost.manual_act(p_operator, p_reason, false);
	perform autopost.require_argument('event_id', p_event_id is not null);
	if coalesce(p_token !~ '^[0-9a-f]{64}$', true) then
		perform autopost.raise_argument('token', 'must be 64 hexadecimal digits', 'pass 32 random bytes');
	end if;
	select e.payload_ref into v_ref from autopost.events e
	where e.workspace_id = p_workspace_id and e.id = p_event_id and e.payload_ref is not null;
	if v_ref is null then
		return '{"applied": false, "reason": "unknown_raw"}';
	end if;
	v_now := autopost.now_ts();
	v_until := v_now + interval '5 minutes';
	delete from autopost.raw_links l
	where l.workspace_id = p_workspace_id and l.token_hash = any (array(
		select x.token_hash from autopost.raw_links x
		where x.workspace_id = p_workspace_id and x.expires_at < v_now - interval '1 day'
		limit 1000));
	insert into autopost.raw_links (workspace_id, token_hash, event_id, payload_ref, operator, reason, expires_at)
	values (p_workspace_id, encode(sha256(convert_to(p_token, 'UTF8')), 'hex'), p_event_id, v_ref, p_operator,
		autopost.redact(p_reason), v_until);
	perform autopost.audit(p_workspace_id, 'create_raw_link', 'event:' || p_event_id, v_act, '{}',
		jsonb_build_object('payload_ref', v_ref, 'expires_at', v_until));
	return jsonb_build_object('applied', true, 'event_id', p_event_id, 'payload_ref', v_ref, 'token', p_token,
		'expires_at', v_until);
end
$$;
