create or replace function autopost.change_post(p_workspace_id text, p_change text, p_given jsonb) returns jsonb
language plpgsql
as $$
-- Purpose: makes a change of posts by the name of its function.
-- Returns: the answer of the change; null for an unknown one.
begin
	return (select case p_change
		when 'backfill_x_posts' then
			autopost.backfill_x_posts(p_workspace_id, a.endpoint, a.lines, a.operator, a.reason, a.dry_run)
		when 'bot_forget' then
			autopost.bot_forget(p_workspace_id, a.provider, nullif(a.auth_ref, ''), a.chat, a.operator,
			a.reason, a.dry_run)
		when 'cancel_acts' then
			autopost.cancel_acts(p_workspace_id, a.acts::uuid[], a.operator, a.reason, a.dry_run)
		when 'create_raw_link' then
			autopost.create_raw_link(p_workspace_id, (a.event #>> '{}')::uuid, a.token, a.operator,
			a.reason)
		when 'decide_publish_job' then
			autopost.decide_publish_job(p_workspace_id, a.job, a.platform, a.decision, a.approval,
			a.operator, a.reason)
		when 'decide_submission' then
			autopost.decide_submission(p_workspace_id, a.submission::uuid, a.decision, a.approval,
			a.operator, a.reason)
		when 'edit_post' then
			autopost.edit_post(p_workspace_id, a.message::uuid, a.changes, nullif(a.at, '')::timestamptz,
			a.operator, a.reason, a.dry_run)
		when 'edit_submission' then
			autopost.edit_submission(p_workspace_id, a.submission::uuid, a.changes, a.operator, a.reason,
			a.dry_run)
		when 'manual_requeue' then
			autopost.manual_requeue(p_workspace_id, a.deliveries::uuid[], a.operator, a.reason)
		when 'move_occurrence' then
			autopost.move_occurrence(p_workspace_id, a.id::uuid, a.occurrence::uuid, nullif(a.at,
			'')::timestamptz, a.operator, a.reason, a.dry_run)
		when 'prepare_publish_job' then
			autopost.prepare_publish_job(p_workspace_id, a.source, a.job, a.platform, a.fields,
			a.operator, a.reason, a.dry_run)
		when 'put_draft' then autopost.put_draft(p_workspace_id, nullif(a.id, '')::uuid, a.fields, a.operator)
		when 'put_media_origin' then
			autopost.put_media_origin(p_workspace_id, a.blob_ref, a.origin_url, a.content_type,
			a.size_bytes, a.kind, a.width, a.height) || a.shown
		when 'put_recurrence' then
			autopost.put_recurrence(p_workspace_id, nullif(a.id, '')::uuid, a.fields, a.operator,
			a.reason, a.dry_run)
		when 'receive_event' then autopost.receive_event(p_workspace_id, nullif(a.endpoint, ''), a.event)
		when 'record_upload' then
			autopost.record_upload(p_workspace_id, a.platform, a.auth_ref, a.blob_ref, a.kind, a.used,
			a.operator, a.reason)
		when 'release_stale' then
			autopost.release_stale(p_workspace_id, a.seconds, a.operator, a.reason, a.dry_run)
		when 'remove_draft' then autopost.remove_draft(p_workspace_id, a.id::uuid, a.operator)
		when 'remove_recurrence' then
			autopost.remove_recurrence(p_workspace_id, a.id::uuid, a.operator, a.reason, a.dry_run)
		when 'replace_post' then
			autopost.replace_post(p_workspace_id, a.message::uuid, a.post, a.operator, a.reason, a.dry_run)
		when 'replay_webhook' then
			autopost.replay_webhook(p_workspace_id, a.id, a.filter, a.operator, a.reason, a.dry_run)
		when 'request_acts' then
			autopost.request_acts(p_workspace_id, a.kind, nullif(a.message, '')::uuid,
			a.deliveries::uuid[], a.changes, nullif(a.at, '')::timestamptz, a.operator, a.reason, a.dry_run)
		when 'requeue_auth_lost' then
			autopost.requeue_auth_lost(p_workspace_id, a.auth_ref, a.operator, a.reason, a.dry_run)
		when 'reschedule' then
			autopost.reschedule(p_workspace_id, a.deliveries::uuid[], nullif(a.at, '')::timestamptz,
			a.operator, a.reason, a.dry_run)
		when 'reschedule_post' then
			autopost.reschedule_post(p_workspace_id, a.message::uuid, a."to", a.operator, a.reason,
			a.dry_run)
		when 'resolve_unknown' then
			autopost.resolve_unknown(p_workspace_id, a.delivery::uuid, a.verdict, nullif(a.message, ''),
			a.operator, a.reason)
		when 'retry_submission' then
			autopost.retry_submission(p_workspace_id, a.submission::uuid, a.operator, a.reason, a.dry_run)
		when 'shift_deliveries' then
			autopost.shift_deliveries(p_workspace_id, a.deliveries::uuid[], a.seconds, a.operator,
			a.reason, a.dry_run)
		when 'skip_deliveries' then
			autopost.skip_deliveries(p_workspace_id, a.deliveries::uuid[], a.operator, a.reason, a.dry_run)
		when 'skip_post' then autopost.skip_post(p_workspace_id, a.id::uuid, a.operator, a.reason, a.dry_run)
		when 'submit_draft' then autopost.submit_draft(p_workspace_id, a.id::uuid, a.kind, a.operator)
		when 'submit_post' then
			autopost.submit_post(p_workspace_id, nullif(a.endpoint, ''), a.kind, a.post,
			nullif(a.operator, ''))
		end
	from jsonb_to_record(p_given) a (acts text[], approval jsonb, at text, auth_ref text, blob_ref text, changes jsonb,
		chat text,
		content_type text, decision text, deliveries text[], delivery text, dry_run boolean,
		endpoint text, event jsonb, fields jsonb, filter jsonb, height int, id text, job text, kind text,
		lines jsonb, message text, occurrence text, operator text, origin_url text, platform text,
		post jsonb, provider text, reason text, seconds int, shown jsonb, size_bytes bigint, source text,
		submission text, "to" jsonb, token text, used jsonb, verdict text, width int));
end
$$;

create or replace function autopost.change_configuration(p_workspace_id text, p_change text,
	p_given jsonb) returns jsonb
language plpgsql
as $$
-- Purpose: makes a change of the configuration by the name of its function.
-- Returns: the answer of the change; null for an unknown one.
begin
	return (select case p_change
		when 'acknowledge_alert' then
			autopost.acknowledge_alert(p_workspace_id, a.id::uuid, a.operator, a.reason, a.dry_run)
		when 'apply_config' then
			autopost.apply_config(p_workspace_id, a.items, a.operator, a.reason, a.dry_run)
		when 'begin_credential_link' then
			autopost.begin_credential_link(p_workspace_id, a.id, a.fields, a.operator, a.reason)
		when 'confirm_alert_target' then
			autopost.confirm_alert_target(p_workspace_id, a.id, a.code, a.operator, a.reason, a.dry_run)
		when 'delete_quota' then
			autopost.delete_quota(p_workspace_id, regexp_replace(a.id, '/[^/]*$', ''),
			substring(a.id from '/(\d{1,9})$')::int, a.operator, a.reason, a.dry_run)
		when 'disable_endpoint' then
			autopost.disable_endpoint(p_workspace_id, a.id, a.operator, a.reason, a.dry_run)
		when 'disable_group' then
			autopost.disable_group(p_workspace_id, nullif(a.platform, ''), a."group", a.operator,
			a.reason, a.dry_run)
		when 'enable_bot_rule' then
			autopost.enable_bot_rule(p_workspace_id, a.id, a.version, a.operator, a.reason, a.dry_run)
		when 'enable_group' then
			autopost.enable_group(p_workspace_id, nullif(a.platform, ''), a."group", a.operator, a.reason,
			a.dry_run)
		when 'enable_template' then
			autopost.enable_template(p_workspace_id, a.id, nullif(a.platform, ''), a.version, a.enabled,
			a.operator, a.reason)
		when 'pause_channel' then
			autopost.pause_channel(p_workspace_id, a.channel, a.seconds, a.operator, a.reason, a.dry_run)
		when 'pause_group' then
			autopost.pause_group(p_workspace_id, nullif(a.platform, ''), a."group", a.seconds, a.operator,
			a.reason, a.dry_run)
		when 'poll_source_now' then
			autopost.poll_source_now(p_workspace_id, a.id, a.operator, a.reason, a.dry_run)
		when 'put_alert_target' then
			autopost.put_alert_target(p_workspace_id, a.id, a.fields, a.operator, a.reason, a.dry_run)
		when 'put_avatar' then
			autopost.put_avatar(p_workspace_id, a.avatar, a.fields, a.operator, a.reason, a.dry_run)
		when 'put_bot_rule' then
			autopost.put_bot_rule(p_workspace_id, a.id, a.fields, a.operator, a.reason, a.dry_run)
		when 'put_budget' then
			autopost.put_budget(p_workspace_id, a.id, a.fields, a.operator, a.reason, a.dry_run)
		when 'put_channel' then
			autopost.put_channel(p_workspace_id, a.id, a.fields, a.operator, a.reason, a.dry_run)
		when 'put_credential_binding' then
			autopost.put_credential_binding(p_workspace_id, a.id, a.fields, a.operator, a.reason,
			a.dry_run)
		when 'put_endpoint' then
			autopost.put_endpoint(p_workspace_id, a.id, a.fields, a.operator, a.reason, a.dry_run)
		when 'put_event_type' then
			autopost.put_event_type(p_workspace_id, (a.event #>> '{}'), a.fields, a.operator, a.reason,
			a.dry_run)
		when 'put_moderation_chat' then
			autopost.put_moderation_chat(p_workspace_id, a.id, a.fields, a.operator, a.reason, a.dry_run)
		when 'put_quota' then
			autopost.put_quota(p_workspace_id, regexp_replace(a.id, '/[^/]*$', ''),
			substring(a.id from '/(\d{1,9})$')::int, a.fields, a.operator, a.reason, a.dry_run)
		when 'put_rate_group' then
			autopost.put_rate_group(p_workspace_id, a.platform, a."group", a.fields, a.operator, a.reason,
			a.dry_run)
		when 'put_retry_policy' then
			autopost.put_retry_policy(p_workspace_id, split_part(a.id, '/', 1),
			nullif(substring(a.id from position('/' in a.id) + 1), a.id), a.fields, a.operator, a.reason, a.dry_run)
		when 'put_sealed_secret' then
			autopost.put_sealed_secret(p_workspace_id, a.id, a.platform, a.sealed, a.made_by,
			a.valid_seconds, a.operator, a.reason, a.dry_run, a.hosts)
		when 'put_source' then
			autopost.put_source(p_workspace_id, a.id, a.fields, a.operator, a.reason, a.dry_run)
		when 'put_template' then
			autopost.put_template(p_workspace_id, a.id, nullif(a.platform, ''), a.template, a.operator,
			a.reason)
		when 'put_webhook' then
			autopost.put_webhook(p_workspace_id, a.id, a.fields, a.operator, a.reason, a.dry_run)
		when 'put_workspace' then
			autopost.put_workspace(p_workspace_id, a.fields, a.operator, a.reason, a.dry_run)
		when 'put_x_post_config' then
			autopost.put_x_post_config(p_workspace_id, a.fields, a.operator, a.reason, a.dry_run)
		when 'remove_alert_target' then
			autopost.remove_alert_target(p_workspace_id, a.id, a.operator, a.reason, a.dry_run)
		when 'remove_channel' then
			autopost.remove_channel(p_workspace_id, a.id, a.operator, a.reason, a.dry_run)
		when 'remove_credential' then
			autopost.remove_credential(p_workspace_id, a.id, a.operator, a.reason, a.dry_run)
		when 'remove_moderation_chat' then
			autopost.remove_moderation_chat(p_workspace_id, a.id, a.operator, a.reason, a.dry_run)
		when 'remove_webhook' then
			autopost.remove_webhook(p_workspace_id, a.id, a.operator, a.reason, a.dry_run)
		when 'resume_channel' then
			autopost.resume_channel(p_workspace_id, a.channel, a.operator, a.reason, a.dry_run)
		when 'rotate_auth' then
			autopost.rotate_auth(p_workspace_id, a.channel, a.auth_ref, nullif(a."group", ''), a.operator,
			a.reason, a.dry_run)
		when 'rotate_endpoint' then
			autopost.rotate_endpoint(p_workspace_id, a.id, a.fields, a.operator, a.reason, a.dry_run)
		when 'set_workspace_status' then
			autopost.set_workspace_status(p_workspace_id, a.status, a.operator, a.reason, a.dry_run)
		when 'test_alert_target' then
			autopost.test_alert_target(p_workspace_id, a.id, a.operator, a.reason, a.dry_run)
		when 'test_webhook' then autopost.test_webhook(p_workspace_id, a.id, a.operator, a.reason)
		end
	from jsonb_to_record(p_given) a (auth_ref text, avatar text, channel text, code text, dry_run boolean,
		enabled boolean,
		event jsonb, fields jsonb, "group" text, hosts text[], id text, items jsonb, made_by text,
		operator text, platform text, reason text, sealed jsonb, seconds int, status text,
		template jsonb, valid_seconds int, version int));
end
$$;

create or replace function autopost.change_people(p_workspace_id text, p_change text, p_given jsonb) returns jsonb
language plpgsql
as $$
-- Purpose: makes a change of people, API keys or settings by the name of its function.
-- Returns: the answer of the change; null for an unknown one.
begin
	return (select case p_change
		when 'apply_settings' then autopost.apply_settings(a."values", a.operator, a.reason, a.dry_run)
		when 'create_api_key' then
			autopost.create_api_key(p_workspace_id, a.fields, a.secret_hash, a.operator, a.reason)
		when 'create_workspace' then
			autopost.create_workspace(p_workspace_id, a.name, a."user"::uuid, a.operator, a.reason,
			a.dry_run)
		when 'disable_api_key' then
			autopost.disable_api_key(p_workspace_id, a.key::uuid, a.operator, a.reason, a.dry_run)
		when 'end_own_session' then autopost.end_own_session(a."user"::uuid, a.session::uuid)
		when 'end_sessions' then autopost.end_sessions(a."user"::uuid, a.operator, a.reason)
		when 'invite_user' then
			autopost.invite_user(p_workspace_id, jsonb_build_object('email', a.email, 'role', a.role),
			a.token_hash, a.operator, a.reason)
		when 'put_membership' then
			autopost.put_membership(p_workspace_id, a."user"::uuid, nullif(a.role, ''), a.operator,
			a.reason, a.dry_run)
		when 'put_user' then
			autopost.put_user(nullif(a."user", '')::uuid, a.fields, a.operator, a.reason, a.dry_run)
		when 'revoke_invitation' then
			autopost.revoke_invitation(p_workspace_id, a.invitation::uuid, a.operator, a.reason)
		end
	from jsonb_to_record(p_given) a (dry_run boolean, email text, fields jsonb, invitation text, key text, name text,
		operator text,
		reason text, role text, secret_hash text, session text, token_hash text, "user" text,
		"values" jsonb));
end
$$;

create or replace function autopost.write_once(p_workspace_id text, p_key_id uuid, p_idempotency_key text,
	p_request_hash text, p_change text, p_given jsonb) returns jsonb
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: an API write with an Idempotency-Key in one call: begin_request, then the change if the request
--          is fresh. The change and its stored answer commit together. p_change: the name of a function;
--          p_given: its arguments by the names of change_post, change_configuration and change_people.
--          Only the engine may call it.
-- Returns: {"status": "done", "answer": of the change}, or that of begin_request.
-- Raises:  AP001 for a wrong argument or an unknown change; as the change.
-- Locks:   as begin_request and the change.
-- Writes:  api_requests; as the change.
declare
	v_begun jsonb;
	v_answer jsonb;
begin
	perform autopost.enter_workspace(p_workspace_id);
	perform autopost.require_argument('change', p_change is not null),
		autopost.require_argument('given', jsonb_typeof(p_given) = 'object');
	v_begun := autopost.begin_request(p_workspace_id, p_key_id, p_idempotency_key, p_request_hash);
	if v_begun ->> 'status' <> 'fresh' then
		return v_begun;
	end if;
	v_answer := coalesce(autopost.change_post(p_workspace_id, p_change, p_given),
		autopost.change_configuration(p_workspace_id, p_change, p_given),
		autopost.change_people(p_workspace_id, p_change, p_given));
	if v_answer is null then
		perform autopost.raise_argument('change', format('%s is unknown', p_change),
			'pass the name of a function of an API write');
	end if;
	perform autopost.enter_workspace(p_workspace_id); -- a change may have left it
	insert into autopost.api_requests (workspace_id, key_id, idempotency_key, request_hash, answer, created_at,
		expires_at)
	-- longer than clients retry
	values (p_workspace_id, p_key_id, p_idempotency_key, p_request_hash, v_answer, autopost.now_ts(),
		autopost.now_ts() + interval '24 hours')
	on conflict (workspace_id, key_id, idempotency_key) do update
	set request_hash = excluded.request_hash, answer = excluded.answer, created_at = excluded.created_at,
		expires_at = excluded.expires_at;
	return jsonb_build_object('status', 'done', 'answer', v_answer);
end
$$;
