create or replace function autopost.extend_lease(p_workspace_id text, p_delivery_id uuid, p_claim_token text,
	p_seconds int) returns jsonb
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: renews the lease of a delivery in flight to p_seconds (1 to 3600) from now. It never
--          shortens the lease.
-- Returns: {"applied": true, "lease_until"} or {"applied": false, "reason": "stale"}.
-- Locks:   deliveries.
-- Writes:  deliveries.
declare
	v_lease timestamptz;
begin
	perform autopost.enter_workspace(p_workspace_id);
	perform autopost.require_argument('delivery_id', p_delivery_id is not null),
		autopost.require_argument('claim_token', p_claim_token <> '');
	if coalesce(p_seconds not between 1 and 3600, true) then
		perform autopost.raise_argument('seconds',
			format('must be between 1 and 3600, got %s', coalesce(p_seconds::text, 'null')),
			'pass the seconds that the call still needs');
	end if;
	perform 1 from autopost.deliveries d where d.workspace_id = p_workspace_id
		and d.delivery_id = p_delivery_id for no key update of d;
	v_lease := autopost.now_ts() + make_interval(secs => p_seconds);
	update autopost.deliveries d
	set sending_lease_until = greatest(d.sending_lease_until, v_lease)
	where d.workspace_id = p_workspace_id and d.delivery_id = p_delivery_id
	and d.status = 'sending' and d.claim_token = p_claim_token
	returning d.sending_lease_until into v_lease;
	if not found then
		return '{"applied": false, "reason": "stale"}';
	end if;
	return jsonb_build_object('applied', true, 'lease_until', v_lease);
end
$$;
