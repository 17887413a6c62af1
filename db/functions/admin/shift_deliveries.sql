create or replace function autopost.check_shift(p_seconds int) returns void
language plpgsql stable
as $$
-- Purpose: refuses a shift by nothing or beyond schedule_horizon.
-- Raises:  AP001.
begin
	perform autopost.require_argument('seconds', p_seconds is not null);
	if p_seconds = 0 or abs(p_seconds::bigint) > extract(epoch from autopost.schedule_horizon()) then
		perform autopost.raise_argument('seconds', format('must not be 0 and at most %s, got %s',
			autopost.schedule_horizon(), p_seconds), 'pass 7200 for two hours later, -7200 for two hours earlier');
	end if;
end
$$;

create or replace function autopost.shift_deliveries(p_workspace_id text, p_delivery_ids uuid[], p_seconds int,
	p_operator text, p_reason text, p_dry_run boolean) returns jsonb
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: moves deliveries that wait by p_seconds from their planned times; from now on if they are
--          due. Negative: earlier. Otherwise as reschedule.
-- Returns: as reschedule.
-- Raises:  AP001 for a wrong argument.
-- Locks:   channels, deliveries, channel_gates, audit_heads, in this order.
-- Writes:  deliveries, channel_gates, events (rescheduled), admin_audit_log.
begin
	perform autopost.enter_workspace(p_workspace_id);
	perform autopost.check_shift(p_seconds);
	return autopost.moved(p_workspace_id, p_delivery_ids, jsonb_build_object('seconds', p_seconds), p_operator,
		p_reason,
		p_dry_run);
end
$$;
