create or replace function autopost.ready_webhook_workspaces(p_limit int) returns setof text
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Workspaces with an enabled result webhook for which a call is due, or whose events are to be read again. Looks across workspaces.
-- Reads: workspaces, result_webhooks, webhook_cursors, webhook_sends.
declare
	v_now timestamptz := autopost.now_ts();
	v_read_before timestamptz := v_now - autopost.setting_interval('webhook_poll_ms');
begin
	perform autopost.enter_all_workspaces();
	perform autopost.require('limit', p_limit > 0);
	return query
	select w.workspace_id from autopost.workspaces w
	where w.status <> 'disabled' and autopost.may_speak_for(w.workspace_id)
	and exists (
		select 1 from autopost.result_webhooks r
		where r.workspace_id = w.workspace_id and r.enabled
		and (not exists (
				select 1 from autopost.webhook_cursors c
				where c.workspace_id = w.workspace_id and c.read_at > v_read_before and c.position_at is null)
			or r.next_send_at < v_now + interval '1 second' and exists (
				select 1 from autopost.webhook_sends s
				where s.workspace_id = w.workspace_id and s.webhook_id = r.webhook_id and s.status in ('pending', 'sending') and s.due_at <= v_now)))
	order by w.workspace_id
	limit p_limit;
end
$$;
