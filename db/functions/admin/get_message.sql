create or replace function autopost.get_message(p_workspace_id text, p_message_id uuid) returns jsonb
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: returns a normalised message with its deliveries.
-- Returns: {…, "source": with the unknown fields of the post, "payload", "counts": {status: deliveries}, "deliveries": [the first 1,000 by
--          channel: {"delivery_id", "channel_id", "platform", "status", "attempt", "due_at": null
--          if time alone does not bring it, "sent_at", "provider_message_id", "last_error", "text",
--          "meta"}]}; null if the workspace has no such message.
-- Reads:   list_messages (view), messages, deliveries, channels.
declare
	v_answer jsonb;
begin
	perform autopost.enter_workspace(p_workspace_id);
	perform autopost.require_argument('message_id', p_message_id is not null);
	select to_jsonb(v) - 'workspace_id' || jsonb_build_object('payload', m.payload, 'hash_version', m.hash_version,
		'source', m.source,
		'counts', (select coalesce(jsonb_object_agg(s.status, s.n), '{}') from (
			select d.status, count(*) as n from autopost.deliveries d
			where d.workspace_id = p_workspace_id and d.message_id = p_message_id
			group by d.status) s),
		'deliveries',
			(select coalesce(jsonb_agg(jsonb_build_object('delivery_id', x.delivery_id, 'channel_id', x.channel_id,
			'platform', c.platform,
				'status', x.status, 'attempt', x.attempt, 'due_at', case when isfinite(x.due_at) then x.due_at end,
					'sent_at', x.sent_at,
				'provider_message_id', x.provider_message_id, 'last_error', x.last_error, 'text', x.rendered_text,
					'meta', x.render_meta)
				order by x.channel_id, x.delivery_id), '[]')
			from (select d.* from autopost.deliveries d
				where d.workspace_id = p_workspace_id and d.message_id = p_message_id
				order by d.channel_id, d.delivery_id
				limit 1000) x
			join autopost.channels c on c.workspace_id = p_workspace_id and c.channel_id = x.channel_id))
	into v_answer
	from autopost.list_messages_rows v
	join autopost.messages m on m.workspace_id = p_workspace_id and m.message_id = p_message_id
	where v.workspace_id = p_workspace_id and v.message_id = p_message_id;
	return v_answer;
end
$$;
