create or replace function autopost.posts_of(p_render_meta jsonb, p_provider_message_id text) returns jsonb
language sql immutable parallel safe
as $$
-- Purpose: the ids of all messages of a delivery that the platform acknowledged.
select case when p.ids ? p_provider_message_id or p_provider_message_id is null then p.ids
	else p.ids || to_jsonb(p_provider_message_id) end
from (select coalesce(p_render_meta #> '{series_progress,provider_message_ids}', '[]')) p (ids)
$$;

create or replace function autopost.known_posts(p_workspace_id text, p_channel_id text, p_delivery_id uuid,
	p_call_at timestamptz) returns jsonb
language plpgsql stable
as $$
-- Purpose: the known posts of a channel except p_delivery_id's, to reconcile a call with an unknown
--          outcome that started at p_call_at. It reads the channel's newest thousand ended
--          deliveries and those in retry.
-- Returns: {"before": ids of the newest post at that time, "others": ids of all posts since five
--          minutes before, "others_in_doubt": true if another delivery has had an unknown outcome
--          since then and was not found; it may have left an unrecorded post}.
-- Reads:   deliveries (deliveries_ended, deliveries_due, deliveries_doubted), events.
declare
	v_since timestamptz := p_call_at - interval '5 minutes';
	v_before jsonb;
	v_others jsonb;
begin
	with ended as (
		select d.delivery_id, d.sent_at, d.finished_at, d.render_meta, d.provider_message_id from autopost.deliveries d
		where d.workspace_id = p_workspace_id and d.channel_id = p_channel_id
			and d.phase in ('sent', 'deduped', 'failed_permanent', 'dead') and d.phase <> 'deduped'
		order by d.delivery_id desc
		limit 1000
	), tried as (
		select d.render_meta, d.provider_message_id from autopost.deliveries d
		where d.workspace_id = p_workspace_id and d.channel_id = p_channel_id and d.phase = 'retry'
			and d.delivery_id <> p_delivery_id
		and d.due_at >= v_since
		limit 1000
	)
	select (select autopost.posts_of(e.render_meta, e.provider_message_id) from ended e where e.sent_at <= p_call_at
		order by e.sent_at desc, e.delivery_id desc limit 1),
		(select jsonb_agg(i.value) from (
			select e.render_meta, e.provider_message_id from ended e where e.finished_at >= v_since
			union all
			select t.render_meta, t.provider_message_id from tried t) o,
			jsonb_array_elements(autopost.posts_of(o.render_meta, o.provider_message_id)) i)
	into v_before, v_others;
	return jsonb_build_object('before', coalesce(v_before, '[]'), 'others', coalesce(v_others, '[]'), 'others_in_doubt',
		exists (
		select 1 from autopost.deliveries d
		where d.workspace_id = p_workspace_id and d.channel_id = p_channel_id and d.unknown_outcomes > 0
			and d.outcome_unknown_at >= v_since
		and d.delivery_id <> p_delivery_id and not exists (
			select 1 from autopost.events e
			where e.workspace_id = p_workspace_id and e.delivery_id = d.delivery_id and e.ts >= d.outcome_unknown_at
			and e.action = 'sent' and e.meta #> '{raw,raw,reconciled}' = 'true')));
end
$$;
