create or replace function autopost.receive_signed_push(p_workspace_id text, p_endpoint_id text, p_webhook_id text,
	p_items jsonb) returns jsonb
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: receive_push for a request with a verified signature. p_webhook_id is the signed id, 1
--          to 256 bytes. It is kept for receipt_ttl_hours in the same transaction. A repeated id
--          gets the first answer with status duplicate, on any daemon and with any body. An id is
--          not kept if all its posts were rejected: they may be sent again.
-- Returns: as receive_push.
-- Raises:  AP001 for a wrong argument.
-- Locks:   signed_requests (a concurrent duplicate waits), then as receive_push.
declare
	v_endpoint autopost.workspace_endpoints;
	v_now timestamptz;
	v_first jsonb;
	v_results jsonb[];
	v_answer jsonb;
begin
	perform autopost.enter_workspace(p_workspace_id);
	v_endpoint := autopost.push_endpoint(p_workspace_id, p_endpoint_id, p_items);
	if coalesce(octet_length(p_webhook_id) not between 1 and 256, true) then
		perform autopost.raise_argument('webhook_id', 'must have 1 to 256 bytes', 'pass the header webhook-id');
	end if;
	v_now := autopost.now_ts();
	delete from autopost.signed_requests s
	where s.workspace_id = p_workspace_id and s.endpoint_id = p_endpoint_id and s.webhook_id = p_webhook_id
		and s.expires_at <= v_now;
	insert into autopost.signed_requests (workspace_id, endpoint_id, webhook_id, received_at, expires_at)
	values (p_workspace_id, p_endpoint_id, p_webhook_id, v_now, v_now + autopost.setting_interval('receipt_ttl_hours'))
	on conflict do nothing;
	if not found then
		select s.results into v_first from autopost.signed_requests s
		where s.workspace_id = p_workspace_id and s.endpoint_id = p_endpoint_id and s.webhook_id = p_webhook_id;
		v_results := array(
			select case when f.answer -> 'status' = '"rejected"' then f.answer
				else coalesce(f.answer, '{}') || '{"status": "duplicate"}' end
			from jsonb_array_elements(p_items) with ordinality i
			cross join lateral (select v_first -> (i.ordinality - 1)::int as answer) f
			order by i.ordinality);
		return autopost.end_request(v_endpoint, 'push', p_items, v_results, autopost.new_id());
	end if;
	v_answer := autopost.take_request(v_endpoint, 'push', p_items, true, v_now);
	if not v_answer -> 'results' @? '$[*] ? (@.status != "rejected")' then
		delete from autopost.signed_requests s
		where s.workspace_id = p_workspace_id and s.endpoint_id = p_endpoint_id and s.webhook_id = p_webhook_id;
	else
		update autopost.signed_requests s set results = v_answer -> 'results'
		where s.workspace_id = p_workspace_id and s.endpoint_id = p_endpoint_id and s.webhook_id = p_webhook_id;
	end if;
	return v_answer;
end
$$;
