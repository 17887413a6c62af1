create or replace function autopost.mark_sent(
	p_workspace_id text, p_delivery_id uuid, p_claim_token text, p_provider_message_id text, p_sent_at timestamptz,
		p_raw_meta jsonb
) returns jsonb
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: sending -> sent. p_sent_at is the platform's time and is kept with p_raw_meta; sent_at
--          is the database's.
-- Returns: as commit_outcome.
-- Raises:  as commit_outcome.
begin
	perform autopost.enter_workspace(p_workspace_id);
	return autopost.commit_items(p_workspace_id, jsonb_build_array(jsonb_build_object(
		'delivery_id', p_delivery_id, 'claim_token', p_claim_token, 'act', 'mark_sent',
		'outcome', jsonb_build_object('ok', true, 'provider_message_id', p_provider_message_id, 'sent_at', p_sent_at,
			'raw', p_raw_meta)))) -> 0;
end
$$;

create or replace function autopost.mark_sent_batch(p_workspace_id text, p_items jsonb) returns jsonb
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: mark_sent for many. p_items: [{"delivery_id", "claim_token", "provider_message_id",
--          "sent_at", "raw_meta"}].
begin
	perform autopost.enter_workspace(p_workspace_id);
	perform autopost.require_array('items', p_items);
	return autopost.commit_items(p_workspace_id, (
		select coalesce(jsonb_agg(jsonb_build_object('delivery_id', i.value -> 'delivery_id', 'claim_token',
			i.value -> 'claim_token', 'act', 'mark_sent',
			'outcome', jsonb_build_object('ok', true, 'provider_message_id', i.value -> 'provider_message_id',
				'sent_at', i.value -> 'sent_at', 'raw', i.value -> 'raw_meta')) order by i.ordinality), '[]')
		from jsonb_array_elements(p_items) with ordinality i));
end
$$;
