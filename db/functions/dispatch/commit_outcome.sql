create or replace function autopost.commit_outcome(p_workspace_id text, p_delivery_id uuid, p_claim_token text, p_outcome jsonb) returns jsonb
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- What a call came to: sent, retry, failed_permanent or dead is decided here. Only the holder of the present claim may say it.
-- p_outcome: {"ok": true, "provider_message_id", "sent_at", "raw"} or {"ok": false, "error": {"category", "scope", "code", "known",
-- "retry_after_ms", "moved": {"from", "to"} for a chat that has another id now, "message", "raw"}}; either may have "used": {use: times}, what has a
-- price besides. A post that was found, and not sent, has "reconciled": true in its raw. Returns {"applied": true, "status", "attempt",
-- "next_retry_at"}, the same again with "repeated" for a commit that is asked twice, or {"applied": false, "reason": "stale" | "unknown_delivery" |
-- "steps_missing", "steps": [names]}: a series is sent when all of it is, the last step by this commit, those before it by record_series_progress or in
-- "raw": {"steps": {name: ids}}; the claim goes on. A call that start_call was not asked for is recorded now, as begun with its claim.
-- An outcome is kept though its error is odd: a category, scope, known or wait that means nothing is left out and stands under "misread" in the event's
-- error; a timeout without "known" is one that nobody knows the outcome of; a platform's wait is a week at most.
-- Raises AP001 for a wrong argument. Locks: see commit_items. Writes: deliveries, channels, platform_limits, channel_gates, events,
-- admin_audit_log where a chat moved.
begin
	perform autopost.enter_workspace(p_workspace_id);
	return autopost.commit_items(p_workspace_id, jsonb_build_array(jsonb_build_object(
		'delivery_id', p_delivery_id, 'claim_token', p_claim_token, 'outcome', p_outcome))) -> 0;
end
$$;

create or replace function autopost.commit_outcome_batch(p_workspace_id text, p_items jsonb) returns jsonb
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- commit_outcome for many deliveries in one transaction. p_items: [{"delivery_id", "claim_token", "outcome"}].
-- Returns an array of its answers in the same order.
begin
	perform autopost.enter_workspace(p_workspace_id);
	return autopost.commit_items(p_workspace_id, p_items);
end
$$;
