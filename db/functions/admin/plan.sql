create or replace function autopost.plan(p_workspace_id text, p_raw_payload jsonb, p_now timestamptz) returns jsonb
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: dry run of an enqueue of this post at p_now (null: now). The enqueue runs in a
--          subtransaction that is rolled back, at the cost of an enqueue. Nothing is written, no
--          lock is kept and no wake-up is sent.
-- Returns: {"status": "planned", "counts", "first_at", "last_at", "channels": [the first 1,000 of
--          all channels: {"channel_id", "platform", "verdict": queued | pending | deduped | invalid
--          | skipped | not_routed | disabled, "reason", and for queued "text", "meta", "send_at" (as known
--          now; null if time alone does not bring it), "held_by"}], "notes", "warnings"}; or
--          {"status": "rejected", "errors"}.
-- Raises:  AP001 for a wrong argument.
-- Locks:   messages, channel_gates; released before the answer.
-- Reads:   as an enqueue; channel_gates, platform_limits.
declare
	v_status text := autopost.enter_workspace(p_workspace_id);
	v_now timestamptz := coalesce(p_now, autopost.now_ts());
	v_answer jsonb;
	v_plan jsonb;
begin
	perform autopost.refuse_disabled(p_workspace_id);
	if not isfinite(v_now) then
		perform autopost.raise_argument('now', 'must be an instant', 'pass a time, or null for now');
	end if;
	begin
		perform set_config('autopost.planning', 'on', true);
		v_answer := autopost.enqueue_posts(p_workspace_id,
			jsonb_build_array(jsonb_build_object('raw', p_raw_payload, 'trace_id', autopost.new_id())),
			autopost.new_id(), v_now) -> 0;
		v_plan := case when v_answer ->> 'status' = 'rejected' then v_answer - 'run_id'
			else autopost.plan_channels(p_workspace_id, v_status, p_raw_payload, v_answer, v_now) end;
		raise exception 'planned' using errcode = 'AP900';
	exception when sqlstate 'AP900' then
		null; -- the writes are rolled back, the variables stay
	end;
	return v_plan || jsonb_strip_nulls(jsonb_build_object(
		'notes', case when autopost.unfetched_media(p_raw_payload) then '["media are fetched first: whether a channel has the post already is decided by their content"]'::jsonb end,
		'warnings', case when jsonb_typeof(p_raw_payload) = 'object'
			then nullif(autopost.post_warnings(p_workspace_id, p_raw_payload), '[]') end));
end
$$;
