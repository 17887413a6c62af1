create or replace function autopost.get_delivery(p_workspace_id text, p_delivery_id uuid) returns jsonb
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: returns a delivery with its history.
-- Returns: the answer of why without "status", with "events": the first 1,000 as written, oldest
--          first; null if the workspace has no such delivery.
-- Reads:   as why; events.
declare
	v_why jsonb;
begin
	perform autopost.enter_workspace(p_workspace_id);
	perform autopost.require_argument('delivery_id', p_delivery_id is not null);
	v_why := autopost.why(p_workspace_id, p_delivery_id);
	if v_why ->> 'status' <> 'found' then
		return null;
	end if;
	return v_why - 'status' || jsonb_build_object('events', (
		select coalesce(jsonb_agg(jsonb_build_object('id', x.id, 'ts', x.ts, 'action', x.action, 'result', x.result,
			'attempt', x.attempt,
			'error', x.error, 'meta', x.meta) order by x.ts, x.id), '[]')
		from (select e.id, e.ts, e.action, e.result, e.attempt, e.error, e.meta from autopost.events e
			where e.workspace_id = p_workspace_id and e.delivery_id = p_delivery_id
			order by e.ts, e.id
			limit 1000) x));
end
$$;
