package verify_test

// repeats gives workspace w a post that repeats, with one occurrence that became a post.
func (h *fixture) repeats() {
	h.t.Helper()
	h.do(`select autopost.put_recurrence('w', null, jsonb_build_object('endpoint_id', (select e.endpoint_id from autopost.workspace_endpoints e
		where e.workspace_id = 'w' and e.kind = 'webhook_push' and e.enabled and not e.moderated order by 1 limit 1), 'rule', 'FREQ=DAILY', 'starts_at', '2026-01-01T10:00',
		'payloads', '[{"text": "again"}]'::jsonb), 'o', 'r', false)`)
	h.do(`insert into autopost.occurrences (workspace_id, occurrence_id, recurrence_id, local_at, at, updated_at)
		select 'w', autopost.new_id(), r.recurrence_id, date_trunc('second', autopost.now_ts() at time zone 'UTC'), autopost.now_ts() - interval '1 second', autopost.now_ts() from autopost.recurrences r`)
	h.do(`update autopost.recurrences set expanded_to = 'infinity', expand_at = 'infinity', next_at = autopost.now_ts()`)
	h.do(`select autopost.run_recurrences('w')`)
}
