create or replace function autopost.settle_item(p_workspace_id text, p_item jsonb) returns jsonb
language plpgsql
as $$
-- Settles one locked delivery by what its call came to. p_item: {"delivery_id", "claim_token", "outcome", "not_before", "act"};
-- act narrows what may happen to mark_sent, schedule_retry or fail_permanent; without it the outcome decides. Steps that the outcome
-- says were acknowledged ("raw": {"steps": {step: ids}}) are kept, whatever else came of it.
declare
	v_token text := p_item ->> 'claim_token';
	v_act text := coalesce(p_item ->> 'act', 'commit_outcome');
	v_outcome jsonb := p_item -> 'outcome';
	v_error jsonb;
	v_delivery autopost.deliveries;
	v_channel autopost.channels;
begin
	select d.* into v_delivery from autopost.deliveries d
	where d.workspace_id = p_workspace_id and d.delivery_id = (p_item ->> 'delivery_id')::uuid;
	if v_delivery.status is distinct from 'sending' or v_delivery.claim_token is distinct from v_token then
		return autopost.stale_commit(p_workspace_id, v_delivery, v_token, v_act);
	end if;
	select c.* into v_channel from autopost.channels c
	where c.workspace_id = p_workspace_id and c.channel_id = v_delivery.channel_id;
	if jsonb_typeof(v_outcome -> 'raw' -> 'steps') = 'object' then
		update autopost.deliveries d
		set render_meta = autopost.with_progress(d.render_meta, v_outcome -> 'raw' -> 'steps')
		where d.workspace_id = p_workspace_id and d.delivery_id = v_delivery.delivery_id;
	end if;
	if v_outcome -> 'ok' = 'true' then
		return autopost.settle_sent(p_workspace_id, v_delivery, v_outcome ->> 'provider_message_id',
			jsonb_strip_nulls(jsonb_build_object('sent_at', v_outcome -> 'sent_at', 'raw', v_outcome -> 'raw')));
	end if;
	v_error := autopost.normalised_error(v_outcome -> 'error');
	if v_error -> 'known' = 'false' then
		return autopost.settle_unknown(p_workspace_id, v_delivery, v_channel, v_error);
	elsif v_act = 'fail_permanent' or (v_act <> 'schedule_retry' and v_error ->> 'category' = 'PERMANENT') then
		return autopost.settle_permanent(p_workspace_id, v_delivery, v_channel, v_error || '{"category": "PERMANENT"}');
	end if;
	return autopost.settle_transient(p_workspace_id, v_delivery, v_channel, v_error, (p_item ->> 'not_before')::timestamptz);
end
$$;

create or replace function autopost.outcome_refusal(p_item jsonb) returns void
language plpgsql stable
as $$
-- Raises AP001 for an item that cannot be settled whatever the delivery is.
declare
	v_outcome jsonb := p_item -> 'outcome';
begin
	perform autopost.require_uuid('delivery_id', p_item ->> 'delivery_id');
	perform autopost.require('claim_token', p_item ->> 'claim_token' <> '');
	if jsonb_typeof(v_outcome) is distinct from 'object' or jsonb_typeof(v_outcome -> 'ok') is distinct from 'boolean' then
		perform autopost.refuse('outcome', 'has no "ok"', 'pass {"ok": true, "provider_message_id": "…"} or {"ok": false, "error": {…}}');
	elsif v_outcome -> 'ok' = 'true' and coalesce(v_outcome ->> 'provider_message_id', '') = '' then
		perform autopost.refuse('provider_message_id', 'is missing', 'a sent post has the platform''s id; without one the outcome is unknown');
	elsif v_outcome -> 'ok' = 'false' and jsonb_typeof(v_outcome -> 'error') is distinct from 'object' then
		perform autopost.refuse('error', 'is missing or no object', 'pass {"category", "scope", "code", "known", "message"}');
	end if;
end
$$;

create or replace function autopost.commit_items(p_workspace_id text, p_items jsonb) returns jsonb
language plpgsql
as $$
-- Settles one or many deliveries in one transaction: everything is locked first, in the order of the house, then each is settled.
-- Returns the answers in the order of the items. Raises AP001 for a malformed item; a stale or repeated one is an answer.
-- Locks: as lock_for_commit, then channel_gates (channel_id).
declare
	v_ids uuid[];
	v_groups boolean;
	v_item record;
	v_answers jsonb[];
begin
	if jsonb_typeof(p_items) is distinct from 'array' then
		perform autopost.refuse('items', 'is no array', 'pass a JSON array of objects');
	end if;
	perform autopost.outcome_refusal(i.value) from jsonb_array_elements(p_items) i;
	select array_agg((i.value ->> 'delivery_id')::uuid),
		coalesce(bool_or(i.value -> 'outcome' -> 'error' ->> 'scope' in ('channel', 'platform') or i.value -> 'outcome' -> 'error' -> 'known' = 'false'), false)
	into v_ids, v_groups
	from jsonb_array_elements(p_items) i;
	v_groups := v_groups or autopost.groups_are_failing(p_workspace_id);
	perform autopost.lock_for_commit(p_workspace_id, v_ids, v_groups);
	v_answers := array_fill(null::jsonb, array[coalesce(cardinality(v_ids), 0)]);
	for v_item in
		select i.value, i.ordinality::int as n
		from jsonb_array_elements(p_items) with ordinality i
		left join autopost.deliveries d on d.workspace_id = p_workspace_id and d.delivery_id = (i.value ->> 'delivery_id')::uuid
		order by d.channel_id, d.delivery_id
	loop
		v_answers[v_item.n] := autopost.settle_item(p_workspace_id, v_item.value);
	end loop;
	if v_groups then
		perform autopost.judge_platforms(p_workspace_id, p_items, to_jsonb(v_answers));
	end if;
	return to_jsonb(v_answers);
end
$$;
