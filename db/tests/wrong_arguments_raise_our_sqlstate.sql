-- Every public function, each argument wrong: AP001, naming the argument and the remedy, and nothing else.
begin;
\ir fake_clock.sql
\ir world.sql
insert into autopost.pull_sources (workspace_id, source_id, kind) values ('w', 'feed', 'rss');
insert into autopost.workspace_endpoints (workspace_id, endpoint_id, kind, source_id) values ('w', 'feed', 'pull_source', 'feed');

create function test.refusal(p_call text) returns text
language plpgsql
as $$
-- "SQLSTATE argument" of the refusal of a call, and whether it has a remedy.
declare
	v_message text;
	v_hint text;
begin
	execute 'select ' || p_call;
	return 'accepted';
exception when others then
	get stacked diagnostics v_message = message_text, v_hint = pg_exception_hint;
	return sqlstate || ' ' || coalesce((regexp_match(v_message, '^argument (\w+): '))[1], v_message) || case when v_hint = '' then ' without a remedy' else '' end;
end
$$;

create temp table calls (function text, call text, argument text) on commit drop;
insert into calls values
	('claim_deliveries', $c$autopost.claim_deliveries(null, 'r', 1)$c$, 'workspace_id'),
	('claim_deliveries', $c$autopost.claim_deliveries('w', '', 1)$c$, 'run_id'),
	('claim_deliveries', $c$autopost.claim_deliveries('w', null, 1)$c$, 'run_id'),
	('claim_deliveries', $c$autopost.claim_deliveries('w', 'r', 0)$c$, 'limit'),
	('claim_deliveries', $c$autopost.claim_deliveries('w', 'r', 1001)$c$, 'limit'),
	('claim_deliveries', $c$autopost.claim_deliveries('w', 'r', null)$c$, 'limit'),
	('claim_submissions', $c$autopost.claim_submissions(null, 'r', 1)$c$, 'workspace_id'),
	('claim_submissions', $c$autopost.claim_submissions('w', '', 1)$c$, 'run_id'),
	('claim_submissions', $c$autopost.claim_submissions('w', 'r', 0)$c$, 'limit'),
	('claim_submissions', $c$autopost.claim_submissions('w', 'r', null)$c$, 'limit'),
	('commit_outcome', $c$autopost.commit_outcome(null, '00000000-0000-7000-8000-000000000000', 't', '{"ok": true, "provider_message_id": "1"}')$c$, 'workspace_id'),
	('commit_outcome', $c$autopost.commit_outcome('w', null, 't', '{"ok": true, "provider_message_id": "1"}')$c$, 'delivery_id'),
	('commit_outcome', $c$autopost.commit_outcome('w', '00000000-0000-7000-8000-000000000000', '', '{"ok": true, "provider_message_id": "1"}')$c$, 'claim_token'),
	('commit_outcome', $c$autopost.commit_outcome('w', '00000000-0000-7000-8000-000000000000', null, '{"ok": true, "provider_message_id": "1"}')$c$, 'claim_token'),
	('commit_outcome', $c$autopost.commit_outcome('w', '00000000-0000-7000-8000-000000000000', 't', null)$c$, 'outcome'),
	('commit_outcome', $c$autopost.commit_outcome('w', '00000000-0000-7000-8000-000000000000', 't', '[]')$c$, 'outcome'),
	('commit_outcome', $c$autopost.commit_outcome('w', '00000000-0000-7000-8000-000000000000', 't', '{}')$c$, 'outcome'),
	('commit_outcome', $c$autopost.commit_outcome('w', '00000000-0000-7000-8000-000000000000', 't', '{"ok": "yes"}')$c$, 'outcome'),
	('commit_outcome', $c$autopost.commit_outcome('w', '00000000-0000-7000-8000-000000000000', 't', '{"ok": true}')$c$, 'provider_message_id'),
	('commit_outcome', $c$autopost.commit_outcome('w', '00000000-0000-7000-8000-000000000000', 't', '{"ok": true, "provider_message_id": ""}')$c$, 'provider_message_id'),
	('commit_outcome', $c$autopost.commit_outcome('w', '00000000-0000-7000-8000-000000000000', 't', '{"ok": false}')$c$, 'error'),
	('commit_outcome', $c$autopost.commit_outcome('w', '00000000-0000-7000-8000-000000000000', 't', '{"ok": false, "error": "no"}')$c$, 'error'),
	('commit_outcome_batch', $c$autopost.commit_outcome_batch(null, '[]')$c$, 'workspace_id'),
	('commit_outcome_batch', $c$autopost.commit_outcome_batch('w', null)$c$, 'items'),
	('commit_outcome_batch', $c$autopost.commit_outcome_batch('w', '{}')$c$, 'items'),
	('commit_outcome_batch', $c$autopost.commit_outcome_batch('w', '[{}]')$c$, 'delivery_id'),
	('commit_outcome_batch', $c$autopost.commit_outcome_batch('w', '[{"delivery_id": "1", "claim_token": "t"}]')$c$, 'delivery_id'),
	('commit_outcome_batch', $c$autopost.commit_outcome_batch('w', '[7]')$c$, 'delivery_id'),
	('mark_sent', $c$autopost.mark_sent(null, '00000000-0000-7000-8000-000000000000', 't', '1', null, null)$c$, 'workspace_id'),
	('mark_sent', $c$autopost.mark_sent('w', null, 't', '1', null, null)$c$, 'delivery_id'),
	('mark_sent', $c$autopost.mark_sent('w', '00000000-0000-7000-8000-000000000000', null, '1', null, null)$c$, 'claim_token'),
	('mark_sent', $c$autopost.mark_sent('w', '00000000-0000-7000-8000-000000000000', 't', null, null, null)$c$, 'provider_message_id'),
	('mark_sent', $c$autopost.mark_sent('w', '00000000-0000-7000-8000-000000000000', 't', '', null, null)$c$, 'provider_message_id'),
	('schedule_retry', $c$autopost.schedule_retry(null, '00000000-0000-7000-8000-000000000000', 't', '{}')$c$, 'workspace_id'),
	('schedule_retry', $c$autopost.schedule_retry('w', null, 't', '{}')$c$, 'delivery_id'),
	('schedule_retry', $c$autopost.schedule_retry('w', '00000000-0000-7000-8000-000000000000', null, '{}')$c$, 'claim_token'),
	('schedule_retry', $c$autopost.schedule_retry('w', '00000000-0000-7000-8000-000000000000', 't', null)$c$, 'error'),
	('schedule_retry', $c$autopost.schedule_retry('w', '00000000-0000-7000-8000-000000000000', 't', '[]')$c$, 'error'),
	('schedule_retry_batch', $c$autopost.schedule_retry_batch('w', '{}')$c$, 'items'),
	('schedule_retry_batch', $c$autopost.schedule_retry_batch('w', null)$c$, 'items'),
	('schedule_retry_batch', $c$autopost.schedule_retry_batch('w', '[{}]')$c$, 'delivery_id'),
	('fail_permanent', $c$autopost.fail_permanent(null, '00000000-0000-7000-8000-000000000000', 't', '{}')$c$, 'workspace_id'),
	('fail_permanent', $c$autopost.fail_permanent('w', null, 't', '{}')$c$, 'delivery_id'),
	('fail_permanent', $c$autopost.fail_permanent('w', '00000000-0000-7000-8000-000000000000', null, '{}')$c$, 'claim_token'),
	('fail_permanent', $c$autopost.fail_permanent('w', '00000000-0000-7000-8000-000000000000', 't', null)$c$, 'error'),
	('fail_permanent', $c$autopost.fail_permanent('w', '00000000-0000-7000-8000-000000000000', 't', '"x"')$c$, 'error'),
	('fail_permanent_batch', $c$autopost.fail_permanent_batch('w', '{}')$c$, 'items'),
	('fail_permanent_batch', $c$autopost.fail_permanent_batch('w', null)$c$, 'items'),
	('fail_permanent_batch', $c$autopost.fail_permanent_batch('w', '[{}]')$c$, 'delivery_id'),
	('mark_sent_batch', $c$autopost.mark_sent_batch('w', '{}')$c$, 'items'),
	('mark_sent_batch', $c$autopost.mark_sent_batch('w', null)$c$, 'items'),
	('mark_sent_batch', $c$autopost.mark_sent_batch('w', '[{}]')$c$, 'delivery_id'),
	('start_call', $c$autopost.start_call(null, '00000000-0000-7000-8000-000000000000', 't')$c$, 'workspace_id'),
	('start_call', $c$autopost.start_call('w', null, 't')$c$, 'delivery_id'),
	('start_call', $c$autopost.start_call('w', '00000000-0000-7000-8000-000000000000', '')$c$, 'claim_token'),
	('start_call', $c$autopost.start_call('w', '00000000-0000-7000-8000-000000000000', null)$c$, 'claim_token'),
	('start_call_batch', $c$autopost.start_call_batch(null, '[]')$c$, 'workspace_id'),
	('start_call_batch', $c$autopost.start_call_batch('w', '{}')$c$, 'items'),
	('start_call_batch', $c$autopost.start_call_batch('w', null)$c$, 'items'),
	('start_call_batch', $c$autopost.start_call_batch('w', '[{}]')$c$, 'delivery_id'),
	('start_call_batch', $c$autopost.start_call_batch('w', '[{"delivery_id": "1", "claim_token": "t"}]')$c$, 'delivery_id'),
	('record_series_progress', $c$autopost.record_series_progress(null, '00000000-0000-7000-8000-000000000000', 't', '{"step": "a", "ids": []}')$c$, 'workspace_id'),
	('record_series_progress', $c$autopost.record_series_progress('w', null, 't', '{"step": "a", "ids": []}')$c$, 'delivery_id'),
	('record_series_progress', $c$autopost.record_series_progress('w', '00000000-0000-7000-8000-000000000000', '', '{"step": "a", "ids": []}')$c$, 'claim_token'),
	('record_series_progress', $c$autopost.record_series_progress('w', '00000000-0000-7000-8000-000000000000', 't', null)$c$, 'delta'),
	('record_series_progress', $c$autopost.record_series_progress('w', '00000000-0000-7000-8000-000000000000', 't', '{}')$c$, 'delta'),
	('record_series_progress', $c$autopost.record_series_progress('w', '00000000-0000-7000-8000-000000000000', 't', '{"step": "", "ids": []}')$c$, 'delta'),
	('record_series_progress', $c$autopost.record_series_progress('w', '00000000-0000-7000-8000-000000000000', 't', '{"step": "a"}')$c$, 'delta'),
	('record_series_progress', $c$autopost.record_series_progress('w', '00000000-0000-7000-8000-000000000000', 't', '{"step": "a", "ids": "1"}')$c$, 'delta'),
	('extend_lease', $c$autopost.extend_lease(null, '00000000-0000-7000-8000-000000000000', 't', 5)$c$, 'workspace_id'),
	('extend_lease', $c$autopost.extend_lease('w', null, 't', 5)$c$, 'delivery_id'),
	('extend_lease', $c$autopost.extend_lease('w', '00000000-0000-7000-8000-000000000000', null, 5)$c$, 'claim_token'),
	('extend_lease', $c$autopost.extend_lease('w', '00000000-0000-7000-8000-000000000000', 't', 0)$c$, 'seconds'),
	('extend_lease', $c$autopost.extend_lease('w', '00000000-0000-7000-8000-000000000000', 't', 3601)$c$, 'seconds'),
	('extend_lease', $c$autopost.extend_lease('w', '00000000-0000-7000-8000-000000000000', 't', null)$c$, 'seconds'),
	('release_claims', $c$autopost.release_claims(null, '{}')$c$, 'workspace_id'),
	('release_claims', $c$autopost.release_claims('w', null)$c$, 'claim_tokens'),
	('resolve_unknown', $c$autopost.resolve_unknown(null, '00000000-0000-7000-8000-000000000000', 'absent', null, 'o', 'r')$c$, 'workspace_id'),
	('resolve_unknown', $c$autopost.resolve_unknown('w', null, 'absent', null, 'o', 'r')$c$, 'delivery_id'),
	('resolve_unknown', $c$autopost.resolve_unknown('w', '00000000-0000-7000-8000-000000000000', null, null, 'o', 'r')$c$, 'verdict'),
	('resolve_unknown', $c$autopost.resolve_unknown('w', '00000000-0000-7000-8000-000000000000', 'perhaps', null, 'o', 'r')$c$, 'verdict'),
	('resolve_unknown', $c$autopost.resolve_unknown('w', '00000000-0000-7000-8000-000000000000', 'found', null, 'o', 'r')$c$, 'provider_message_id'),
	('resolve_unknown', $c$autopost.resolve_unknown('w', '00000000-0000-7000-8000-000000000000', 'absent', null, null, 'r')$c$, 'operator'),
	('resolve_unknown', $c$autopost.resolve_unknown('w', '00000000-0000-7000-8000-000000000000', 'absent', null, 'o', '')$c$, 'reason'),
	('manual_requeue', $c$autopost.manual_requeue(null, array['00000000-0000-7000-8000-000000000000']::uuid[], 'o', 'r')$c$, 'workspace_id'),
	('manual_requeue', $c$autopost.manual_requeue('w', null, 'o', 'r')$c$, 'delivery_ids'),
	('manual_requeue', $c$autopost.manual_requeue('w', '{}', 'o', 'r')$c$, 'delivery_ids'),
	('manual_requeue', $c$autopost.manual_requeue('w', array['00000000-0000-7000-8000-000000000000']::uuid[], '', 'r')$c$, 'operator'),
	('manual_requeue', $c$autopost.manual_requeue('w', array['00000000-0000-7000-8000-000000000000']::uuid[], 'o', null)$c$, 'reason'),
	('recover_sending_leases', $c$autopost.recover_sending_leases(null)$c$, 'workspace_id'),
	('recover_claimed_leases', $c$autopost.recover_claimed_leases(null)$c$, 'workspace_id'),
	('rearm_gates', $c$autopost.rearm_gates(null)$c$, 'workspace_id'),
	('touch_run', $c$autopost.touch_run(null)$c$, 'run_id'),
	('touch_run', $c$autopost.touch_run('')$c$, 'run_id'),
	('ready_workspaces', $c$autopost.ready_workspaces(0)$c$, 'limit'),
	('ready_workspaces', $c$autopost.ready_workspaces(null)$c$, 'limit'),
	('ready_submission_workspaces', $c$autopost.ready_submission_workspaces(0)$c$, 'limit'),
	('ready_submission_workspaces', $c$autopost.ready_submission_workspaces(null)$c$, 'limit'),
	('guard_ingress', $c$autopost.guard_ingress(null, 'in', 1, 1)$c$, 'workspace_id'),
	('guard_ingress', $c$autopost.guard_ingress('w', null, 1, 1)$c$, 'endpoint_id'),
	('guard_ingress', $c$autopost.guard_ingress('w', 'nowhere', 1, 1)$c$, 'endpoint_id'),
	('guard_ingress', $c$autopost.guard_ingress('w', 'in', null, 1)$c$, 'bytes'),
	('guard_ingress', $c$autopost.guard_ingress('w', 'in', -1, 1)$c$, 'bytes'),
	('guard_ingress', $c$autopost.guard_ingress('w', 'in', 1, 0)$c$, 'items'),
	('guard_ingress', $c$autopost.guard_ingress('w', 'in', 1, null)$c$, 'items'),
	('receive_push', $c$autopost.receive_push(null, 'in', '[{"text": "x"}]')$c$, 'workspace_id'),
	('receive_push', $c$autopost.receive_push('w', null, '[{"text": "x"}]')$c$, 'endpoint_id'),
	('receive_push', $c$autopost.receive_push('w', 'nowhere', '[{"text": "x"}]')$c$, 'endpoint_id'),
	('receive_push', $c$autopost.receive_push('w', 'feed', '[{"text": "x"}]')$c$, 'endpoint_id'),
	('receive_push', $c$autopost.receive_push('w', 'in', null)$c$, 'items'),
	('receive_push', $c$autopost.receive_push('w', 'in', '[]')$c$, 'items'),
	('receive_push', $c$autopost.receive_push('w', 'in', '{"text": "x"}')$c$, 'items'),
	('enqueue_messages_and_deliveries', $c$autopost.enqueue_messages_and_deliveries(null, 'in', 'api', '{"text": "x"}')$c$, 'workspace_id'),
	('enqueue_messages_and_deliveries', $c$autopost.enqueue_messages_and_deliveries('w', null, 'api', '{"text": "x"}')$c$, 'endpoint_id'),
	('enqueue_messages_and_deliveries', $c$autopost.enqueue_messages_and_deliveries('w', 'nowhere', 'api', '{"text": "x"}')$c$, 'endpoint_id'),
	('enqueue_messages_and_deliveries', $c$autopost.enqueue_messages_and_deliveries('w', 'in', null, '{"text": "x"}')$c$, 'kind'),
	('enqueue_messages_and_deliveries', $c$autopost.enqueue_messages_and_deliveries('w', 'in', 'pigeon', '{"text": "x"}')$c$, 'kind'),
	('enqueue_messages_and_deliveries_batch', $c$autopost.enqueue_messages_and_deliveries_batch(null, 'in', 'api', '[]')$c$, 'workspace_id'),
	('enqueue_messages_and_deliveries_batch', $c$autopost.enqueue_messages_and_deliveries_batch('w', null, 'api', '[]')$c$, 'endpoint_id'),
	('enqueue_messages_and_deliveries_batch', $c$autopost.enqueue_messages_and_deliveries_batch('w', 'in', 'pigeon', '[]')$c$, 'kind'),
	('enqueue_messages_and_deliveries_batch', $c$autopost.enqueue_messages_and_deliveries_batch('w', 'in', 'api', null)$c$, 'items'),
	('enqueue_messages_and_deliveries_batch', $c$autopost.enqueue_messages_and_deliveries_batch('w', 'in', 'api', '{}')$c$, 'items'),
	('ingest_pull_chunk', $c$autopost.ingest_pull_chunk(null, 'feed', 'feed', '[]')$c$, 'workspace_id'),
	('ingest_pull_chunk', $c$autopost.ingest_pull_chunk('w', null, 'feed', '[]')$c$, 'source_id'),
	('ingest_pull_chunk', $c$autopost.ingest_pull_chunk('w', 'other', 'feed', '[]')$c$, 'endpoint_id'),
	('ingest_pull_chunk', $c$autopost.ingest_pull_chunk('w', 'feed', null, '[]')$c$, 'endpoint_id'),
	('ingest_pull_chunk', $c$autopost.ingest_pull_chunk('w', 'feed', 'in', '[]')$c$, 'endpoint_id'),
	('ingest_pull_chunk', $c$autopost.ingest_pull_chunk('w', 'feed', 'feed', null)$c$, 'items'),
	('ingest_pull_chunk', $c$autopost.ingest_pull_chunk('w', 'feed', 'feed', '{}')$c$, 'items'),
	('ingest_pull_chunk', $c$autopost.ingest_pull_chunk('w', 'feed', 'feed', '[{"payload": {"text": "x"}}]')$c$, 'items'),
	('ingest_pull_chunk', $c$autopost.ingest_pull_chunk('w', 'feed', 'feed', '[7]')$c$, 'items'),
	('list_due_sources', $c$autopost.list_due_sources(null, 1)$c$, 'workspace_id'),
	('list_due_sources', $c$autopost.list_due_sources('w', 0)$c$, 'limit'),
	('list_due_sources', $c$autopost.list_due_sources('w', null)$c$, 'limit'),
	('set_pull_cursor', $c$autopost.set_pull_cursor(null, 'feed', '{}')$c$, 'workspace_id'),
	('set_pull_cursor', $c$autopost.set_pull_cursor('w', null, '{}')$c$, 'source_id'),
	('set_pull_cursor', $c$autopost.set_pull_cursor('w', 'feed', null)$c$, 'cursor'),
	('set_pull_cursor', $c$autopost.set_pull_cursor('w', 'feed', '[]')$c$, 'cursor'),
	('record_pull_failure', $c$autopost.record_pull_failure(null, 'feed', 'c', 'm')$c$, 'workspace_id'),
	('record_pull_failure', $c$autopost.record_pull_failure('w', null, 'c', 'm')$c$, 'source_id'),
	('record_pull_failure', $c$autopost.record_pull_failure('w', 'feed', null, 'm')$c$, 'code'),
	('record_pull_failure', $c$autopost.record_pull_failure('w', 'feed', '', 'm')$c$, 'code'),
	('start_ingest_run', $c$autopost.start_ingest_run(null, 'pull', 'feed', 'feed')$c$, 'workspace_id'),
	('start_ingest_run', $c$autopost.start_ingest_run('w', null, 'feed', 'feed')$c$, 'kind'),
	('start_ingest_run', $c$autopost.start_ingest_run('w', 'x', 'feed', 'feed')$c$, 'kind'),
	('finish_ingest_run', $c$autopost.finish_ingest_run(null, '00000000-0000-7000-8000-000000000000', '{}')$c$, 'workspace_id'),
	('finish_ingest_run', $c$autopost.finish_ingest_run('w', null, '{}')$c$, 'run_id'),
	('finish_ingest_run', $c$autopost.finish_ingest_run('w', '00000000-0000-7000-8000-000000000000', '[]')$c$, 'stats'),
	('get_run', $c$autopost.get_run(null, '00000000-0000-7000-8000-000000000000')$c$, 'workspace_id'),
	('get_run', $c$autopost.get_run('w', null)$c$, 'run_id'),
	('commit_submission', $c$autopost.commit_submission(null, '00000000-0000-7000-8000-000000000000', 't', '{}')$c$, 'workspace_id'),
	('commit_submission', $c$autopost.commit_submission('w', null, 't', '{}')$c$, 'submission_id'),
	('commit_submission', $c$autopost.commit_submission('w', '00000000-0000-7000-8000-000000000000', null, '{}')$c$, 'claim_token'),
	('commit_submission', $c$autopost.commit_submission('w', '00000000-0000-7000-8000-000000000000', 't', null)$c$, 'outcome'),
	('commit_submission', $c$autopost.commit_submission('w', '00000000-0000-7000-8000-000000000000', 't', '[]')$c$, 'outcome'),
	('put_media_origin', $c$autopost.put_media_origin(null, 'sha256:'||repeat('1', 64), 'f', 'i', 1, 'image', 1, 1)$c$, 'workspace_id'),
	('put_media_origin', $c$autopost.put_media_origin('w', null, 'f', 'i', 1, 'image', 1, 1)$c$, 'blob_ref'),
	('put_media_origin', $c$autopost.put_media_origin('w', '1.png', 'f', 'i', 1, 'image', 1, 1)$c$, 'blob_ref'),
	('put_media_origin', $c$autopost.put_media_origin('w', 'sha256:'||repeat('1', 64), '', 'i', 1, 'image', 1, 1)$c$, 'origin_url'),
	('put_media_origin', $c$autopost.put_media_origin('w', 'sha256:'||repeat('1', 64), 'f', 'i', -1, 'image', 1, 1)$c$, 'size_bytes'),
	('put_media_origin', $c$autopost.put_media_origin('w', 'sha256:'||repeat('1', 64), 'f', 'i', null, 'image', 1, 1)$c$, 'size_bytes'),
	('get_media_blob', $c$autopost.get_media_blob(null, 'b', 'p', 'a', 'k')$c$, 'workspace_id'),
	('put_media_blob', $c$autopost.put_media_blob(null, 'b', 'p', 'a', 'k', 'f', null)$c$, 'workspace_id'),
	('put_media_blob', $c$autopost.put_media_blob('w', '', 'p', 'a', 'k', 'f', null)$c$, 'blob_ref'),
	('put_media_blob', $c$autopost.put_media_blob('w', 'b', null, 'a', 'k', 'f', null)$c$, 'provider'),
	('put_media_blob', $c$autopost.put_media_blob('w', 'b', 'p', '', 'k', 'f', null)$c$, 'auth_ref'),
	('put_media_blob', $c$autopost.put_media_blob('w', 'b', 'p', 'a', '', 'f', null)$c$, 'kind'),
	('get_credential_binding', $c$autopost.get_credential_binding(null, 'a')$c$, 'workspace_id'),
	('add_api_key', $c$autopost.add_api_key(null, 'n', 'owner', repeat('c', 64))$c$, 'workspace_id'),
	('add_api_key', $c$autopost.add_api_key('w', '', 'owner', repeat('c', 64))$c$, 'name'),
	('add_api_key', $c$autopost.add_api_key('w', 'n', 'king', repeat('c', 64))$c$, 'role'),
	('add_api_key', $c$autopost.add_api_key('w', 'n', null, repeat('c', 64))$c$, 'role'),
	('add_api_key', $c$autopost.add_api_key('w', 'n', 'owner', 'secret')$c$, 'secret_hash'),
	('add_api_key', $c$autopost.add_api_key('w', 'n', 'owner', null)$c$, 'secret_hash'),
	('put_setting', $c$autopost.put_setting('no_such', '1')$c$, 'key'),
	('put_setting', $c$autopost.put_setting(null, '1')$c$, 'key'),
	('put_setting', $c$autopost.put_setting('max_attempts', null)$c$, 'value');
insert into calls
select f, format(c, f), a
from unnest('{list_deliveries,list_events}'::text[]) f, (values
	('autopost.%s(null, ''{}'', 1)', 'workspace_id'), ('autopost.%s(''w'', null, 1)', 'filter'), ('autopost.%s(''w'', ''[]'', 1)', 'filter'),
	('autopost.%s(''w'', ''{"colour": 1}'', 1)', 'filter'), ('autopost.%s(''w'', ''{}'', 0)', 'limit'), ('autopost.%s(''w'', ''{}'', null)', 'limit')) x (c, a);
insert into calls values ('list_channels', 'autopost.list_channels(null, 1)', 'workspace_id'), ('list_channels', 'autopost.list_channels(''w'', 0)', 'limit'),
	('queue_snapshot', 'autopost.queue_snapshot(null)', 'workspace_id'), ('verify', 'autopost.verify(null)', 'workspace_id');
insert into calls
select a.f, format('autopost.%s(%s, %s)', a.f, a.args, x.c), x.a
from (values ('pause_channel', '''w'', ''c'', 60'), ('resume_channel', '''w'', ''c'''), ('disable_group', '''w'', ''p'', ''g'''), ('enable_group', '''w'', ''p'', ''g'''),
	('rotate_auth', '''w'', ''c'', ''a'', ''g'''), ('skip_deliveries', '''w'', array[gen_random_uuid()]'), ('release_stale', '''w'', 600')) a (f, args)
cross join (values ('null, ''r'', true', 'operator'), (''''', ''r'', true', 'operator'), ('''o'', null, true', 'reason'), ('''o'', '''', true', 'reason'),
	('''o'', ''r'', null', 'dry_run')) x (c, a);
insert into calls values
	('pause_channel', $c$autopost.pause_channel(null, 'c', 60, 'o', 'r', true)$c$, 'workspace_id'),
	('resume_channel', $c$autopost.resume_channel(null, 'c', 'o', 'r', true)$c$, 'workspace_id'),
	('disable_group', $c$autopost.disable_group(null, 'p', 'g', 'o', 'r', true)$c$, 'workspace_id'),
	('enable_group', $c$autopost.enable_group(null, 'p', 'g', 'o', 'r', true)$c$, 'workspace_id'),
	('rotate_auth', $c$autopost.rotate_auth(null, 'c', 'a', 'g', 'o', 'r', true)$c$, 'workspace_id'),
	('skip_deliveries', $c$autopost.skip_deliveries(null, array[gen_random_uuid()], 'o', 'r', true)$c$, 'workspace_id'),
	('release_stale', $c$autopost.release_stale(null, 600, 'o', 'r', true)$c$, 'workspace_id'),
	('pause_channel', $c$autopost.pause_channel('w', null, 60, 'o', 'r', true)$c$, 'channel_id'),
	('pause_channel', $c$autopost.pause_channel('w', 'c', 0, 'o', 'r', true)$c$, 'seconds'),
	('pause_channel', $c$autopost.pause_channel('w', 'c', null, 'o', 'r', true)$c$, 'seconds'),
	('pause_channel', $c$autopost.pause_channel('w', 'c', 31536001, 'o', 'r', true)$c$, 'seconds'),
	('resume_channel', $c$autopost.resume_channel('w', null, 'o', 'r', true)$c$, 'channel_id'),
	('disable_group', $c$autopost.disable_group('w', null, null, 'o', 'r', true)$c$, 'rate_group'),
	('enable_group', $c$autopost.enable_group('w', null, null, 'o', 'r', true)$c$, 'rate_group'),
	('rotate_auth', $c$autopost.rotate_auth('w', null, 'a', null, 'o', 'r', true)$c$, 'channel_id'),
	('rotate_auth', $c$autopost.rotate_auth('w', 'c', '', null, 'o', 'r', true)$c$, 'new_auth_ref'),
	('rotate_auth', $c$autopost.rotate_auth('w', 'c', 'a', '', 'o', 'r', true)$c$, 'new_rate_group'),
	('skip_deliveries', $c$autopost.skip_deliveries('w', '{}', 'o', 'r', true)$c$, 'delivery_ids'),
	('skip_deliveries', $c$autopost.skip_deliveries('w', null, 'o', 'r', true)$c$, 'delivery_ids'),
	('release_stale', $c$autopost.release_stale('w', 599, 'o', 'r', true)$c$, 'older_than_seconds'),
	('release_stale', $c$autopost.release_stale('w', null, 'o', 'r', true)$c$, 'older_than_seconds'),
	('manual_requeue_preview', $c$autopost.manual_requeue_preview(null, array[gen_random_uuid()])$c$, 'workspace_id'),
	('manual_requeue_preview', $c$autopost.manual_requeue_preview('w', '{}')$c$, 'delivery_ids');
insert into calls values
	('put_template', $c$autopost.put_template(null, 't', null, '{"body": "b"}', 'o', 'r')$c$, 'workspace_id'),
	('put_template', $c$autopost.put_template('w', null, null, '{"body": "b"}', 'o', 'r')$c$, 'template_id'),
	('put_template', $c$autopost.put_template('w', 't', 'none', '{"body": "b"}', 'o', 'r')$c$, 'platform'),
	('put_template', $c$autopost.put_template('w', 't', null, null, 'o', 'r')$c$, 'template'),
	('put_template', $c$autopost.put_template('w', 't', null, '[]', 'o', 'r')$c$, 'template'),
	('put_template', $c$autopost.put_template('w', 't', null, '{"body": "b", "bodi": "b"}', 'o', 'r')$c$, 'template'),
	('put_template', $c$autopost.put_template('w', 't', null, '{"body": 1}', 'o', 'r')$c$, 'template'),
	('put_template', $c$autopost.put_template('w', 't', null, '{"body": "b", "max_length": 0}', 'o', 'r')$c$, 'template'),
	('put_template', $c$autopost.put_template('w', 't', null, '{"body": "b", "parse_mode": "html"}', 'o', 'r')$c$, 'template'),
	('put_template', $c$autopost.put_template('w', 't', null, '{"body": "b"}', '', 'r')$c$, 'operator'),
	('put_template', $c$autopost.put_template('w', 't', null, '{"body": "b"}', 'o', null)$c$, 'reason'),
	('enable_template', $c$autopost.enable_template(null, 't', null, 1, true, 'o', 'r')$c$, 'workspace_id'),
	('enable_template', $c$autopost.enable_template('w', '', null, 1, true, 'o', 'r')$c$, 'template_id'),
	('enable_template', $c$autopost.enable_template('w', 't', null, 0, true, 'o', 'r')$c$, 'version'),
	('enable_template', $c$autopost.enable_template('w', 't', null, 1, null, 'o', 'r')$c$, 'enabled'),
	('enable_template', $c$autopost.enable_template('w', 't', null, 1, true, null, 'r')$c$, 'operator'),
	('enable_template', $c$autopost.enable_template('w', 't', null, 1, true, 'o', '')$c$, 'reason'),
	('list_templates', $c$autopost.list_templates(null, '{}', 1)$c$, 'workspace_id'),
	('list_templates', $c$autopost.list_templates('w', '{"name": "x"}', 1)$c$, 'filter'),
	('list_templates', $c$autopost.list_templates('w', '{}', 0)$c$, 'limit'),
	('preview_template', $c$autopost.preview_template(null, 't', 'x', null, '{}')$c$, 'workspace_id'),
	('preview_template', $c$autopost.preview_template('w', '', 'x', null, '{}')$c$, 'template_id'),
	('preview_template', $c$autopost.preview_template('w', 't', 'none', null, '{}')$c$, 'platform'),
	('preview_template', $c$autopost.preview_template('w', 't', 'x', '[]', '{}')$c$, 'template'),
	('preview_template', $c$autopost.preview_template('w', 't', 'x', null, null)$c$, 'payload');
select plan((select count(*)::int from calls) + 7);

select is(test.refusal(call), 'AP001 ' || argument, call) from calls;

-- No public function is forgotten; these have no argument that could be wrong.
select is((select array_agg(distinct p.proname::text order by p.proname::text) from pg_proc p
	where p.pronamespace = 'autopost'::regnamespace and p.prosecdef and p.prorettype <> 'trigger'::regtype
	and p.proname not in (select function from calls)),
	'{ensure_event_partitions,functions_digest,list_workspaces,next_wake_ms,resolve_api_key,resolve_endpoint}', 'every function is asked');
select is(test.refusal($$autopost.claim_deliveries('nowhere', 'r', 1)$$), 'AP003 there is no workspace nowhere');
select is(test.refusal($$autopost.commit_outcome('nowhere', null, null, null)$$), 'AP003 there is no workspace nowhere', 'the workspace comes first');
select is(autopost.resolve_endpoint(null, null), null, 'what resolves answers nothing, and does not say why');
select is(autopost.resolve_api_key(null), null);
select is(test.refusal($$autopost.enqueue_messages_and_deliveries('w', 'in', 'api', null)$$), 'accepted', 'a post that is none is answered, as rejected');
select is((select count(*)::int from autopost.events), 0, 'a wrong call leaves no trace');

select * from finish();
rollback;
