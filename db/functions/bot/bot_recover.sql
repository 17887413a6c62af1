create or replace function autopost.bot_recover(p_workspace_id text) returns jsonb
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: resumes what a crash or a failure left. Received messages that are due are processed, chat
--          by chat in their order; a message is tried at most five times. Expired leases of the
--          outbox end, and all of daemons without a heartbeat: a call that did not start is released,
--          a started one is an unknown outcome. Up to 500 of each per call. A clock that is not
--          confirmed ends no lease. It never waits.
-- Returns: {"processed", "released", "unknown"}.
-- Raises:  AP002, AP003, AP005 as enter_workspace.
-- Locks:   bot_state, bot_outbox; both with SKIP LOCKED.
-- Reads:   dispatch_runs, workspace_endpoints.
-- Writes:  bot_inbox, bot_outbox, clock_observers; as bot_receive and bot_commit_reply.
declare
	v_now timestamptz;
	v_chat record;
	v_row record;
	v_processed int := 0;
	v_released int := 0;
	v_unknown int := 0;
	v_silent text[];
begin
	if autopost.enter_workspace(p_workspace_id) = 'disabled' then
		return '{"processed": 0, "released": 0, "unknown": 0}';
	end if;
	v_now := autopost.now_ts();
	for v_chat in
		select i.provider, i.auth_ref, i.chat_id from autopost.bot_inbox i
		where i.workspace_id = p_workspace_id and i.status = 'received' and i.tries < 5 and i.next_at <= v_now
		group by i.provider, i.auth_ref, i.chat_id
		order by min(i.next_at)
		limit 500
	loop
		continue when not autopost.bot_lock_state(p_workspace_id, v_chat.provider, v_chat.auth_ref, v_chat.chat_id,
			false);
		v_processed := v_processed + autopost.bot_process(p_workspace_id, v_chat.provider, v_chat.auth_ref,
			v_chat.chat_id, autopost.bot_config(p_workspace_id, v_chat.auth_ref));
	end loop;
	if autopost.clock_trusted('bot recovery', v_now) then
		v_silent := autopost.silent_runs(v_now);
		for v_row in
			select o.reply_id, o.started_at from autopost.bot_outbox o
			where o.workspace_id = p_workspace_id and o.status = 'sending'
			and (o.next_at <= v_now or o.claimed_by = any (v_silent))
			order by o.reply_id
			limit 500
			for no key update of o skip locked
		loop
			if v_row.started_at is null then
				perform autopost.bot_release(p_workspace_id, v_row.reply_id, v_now);
				v_released := v_released + 1;
			else
				perform autopost.bot_settle(p_workspace_id, v_row.reply_id,
					'{"category": "TRANSIENT", "scope": "delivery",
					"code": "lease_expired", "known": false,
					"message": "the lease ran out before an outcome was committed"}');
				v_unknown := v_unknown + 1;
			end if;
		end loop;
	end if;
	perform pg_notify('autopost_wake', 'bot') where v_released > 0;
	return jsonb_build_object('processed', v_processed, 'released', v_released, 'unknown', v_unknown);
end
$$;
