create or replace function autopost.finish_request(
	p_workspace_id text, p_key_id uuid, p_idempotency_key text, p_request_hash text, p_begun jsonb, p_answer jsonb
) returns jsonb
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Keeps what a write of the API was answered, in the transaction that did it; see begin_request, whose answer is p_begun.
-- Returns {"status": "done", "answer"} where it was fresh, else p_begun. Raises AP001 for a wrong argument. Writes: api_requests.
begin
	perform autopost.enter_workspace(p_workspace_id);
	perform autopost.require('key_id', p_key_id is not null), autopost.require('idempotency_key', p_idempotency_key <> ''),
		autopost.require('request_hash', p_request_hash is not null), autopost.require('begun', p_begun ? 'status');
	if p_begun ->> 'status' <> 'fresh' then
		return p_begun;
	end if;
	perform autopost.require('answer', p_answer is not null);
	insert into autopost.api_requests (workspace_id, key_id, idempotency_key, request_hash, answer, created_at, expires_at)
	values (p_workspace_id, p_key_id, p_idempotency_key, p_request_hash, p_answer, autopost.now_ts(), autopost.now_ts() + autopost.setting_interval('api_request_ttl_hours'))
	on conflict (workspace_id, key_id, idempotency_key) do update
	set request_hash = excluded.request_hash, answer = excluded.answer, created_at = excluded.created_at, expires_at = excluded.expires_at;
	return jsonb_build_object('status', 'done', 'answer', p_answer);
end
$$;
