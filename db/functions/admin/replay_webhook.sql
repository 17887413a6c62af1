create or replace function autopost.replay_webhook(
	p_workspace_id text, p_webhook_id text, p_filter jsonb, p_operator text, p_reason text, p_dry_run boolean
) returns jsonb
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: sends events to a result webhook again, at once and with the same ids: {"since", "until"
--          (default now)}, or {"event_ids": up to 1,000}; "failed_only": true selects only failed
--          ones. A time range also includes events that were never sent, as long as they are
--          stored, about 5,000 per call; continue with since = next_since. Requests in flight do
--          not change.
-- Returns: {"applied", "dry_run", "queued", "next_since": null at the end, "unknown": [ids that
--          were not sent, or too long ago]}; or {"applied": false, "dry_run"} with reason
--          unknown_webhook, disabled, or nothing_to_replay.
-- Raises:  AP001 for a wrong argument.
-- Locks:   webhook_sends, audit_heads.
-- Reads:   result_webhooks, events.
-- Writes:  webhook_sends, admin_audit_log.
declare
	v_act jsonb;
	v_enabled boolean;
	v_since timestamptz;
	v_until timestamptz;
	v_ids uuid[];
	v_replayed jsonb;
begin
	perform autopost.enter_workspace(p_workspace_id);
	v_act := autopost.manual_act(p_operator, p_reason, p_dry_run);
	perform autopost.require_argument('webhook_id', p_webhook_id <> '');
	perform autopost.check_read(p_filter, '{since,until,event_ids,failed_only}', 1);
	v_since := autopost.instant_in(p_filter, 'since');
	v_until := coalesce(autopost.instant_in(p_filter, 'until'), autopost.now_ts());
	if p_filter ? 'event_ids' = p_filter ? 'since' or (p_filter ? 'event_ids' and p_filter ? 'until') then
		perform autopost.raise_argument('filter', 'must have a time range or events',
			'pass since and optionally until, or event_ids');
	elsif v_since >= v_until then
		perform autopost.raise_argument('filter', 'since must be before until', 'pass an earlier since');
	elsif p_filter ? 'event_ids' then
		if jsonb_typeof(p_filter -> 'event_ids') <> 'array'
			or jsonb_array_length(p_filter -> 'event_ids') not between 1 and 1000 then
			perform autopost.raise_argument('filter', 'event_ids must be a list of 1 to 1000 ids',
				'pass values of the header webhook-id');
		end if;
		perform autopost.require_uuid('filter', i.id) from jsonb_array_elements_text(p_filter -> 'event_ids') i (id);
		v_ids := array(select distinct i.id::uuid from jsonb_array_elements_text(p_filter -> 'event_ids') i (id)
			order by 1);
	end if;
	select w.enabled into v_enabled from autopost.result_webhooks w
	where w.workspace_id = p_workspace_id and w.webhook_id = p_webhook_id for key share of w;
	if v_enabled is not true then
		return jsonb_build_object('applied', false, 'dry_run', p_dry_run, 'reason', case
			when v_enabled is null then 'unknown_webhook' else 'disabled' end);
	end if;
	v_replayed := autopost.replay(p_workspace_id, p_webhook_id, v_ids, tstzrange(v_since, v_until),
		coalesce((p_filter -> 'failed_only')::boolean, false), p_dry_run);
	if v_replayed -> 'queued' = '0' and v_replayed -> 'next_since' = 'null' then
		return jsonb_build_object('applied', false, 'dry_run', p_dry_run, 'reason', 'nothing_to_replay') || v_replayed;
	end if;
	if not p_dry_run then
		perform autopost.audit(p_workspace_id, 'replay_webhook', 'webhook:' || p_webhook_id, v_act, '{}',
			p_filter || (v_replayed - 'unknown'));
	end if;
	return jsonb_build_object('applied', true, 'dry_run', p_dry_run) || v_replayed;
end
$$;
