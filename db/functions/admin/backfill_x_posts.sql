create or replace function autopost.backfill_x_posts(p_workspace_id text, p_endpoint_id text, p_lines jsonb,
	p_operator text, p_reason text, p_dry_run boolean) returns jsonb
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: records events that were posted before autopost posted them. They count for duplicates and
--          in lists; no call is made. p_lines: up to 1,000 of {"event", "payload", "posted_at": at
--          most 7 days ago, "tweet_id"}.
-- Returns: {"applied", "dry_run", "recorded", "duplicates", "errors": [{"line", "field", "reason",
--          "remedy"}]}. With an error nothing is recorded.
-- Raises:  AP001 for a wrong argument.
-- Locks:   event_hashes, audit_heads.
-- Writes:  ingest_runs, submissions, event_hashes, admin_audit_log.
declare
	v_act jsonb;
	v_line record;
	v_facts jsonb;
	v_at timestamptz;
	v_errors jsonb := '[]';
	v_valid jsonb := '[]';
	v_run_id uuid;
	v_id uuid;
	v_recorded int := 0;
	v_duplicates int := 0;
begin
	perform autopost.enter_workspace(p_workspace_id);
	v_act := autopost.manual_act(p_operator, p_reason, p_dry_run);
	perform autopost.push_endpoint(p_workspace_id, p_endpoint_id, '[{}]');
	if jsonb_typeof(p_lines) is distinct from 'array' or jsonb_array_length(p_lines) not between 1 and 1000 then
		perform autopost.raise_argument('lines', 'must be an array of 1 to 1000 events',
			'pass one object per posted event');
	end if;
	for v_line in select l.value, l.ordinality as n from jsonb_array_elements(p_lines) with ordinality l loop
		v_facts := autopost.event_facts(p_workspace_id, v_line.value);
		v_at := autopost.timestamp_of(v_line.value ->> 'posted_at');
		if not v_facts ? 'errors' then
			v_facts := v_facts || jsonb_build_object('errors', case
				when coalesce(v_line.value ->> 'tweet_id', '') !~ '^[0-9]{1,20}$' then autopost.field_error('tweet_id',
					'must be the id of a post on X', 'write its digits as a text')
				when v_at is null or v_at not between autopost.now_ts() - interval '7 days' and autopost.now_ts()
					then autopost.field_error('posted_at', 'must be a time in the last 7 days', 'leave older posts out')
				else '[]' end);
		end if;
		v_errors := v_errors || (select coalesce(jsonb_agg(e.value || jsonb_build_object('line', v_line.n)), '[]')
			from jsonb_array_elements(v_facts -> 'errors') e);
		v_valid := v_valid || jsonb_build_object('event', v_line.value, 'facts', v_facts - 'errors', 'at', v_at);
	end loop;
	if v_errors <> '[]' or p_dry_run then
		return jsonb_build_object('applied', v_errors = '[]', 'dry_run', p_dry_run, 'recorded',
			case when v_errors = '[]'
			then jsonb_array_length(v_valid) else 0 end, 'duplicates', 0, 'errors', v_errors);
	end if;
	v_run_id := autopost.open_run(p_workspace_id, 'event', p_endpoint_id, null);
	for v_line in select l.value from jsonb_array_elements(v_valid) l
		order by l.value -> 'facts' ->> 'type', l.value -> 'facts' ->> 'hash' loop
		v_id := autopost.new_id();
		if autopost.take_event_hash(p_workspace_id, v_line.value -> 'facts' ->> 'type',
			v_line.value -> 'facts' ->> 'hash', v_id)
			is not null then
			v_duplicates := v_duplicates + 1;
			continue;
		end if;
		insert into autopost.submissions (workspace_id, submission_id, endpoint_id, kind, status, raw_payload, run_id,
			trace_id, created_at, updated_at, event, event_type, event_facts, hash)
		values (p_workspace_id, v_id, p_endpoint_id, 'event', 'skipped', v_line.value -> 'facts' -> 'raw', v_run_id,
			autopost.new_id(), (v_line.value ->> 'at')::timestamptz, autopost.now_ts(), v_line.value -> 'event',
			v_line.value -> 'facts' ->> 'type', (v_line.value -> 'facts') - 'raw' || jsonb_build_object('backfill',
			jsonb_build_object('tweet_id', v_line.value -> 'event' -> 'tweet_id', 'posted_at', v_line.value -> 'at')),
			v_line.value -> 'facts' ->> 'hash');
		v_recorded := v_recorded + 1;
	end loop;
	perform autopost.close_run(p_workspace_id, v_run_id, jsonb_build_object('backfilled', v_recorded), null);
	perform autopost.audit(p_workspace_id, 'backfill_x_posts', 'x_posts', v_act, '{}',
		jsonb_build_object('recorded', v_recorded, 'duplicates', v_duplicates));
	return jsonb_build_object('applied', true, 'dry_run', false, 'recorded', v_recorded, 'duplicates', v_duplicates,
		'errors',
		'[]'::jsonb);
end
$$;
