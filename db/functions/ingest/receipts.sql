create or replace function autopost.receipt_hash(p_raw jsonb) returns text
language plpgsql immutable parallel safe
as $$
-- Purpose: the hash that makes a repeated post without source_ref a duplicate: the payload as JSON,
--          not normalised.
begin
	return encode(sha256(convert_to(p_raw::text, 'UTF8')), 'hex');
end
$$;

create or replace function autopost.take_receipt(p_endpoint autopost.workspace_endpoints, p_raw jsonb,
	p_receipt_id uuid, p_run_id uuid, p_now timestamptz) returns jsonb
language plpgsql
as $$
-- Purpose: writes the receipt of a post, or finds the earlier one: by source_ref, otherwise by the
--          same payload within hash_drop_window_sec. A source_ref also counts if it came through
--          the endpoint that this one was rotated from: a client may repeat a post with the new
--          secret.
-- Returns: null for a new post, otherwise the first answer with status duplicate.
-- Locks:   ingress_receipts (its unique key makes a concurrent duplicate wait; without source_ref
--          an advisory lock of the transaction does).
-- Writes:  ingress_receipts.
declare
	v_ref text := p_raw ->> 'source_ref';
	v_hash text := autopost.receipt_hash(p_raw);
	v_first autopost.ingress_receipts;
begin
	if v_ref is not null then
		delete from autopost.ingress_receipts r
		where r.workspace_id = p_endpoint.workspace_id and r.endpoint_id = p_endpoint.endpoint_id
			and r.source_ref = v_ref and r.expires_at <= p_now;
		select r.* into v_first from autopost.ingress_receipts r
		where r.workspace_id = p_endpoint.workspace_id and r.endpoint_id = p_endpoint.rotated_from
			and r.source_ref = v_ref and r.expires_at > p_now;
	else
		-- Concurrent duplicates without a source_ref have no unique key, so they wait for this lock.
		perform pg_advisory_xact_lock(hashtextextended(p_endpoint.workspace_id || '/' || p_endpoint.endpoint_id || '/'
			|| v_hash, 0));
		select r.* into v_first from autopost.ingress_receipts r
		where r.workspace_id = p_endpoint.workspace_id and r.endpoint_id = p_endpoint.endpoint_id
			and r.payload_hash = v_hash
		and r.source_ref is null and r.received_at > p_now - make_interval(secs => p_endpoint.hash_drop_window_sec)
		order by r.received_at desc limit 1;
	end if;
	if v_first.receipt_id is null then
		insert into autopost.ingress_receipts (workspace_id, receipt_id, endpoint_id, endpoint_kind, source_ref,
			payload_hash, received_at, expires_at, run_id)
		values (p_endpoint.workspace_id, p_receipt_id, p_endpoint.endpoint_id, p_endpoint.kind, v_ref, v_hash, p_now,
			p_now + autopost.setting_interval('receipt_ttl_hours'), p_run_id)
		on conflict (workspace_id, endpoint_id, source_ref) where source_ref is not null do nothing;
		if found then
			return null;
		end if;
		select r.* into v_first from autopost.ingress_receipts r
		where r.workspace_id = p_endpoint.workspace_id and r.endpoint_id = p_endpoint.endpoint_id
			and r.source_ref = v_ref;
	end if;
	return coalesce(v_first.answer, jsonb_build_object('run_id', v_first.run_id)) || '{"status": "duplicate"}';
end
$$;
