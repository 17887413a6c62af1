create or replace function autopost.set_pull_cursor(p_workspace_id text, p_source_id text, p_cursor jsonb) returns jsonb
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: ends a successful poll: it stores the cursor of the last chunk and sets the next poll
--          after the source's interval. Three keys of the cursor have a meaning here. more: the
--          chunk is not the last one, so the source stays leased. wait_seconds: the source's hint
--          for the interval. moved_to: the source's new address, reported once. A caller may set a
--          cursor without list_due_sources.
-- Returns: {"applied": true} or {"applied": false, "reason": "unknown_source"}.
-- Raises:  AP001 for a wrong argument.
-- Locks:   pull_cursors.
-- Writes:  pull_cursors, events (ingress_config_error).
declare
	v_before jsonb;
	v_now timestamptz;
	v_more boolean := p_cursor -> 'more' = 'true';
	v_leased_until timestamptz;
	v_next timestamptz;
begin
	perform autopost.enter_workspace(p_workspace_id);
	perform autopost.require_argument('source_id', p_source_id <> ''),
		autopost.require_argument('cursor', jsonb_typeof(p_cursor) = 'object');
	insert into autopost.pull_cursors (workspace_id, source_id, next_poll_at, updated_at)
	select s.workspace_id, s.source_id, autopost.now_ts(), autopost.now_ts() from autopost.pull_sources s
	where s.workspace_id = p_workspace_id and s.source_id = p_source_id
	and not exists (select 1 from autopost.pull_cursors c
		where c.workspace_id = p_workspace_id and c.source_id = p_source_id)
	on conflict (workspace_id, source_id) do nothing;
	select c.cursor_json into v_before from autopost.pull_cursors c
	where c.workspace_id = p_workspace_id and c.source_id = p_source_id
	for no key update of c;
	if not found then
		return '{"applied": false, "reason": "unknown_source"}';
	end if;
	v_now := autopost.now_ts();
	if v_more then
		v_leased_until := v_now + autopost.setting_interval('pull_lease_seconds');
		v_next := v_leased_until;
	else
		v_next := v_now + autopost.poll_interval(p_workspace_id, p_source_id,
			case when jsonb_typeof(p_cursor -> 'wait_seconds') = 'number'
				then (p_cursor ->> 'wait_seconds')::numeric end);
	end if;
	update autopost.pull_cursors c
	set cursor_json = p_cursor, failures = 0, last_error = null, updated_at = v_now, last_poll_at = v_now,
		leased_by = case when v_more then c.leased_by end, leased_until = v_leased_until, next_poll_at = v_next
	where c.workspace_id = p_workspace_id and c.source_id = p_source_id;
	if p_cursor ->> 'moved_to' is distinct from v_before ->> 'moved_to' and p_cursor ->> 'moved_to' is not null then
		-- The query and the fragment may hold a key.
		perform autopost.emit_note(p_workspace_id, 'ingress_config_error', 'ok', null, null,
			jsonb_build_object('code', 'pull_moved', 'message',
			'the source has moved permanently and is followed; set url to its new address'),
				jsonb_build_object('source_id', p_source_id,
			'moved_to', regexp_replace(p_cursor ->> 'moved_to', '[?#].*$', '')));
	end if;
	return '{"applied": true}';
end
$$;
