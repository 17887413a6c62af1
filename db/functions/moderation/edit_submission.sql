create or replace function autopost.edit_submission(p_workspace_id text, p_submission_id uuid, p_changes jsonb,
	p_operator text, p_reason text, p_dry_run boolean) returns jsonb
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: changes a post that waits for a decision. p_changes: fields of the raw payload; null removes
--          one. Approvals given before become void. New media by URL are fetched first.
-- Returns: {"applied": true, "dry_run", "status", "digest", "before", "after"}, or {"applied": false,
--          "dry_run", "reason"}: unknown_submission, not_pending (with "status" and "decision"),
--          unchanged, invalid (with "errors").
-- Raises:  AP001 for a wrong argument.
-- Locks:   submissions, audit_heads, in this order.
-- Writes:  submissions, approvals, events (submission_edited), admin_audit_log.
declare
	v_act jsonb;
	v_old autopost.submissions;
	v_new autopost.submissions;
	v_errors jsonb;
	v_base jsonb := jsonb_build_object('dry_run', p_dry_run);
	v_now timestamptz;
begin
	perform autopost.enter_workspace(p_workspace_id);
	v_act := autopost.manual_act(p_operator, p_reason, p_dry_run);
	perform autopost.require_argument('submission_id', p_submission_id is not null),
		autopost.require_argument('changes', jsonb_typeof(p_changes) = 'object');
	select s.* into v_old from autopost.submissions s
	where s.workspace_id = p_workspace_id and s.submission_id = p_submission_id
	for no key update of s;
	if v_old.submission_id is null then
		return v_base || '{"applied": false, "reason": "unknown_submission"}';
	elsif v_old.status <> 'pending' then
		return v_base || jsonb_strip_nulls(jsonb_build_object('applied', false, 'reason', 'not_pending', 'status',
			v_old.status, 'decision', autopost.decision_of(v_old)));
	end if;
	v_new := v_old;
	v_new.raw_payload := (select coalesce(jsonb_object_agg(f.key, f.value), '{}')
		from jsonb_each(v_old.raw_payload || p_changes) f where f.value <> 'null');
	if v_new.raw_payload = v_old.raw_payload then
		return v_base || '{"applied": false, "reason": "unchanged"}';
	end if;
	v_errors := autopost.post_errors(p_workspace_id, v_new.raw_payload);
	if v_errors = '[]' then
		v_errors := autopost.origin_errors(p_workspace_id, v_new.raw_payload -> 'media');
	end if;
	if v_errors <> '[]' then
		return v_base || jsonb_build_object('applied', false, 'reason', 'invalid', 'errors', v_errors);
	end if;
	v_new.status := case when autopost.unfetched_media(v_new.raw_payload) then 'fetching' else 'pending' end;
	v_new.plan := autopost.submission_plan(v_new);
	v_new.digest := autopost.plan_digest(v_new.plan);
	if not p_dry_run then
		v_now := autopost.now_ts();
		update autopost.submissions s
		set raw_payload = v_new.raw_payload, status = v_new.status, plan = v_new.plan, digest = v_new.digest, attempt = 0,
			edited_by = p_operator, next_attempt_at = v_now, updated_at = v_now,
			expires_at = v_now + autopost.setting_interval('submission_expire_hours')
		where s.workspace_id = p_workspace_id and s.submission_id = p_submission_id;
		v_now := autopost.now_ts();
		update autopost.approvals a set voided_at = v_now
		where a.workspace_id = p_workspace_id and a.subject = 'submission:' || p_submission_id and a.voided_at is null;
		perform autopost.note_submission(v_new, 'submission_edited', v_act || jsonb_build_object('digest',
			v_new.digest));
		perform autopost.audit(p_workspace_id, 'edit_submission', 'submission:' || p_submission_id, v_act,
			autopost.fields_that_differ(v_old.raw_payload, v_new.raw_payload),
			autopost.fields_that_differ(v_new.raw_payload, v_old.raw_payload));
	end if;
	return v_base || jsonb_strip_nulls(jsonb_build_object('applied', true, 'status', v_new.status, 'digest', v_new.digest,
		'before', autopost.fields_that_differ(v_old.raw_payload, v_new.raw_payload), 'after',
		autopost.fields_that_differ(v_new.raw_payload, v_old.raw_payload)));
end
$$;
