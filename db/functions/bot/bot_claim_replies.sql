create or replace function autopost.bot_claim_replies(p_workspace_id text, p_run_id text, p_limit int)
	returns setof autopost.claimed_reply
language plpgsql security definer set search_path = autopost, pg_temp set lock_timeout = '100ms'
as $$
-- Purpose: leases due messages of the workspace's bots to p_run_id, each with its own token. A chat gets
--          its messages one by one in their order; the next one may go when the one before has ended,
--          dead too. The rate group of the bot's credential, its cooldown, breaker and quota hold as
--          for deliveries; a chat gets 2 messages a second on MAX, 1 on Telegram. Then call
--          bot_start_reply, the platform, and bot_commit_reply.
-- Returns: at most p_limit rows (1 to 1000) that may start within a second, or at send_at. No rows is a
--          normal answer; a workspace that is not active gets none. known_posts is set only after an
--          unknown outcome.
-- Raises:  AP001 for a wrong argument; AP002, AP003, AP005 as enter_workspace.
-- Locks:   platform_limits, quotas, bot_outbox, all with SKIP LOCKED.
-- Reads:   channels, platforms, cluster_identity.
-- Writes:  bot_outbox, platform_limits, quota_uses.
declare
	v_status text := autopost.enter_workspace(p_workspace_id);
	v_now timestamptz := autopost.now_ts();
	v_bot record;
	v_ids uuid[] := '{}';
begin
	perform autopost.require_argument('run_id', p_run_id <> '');
	perform autopost.require_limit(p_limit);
	if v_status <> 'active' or autopost.is_restored() then
		return;
	end if;
	for v_bot in
		select o.provider, o.auth_ref from autopost.bot_outbox o
		where o.workspace_id = p_workspace_id and o.status in ('pending', 'retry') and o.next_at <= v_now
		group by o.provider, o.auth_ref
		order by min(o.next_at)
	loop
		begin
			v_ids := v_ids || autopost.bot_claim_of(p_workspace_id, p_run_id, p_limit - cardinality(v_ids),
				v_bot.provider,
				v_bot.auth_ref);
		exception when lock_not_available then
			continue;
		end;
		exit when cardinality(v_ids) >= p_limit;
	end loop;
	return query
	select p_workspace_id, o.reply_id, o.inbound_provider_message_id, o.provider, o.chat_id, o.auth_ref,
		autopost.bot_rate_group(p_workspace_id, o.provider, o.auth_ref), o.attempt, o.claim_token, o.next_at, o.send_at,
		o.rendered_text, o.render_meta, '{"type": "text"}'::jsonb, '{}'::jsonb, o.trace_id, 'reconcile',
		o.unknown_outcomes, o.last_call_at,
		(select b.provider_message_id from autopost.bot_outbox b
		where b.workspace_id = p_workspace_id and b.provider = o.provider and b.auth_ref = o.auth_ref
		and b.chat_id = o.chat_id and b.provider_message_id is not null and b.last_call_at is not null
		order by b.last_call_at desc limit 1),
		case when o.unknown_outcomes > 0 then autopost.bot_known_posts(p_workspace_id, o.reply_id) end, o.callback_id
	from autopost.bot_outbox o
	where o.workspace_id = p_workspace_id and o.reply_id = any (v_ids)
	order by o.send_at, o.reply_id;
end
$$;
