create or replace function autopost.skip_post(p_workspace_id text, p_message_id uuid, p_operator text, p_reason text,
	p_dry_run boolean) returns jsonb
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: skips the waiting deliveries of a post as skip_deliveries, at most 1,000 a call. Call it
--          again while "waiting" is not 0.
-- Returns: as skip_deliveries, and "waiting": deliveries that a further call skips. {"applied":
--          false, "reason"} with "unknown_message", "nothing_waits", or "fanout_running": channels
--          still get their deliveries.
-- Raises:  AP001 for a wrong argument.
-- Locks:   channels, deliveries.
-- Reads:   messages, fanout_jobs.
-- Writes:  deliveries, events(manual_skip), admin_audit_log.
declare
	v_ids uuid[];
	v_waiting int;
	v_reason text;
begin
	perform autopost.enter_workspace(p_workspace_id);
	perform autopost.manual_act(p_operator, p_reason, p_dry_run);
	perform autopost.require_argument('message_id', p_message_id is not null);
	select (array_agg(w.delivery_id order by w.delivery_id))[:1000], count(*) into v_ids, v_waiting
	from autopost.deliveries w
	where w.workspace_id = p_workspace_id and w.message_id = p_message_id and w.status in ('queued', 'retry');
	v_reason := case
		when not exists (select 1 from autopost.messages m where m.workspace_id = p_workspace_id
			and m.message_id = p_message_id) then 'unknown_message'
		when exists (select 1 from autopost.fanout_jobs j where j.workspace_id = p_workspace_id
			and j.message_id = p_message_id and j.status = 'running') then 'fanout_running'
		when v_waiting = 0 then 'nothing_waits' end;
	if v_reason is not null then
		return jsonb_build_object('applied', false, 'dry_run', p_dry_run, 'reason', v_reason);
	end if;
	return autopost.skip_deliveries(p_workspace_id, v_ids, p_operator, p_reason, p_dry_run)
		|| jsonb_build_object('waiting', v_waiting - cardinality(v_ids));
end
$$;
