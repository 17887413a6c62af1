create or replace function autopost.commit_outcome(p_workspace_id text, p_delivery_id uuid, p_claim_token text,
	p_outcome jsonb) returns jsonb
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: commits the outcome of a call and decides the status: sent, retry, failed_permanent or
--          dead. Only the current claim token is accepted. p_outcome: {"ok": true,
--          "provider_message_id", "sent_at", "raw"} or {"ok": false, "error": {"category", "scope",
--          "code", "known", "retry_after_ms", "moved": {"from", "to"} for a chat with a new id,
--          "message", "raw"}}. Both may have "used": {use: times} for further paid uses. A post
--          that was found instead of sent has "reconciled": true in "raw". A series is sent when
--          all its steps are: this commit acknowledges the last one; record_series_progress or
--          "raw": {"steps": {name: ids}} acknowledges those before. If start_call was left out, the
--          start is recorded now with the time of the claim. A malformed error does not lose the
--          outcome: an unusable category, scope, known or wait is ignored and kept under "misread"
--          in the event's error. A timeout without "known" is an unknown outcome. A wait of the
--          platform is capped at a week.
-- Returns: {"applied": true, "status", "attempt", "next_retry_at"}, the same with "repeated" for a
--          repeated commit, or {"applied": false, "reason": "stale" | "unknown_delivery" |
--          "steps_missing", "steps": [names]}. After "steps_missing" the claim continues.
-- Raises:  AP001 for a wrong argument.
-- Locks:   see commit_items.
-- Writes:  deliveries, channels, platform_limits, channel_gates, events; admin_audit_log if a chat
--          moved.
begin
	perform autopost.enter_workspace(p_workspace_id);
	return autopost.commit_items(p_workspace_id, jsonb_build_array(jsonb_build_object(
		'delivery_id', p_delivery_id, 'claim_token', p_claim_token, 'outcome', p_outcome))) -> 0;
end
$$;

create or replace function autopost.commit_outcome_batch(p_workspace_id text, p_items jsonb) returns jsonb
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: commit_outcome for many deliveries in one transaction. p_items: [{"delivery_id",
--          "claim_token", "outcome", "has_raw": true if the caller has the whole answer of the
--          platform to a failed call}].
-- Returns: an array of its answers in the same order. After a failure with has_raw, and while raw
--          payloads are kept, the answer and the events have a "payload_ref": the caller then
--          stores the payload under that name.
begin
	perform autopost.enter_workspace(p_workspace_id);
	return autopost.commit_items(p_workspace_id, p_items);
end
$$;
