create or replace function autopost.refuse_once(p_source autopost.pull_sources, p_action text, p_file jsonb,
	p_reason text, p_meta jsonb) returns boolean
language plpgsql
as $$
-- Purpose: reports a refused file once for each content and reason. p_file: {"path", "digest"}.
-- Returns: true at the first time.
-- Writes:  file_refusals, events (approval_refused, filebus_refused).
begin
	insert into autopost.file_refusals as r (workspace_id, source_id, path, digest, reason, refused_at)
	values (p_source.workspace_id, p_source.source_id, left(p_file ->> 'path', 400), coalesce(p_file ->> 'digest', ''),
		p_reason, autopost.now_ts())
	on conflict (workspace_id, source_id, path) do update
	set digest = excluded.digest, reason = excluded.reason, refused_at = excluded.refused_at
	where (r.digest, r.reason) is distinct from (excluded.digest, excluded.reason);
	if not found then
		return false;
	end if;
	perform autopost.emit_note(p_source.workspace_id, p_action, 'error', null, null, jsonb_build_object('code',
		p_reason,
		'message', p_meta -> 'message'), jsonb_build_object('source_id', p_source.source_id, 'path',
		left(p_file ->> 'path', 400)) || (p_meta - 'message'));
	return true;
end
$$;

create or replace function autopost.approval_refusal(p_source autopost.pull_sources, p_job autopost.publish_jobs,
	p_approval jsonb) returns text
language plpgsql stable
as $$
-- Purpose: the reason why the approval of a file does not count; null if it counts.
-- Reads:   approvals.
declare
	v_twin autopost.approvals;
begin
	select a.* into v_twin from autopost.approvals a
	where a.workspace_id = p_source.workspace_id and a.subject = 'job:' || (p_approval ->> 'job_id')
		and a.platform = p_approval ->> 'platform' and a.nonce = p_approval ->> 'nonce';
	return case
		when v_twin.approval_id is not null then case when v_twin.file_digest = p_approval ->> 'file_digest'
			then 'repeated' else 'nonce_used' end
		when p_job.status = 'published' then 'published'
		when p_job.source_id <> p_source.source_id then 'other_source'
		when p_source.config_json -> 'require_signed_approvals' = 'true'
			and not (autopost.is_engine_login() and coalesce(p_approval -> 'signed' = 'true', false)) then 'not_signed'
		when p_approval ->> 'expires_at' is not null
			and coalesce(autopost.timestamp_of(p_approval ->> 'expires_at') <= autopost.now_ts(), true) then 'expired'
		else autopost.job_refusal(p_job, p_approval ->> 'payload_digest') end;
end
$$;

create or replace function autopost.receive_approval(p_workspace_id text, p_source_id text, p_approval jsonb)
	returns jsonb
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: takes an approval file of a file job: {"job_id", "platform", "approved", "nonce", "approved_by", "source",
--          "approved_at", "payload_digest", "expires_at"}. The engine adds "path", "file_digest": of the bytes, and
--          "signed": it checked the signature. A nonce counts once. An approval that comes before its job waits for
--          it. The identity of all approvals of a source is file:SOURCE.
-- Returns: {"applied": true, "status", "approvals", "needed"}; or {"applied": false, "reason", "first": reported now}:
--          repeated (the same bytes again), published, nonce_used (other bytes), not_signed, expired, digest_changed,
--          publishing, rejected, unknown_outcome, other_source. All but the first two leave one event.
-- Raises:  AP001 for a wrong argument.
-- Locks:   an advisory lock of the job, publish_jobs, audit_heads, in this order.
-- Reads:   pull_sources, platforms, workspaces.
-- Writes:  approvals, publish_jobs, file_refusals, events (approval_refused, filebus_*), admin_audit_log.
declare
	v_source autopost.pull_sources;
	v_approval jsonb := p_approval;
	v_job autopost.publish_jobs;
	v_row autopost.approvals;
	v_reason text;
	v_answer jsonb;
begin
	perform autopost.enter_workspace(p_workspace_id);
	v_source := autopost.file_source(p_workspace_id, p_source_id);
	perform autopost.require_argument('approval', jsonb_typeof(p_approval) = 'object');
	perform autopost.check_job_name(p_approval ->> 'job_id', p_approval ->> 'platform');
	if coalesce(p_approval -> 'approved' not in ('true', 'false'), true) then
		perform autopost.raise_argument('approval', format('approved must be true or false, got %s',
			coalesce(p_approval ->> 'approved', 'null')), 'write "approved": true');
	elsif coalesce(p_approval ->> 'nonce' !~ '^[A-Za-z0-9][A-Za-z0-9._:@+-]{0,127}$', true) then
		perform autopost.raise_argument('approval', 'nonce must be 1 to 128 letters, digits and . _ : @ + -',
			'use the id of the message that approves');
	end if;
	v_approval := v_approval || jsonb_build_object('file_digest', coalesce(p_approval ->> 'file_digest', 'sha256:'
		|| encode(sha256(convert_to((p_approval - 'signed')::text, 'UTF8')), 'hex')));
	v_job := autopost.lock_job(p_workspace_id, p_approval ->> 'job_id', p_approval ->> 'platform');
	v_reason := autopost.approval_refusal(v_source, v_job, v_approval);
	if v_reason in ('repeated', 'published') then
		return jsonb_build_object('applied', false, 'reason', v_reason);
	elsif v_reason is not null then
		return jsonb_build_object('applied', false, 'reason', v_reason, 'first', autopost.refuse_once(v_source,
			'approval_refused', jsonb_build_object('path', coalesce(p_approval ->> 'path', 'approve-' || (p_approval
				->> 'job_id')
			|| '-' || (p_approval ->> 'platform') || '-' || (p_approval ->> 'nonce')), 'digest', v_approval ->
				'file_digest'),
			v_reason, jsonb_build_object('job_id', p_approval -> 'job_id', 'platform', p_approval -> 'platform',
				'nonce',
			p_approval -> 'nonce')));
	end if;
	v_row.workspace_id := p_workspace_id;
	v_row.subject := 'job:' || (p_approval ->> 'job_id');
	v_row.platform := p_approval ->> 'platform';
	v_row.nonce := p_approval ->> 'nonce';
	v_row.source := 'file:' || p_source_id;
	v_row.approver := 'file:' || p_source_id;
	v_row.decision := case when p_approval -> 'approved' = 'true' then 'approve' else 'reject' end;
	v_row.payload_digest := p_approval ->> 'payload_digest';
	v_row.file_digest := v_approval ->> 'file_digest';
	v_row.stated_by := left(autopost.redact(p_approval ->> 'approved_by'), 200);
	v_row.expires_at := autopost.timestamp_of(p_approval ->> 'expires_at');
	v_answer := autopost.take_job_decision(v_job, v_row);
	perform autopost.audit(p_workspace_id, v_row.decision || '_publish_job', 'job:' || (p_approval ->> 'job_id') || '/'
		|| v_row.platform, jsonb_build_object('operator', v_row.approver, 'reason', 'approval file ' || v_row.nonce),
		jsonb_build_object('status', v_job.status, 'digest', v_job.digest), jsonb_build_object('decision',
			v_row.decision,
		'status', v_answer -> 'status', 'stated_by', v_row.stated_by));
	return v_answer;
end
$$;
