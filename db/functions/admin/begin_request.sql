create or replace function autopost.begin_request(p_workspace_id text, p_key_id uuid, p_idempotency_key text, p_request_hash text) returns jsonb
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Whether a write of the API that bears an Idempotency-Key shall be done. One statement asks this, acts where the status is fresh, and
-- keeps the answer by finish_request: what is kept is done, and what is done is kept.
-- Returns {"status": "fresh"}, {"status": "replayed", "answer": of the first time}, {"status": "other_request"} where the key was used for
-- another one, or {"status": "in_progress"}. Raises AP001 for a wrong argument. Waits for nothing.
-- Locks: the key, by an advisory lock that is tried. Reads: api_requests.
declare
	v_kept autopost.api_requests;
begin
	perform autopost.enter_workspace(p_workspace_id);
	perform autopost.require('key_id', p_key_id is not null);
	if coalesce(length(p_idempotency_key) not between 1 and 200, true) then
		perform autopost.refuse('idempotency_key', 'is not of 1 to 200 characters', 'send a fresh random one, as a UUID, with each write');
	elsif coalesce(p_request_hash !~ '^[0-9a-f]{64}$', true) then
		perform autopost.refuse('request_hash', 'is no SHA-256', 'pass 64 lower-case hexadecimal digits');
	end if;
	if not pg_try_advisory_xact_lock(hashtextextended(concat_ws('|', p_workspace_id, p_key_id, p_idempotency_key), 21)) then
		return '{"status": "in_progress"}';
	end if;
	select r.* into v_kept from autopost.api_requests r
	where r.workspace_id = p_workspace_id and r.key_id = p_key_id and r.idempotency_key = p_idempotency_key and r.expires_at > autopost.now_ts();
	return case
		when v_kept.key_id is null then '{"status": "fresh"}'
		when v_kept.request_hash <> p_request_hash then '{"status": "other_request"}'
		else jsonb_build_object('status', 'replayed', 'answer', v_kept.answer) end;
end
$$;
