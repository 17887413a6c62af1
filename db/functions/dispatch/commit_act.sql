create or replace function autopost.commit_act(p_workspace_id text, p_act_id uuid, p_claim_token text, p_outcome jsonb)
	returns jsonb
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: commits the outcome of the call of a post change. p_outcome: {"ok": true} or {"ok":
--          false, "error": {"category", "scope", "code", "known", "retry_after_ms", "message",
--          "raw"}, "has_raw": as in commit_outcome_batch}. A transient failure or an unknown outcome is retried by the retry policy of
--          platform and code while attempts are left, because a repeated post change has no further
--          effect. Any other failure ends it as failed. A wait given by the platform cools its
--          scope down. A missing credential holds the channel. A failure whose policy costs no attempt and has no bound is not counted, nor
--          is a rate limit with a stated wait. Nothing else of the channel changes: a post that
--          cannot be edited says nothing about the next one.
-- Returns: {"applied": true, "status": "done" | "retry" | "failed", "attempt", "next_at",
--          "payload_ref"}, the same
--          with "repeated" for a repeated commit, or {"applied": false, "reason": "stale" |
--          "unknown_act"}.
-- Raises:  AP001 for a wrong argument.
-- Locks:   platform_limits and channels for a wait, deliveries, post_acts, in this order.
-- Writes:  post_acts, platform_limits, channels, events.
declare
	v_act autopost.post_acts;
	v_channel autopost.channels;
	v_error jsonb;
	v_policy autopost.retry_policies;
	v_wait interval;
	v_free boolean;
begin
	perform autopost.enter_workspace(p_workspace_id);
	perform autopost.require_argument('act_id', p_act_id is not null),
		autopost.require_argument('claim_token', p_claim_token <> '');
	if jsonb_typeof(p_outcome -> 'ok') is distinct from 'boolean' or p_outcome -> 'ok' = 'false'
		and jsonb_typeof(p_outcome -> 'error') is distinct from 'object' then
		perform autopost.raise_argument('outcome', 'has no "ok", or no "error"',
			'pass {"ok": true} or {"ok": false, "error": {…}}');
	end if;
	select a.* into v_act from autopost.post_acts a where a.workspace_id = p_workspace_id and a.act_id = p_act_id;
	v_error := case when p_outcome -> 'ok' = 'false' then autopost.named_raw(
		autopost.normalised_error(p_outcome -> 'error'), coalesce(p_outcome -> 'has_raw' = 'true', false)) end;
	perform autopost.lock_for_commit(p_workspace_id, array[v_act.delivery_id],
		coalesce((v_error ->> 'retry_after_ms')::numeric > 0, false));
	select a.* into v_act from autopost.post_acts a where a.workspace_id = p_workspace_id
		and a.act_id = p_act_id for no key update of a;
	if v_act.claim_token is distinct from p_claim_token then
		return case when v_act.act_id is null then '{"applied": false, "reason": "unknown_act"}'
			when v_act.settled ->> 'token' = p_claim_token then v_act.settled -> 'answer' || '{"repeated": true}'
			else '{"applied": false, "reason": "stale"}' end;
	elsif v_error is null then
		return autopost.end_act(v_act, 'done', null, null);
	end if;
	select c.* into v_channel from autopost.channels c where c.workspace_id = p_workspace_id
		and c.channel_id = v_act.channel_id;
	if v_error ->> 'code' = 'credential_missing' then
		perform autopost.hold_for_credential(p_workspace_id, v_channel);
		v_error := v_error || '{"category": "TRANSIENT", "scope": "delivery"}';
	end if;
	v_policy := autopost.retry_policy(p_workspace_id, v_channel.platform, v_error ->> 'code');
	v_wait := autopost.retry_delay(v_policy, v_act.attempt, (v_error ->> 'retry_after_ms')::numeric, random()::numeric);
	if (v_error ->> 'retry_after_ms')::numeric > 0 and v_error ->> 'scope' in ('channel', 'platform') then
		perform autopost.cool_down(p_workspace_id, v_channel, v_error ->> 'scope', autopost.now_ts() + v_wait, v_error);
	end if;
	v_free := not v_policy.costs_attempt and v_policy.max_attempts is null
		or autopost.is_rate_limit(v_error) and (v_error ->> 'retry_after_ms')::numeric > 0;
	if (v_error ->> 'category' = 'PERMANENT' and v_error -> 'known' <> 'false')
		or not v_free and v_act.attempt >= autopost.act_attempts(p_workspace_id, v_channel.platform, v_error ->> 'code') then
		return autopost.end_act(v_act, 'failed', v_error, null);
	end if;
	if v_free then
		v_act.attempt := v_act.attempt - 1;
		update autopost.post_acts a set attempt = v_act.attempt
		where a.workspace_id = p_workspace_id and a.act_id = p_act_id;
	end if;
	return autopost.end_act(v_act, 'retry', v_error, autopost.now_ts() + v_wait);
end
$$;
