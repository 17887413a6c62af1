create or replace function autopost.claim_webhooks(p_workspace_id text, p_limit int) returns jsonb
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: claims up to p_limit due calls. Each webhook gives at most its free capacity and rate,
--          so that none uses the capacity of another. A call with an expired lease is claimed
--          again; its receiver knows it by its id. It never waits.
-- Returns: [{"webhook_id", "event_id", "claim_token", "url", "auth_refs": signing credentials, the
--          current one first, "bound": the answer of get_credential for each, "timeout_ms",
--          "body"}], the oldest events first.
-- Raises:  AP001 for a wrong argument.
-- Locks:   result_webhooks (skip locked), webhook_sends (skip locked).
-- Reads:   credential_bindings, credential_health, sealed_secrets.
-- Writes:  result_webhooks, webhook_sends.
declare
	v_now timestamptz;
	v_webhooks autopost.result_webhooks[];
	v_found record;
	v_taken record;
	v_calls jsonb;
begin
	if autopost.enter_workspace(p_workspace_id) = 'disabled' or autopost.is_restored() then
		return '[]';
	end if;
	perform autopost.require_argument('limit', p_limit > 0);
	v_now := autopost.now_ts();
	v_webhooks := array(
		select row(w.*)::autopost.result_webhooks from autopost.result_webhooks w
		where w.workspace_id = p_workspace_id and w.enabled
		and exists (
			select 1 from autopost.webhook_sends s
			where s.workspace_id = p_workspace_id and s.webhook_id = w.webhook_id and s.status in ('pending', 'sending')
				and s.due_at <= v_now offset 0)
		order by w.next_send_at, w.webhook_id
		for no key update of w skip locked);
	select coalesce(array_agg(f.webhook_id), '{}') as webhook_ids, coalesce(array_agg(f.event_id), '{}') as event_ids into v_found
	from (
		select x.webhook_id, x.event_id from unnest(v_webhooks) w
		cross join lateral (
			select s.webhook_id, s.event_id from autopost.webhook_sends s
			where s.workspace_id = p_workspace_id and s.webhook_id = w.webhook_id and s.status in ('pending', 'sending')
				and s.due_at <= v_now
			order by s.due_at
			limit greatest(0, autopost.calls_allowed(w, v_now))
			for no key update of s skip locked) x
		limit p_limit) f;
	select array_agg(c.webhook_id) as webhook_ids, array_agg(c.event_at) as event_ats,
		array_agg(c.event_id) as event_ids,
		array_agg(c.claim_token) as tokens, array_agg(c.body) as bodies
	into v_taken
	from autopost.take_calls(p_workspace_id, v_found.webhook_ids, v_found.event_ids, v_now) c;
	if v_taken.webhook_ids is null then
		return '[]';
	end if;
	update autopost.result_webhooks w
	set next_send_at = autopost.later(greatest(w.next_send_at, v_now), make_interval(secs => t.calls / w.rps))
	from (select u.id, count(*) as calls from unnest(v_taken.webhook_ids) u (id) group by u.id) t
	where w.workspace_id = p_workspace_id and w.webhook_id = t.id;
	with signers as materialized (
		select w.webhook_id, w.url, w.timeout_seconds * 1000 as timeout_ms, k.auth_refs, k.bound
		from unnest(v_webhooks) w
		cross join lateral (
			select jsonb_agg(b.auth_ref order by b.auth_ref <> w.signing_ref) as auth_refs,
				jsonb_agg(autopost.credential_of(p_workspace_id, b.auth_ref)
					order by b.auth_ref <> w.signing_ref) as bound
			from autopost.credential_bindings b
			where b.workspace_id = p_workspace_id and b.platform = 'webhook'
			and b.auth_ref = any (array[w.signing_ref, case when w.old_signing_until > v_now then w.old_signing_ref end])) k
		where w.webhook_id = any (v_taken.webhook_ids)
	)
	select jsonb_agg(jsonb_build_object('webhook_id', t.webhook_id, 'event_id', t.event_id,
		'claim_token', t.claim_token, 'url', g.url, 'timeout_ms', g.timeout_ms, 'body', t.body,
		'auth_refs', coalesce(g.auth_refs, '[]'), 'bound', coalesce(g.bound, '[]'))
		order by t.event_at, t.event_id, t.webhook_id)
	into v_calls
	from unnest(v_taken.webhook_ids, v_taken.event_ats, v_taken.event_ids, v_taken.tokens, v_taken.bodies)
		t (webhook_id, event_at, event_id, claim_token, body)
	join signers g on g.webhook_id = t.webhook_id;
	return coalesce(v_calls, '[]');
end
$$;
