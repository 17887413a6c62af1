create or replace function autopost.purge_receipts(p_workspace_id text) returns jsonb
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: deletes up to 5,000 expired receipts each of pushes, signed requests, sources, API
--          requests and bot updates, and clears up to 5,000 expired source URLs of media. Receipts of
--          a source stay until its next poll, which may show the item again.
-- Returns: {"purged", "more"}.
-- Locks:   ingress_receipts, signed_requests, pull_receipts, api_requests, bot_updates, media_blobs
--          (skip locked).
-- Writes:  ingress_receipts, signed_requests, pull_receipts, api_requests, bot_updates, media_blobs.
declare
	v_now timestamptz;
	v_pushes uuid[];
	v_source_ids text[];
	v_source_refs text[];
	v_pulls int;
	v_endpoint_ids text[];
	v_webhook_ids text[];
	v_signed int;
	v_keys uuid[];
	v_requests text[];
	v_answers int;
	v_bots text[];
	v_keys_of_updates text[];
	v_updates int;
	v_urls int;
begin
	perform autopost.enter_workspace(p_workspace_id);
	v_now := autopost.now_ts();
	select array_agg(x.receipt_id) into v_pushes
	from (
		select r.receipt_id from autopost.ingress_receipts r
		where r.workspace_id = p_workspace_id and r.expires_at <= v_now
		limit 5000
		for update skip locked) x;
	delete from autopost.ingress_receipts r
	where r.workspace_id = p_workspace_id and r.receipt_id = any (v_pushes);
	select array_agg(x.endpoint_id), array_agg(x.webhook_id) into v_endpoint_ids, v_webhook_ids
	from (
		select s.endpoint_id, s.webhook_id from autopost.signed_requests s
		where s.workspace_id = p_workspace_id and s.expires_at <= v_now
		limit 5000
		for update skip locked) x;
	delete from autopost.signed_requests s
	using unnest(v_endpoint_ids, v_webhook_ids) u (endpoint_id, webhook_id)
	where s.workspace_id = p_workspace_id and s.endpoint_id = u.endpoint_id and s.webhook_id = u.webhook_id;
	get diagnostics v_signed = row_count;
	select array_agg(x.source_id), array_agg(x.source_ref) into v_source_ids, v_source_refs
	from (
		select r.source_id, r.source_ref from autopost.pull_receipts r
		join autopost.pull_cursors c on c.workspace_id = p_workspace_id and c.source_id = r.source_id
		where r.workspace_id = p_workspace_id and r.expires_at <= v_now and r.expires_at <= c.last_poll_at
		limit 5000
		for update of r skip locked) x;
	delete from autopost.pull_receipts r
	using unnest(v_source_ids, v_source_refs) u (source_id, source_ref)
	where r.workspace_id = p_workspace_id and r.source_id = u.source_id and r.source_ref = u.source_ref;
	get diagnostics v_pulls = row_count;
	select array_agg(x.key_id), array_agg(x.idempotency_key) into v_keys, v_requests
	from (
		select r.key_id, r.idempotency_key from autopost.api_requests r
		where r.workspace_id = p_workspace_id and r.expires_at <= v_now
		limit 5000
		for update skip locked) x;
	delete from autopost.api_requests r
	using unnest(v_keys, v_requests) u (key_id, idempotency_key)
	where r.workspace_id = p_workspace_id and r.key_id = u.key_id and r.idempotency_key = u.idempotency_key;
	get diagnostics v_answers = row_count;
	select array_agg(x.auth_ref), array_agg(x.update_key) into v_bots, v_keys_of_updates
	from (
		select u.auth_ref, u.update_key from autopost.bot_updates u
		where u.workspace_id = p_workspace_id and u.expires_at <= v_now
		limit 5000
		for update skip locked) x;
	delete from autopost.bot_updates b
	using unnest(v_bots, v_keys_of_updates) u (auth_ref, update_key)
	where b.workspace_id = p_workspace_id and b.auth_ref = u.auth_ref and b.update_key = u.update_key;
	get diagnostics v_updates = row_count;
	v_urls := autopost.clear_source_urls(p_workspace_id, v_now, 5000);
	return jsonb_build_object('purged', coalesce(cardinality(v_pushes), 0) + v_signed + v_pulls + v_answers + v_updates
		+ v_urls, 'more', greatest(cardinality(v_pushes), v_signed, v_pulls, v_answers, v_updates, v_urls) = 5000);
end
$$;
