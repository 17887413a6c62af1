create or replace function autopost.bot_commit_reply(p_workspace_id text, p_reply_id uuid, p_claim_token text,
	p_outcome jsonb) returns jsonb
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: commits the outcome of the call of a message of the bot: {"ok": true, "provider_message_id",
--          "raw"} or {"ok": false, "error": error contract}. A failure is retried by the policy of
--          platform and code; without attempts the message is dead. A message with an unknown outcome
--          is sent once more; a second unknown outcome is final, so a chat sees at most two copies. A
--          wait that the platform states is kept, for its scope platform by the whole rate group. If
--          bot_start_reply was left out, the call counts as started at the claim.
-- Returns: {"applied": true, "status": sent | retry | failed_permanent | dead, "attempt",
--          "next_retry_at"}, the same with "repeated" for a repeated commit, or {"applied": false,
--          "reason": "stale" | "unknown_reply"}.
-- Raises:  AP001 for a wrong argument; AP002, AP003, AP005 as enter_workspace.
-- Locks:   platform_limits if the outcome concerns the rate group, bot_outbox, in this order.
-- Reads:   retry_policies, platforms, channels.
-- Writes:  bot_outbox, platform_limits, alerts, events (bot_replied, breaker, cooldown).
declare
	v_reply autopost.bot_outbox;
	v_group text;
	v_error jsonb;
	v_answer jsonb;
	v_counts boolean;
begin
	perform autopost.enter_workspace(p_workspace_id);
	perform autopost.require_argument('reply_id', p_reply_id is not null),
		autopost.require_argument('claim_token', p_claim_token <> '');
	if jsonb_typeof(p_outcome -> 'ok') is distinct from 'boolean' or p_outcome -> 'ok' = 'false'
		and jsonb_typeof(p_outcome -> 'error') is distinct from 'object' then
		perform autopost.raise_argument('outcome', 'has no "ok", or no "error"',
			'pass {"ok": true} or {"ok": false, "error": {…}}');
	end if;
	select o.* into v_reply from autopost.bot_outbox o
	where o.workspace_id = p_workspace_id and o.reply_id = p_reply_id;
	v_group := autopost.bot_rate_group(p_workspace_id, v_reply.provider, v_reply.auth_ref);
	v_error := case when p_outcome -> 'ok' = 'false' then autopost.normalised_error(p_outcome -> 'error') end;
	v_counts := case when v_error is null then autopost.groups_are_failing(p_workspace_id)
		else autopost.is_outage(v_error) or v_error ->> 'scope' = 'platform' end;
	if v_counts then
		perform 1 from autopost.platform_limits l
		where l.workspace_id = p_workspace_id and l.platform = v_reply.provider and l.rate_group = v_group
		for no key update of l;
	end if;
	select o.* into v_reply from autopost.bot_outbox o
	where o.workspace_id = p_workspace_id and o.reply_id = p_reply_id
	for no key update of o;
	if v_reply.claim_token is distinct from p_claim_token then
		return case when v_reply.reply_id is null then '{"applied": false, "reason": "unknown_reply"}'
			when v_reply.settled ->> 'token' = p_claim_token then v_reply.settled -> 'answer' || '{"repeated": true}'
			else '{"applied": false, "reason": "stale"}' end;
	end if;
	update autopost.bot_outbox o
	set started_at = o.claimed_at, last_call_at = greatest(o.send_at, o.claimed_at)
	where o.workspace_id = p_workspace_id and o.reply_id = p_reply_id and o.started_at is null;
	v_answer := case when v_error is null then autopost.bot_end_call(p_workspace_id, p_reply_id, 'sent', null,
		jsonb_build_object('provider_message_id', p_outcome -> 'provider_message_id'))
		else autopost.bot_settle(p_workspace_id, p_reply_id, v_error) end;
	if v_counts then
		perform autopost.bot_judge(p_workspace_id, v_reply.provider, v_group, v_reply.chat_id, p_reply_id, v_error);
	end if;
	return v_answer;
end
$$;
