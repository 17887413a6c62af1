create or replace function autopost.fail_permanent(p_workspace_id text, p_delivery_id uuid, p_claim_token text,
	p_error jsonb) returns jsonb
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: sending -> failed_permanent, with the penalties of the error's scope in the same
--          transaction. An error of category TRANSIENT is also final here; the event keeps that
--          category.
-- Returns: as commit_outcome.
-- Raises:  as commit_outcome.
begin
	perform autopost.enter_workspace(p_workspace_id);
	return autopost.commit_items(p_workspace_id, jsonb_build_array(jsonb_build_object(
		'delivery_id', p_delivery_id, 'claim_token', p_claim_token, 'act', 'fail_permanent',
		'outcome', jsonb_build_object('ok', false, 'error', p_error)))) -> 0;
end
$$;

create or replace function autopost.fail_permanent_batch(p_workspace_id text, p_items jsonb) returns jsonb
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: fail_permanent for many. p_items: [{"delivery_id", "claim_token", "error"}].
begin
	perform autopost.enter_workspace(p_workspace_id);
	perform autopost.require_array('items', p_items);
	return autopost.commit_items(p_workspace_id, (
		select coalesce(jsonb_agg(jsonb_build_object('delivery_id', i.value -> 'delivery_id', 'claim_token',
			i.value -> 'claim_token', 'act', 'fail_permanent',
			'outcome', jsonb_build_object('ok', false, 'error', i.value -> 'error')) order by i.ordinality), '[]')
		from jsonb_array_elements(p_items) with ordinality i));
end
$$;
