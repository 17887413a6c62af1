create or replace function autopost.lacks_only_comment(p_render_meta jsonb) returns boolean
language sql immutable parallel safe
as $$
-- Purpose: true if the platform has all of a post but its first comment.
select p_render_meta @? '$.steps[*] ? (@.comment == true)' and not exists (
	select 1 from jsonb_array_elements(p_render_meta -> 'steps') s
	where coalesce(s.value -> 'comment' = 'true', false)
		= coalesce(p_render_meta -> 'series_progress' -> 'steps' ? (s.value ->> 'step'), false))
$$;

create or replace function autopost.settle_comment(p_workspace_id text, p_delivery autopost.deliveries,
	p_error jsonb) returns jsonb
language plpgsql
as $$
-- Purpose: ends a locked delivery in flight whose first comment failed for good: the post is sent, and is
--          never sent again. The comment leaves its steps; comment_failed in render_meta keeps the reason.
--          The failure affects only the comment: the next post of the channel shows the state of the channel.
-- Returns: the answer of the commit; null if more than the comment is missing, or if the failure is that
--          of the video itself (degraded_private).
-- Writes:  deliveries, channels, channel_gates, quota_uses, events (comment_failed, sent).
declare
	v_delivery autopost.deliveries := p_delivery;
begin
	if not autopost.lacks_only_comment(p_delivery.render_meta) or p_error ->> 'code' = 'degraded_private' then
		return null;
	end if;
	update autopost.quota_uses u
	set posts = greatest(0, u.posts - 1)
	where u.workspace_id = p_workspace_id and u.delivery_id = p_delivery.delivery_id and u.attempt = p_delivery.attempt
		and p_delivery.quota_held and p_error -> 'known' is distinct from 'false';
	update autopost.deliveries d
	set render_meta = autopost.without_comment(d.render_meta) || jsonb_build_object('comment_failed',
			jsonb_build_object('code', p_error -> 'code', 'message', p_error -> 'message')),
		last_error = p_error - 'payload_ref'
	where d.workspace_id = p_workspace_id and d.delivery_id = p_delivery.delivery_id
	returning d.render_meta into v_delivery.render_meta;
	perform autopost.emit_event(p_workspace_id, 'comment_failed', 'error', v_delivery, p_error, null);
	return autopost.settle_sent(p_workspace_id, v_delivery,
		v_delivery.render_meta #>> '{series_progress,provider_message_ids,0}', jsonb_build_object('raw',
			jsonb_build_object('ids', v_delivery.render_meta #> '{series_progress,provider_message_ids}')));
end
$$;
