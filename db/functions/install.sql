-- All functions of autopost, in the order of the story; run by autopost migrate, or by hand:
--   psql -v ON_ERROR_STOP=1 --single-transaction -c 'set role autopost_owner; set check_function_bodies = off' -f db/functions/install.sql -f db/grants.sql
-- A caller sees the functions of ingest/, dispatch/, monitor/ and admin/; those of lib/ are the owner's own.

-- The ground: time, ids, settings, who may speak for which workspace, what an error and an event look like.
\ir lib/now_ts.sql
\ir lib/ids.sql
\ir lib/refuse.sql
\ir lib/setting.sql
\ir lib/enter_workspace.sql
\ir lib/redact.sql
\ir lib/check_read.sql
\ir lib/emit_event.sql
\ir lib/retention.sql

-- What a post is: judged, brought to its one normal form, hashed, rendered in each platform's dialect.
\ir lib/text_units.sql
\ir lib/canonical_url.sql
\ir lib/normalize_text.sql
\ir lib/payload_errors.sql
\ir lib/normalize_payload.sql
\ir lib/markup.sql
\ir lib/templates.sql
\ir lib/link_params.sql
\ir lib/cut_text.sql
\ir lib/render.sql
\ir lib/routing.sql

-- What keeps rows true whoever edits them: the table of transitions, posting windows, gates, quotas, the lookup of secrets.
\ir lib/guard_transition.sql
\ir lib/posting_window.sql
\ir lib/gates.sql
\ir lib/quota.sql
\ir lib/put_row.sql
\ir lib/secret_lookup.sql

-- In: an endpoint is resolved and guarded; receipts, then submissions or deliveries, in one transaction; to very many channels, in several.
\ir lib/known_endpoint.sql
\ir lib/runs.sql
\ir lib/receipts.sql
\ir lib/message_media.sql
\ir lib/media_removals.sql
\ir lib/fan_out.sql
\ir lib/fanout_jobs.sql
\ir lib/enqueue_posts.sql
\ir lib/take_posts.sql
\ir lib/floods.sql
\ir lib/take_push.sql
\ir lib/poll_interval.sql
\ir ingest/resolve_endpoint.sql
\ir ingest/resolve_signed_endpoint.sql
\ir ingest/guard_ingress.sql
\ir ingest/receive_push.sql
\ir ingest/receive_signed_push.sql
\ir ingest/enqueue_messages_and_deliveries.sql
\ir ingest/submit_post.sql
\ir ingest/list_due_sources.sql
\ir ingest/start_ingest_run.sql
\ir ingest/ingest_pull_chunk.sql
\ir ingest/set_pull_cursor.sql
\ir ingest/fail_poll.sql
\ir ingest/finish_ingest_run.sql
\ir ingest/get_run.sql
\ir ingest/ready_fanout_workspaces.sql
\ir ingest/run_fanout.sql
\ir ingest/ready_submission_workspaces.sql
\ir ingest/claim_submissions.sql
\ir ingest/extend_submission.sql
\ir ingest/put_media_origin.sql
\ir ingest/get_media_origin.sql
\ir ingest/commit_submission.sql
\ir ingest/get_media_blob.sql
\ir ingest/put_media_blob.sql

-- Out: a workspace is ready, its deliveries are claimed, a call begins, its outcome is committed.
\ir lib/slots.sql
\ir lib/breaker.sql
\ir lib/pick_group.sql
\ir lib/series_progress.sql
\ir lib/retry_policy.sql
\ir lib/settle.sql
\ir lib/auth_lost.sql
\ir lib/settle_failure.sql
\ir lib/commit_items.sql
\ir lib/hand_back.sql
\ir dispatch/touch_run.sql
\ir lib/armed_workspaces.sql
\ir dispatch/ready_workspaces.sql
\ir dispatch/ready_workspaces_after.sql
\ir dispatch/next_wake_ms.sql
\ir dispatch/begin_dispatch.sql
\ir dispatch/end_dispatch.sql
\ir dispatch/claim_deliveries.sql
\ir dispatch/get_credential_binding.sql
\ir dispatch/start_call.sql
\ir dispatch/record_series_progress.sql
\ir dispatch/extend_lease.sql
\ir dispatch/release_claims.sql
\ir dispatch/commit_outcome.sql
\ir dispatch/mark_sent.sql
\ir dispatch/schedule_retry.sql
\ir dispatch/fail_permanent.sql
\ir dispatch/resolve_unknown.sql

-- Watch: what ran out is recovered, gates are checked, partitions made, invariants proven.
\ir monitor/recover_sending_leases.sql
\ir monitor/recover_claimed_leases.sql
\ir monitor/rearm_gates.sql
\ir monitor/expire_auth_lost.sql
\ir monitor/close_ingress_floods.sql
\ir monitor/ensure_event_partitions.sql
\ir monitor/verify/verify.sql
\ir monitor/verify/state.sql
\ir monitor/verify/queue.sql
\ir monitor/verify/isolation.sql
\ir monitor/verify/intake.sql
\ir monitor/verify/history.sql
\ir monitor/verify/calls.sql
\ir monitor/verify/audit.sql

-- Keep: what is past its time goes, as far as nothing that is kept refers to it; what refers to nothing is told.
\ir monitor/list_all_workspaces.sql
\ir monitor/drop_event_partitions.sql
\ir monitor/purge_receipts.sql
\ir monitor/purge_runs.sql
\ir monitor/purge_submissions.sql
\ir monitor/purge_deliveries.sql
\ir monitor/purge_messages.sql
\ir monitor/purge_audit_log.sql
\ir monitor/audit_head.sql
\ir monitor/report_orphans.sql
\ir monitor/list_unreferenced_origins.sql
\ir monitor/forget_media_origin.sql
\ir monitor/begin_media_removal.sql
\ir monitor/end_media_removal.sql
\ir monitor/list_media_removals.sql
\ir monitor/list_unknown_media.sql
\ir monitor/remove_media_origin.sql

-- Operate: what people do by hand is an event, and a row of the audit log.
\ir lib/audit.sql
\ir lib/runbook.sql
\ir lib/endpoints.sql
\ir lib/channels.sql
\ir lib/configuration.sql
\ir admin/list_workspaces.sql
\ir admin/describe_workspaces.sql
\ir admin/get_workspace.sql
\ir admin/put_workspace.sql
\ir admin/set_workspace_status.sql
\ir admin/list_settings.sql
\ir admin/put_setting.sql
\ir admin/apply_settings.sql
\ir admin/put_credential_binding.sql
\ir admin/list_credential_bindings.sql
\ir admin/put_rate_group.sql
\ir admin/list_rate_groups.sql
\ir admin/put_channel.sql
\ir admin/get_channel.sql
\ir admin/remove_channel.sql
\ir admin/put_quota.sql
\ir admin/delete_quota.sql
\ir admin/list_quotas.sql
\ir admin/put_template.sql
\ir admin/enable_template.sql
\ir admin/list_templates.sql
\ir admin/preview_template.sql
\ir admin/put_endpoint.sql
\ir admin/rotate_endpoint.sql
\ir admin/disable_endpoint.sql
\ir admin/list_endpoints.sql
\ir admin/get_endpoint.sql
\ir lib/source_config.sql
\ir lib/sources.sql
\ir admin/put_source.sql
\ir admin/poll_source_now.sql
\ir admin/list_sources.sql
\ir admin/get_source.sql
\ir admin/apply_config.sql
\ir admin/export_config.sql
\ir admin/add_api_key.sql
\ir admin/resolve_api_key.sql
\ir admin/manual_requeue.sql
\ir admin/manual_requeue_preview.sql
\ir admin/skip_deliveries.sql
\ir admin/pause_channel.sql
\ir admin/resume_channel.sql
\ir admin/disable_group.sql
\ir admin/enable_group.sql
\ir admin/rotate_auth.sql
\ir admin/requeue_auth_lost.sql
\ir admin/release_stale.sql
\ir admin/list_channels.sql
\ir admin/list_media_origins.sql
\ir admin/list_deliveries.sql
\ir admin/list_events.sql
\ir admin/queue_snapshot.sql

-- Explain: what would become of a post, and what has become of a delivery.
\ir lib/holds.sql
\ir lib/plan_channels.sql
\ir lib/chain.sql
\ir admin/plan.sql
\ir admin/why.sql
\ir admin/functions_digest.sql
