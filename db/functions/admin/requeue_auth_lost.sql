create or replace function autopost.requeue_resumed_preview(p_workspace_id text, p_delivery_ids uuid[],
	p_resumed text[]) returns jsonb
language plpgsql stable
as $$
-- Purpose: the answer of manual_requeue for these deliveries if those channels were resumed first.
-- Reads:   deliveries, channels.
begin
	return (
		select jsonb_build_object('requeued', count(*) filter (where o.reason is null), 'results',
			coalesce(jsonb_agg(autopost.requeue_result(d.delivery_id, d.status, o.reason) order by array_position(p_delivery_ids,
			d.delivery_id)), '[]'))
		from autopost.deliveries d
		cross join lateral (
			select row(c.*)::autopost.channels as channel from autopost.channels c
			where c.workspace_id = p_workspace_id and c.channel_id = d.channel_id limit 1) x
		cross join lateral (
			select autopost.requeue_obstacle(p_workspace_id, row(d.*)::autopost.deliveries,
				case when d.channel_id = any (p_resumed) then jsonb_populate_record(x.channel, autopost.resumed())
					else x.channel end) as reason) o
		where d.workspace_id = p_workspace_id and d.delivery_id = any (p_delivery_ids));
end
$$;

create or replace function autopost.requeue_auth_lost(p_workspace_id text, p_auth_ref text, p_operator text,
	p_reason text, p_dry_run boolean) returns jsonb
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: resumes a credential that works again. Its channels that wait because of the refusal
--          resume as by resume_channel. Deliveries that failed because of it are requeued as by
--          manual_requeue, the oldest 1,000 per call. p_auth_ref is the present credential of the
--          channels: the new one after rotate_auth.
-- Returns: {"applied", "dry_run", "waiting", "sending", "channels": as resume_channel, "requeued",
--          "more": true if more have failed, "results": as manual_requeue}; or {"applied": false,
--          "dry_run", "reason": "unknown_auth_ref"} if no channel uses it. A dry run changes
--          nothing and has the same answer.
-- Raises:  AP001 without operator or reason.
-- Locks:   credential_health, channels (channel_id), deliveries, channel_gates (channel_id).
-- Writes:  credential_health, alerts, channels, deliveries, channel_gates, events(channel_enabled,
--          manual_requeue), admin_audit_log.
declare
	v_meta jsonb;
	v_ids text[];
	v_held text[];
	v_deliveries uuid[];
	v_answer jsonb;
	v_requeue jsonb := '{"requeued": 0, "results": []}';
begin
	perform autopost.enter_workspace(p_workspace_id);
	v_meta := autopost.manual_act(p_operator, p_reason, p_dry_run);
	perform autopost.require_argument('auth_ref', p_auth_ref <> '');
	v_ids := autopost.channels_of_credential(p_workspace_id, p_auth_ref);
	if v_ids = '{}' then
		return jsonb_build_object('applied', false, 'dry_run', p_dry_run, 'reason', 'unknown_auth_ref');
	end if;
	if not p_dry_run then
		perform autopost.forgive_credential(p_workspace_id, p_auth_ref);
		perform autopost.lock_channels(p_workspace_id, v_ids);
		perform autopost.lock_for_requeue(p_workspace_id, autopost.auth_lost_ids(p_workspace_id, v_ids));
		perform 1 from autopost.channel_gates g
		where g.workspace_id = p_workspace_id and g.channel_id = any (v_ids)
		order by g.channel_id
		for no key update of g;
	end if;
	v_deliveries := autopost.auth_lost_ids(p_workspace_id, v_ids);
	v_held := autopost.held_channels(p_workspace_id, v_ids);
	v_answer := autopost.queue_of(p_workspace_id, v_ids) || '{"channels": []}';
	if v_held <> '{}' then
		v_answer := v_answer || autopost.act_on_channels(p_workspace_id, v_held, autopost.resumed(),
			jsonb_build_object('function', 'requeue_auth_lost',
			'subject', 'auth:' || p_auth_ref, 'event', 'channel_enabled', 'meta', v_meta, 'dry_run', p_dry_run));
	end if;
	if p_dry_run then
		v_requeue := autopost.requeue_resumed_preview(p_workspace_id, v_deliveries, v_held);
	elsif v_deliveries <> '{}' then
		v_requeue := autopost.manual_requeue(p_workspace_id, v_deliveries, p_operator, p_reason);
	end if;
	return v_answer || jsonb_build_object('applied', v_held <> '{}' or v_requeue -> 'requeued' <> '0', 'dry_run',
		p_dry_run,
		'requeued', v_requeue -> 'requeued', 'results', v_requeue -> 'results', 'more',
			cardinality(v_deliveries) = 1000);
end
$$;
