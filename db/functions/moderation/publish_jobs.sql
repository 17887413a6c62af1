-- File jobs: helpers of their functions. A job is a payload file with its artifacts; people approve it, and then it
-- goes out as a submission. The advisory lock of lock_job orders all functions about one job.

create or replace function autopost.publish_job_statuses() returns text[]
language sql immutable parallel safe
as $$
-- Purpose: the statuses of file jobs in the order of their life.
select '{waiting,approved,publishing,published,rejected,failed,unknown}'::text[]
$$;

create or replace function autopost.job_key(p_job_id text, p_platform text) returns text
language sql immutable parallel safe
as $$
-- Purpose: the idempotency key of a job.
select p_job_id || '_' || p_platform
$$;

create or replace function autopost.file_source(p_workspace_id text, p_source_id text) returns autopost.pull_sources
language plpgsql stable
as $$
-- Purpose: the source of kind filebus.
-- Raises:  AP001 if it does not exist or is of another kind.
-- Reads:   pull_sources.
declare
	v_source autopost.pull_sources;
begin
	perform autopost.require_argument('source_id', p_source_id <> '');
	select s.* into v_source from autopost.pull_sources s
	where s.workspace_id = p_workspace_id and s.source_id = p_source_id and s.kind = 'filebus';
	if v_source.source_id is null then
		perform autopost.raise_argument('source_id', format('must be a source of kind filebus, got %s', p_source_id),
			'run autopost source list');
	end if;
	return v_source;
end
$$;

create or replace function autopost.check_job_name(p_job_id text, p_platform text) returns void
language plpgsql stable
as $$
-- Purpose: checks the name of a job and its platform.
-- Raises:  AP001.
-- Reads:   platforms.
begin
	if coalesce(p_job_id !~ '^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$', true) then
		perform autopost.raise_argument('job_id',
			format('must be 1 to 128 letters, digits, dots, dashes and underscores, got %s',
			coalesce(left(p_job_id, 200), 'null')), 'name the folder of the job like demo-dance-loop-v1');
	elsif not exists (select 1 from autopost.platforms p where p.platform = p_platform) then
		perform autopost.raise_argument('platform', format('must be a known platform, got %s',
			coalesce(left(p_platform, 200), 'null')), 'use one of ' || (select string_agg(p.platform, ', ' order by
				p.platform)
			from autopost.platforms p));
	end if;
end
$$;

create or replace function autopost.lock_job(p_workspace_id text, p_job_id text, p_platform text)
	returns autopost.publish_jobs
language plpgsql
as $$
-- Purpose: locks a job, also one without a row, and returns its row.
-- Locks:   an advisory lock of the job, publish_jobs.
declare
	v_job autopost.publish_jobs;
begin
	perform pg_advisory_xact_lock(hashtextextended(concat_ws('|', 'job', p_workspace_id, p_platform, p_job_id), 0));
	select j.* into v_job from autopost.publish_jobs j
	where j.workspace_id = p_workspace_id and j.job_id = p_job_id and j.platform = p_platform
	for no key update of j;
	return v_job;
end
$$;

create or replace function autopost.job_digest(p_payload_digest text, p_artifacts jsonb) returns text
language sql immutable parallel safe
as $$
-- Purpose: the digest of a complete job: what an approval is about.
select encode(sha256(convert_to(jsonb_build_array(p_payload_digest, (
	select jsonb_object_agg(a.key, a.value -> 'blob_ref') from jsonb_each(p_artifacts) a))::text, 'UTF8')), 'hex')
$$;

create or replace function autopost.save_job(p_job autopost.publish_jobs, p_meta jsonb) returns autopost.publish_jobs
language plpgsql
as $$
-- Purpose: stores a locked job. A changed status has one event and wakes the stage of files.
-- Returns: the stored row.
-- Writes:  publish_jobs, events (filebus_*).
declare
	v_before text;
	v_job autopost.publish_jobs;
begin
	select j.status into v_before from autopost.publish_jobs j
	where j.workspace_id = p_job.workspace_id and j.job_id = p_job.job_id and j.platform = p_job.platform;
	insert into autopost.publish_jobs as j (workspace_id, job_id, platform, source_id, status, payload, payload_digest,
		artifacts, digest, prepared, prepared_by, submission_id, delivery_id, doubt, error, platform_post_id, post_url,
		published_at, imported, created_at, updated_at)
	values (p_job.workspace_id, p_job.job_id, p_job.platform, p_job.source_id, p_job.status, p_job.payload,
		p_job.payload_digest, coalesce(p_job.artifacts, '{}'), p_job.digest, p_job.prepared, p_job.prepared_by,
		p_job.submission_id, p_job.delivery_id, p_job.doubt, autopost.redact(p_job.error), p_job.platform_post_id,
		p_job.post_url, p_job.published_at, coalesce(p_job.imported, false), autopost.now_ts(), autopost.now_ts())
	on conflict (workspace_id, job_id, platform) do update
	set status = excluded.status, payload = excluded.payload, payload_digest = excluded.payload_digest,
		artifacts = excluded.artifacts, digest = excluded.digest, prepared = excluded.prepared,
		prepared_by = excluded.prepared_by, submission_id = excluded.submission_id, delivery_id = excluded.delivery_id,
		doubt = excluded.doubt, error = excluded.error, platform_post_id = excluded.platform_post_id,
		post_url = excluded.post_url, published_at = excluded.published_at, imported = excluded.imported,
		updated_at = greatest(excluded.updated_at, autopost.later(j.updated_at, interval '1 microsecond'))
	returning j.* into v_job;
	if v_job.status is distinct from v_before then
		perform autopost.emit_note(v_job.workspace_id, 'filebus_' || v_job.status, case
			when v_job.status in ('failed', 'unknown') then 'error' else 'ok' end, null, null, v_job.error,
			jsonb_build_object('job_id', v_job.job_id, 'platform', v_job.platform, 'source_id', v_job.source_id,
				'from_status', v_before, 'digest', v_job.digest, 'submission_id', v_job.submission_id) || p_meta);
	end if;
	perform pg_notify('autopost_wake', 'files');
	return v_job;
end
$$;

create or replace function autopost.job_error(p_code text, p_message text) returns jsonb
language sql immutable parallel safe
as $$
-- Purpose: the error of a job.
select jsonb_build_object('code', p_code, 'message', p_message)
$$;

create or replace function autopost.settle_job(p_job autopost.publish_jobs) returns autopost.publish_jobs
language plpgsql
as $$
-- Purpose: applies the decisions about a locked, complete, waiting job. Decisions that came first are bound to its
--          content now. One rejection ends it.
-- Reads:   workspaces.
-- Writes:  approvals; as save_job.
declare
	v_job autopost.publish_jobs := p_job;
	v_rejection autopost.approvals;
	v_given int;
	v_now timestamptz;
begin
	if v_job.digest is null or v_job.status <> 'waiting' then
		return v_job;
	end if;
	v_now := autopost.now_ts();
	update autopost.approvals a
	set digest = v_job.digest
	where a.workspace_id = v_job.workspace_id and a.subject = 'job:' || v_job.job_id and a.platform = v_job.platform
		and a.digest is null and a.voided_at is null and coalesce(a.payload_digest = v_job.payload_digest, true)
		and coalesce(a.expires_at > v_now, true);
	select a.* into v_rejection from autopost.approvals a
	where a.workspace_id = v_job.workspace_id and a.subject = 'job:' || v_job.job_id and a.platform = v_job.platform
		and a.digest = v_job.digest and a.voided_at is null and a.decision = 'reject'
	limit 1;
	select count(distinct a.approver) into v_given from autopost.approvals a
	where a.workspace_id = v_job.workspace_id and a.subject = 'job:' || v_job.job_id and a.platform = v_job.platform
		and a.digest = v_job.digest and a.voided_at is null and a.decision = 'approve'
		and (a.approver is distinct from v_job.prepared_by or autopost.approvals_needed(v_job.workspace_id) = 1);
	if v_rejection.approval_id is not null then
		v_job.status := 'rejected';
		v_job.error := autopost.job_error('rejected', coalesce(v_rejection.reason, 'rejected by ' ||
			v_rejection.approver));
	elsif v_given >= autopost.approvals_needed(v_job.workspace_id) then
		v_job.status := 'approved';
		v_job.error := null;
	else
		return v_job;
	end if;
	return autopost.save_job(v_job, '{}');
end
$$;

create or replace function autopost.job_refusal(p_job autopost.publish_jobs, p_payload_digest text) returns text
language sql immutable
as $$
-- Purpose: the reason why a job takes no decision now; null if it does. A job without a row takes one, and so
--          does one with an unreadable state file: the decision waits.
select case
	when p_job.status in ('publishing', 'published', 'rejected') then p_job.status
	when p_job.status = 'unknown' and p_job.delivery_id is not null then 'unknown_outcome'
	when p_job.payload_digest <> p_payload_digest then 'digest_changed' end
$$;

create or replace function autopost.take_job_decision(p_job autopost.publish_jobs, p_approval autopost.approvals)
	returns jsonb
language plpgsql
as $$
-- Purpose: records a decision about a locked job and applies it. The caller sets subject, platform, nonce, source,
--          approver, decision and the like. A decision about a failed job replaces the earlier ones.
-- Returns: {"applied": true, "status", "approvals", "needed"}; the status of an unknown job is "unseen".
-- Writes:  approvals; as settle_job.
declare
	v_job autopost.publish_jobs := p_job;
	v_now timestamptz;
begin
	if v_job.status = 'failed' then
		v_now := autopost.now_ts();
		update autopost.approvals a set voided_at = v_now
		where a.workspace_id = p_approval.workspace_id and a.subject = p_approval.subject
			and a.platform = p_approval.platform and a.voided_at is null;
		v_job.status := 'waiting';
		v_job.submission_id := null;
		v_job.delivery_id := null;
		v_job := autopost.save_job(v_job, '{}');
	end if;
	insert into autopost.approvals (workspace_id, approval_id, subject, platform, nonce, source, approver, decision,
		digest, reason, decided_at, payload_digest, file_digest, stated_by, expires_at)
	values (p_approval.workspace_id, autopost.new_id(), p_approval.subject, p_approval.platform, p_approval.nonce,
		p_approval.source, p_approval.approver, p_approval.decision, v_job.digest, autopost.redact(p_approval.reason),
		autopost.now_ts(), p_approval.payload_digest, p_approval.file_digest, p_approval.stated_by,
			p_approval.expires_at);
	if p_approval.decision = 'reject' and v_job.status = 'approved' then
		v_job.status := 'waiting';
	end if;
	if v_job.job_id is not null then
		v_job := autopost.settle_job(v_job);
	end if;
	return jsonb_build_object('applied', true, 'status', coalesce(v_job.status, 'unseen'), 'approvals', (
		select count(distinct a.approver) from autopost.approvals a
		where a.workspace_id = p_approval.workspace_id and a.subject = p_approval.subject
			and a.platform = p_approval.platform and a.voided_at is null and a.decision = 'approve'
			and coalesce(a.digest = v_job.digest, true)),
		'needed', autopost.approvals_needed(p_approval.workspace_id));
end
$$;

create or replace function autopost.job_post(p_job autopost.publish_jobs, p_channel autopost.channels) returns jsonb
language plpgsql stable
as $$
-- Purpose: the raw payload of a job. On platforms for videos publish_config is the variant; subtitles without a
--          language are left out. Elsewhere the text is title, blank line, description.
declare
	v_config jsonb := coalesce(p_job.payload -> 'publish_config', '{}');
	v_media jsonb := jsonb_build_array(jsonb_build_object('type', 'video', 'blob_ref',
		p_job.artifacts #> '{video,blob_ref}'));
	v_variant jsonb;
	v_language jsonb := coalesce(v_config -> 'subtitles_language', v_config -> 'language');
begin
	if (select p.takes from autopost.platforms p where p.platform = p_job.platform) <> 'videos' then
		return jsonb_build_object('source_ref', autopost.job_key(p_job.job_id, p_job.platform), 'media', v_media,
			'text', concat_ws(E'\n\n', nullif(v_config ->> 'title', ''), nullif(v_config ->> 'description', '')),
			'routing', jsonb_build_object('include_channels', jsonb_build_array(p_channel.channel_id)));
	end if;
	select coalesce(jsonb_object_agg(f.key, f.value), '{}') into v_variant
	from jsonb_each(v_config) f
	where f.key = any (autopost.video_fields()) and f.key not in ('thumbnail', 'captions') and f.value <> 'null';
	if p_job.artifacts ? 'thumbnail' then
		v_variant := v_variant || jsonb_build_object('thumbnail', jsonb_array_length(v_media));
		v_media := v_media || jsonb_build_object('type', 'image', 'blob_ref', p_job.artifacts #>
			'{thumbnail,blob_ref}');
	end if;
	if p_job.artifacts ? 'subtitles' and (v_language is not null
		or p_channel.settings #> '{youtube,captions_language}' is not null) then
		v_variant := v_variant || jsonb_build_object('captions', jsonb_build_array(jsonb_strip_nulls(jsonb_build_object(
			'media', jsonb_array_length(v_media), 'language', v_language))));
		v_media := v_media || jsonb_build_object('type', 'file', 'blob_ref', p_job.artifacts #> '{subtitles,blob_ref}');
	end if;
	return jsonb_build_object('source_ref', autopost.job_key(p_job.job_id, p_job.platform), 'media', v_media, 'text',
		coalesce(nullif(v_config ->> 'description', ''), v_config ->> 'title'), 'variants',
		jsonb_build_object(p_job.platform, v_variant), 'routing',
		jsonb_build_object('include_channels', jsonb_build_array(p_channel.channel_id)));
end
$$;

create or replace function autopost.job_tags(p_job autopost.publish_jobs) returns text[]
language sql immutable
as $$
-- Purpose: the tags of a job, for the route filter of its channel.
select case when jsonb_typeof(p_job.payload #> '{publish_config,tags}') = 'array'
	then array(select jsonb_array_elements_text(p_job.payload #> '{publish_config,tags}')) else '{}' end
$$;

create or replace function autopost.job_channel(p_job autopost.publish_jobs) returns autopost.channels
language plpgsql stable
as $$
-- Purpose: the channel of a job by the configuration of its source; null if it has none.
-- Reads:   pull_sources, channels.
declare
	v_channel autopost.channels;
begin
	select c.* into v_channel from autopost.pull_sources s
	join autopost.channels c on c.workspace_id = p_job.workspace_id
		and c.channel_id = s.config_json -> 'channels' ->> p_job.platform and c.platform = p_job.platform
	where s.workspace_id = p_job.workspace_id and s.source_id = p_job.source_id;
	return v_channel;
end
$$;

create or replace function autopost.follow_job(p_job autopost.publish_jobs) returns autopost.publish_jobs
language plpgsql
as $$
-- Purpose: takes the status of the delivery into a locked job.
-- Reads:   deliveries.
-- Writes:  as save_job.
declare
	v_job autopost.publish_jobs := p_job;
	v_delivery autopost.deliveries;
begin
	if v_job.delivery_id is null or v_job.status not in ('publishing', 'unknown', 'failed') then
		return v_job;
	end if;
	select d.* into v_delivery from autopost.deliveries d
	where d.workspace_id = v_job.workspace_id and d.delivery_id = v_job.delivery_id;
	if v_delivery.delivery_id is null or autopost.job_status_of(v_delivery) = v_job.status then
		return v_job;
	end if;
	v_job.status := autopost.job_status_of(v_delivery);
	v_job.error := case when v_job.status in ('failed', 'unknown') then jsonb_build_object('code',
		coalesce(v_delivery.last_error -> 'code', '"failed"'), 'message', coalesce(v_delivery.last_error -> 'message',
		to_jsonb(autopost.failure_text(v_delivery.last_error)))) end;
	if v_job.status = 'published' then
		v_job.platform_post_id := v_delivery.provider_message_id;
		v_job.post_url := autopost.post_url(v_job.platform, (select c.target_id from autopost.channels c
			where c.workspace_id = v_job.workspace_id and c.channel_id = v_delivery.channel_id),
			v_delivery.provider_message_id);
		v_job.published_at := v_delivery.sent_at;
	end if;
	return autopost.save_job(v_job, jsonb_build_object('delivery_id', v_job.delivery_id));
end
$$;

create or replace function autopost.withdraw_job(p_job autopost.publish_jobs, p_reason text) returns boolean
language plpgsql
as $$
-- Purpose: takes the delivery of a locked job out of the queue. A delivery that was called may exist on the
--          platform and stays.
-- Returns: true if no delivery of the job can go out.
-- Locks:   channels, deliveries, audit_heads, in this order.
-- Writes:  as skip_deliveries.
declare
	v_delivery autopost.deliveries;
begin
	if p_job.delivery_id is null then
		return true;
	end if;
	perform autopost.lock_for_commit(p_job.workspace_id, array[p_job.delivery_id], false);
	select d.* into v_delivery from autopost.deliveries d
	where d.workspace_id = p_job.workspace_id and d.delivery_id = p_job.delivery_id;
	if v_delivery.delivery_id is null or (v_delivery.status in ('failed_permanent', 'dead', 'deduped')
		and autopost.job_status_of(v_delivery) = 'failed') then
		return true;
	elsif v_delivery.status in ('queued', 'retry') and v_delivery.last_call_at is null then
		perform autopost.skip_deliveries(p_job.workspace_id, array[p_job.delivery_id], 'file:' || p_job.source_id,
			p_reason,
			false);
		return true;
	end if;
	return false;
end
$$;

create or replace function autopost.job_document(p_job autopost.publish_jobs) returns jsonb
language sql stable
as $$
-- Purpose: a job as the stage of files needs it. "file" is the content of its state file if it is published, else
--          of its status file.
select jsonb_build_object('job_id', p_job.job_id, 'platform', p_job.platform, 'source_id', p_job.source_id, 'status',
	p_job.status, 'digest', p_job.digest, 'payload_digest', p_job.payload_digest, 'artifacts', p_job.artifacts, 'doubt',
	p_job.doubt, 'prepared', p_job.prepared, 'complete', p_job.digest is not null, 'updated_at', p_job.updated_at,
	'files_at', p_job.files_at, 'file', case when p_job.status = 'published' then jsonb_build_object('job_id',
		p_job.job_id, 'platform', p_job.platform, 'idempotency_key', autopost.job_key(p_job.job_id, p_job.platform),
		'status', 'PUBLISHED', 'published_at', autopost.utc(p_job.published_at), 'platform_post_id',
		p_job.platform_post_id, 'post_url', p_job.post_url)
	else jsonb_build_object('job_id', p_job.job_id, 'platform', p_job.platform, 'idempotency_key',
		autopost.job_key(p_job.job_id, p_job.platform), 'status', p_job.status, 'error', p_job.error, 'updated_at',
		autopost.utc(p_job.updated_at)) end)
$$;
