create or replace function autopost.put_recurrence(p_workspace_id text, p_recurrence_id uuid, p_fields jsonb,
	p_operator text, p_reason text, p_dry_run boolean) returns jsonb
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: adds or changes a post that repeats. p_recurrence_id null: a new one. p_fields:
--          {"endpoint_id", "rule": of RFC 5545 without DTSTART, "zone": IANA name, "starts_at": local
--          time such as 2026-12-01T10:00, "payloads": [posts, taken in turn], "enabled"}. A changed
--          rule, zone or start forgets the expected occurrences, also moved ones. Occurrences of the
--          past are never made. What would have been due while it was disabled is skipped.
-- Returns: {"applied": true, "dry_run", "created", "before", "after", "recurrence_id"}, or {"applied":
--          false, "dry_run"} with reason unchanged, or invalid and "errors": [{"field", "reason",
--          "remedy"}].
-- Raises:  AP001 for a wrong argument.
-- Locks:   workspaces, recurrences, audit_heads.
-- Writes:  recurrences, occurrences, events (occurrence_skipped), admin_audit_log.
declare
	v_act jsonb;
	v_before autopost.recurrences;
	v_row autopost.recurrences;
	v_put jsonb;
	v_answer jsonb;
	v_now timestamptz;
	v_id uuid := coalesce(p_recurrence_id, autopost.new_id());
begin
	perform autopost.enter_workspace(p_workspace_id);
	v_act := autopost.manual_act(p_operator, p_reason, p_dry_run);
	perform autopost.lock_configuration(p_workspace_id) where not p_dry_run;
	select r.* into v_before from autopost.recurrences r
	where r.workspace_id = p_workspace_id and r.recurrence_id = v_id for no key update;
	v_put := autopost.put_row(p_fields, autopost.recurrence_rules(), autopost.recurrence_fields(v_before));
	v_answer := autopost.put_answer(v_put, case when v_put -> 'errors' = '[]'
		then autopost.recurrence_errors(p_workspace_id, v_put -> 'after') end, p_dry_run);
	if v_answer -> 'applied' = 'false' or p_dry_run then
		return v_answer;
	end if;
	v_now := autopost.now_ts();
	v_row := jsonb_populate_record(v_before, v_put -> 'after');
	if v_before.recurrence_id is null or (v_row.rule, v_row.zone, v_row.starts_at)
		is distinct from (v_before.rule, v_before.zone, v_before.starts_at) then
		delete from autopost.occurrences o
		where o.workspace_id = p_workspace_id and o.recurrence_id = v_id and o.status = 'expected';
		v_row.revision := coalesce(v_before.revision, 0) + 1;
		v_row.expanded_to := greatest(v_now at time zone v_row.zone, v_row.starts_at - interval '1 second');
		v_row.expand_at := v_now;
	elsif v_row.enabled and not v_before.enabled then
		perform autopost.skip_expected(v_before, v_now, 'paused');
		v_row.expanded_to := greatest(v_row.expanded_to, v_now at time zone v_row.zone);
		v_row.expand_at := case when isfinite(v_row.expanded_to) then least(v_row.expand_at, v_now)
			else v_row.expand_at end;
	end if;
	insert into autopost.recurrences as r (workspace_id, recurrence_id, endpoint_id, rule, zone, starts_at, payloads,
		enabled, revision, expanded_to, expand_at, next_at, author, created_at, updated_at)
	values (p_workspace_id, v_id, v_row.endpoint_id, v_row.rule, v_row.zone, v_row.starts_at, v_row.payloads,
		v_row.enabled, v_row.revision, v_row.expanded_to, v_row.expand_at, v_now, p_operator, v_now, v_now)
	on conflict (workspace_id, recurrence_id) do update
	set endpoint_id = excluded.endpoint_id, rule = excluded.rule, zone = excluded.zone, starts_at = excluded.starts_at,
		payloads = excluded.payloads, enabled = excluded.enabled, revision = excluded.revision,
		expanded_to = excluded.expanded_to, expand_at = excluded.expand_at, author = excluded.author,
		last_error = null, updated_at = excluded.updated_at;
	perform autopost.arm_recurrence(p_workspace_id, v_id);
	perform autopost.audit(p_workspace_id, 'put_recurrence', 'recurrence:' || v_id, v_act, v_answer -> 'before',
		v_answer -> 'after');
	return v_answer || jsonb_build_object('recurrence_id', v_id);
end
$$;
