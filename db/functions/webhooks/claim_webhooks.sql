create or replace function autopost.claim_webhooks(p_workspace_id text, p_limit int) returns jsonb
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: claims up to p_limit due calls. Each webhook gives at most its free capacity and rate,
--          so that none uses the capacity of another. A call with an expired lease is claimed
--          again; its receiver knows it by its id. It never waits.
-- Returns: [{"webhook_id", "event_id", "claim_token", "url", "auth_refs": signing credentials, the
--          current one first, "timeout_ms", "body"}].
-- Raises:  AP001 for a wrong argument.
-- Locks:   result_webhooks (skip locked), webhook_sends (skip locked).
-- Reads:   credential_bindings.
-- Writes:  result_webhooks, webhook_sends.
declare
	v_now timestamptz;
	v_webhook autopost.result_webhooks;
	v_auth_refs jsonb;
	v_send record;
	v_taken int;
	v_calls jsonb[] := '{}';
begin
	if autopost.enter_workspace(p_workspace_id) = 'disabled' or autopost.is_restored() then
		return '[]';
	end if;
	perform autopost.require_argument('limit', p_limit > 0);
	v_now := autopost.now_ts();
	for v_webhook in
		select w.* from autopost.result_webhooks w
		where w.workspace_id = p_workspace_id and w.enabled
		and exists (
			select 1 from autopost.webhook_sends s
			where s.workspace_id = p_workspace_id and s.webhook_id = w.webhook_id and s.status in ('pending', 'sending')
				and s.due_at <= v_now)
		order by w.next_send_at, w.webhook_id
		for no key update of w skip locked
	loop
		v_auth_refs := (
			select coalesce(jsonb_agg(b.auth_ref order by b.auth_ref <> v_webhook.signing_ref), '[]')
				from autopost.credential_bindings b
			where b.workspace_id = p_workspace_id and b.platform = 'webhook'
			and (b.auth_ref = v_webhook.signing_ref
				or (b.auth_ref = v_webhook.old_signing_ref and v_webhook.old_signing_until > v_now)));
		v_taken := 0;
		-- One by one: before the first ANALYZE a join may read the whole queue for each row.
		for v_send in
			select x.event_id, x.event_at, x.body, autopost.new_id()::text as token from autopost.webhook_sends x
			where x.workspace_id = p_workspace_id and x.webhook_id = v_webhook.webhook_id
				and x.status in ('pending', 'sending') and x.due_at <= v_now
			order by x.due_at
			limit greatest(0, least(autopost.calls_allowed(v_webhook, v_now), p_limit - cardinality(v_calls)))
			for no key update of x skip locked
		loop
			update autopost.webhook_sends s
			set status = 'sending', attempt = s.attempt + 1, claim_token = v_send.token, attempted_at = v_now,
				due_at = v_now + make_interval(secs => v_webhook.timeout_seconds + 15)
			where s.workspace_id = p_workspace_id and s.webhook_id = v_webhook.webhook_id
				and s.event_at = v_send.event_at and s.event_id = v_send.event_id;
			v_taken := v_taken + 1;
			v_calls := v_calls || jsonb_build_object('webhook_id', v_webhook.webhook_id, 'event_id', v_send.event_id,
				'claim_token', v_send.token, 'url', v_webhook.url,
				'timeout_ms', v_webhook.timeout_seconds * 1000, 'body', v_send.body, 'auth_refs', v_auth_refs);
		end loop;
		continue when v_taken = 0;
		update autopost.result_webhooks w
		set next_send_at = greatest(w.next_send_at, v_now) + make_interval(secs => v_taken / w.rps)
		where w.workspace_id = p_workspace_id and w.webhook_id = v_webhook.webhook_id;
		exit when cardinality(v_calls) >= p_limit;
	end loop;
	return to_jsonb(v_calls);
end
$$;
