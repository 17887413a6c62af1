create or replace function autopost.begin_request(p_workspace_id text, p_key_id uuid, p_idempotency_key text,
	p_request_hash text) returns jsonb
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: decides if an API write with an Idempotency-Key is done. write_once calls it. Never waits.
-- Returns: {"status": "fresh"}, {"status": "replayed", "answer": the first one}, {"status":
--          "other_request"} if the key was used for another request, or {"status": "in_progress"}.
-- Raises:  AP001 for a wrong argument.
-- Locks:   an advisory lock of the key; it is tried, not waited for.
-- Reads:   api_requests.
declare
	v_kept autopost.api_requests;
begin
	perform autopost.enter_workspace(p_workspace_id);
	perform autopost.require_argument('key_id', p_key_id is not null);
	if coalesce(length(p_idempotency_key) not between 1 and 200, true) then
		perform autopost.raise_argument('idempotency_key', 'must have 1 to 200 characters',
			'send a new random value, such as a UUID, with each write');
	elsif coalesce(p_request_hash !~ '^[0-9a-f]{64}$', true) then
		perform autopost.raise_argument('request_hash', 'must be a SHA-256', 'pass 64 lower-case hexadecimal digits');
	end if;
	if not pg_try_advisory_xact_lock(
		hashtextextended(concat_ws('|', p_workspace_id, p_key_id, p_idempotency_key), 21)) then
		return '{"status": "in_progress"}';
	end if;
	select r.* into v_kept from autopost.api_requests r
	where r.workspace_id = p_workspace_id and r.key_id = p_key_id and r.idempotency_key = p_idempotency_key
		and r.expires_at > autopost.now_ts();
	return case
		when v_kept.key_id is null then '{"status": "fresh"}'
		when v_kept.request_hash <> p_request_hash then '{"status": "other_request"}'
		else jsonb_build_object('status', 'replayed', 'answer', v_kept.answer) end;
end
$$;
