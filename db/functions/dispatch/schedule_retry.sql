create or replace function autopost.schedule_retry(
	p_workspace_id text, p_delivery_id uuid, p_claim_token text, p_error jsonb, p_not_before timestamptz default null
) returns jsonb
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: sending -> retry by the central policy, or dead if no attempt is left. An error with
--          "known": false is an unknown outcome. An error of category PERMANENT is also retried
--          here; the event keeps that category. p_not_before is only a lower bound. attempt does
--          not change.
-- Returns: as commit_outcome.
-- Raises:  as commit_outcome.
begin
	perform autopost.enter_workspace(p_workspace_id);
	return autopost.commit_items(p_workspace_id, jsonb_build_array(jsonb_build_object(
		'delivery_id', p_delivery_id, 'claim_token', p_claim_token, 'act', 'schedule_retry', 'not_before', p_not_before,
		'outcome', jsonb_build_object('ok', false, 'error', p_error)))) -> 0;
end
$$;

create or replace function autopost.schedule_retry_batch(p_workspace_id text, p_items jsonb) returns jsonb
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: schedule_retry for many. p_items: [{"delivery_id", "claim_token", "error",
--          "not_before"}].
begin
	perform autopost.enter_workspace(p_workspace_id);
	perform autopost.require_array('items', p_items);
	return autopost.commit_items(p_workspace_id, (
		select coalesce(jsonb_agg(jsonb_build_object('delivery_id', i.value -> 'delivery_id', 'claim_token',
			i.value -> 'claim_token', 'act', 'schedule_retry',
			'not_before', i.value -> 'not_before', 'outcome',
				jsonb_build_object('ok', false, 'error', i.value -> 'error')) order by i.ordinality), '[]')
		from jsonb_array_elements(p_items) with ordinality i));
end
$$;
