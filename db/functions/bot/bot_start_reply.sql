create or replace function autopost.bot_release(p_workspace_id text, p_reply_id uuid, p_next_at timestamptz)
	returns void
language plpgsql
as $$
-- Purpose: returns the claim of a locked message that did not start. Its attempt and quota are granted
--          again.
-- Writes:  bot_outbox, quota_uses.
begin
	delete from autopost.quota_uses u
	where u.workspace_id = p_workspace_id and u.delivery_id = p_reply_id and u.attempt = (
		select o.attempt from autopost.bot_outbox o where o.workspace_id = p_workspace_id and o.reply_id = p_reply_id);
	update autopost.bot_outbox o
	set status = case when o.attempt > 1 or o.unknown_outcomes > 0 then 'retry' else 'pending' end,
		attempt = o.attempt - 1, next_at = p_next_at, claim_token = null, claimed_by = null, claimed_at = null,
		send_at = null, started_at = null
	where o.workspace_id = p_workspace_id and o.reply_id = p_reply_id;
end
$$;

create or replace function autopost.bot_start_reply(p_workspace_id text, p_reply_id uuid, p_claim_token text)
	returns jsonb
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: checks claim, lease, workspace and rate group again, confirms the slot, and records that the
--          call starts. Commit it just before the first byte. A late call gets the next slot.
--          Repeatable with the same token.
-- Returns: {"applied": true, "send_at", "deadline", "now": the database's clock} or {"applied": false,
--          "reason": "stale" | "workspace" | "rate"}. After a refusal the message is released, and
--          its attempt is granted again; "stale" means that the claim is not the caller's any more.
-- Raises:  AP001 for a wrong argument; AP002, AP003, AP005 as enter_workspace.
-- Locks:   platform_limits for a new slot, bot_outbox, in this order.
-- Writes:  bot_outbox, platform_limits, quota_uses.
declare
	v_status text := autopost.enter_workspace(p_workspace_id);
	v_reply autopost.bot_outbox;
	v_group text;
	v_limit autopost.platform_limits;
	v_late boolean;
	v_slot timestamptz;
	v_now timestamptz;
begin
	perform autopost.require_argument('reply_id', p_reply_id is not null),
		autopost.require_argument('claim_token', p_claim_token <> '');
	select o.* into v_reply from autopost.bot_outbox o
	where o.workspace_id = p_workspace_id and o.reply_id = p_reply_id and o.claim_token = p_claim_token;
	v_group := autopost.bot_rate_group(p_workspace_id, v_reply.provider, v_reply.auth_ref);
	v_now := autopost.now_ts();
	v_late := v_reply.send_at < v_now - autopost.slot_tolerance() or v_reply.send_at > v_now + autopost.slot_horizon();
	if v_late then
		perform 1 from autopost.platform_limits l
		where l.workspace_id = p_workspace_id and l.platform = v_reply.provider and l.rate_group = v_group
		for no key update of l;
	end if;
	select o.* into v_reply from autopost.bot_outbox o
	where o.workspace_id = p_workspace_id and o.reply_id = p_reply_id and o.claim_token = p_claim_token
	for no key update of o;
	v_now := autopost.now_ts();
	if v_reply.reply_id is null or v_reply.next_at <= v_now then
		return '{"applied": false, "reason": "stale"}';
	end if;
	select l.* into v_limit from autopost.platform_limits l
	where l.workspace_id = p_workspace_id and l.platform = v_reply.provider and l.rate_group = v_group;
	if v_status <> 'active' or v_limit.cooldown_until > v_now then
		perform autopost.bot_release(p_workspace_id, p_reply_id, case when v_status <> 'active'
			then v_now + interval '30 seconds' else least(v_limit.cooldown_until, v_now + interval '30 seconds') end);
		return jsonb_build_object('applied', false, 'reason', case when v_status <> 'active' then 'workspace'
			else 'rate' end);
	end if;
	v_slot := v_reply.send_at;
	if v_late then
		v_slot := greatest(v_now, autopost.bot_chat_free_at(p_workspace_id, v_reply.provider, v_reply.auth_ref,
			v_reply.chat_id), case when v_limit.rate_rps > 0 then v_limit.next_allowed_at end);
		update autopost.platform_limits l
		set next_allowed_at = v_slot + autopost.slot_step(v_limit.rate_rps, 1)
		where l.workspace_id = p_workspace_id and l.platform = v_reply.provider and l.rate_group = v_group
		and l.rate_rps > 0;
	end if;
	update autopost.bot_outbox o
	set send_at = v_slot, started_at = coalesce(o.started_at, v_now), last_call_at = greatest(v_slot, v_now)
	where o.workspace_id = p_workspace_id and o.reply_id = p_reply_id;
	return jsonb_build_object('applied', true, 'now', v_now, 'send_at', v_slot, 'deadline', autopost.call_deadline(
		v_reply.next_at, v_reply.claimed_at, autopost.setting_interval('lease_margin_seconds')));
end
$$;
