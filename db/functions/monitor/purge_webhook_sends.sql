create or replace function autopost.purge_webhook_sends(p_workspace_id text) returns jsonb
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: deletes up to 5,000 requests of result webhooks, oldest first, that ended before
--          webhook_retention_days; of disabled webhooks also waiting ones of that age.
-- Returns: {"purged", "more"}.
-- Locks:   webhook_sends (skip locked).
-- Reads:   result_webhooks.
-- Writes:  webhook_sends.
declare
	v_before timestamptz;
	v_purged int;
begin
	perform autopost.enter_workspace(p_workspace_id);
	v_before := autopost.kept_from('webhook_retention_days');
	with old as materialized (
		select x.webhook_id, x.event_id from autopost.webhook_sends x
		where x.workspace_id = p_workspace_id and x.created_at < v_before
		and (x.finished_at < v_before or exists (
			select 1 from autopost.result_webhooks w where w.workspace_id = p_workspace_id
				and w.webhook_id = x.webhook_id and not w.enabled))
		order by x.created_at
		limit 5000
		for update of x skip locked
	)
	delete from autopost.webhook_sends s
	using old o
	where s.workspace_id = p_workspace_id and s.webhook_id = o.webhook_id and s.event_id = o.event_id;
	get diagnostics v_purged = row_count;
	return jsonb_build_object('purged', v_purged, 'more', v_purged = 5000);
end
$$;
