create or replace function autopost.finish_request(
	p_workspace_id text, p_key_id uuid, p_idempotency_key text, p_request_hash text, p_begun jsonb, p_answer jsonb
) returns jsonb
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: stores the answer of an API write in the transaction of the write. p_begun is the answer
--          of begin_request.
-- Returns: {"status": "done", "answer"} if p_begun was fresh, else p_begun.
-- Raises:  AP001 for a wrong argument.
-- Writes:  api_requests.
begin
	perform autopost.enter_workspace(p_workspace_id);
	perform autopost.require_argument('key_id', p_key_id is not null),
		autopost.require_argument('idempotency_key', p_idempotency_key <> ''),
		autopost.require_argument('request_hash', p_request_hash is not null),
			autopost.require_argument('begun', p_begun ? 'status');
	if p_begun ->> 'status' <> 'fresh' then
		return p_begun;
	end if;
	perform autopost.require_argument('answer', p_answer is not null);
	insert into autopost.api_requests (workspace_id, key_id, idempotency_key, request_hash, answer, created_at,
		expires_at)
	-- longer than clients retry
	values (p_workspace_id, p_key_id, p_idempotency_key, p_request_hash, p_answer, autopost.now_ts(),
		autopost.now_ts() + interval '24 hours')
	on conflict (workspace_id, key_id, idempotency_key) do update
	set request_hash = excluded.request_hash, answer = excluded.answer, created_at = excluded.created_at,
		expires_at = excluded.expires_at;
	return jsonb_build_object('status', 'done', 'answer', p_answer);
end
$$;
