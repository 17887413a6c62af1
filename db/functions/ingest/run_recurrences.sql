create or replace function autopost.run_occurrence(p_recurrence autopost.recurrences, p_occurrence autopost.occurrences)
	returns void
language plpgsql
as $$
-- Purpose: makes the post of an occurrence of a locked recurrence, with its instant as "occurrence" and,
--          if that is still to come, as "scheduled_for". A refused post skips the occurrence.
-- Writes:  occurrences, recurrences, events (occurrence_skipped); as take_request.
declare
	v_payload jsonb := p_recurrence.payloads -> p_recurrence.taken % jsonb_array_length(p_recurrence.payloads)
		|| jsonb_build_object('occurrence', autopost.utc(p_occurrence.at), 'source_ref', 'occurrence:'
			|| p_occurrence.occurrence_id)
		|| case when p_occurrence.at > autopost.now_ts() then jsonb_build_object('scheduled_for',
			autopost.utc(p_occurrence.at)) else '{}' end;
	v_answer jsonb;
	v_error jsonb;
	v_state text;
	v_message text;
	v_now timestamptz;
begin
	begin
		v_answer := autopost.take_request(autopost.known_endpoint(p_recurrence.workspace_id, p_recurrence.endpoint_id),
			'recurrence', jsonb_build_array(v_payload), true, autopost.now_ts(), p_recurrence.author) -> 'results' -> 0;
		v_error := case when v_answer ->> 'status' = 'rejected' then jsonb_build_object('code', 'validation_failed',
			'message', v_answer #>> '{errors,0,field}', 'errors', v_answer -> 'errors') end;
	exception when sqlstate 'AP001' then
		get stacked diagnostics v_state = returned_sqlstate, v_message = message_text;
		v_error := jsonb_build_object('code', v_state, 'message', v_message);
	end;
	v_now := autopost.now_ts();
	update autopost.occurrences o
	set status = case when v_error is null then 'enqueued' else 'skipped' end, error = autopost.redact(v_error),
		reason = case when v_error is not null then 'rejected' end, message_id = (v_answer ->> 'message_id')::uuid,
		submission_id = (v_answer ->> 'submission_id')::uuid, updated_at = v_now
	where o.workspace_id = p_recurrence.workspace_id and o.occurrence_id = p_occurrence.occurrence_id;
	update autopost.recurrences r
	set taken = r.taken + 1
	where r.workspace_id = p_recurrence.workspace_id and r.recurrence_id = p_recurrence.recurrence_id and v_error is null;
	perform autopost.emit_note(p_recurrence.workspace_id, 'occurrence_skipped', 'error', null, null, v_error,
		jsonb_build_object('recurrence_id', p_recurrence.recurrence_id, 'cause', 'rejected', 'occurrences', 1, 'first_at',
			autopost.utc(p_occurrence.at), 'last_at', autopost.utc(p_occurrence.at))) where v_error is not null;
end
$$;

create or replace function autopost.run_recurrences(p_workspace_id text) returns jsonb
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: makes posts of due occurrences: a minute ahead, or a day ahead if people decide about them. Of
--          several that are past, only the latest becomes a post; the others are skipped. A recurrence
--          that is not expanded until now waits for that. Up to 50 recurrences a call.
-- Returns: {"ran": recurrences, "more"}.
-- Locks:   recurrences (skip locked), then as take_request.
-- Writes:  occurrences, recurrences, events (occurrence_skipped); as take_request.
declare
	v_recurrence autopost.recurrences;
	v_occurrence autopost.occurrences;
	v_now timestamptz;
	v_ran int := 0;
begin
	perform autopost.enter_workspace(p_workspace_id);
	if (select w.status from autopost.workspaces w where w.workspace_id = p_workspace_id) <> 'active' then
		return '{"ran": 0, "more": false}';
	end if;
	v_now := autopost.now_ts();
	for v_recurrence in
		select r.* from autopost.recurrences r
		where r.workspace_id = p_workspace_id and r.enabled and r.next_at <= v_now
		and r.expanded_to >= v_now at time zone r.zone
		order by r.next_at
		limit 50
		for no key update skip locked
	loop
		perform autopost.skip_expected(v_recurrence, (
			select max(o.at) from autopost.occurrences o
			where o.workspace_id = p_workspace_id and o.recurrence_id = v_recurrence.recurrence_id
				and o.status = 'expected' and o.at <= v_now), 'missed');
		for v_occurrence in
			select o.* from autopost.occurrences o
			where o.workspace_id = p_workspace_id and o.recurrence_id = v_recurrence.recurrence_id
				and o.status = 'expected' and o.at <= v_now + autopost.lead_of(p_workspace_id, v_recurrence.endpoint_id)
			order by o.at, o.occurrence_id
		loop
			select r.* into v_recurrence from autopost.recurrences r
			where r.workspace_id = p_workspace_id and r.recurrence_id = v_recurrence.recurrence_id;
			perform autopost.run_occurrence(v_recurrence, v_occurrence);
		end loop;
		perform autopost.arm_recurrence(p_workspace_id, v_recurrence.recurrence_id);
		v_ran := v_ran + 1;
	end loop;
	return jsonb_build_object('ran', v_ran, 'more', v_ran = 50);
end
$$;
