-- Rights of the roles. Runs after the functions, in their transaction. It is repeatable and complete:
-- a right that is not granted here does not exist.
-- Functions with security definer are public, except triggers. Helpers are invokers and belong to the
-- owner alone. Callers have no right on tables. Readers get the views with a security barrier.
revoke all on all functions in schema autopost from public, autopost_engine, autopost_caller, autopost_reader;
revoke all on all tables in schema autopost from public, autopost_engine, autopost_caller, autopost_reader;
grant usage on schema autopost to autopost_engine, autopost_caller, autopost_reader;

do $$
declare
	v_function record;
	v_view regclass;
	-- Public functions for the daemon only: credentials, keys, settings, the schema, other workspaces.
	v_engine_only constant text[] := array[
		'put_credential_binding', 'resolve_signed_endpoint', 'get_source',
		'get_credential', 'begin_refresh', 'finish_refresh', 'fail_refresh', 'put_sealed_secret',
		'record_credential_check', 'remove_credential', 'begin_credential_link', 'take_credential_link', 'record_upload', 'list_master_keys', 'list_sealed_secrets', 'rewrap_secret',
		'list_due_subscriptions', 'begin_subscription', 'finish_subscription', 'list_unasked_chats',
		'record_chat_rights', 'discover_chats',
		'create_api_key', 'rotate_api_key', 'disable_api_key', 'list_api_keys', 'resolve_api_key', 'touch_api_key',
		'begin_first_link', 'create_owner', 'put_user', 'put_membership', 'invite_user', 'revoke_invitation',
		'get_invitation', 'accept_invitation', 'admit_person', 'create_workspace', 'get_login', 'begin_session', 'resolve_session', 'confirm_session',
		'end_session', 'end_own_session', 'end_sessions', 'list_users', 'list_members', 'list_invitations',
		'begin_request', 'write_once', 'get_draft', 'list_drafts', 'put_draft', 'remove_draft', 'submit_draft',
		'list_due_recurrences', 'put_recurrence', 'remove_recurrence', 'move_occurrence',
		'apply_settings', 'apply_config', 'export_config', 'ensure_event_partitions', 'drop_event_partitions',
		'refresh_statistics', 'set_event_strictness', 'begin_raw', 'get_data_key', 'add_data_key',
		'list_data_keys', 'rewrap_data_key', 'create_raw_link', 'use_raw_link', 'raw_kept_since', 'name_rejected',
		'forget_media_origin', 'remove_media_origin', 'begin_media_removal', 'end_media_removal', 'list_media_removals',
		'list_unknown_media', 'list_served_workspaces',
		'enqueue_webhooks', 'claim_webhooks', 'commit_webhook', 'commit_webhook_batch', 'ready_webhook_workspaces',
		'release_lost', 'touch_run', 'observe_clock', 'due_stages', 'queue_metrics', 'x_post_metrics', 'bot_metrics', 'list_daemons',
		'stream_items',
		'claim_file_source', 'end_file_scan', 'list_file_sources', 'put_job_artifact', 'record_job_files', 'refuse_file',
		'start_publish_job', 'follow_publish_jobs',
		'check_installation', 'claim_sources', 'note_cluster', 'confirm_restore', 'report_duty', 'claim_notices', 'finish_notice',
		'list_alert_targets', 'put_alert_target', 'remove_alert_target', 'test_alert_target', 'confirm_alert_target',
		'ready_bot_workspaces', 'bot_release_lost', 'purge_conversations',
		'ready_moderation_workspaces', 'claim_moderation', 'finish_moderation', 'list_moderation_chats',
		'put_moderation_chat', 'remove_moderation_chat'];
begin
	for v_function in
		select p.oid::regprocedure as signature, p.proname = any (v_engine_only) as engine_only
		from pg_catalog.pg_proc p
		where p.pronamespace = 'autopost'::regnamespace
		and p.prosecdef
		and p.prorettype <> 'trigger'::regtype
	loop
		execute format('grant execute on function %s to autopost_engine', v_function.signature);
		if not v_function.engine_only then
			execute format('grant execute on function %s to autopost_caller', v_function.signature);
		end if;
	end loop;
	for v_view in
		select c.oid::regclass from pg_catalog.pg_class c
		where c.relnamespace = 'autopost'::regnamespace and c.relkind = 'v'
			and c.reloptions @> '{security_barrier=true}'
	loop
		execute format('grant select on %s to autopost_reader', v_view);
	end loop;
end
$$;
