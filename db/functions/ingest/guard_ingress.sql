create or replace function autopost.guard_ingress(p_workspace_id text, p_endpoint_id text, p_bytes int, p_items int)
	returns jsonb
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: checks size and rate before a request is read. ingress_rps counts items; a burst of one
--          second is allowed. It has its own short transaction, so that a long enqueue does not
--          delay the endpoint's next request.
-- Returns: {"admitted": true} or {"admitted": false, "reason": "size" | "rate" | "disabled",
--          "retry_after_ms"}. After a check of the rate also {"ingress_rps", "left", "reset_ms"}: how
--          many items are allowed now, and when a burst of one second is allowed again.
-- Raises:  AP001 for a wrong argument.
-- Locks:   workspace_endpoints, ingress_floods.
-- Writes:  workspace_endpoints; for a refusal ingest_runs and events, many refusals as one.
declare
	v_status text := autopost.enter_workspace(p_workspace_id);
	v_endpoint autopost.workspace_endpoints := autopost.known_endpoint(p_workspace_id, p_endpoint_id);
	v_now timestamptz;
	v_until timestamptz;
begin
	perform autopost.require_argument('bytes', p_bytes is not null);
	if p_bytes < 0 then
		perform autopost.raise_argument('bytes', 'must not be negative', 'pass the size of the request');
	end if;
	if coalesce(p_items < 1, true) then
		perform autopost.raise_argument('items', 'must be positive', 'pass the number of posts in the request');
	end if;
	if v_status = 'disabled' then
		return '{"admitted": false, "reason": "disabled"}';
	elsif p_bytes > v_endpoint.max_payload_bytes then
		perform autopost.drop_request(p_workspace_id, p_endpoint_id, 'ingress_payload_rejected', p_items,
			jsonb_build_object('bytes', p_bytes, 'limit', v_endpoint.max_payload_bytes));
		return '{"admitted": false, "reason": "size"}';
	end if;
	select e.* into v_endpoint from autopost.workspace_endpoints e
	where e.workspace_id = p_workspace_id and e.endpoint_id = p_endpoint_id
	for no key update of e;
	v_now := autopost.now_ts();
	v_until := greatest(v_now, v_endpoint.admitted_until) + make_interval(
		secs => (p_items / v_endpoint.ingress_rps)::float8);
	-- An idle endpoint takes a burst of one second, and always one request of any number of posts.
	if v_until > v_now + interval '1 second' and v_endpoint.admitted_until > v_now then
		perform autopost.drop_request(p_workspace_id, p_endpoint_id, 'ingress_rate_limited', p_items,
			jsonb_build_object('ingress_rps', v_endpoint.ingress_rps));
		return jsonb_build_object('admitted', false, 'reason', 'rate',
			'retry_after_ms',
				ceil(extract(epoch
				from least(v_until - interval '1 second', v_endpoint.admitted_until) - v_now) * 1000),
			'ingress_rps', v_endpoint.ingress_rps, 'left', 0,
			'reset_ms', ceil(extract(epoch from v_endpoint.admitted_until - v_now) * 1000));
	end if;
	update autopost.workspace_endpoints e
	set admitted_until = v_until
	where e.workspace_id = p_workspace_id and e.endpoint_id = p_endpoint_id;
	return jsonb_build_object('admitted', true, 'ingress_rps', v_endpoint.ingress_rps,
		'left', greatest(0, floor(extract(epoch from v_now + interval '1 second' - v_until) * v_endpoint.ingress_rps)),
		'reset_ms', ceil(extract(epoch from v_until - v_now) * 1000));
end
$$;
