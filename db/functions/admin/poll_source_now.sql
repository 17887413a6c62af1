create or replace function autopost.poll_source_now(p_workspace_id text, p_source_id text, p_operator text,
	p_reason text, p_dry_run boolean) returns jsonb
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: makes a source due now. A daemon polls it within a second or two.
-- Returns: {"applied": true, "dry_run", "before": {"next_poll_at"}, "after": {"next_poll_at"}},
--          also for a dry run, which changes nothing; or {"applied": false, "dry_run", "reason":
--          unknown_source | disabled | no_endpoint}.
-- Raises:  AP001 for a wrong argument.
-- Locks:   pull_sources, pull_cursors, audit_heads, in this order.
-- Writes:  pull_cursors, admin_audit_log.
declare
	v_act jsonb;
	v_source autopost.list_sources_rows;
	v_before jsonb;
	v_after jsonb;
	v_now timestamptz;
begin
	perform autopost.enter_workspace(p_workspace_id);
	v_act := autopost.manual_act(p_operator, p_reason, p_dry_run);
	perform autopost.require_argument('source_id', p_source_id <> '');
	if not p_dry_run then
		perform 1 from autopost.pull_sources s where s.workspace_id = p_workspace_id
			and s.source_id = p_source_id for no key update of s;
	end if;
	select v.* into v_source from autopost.list_sources_rows v
		where v.workspace_id = p_workspace_id and v.source_id = p_source_id;
	if v_source.source_id is null or not v_source.enabled or not v_source.endpoint_enabled then
		return jsonb_build_object('applied', false, 'dry_run', p_dry_run, 'reason', case
			when v_source.source_id is null then 'unknown_source' when not v_source.enabled then 'disabled'
				else 'no_endpoint' end);
	end if;
	v_before := jsonb_build_object('next_poll_at', v_source.next_poll_at);
	v_after := jsonb_build_object('next_poll_at', autopost.now_ts());
	if not p_dry_run then
		v_now := autopost.now_ts();
		update autopost.pull_cursors c
		set next_poll_at = v_now
		where c.workspace_id = p_workspace_id and c.source_id = p_source_id;
		perform autopost.audit(p_workspace_id, 'poll_source_now', 'source:' || p_source_id, v_act, v_before, v_after);
	end if;
	return jsonb_build_object('applied', true, 'dry_run', p_dry_run, 'before', v_before, 'after', v_after);
end
$$;
