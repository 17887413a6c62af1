create or replace function autopost.claim_sources(p_workspace_id text, p_run_id text, p_limit int)
	returns setof autopost.due_source
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: list_due_sources for a daemon: a lease also ends when the run p_run_id is silent. Only the
--          engine may call it.
-- Raises:  AP001 for a wrong argument.
-- Locks:   pull_cursors (skip locked).
-- Writes:  pull_cursors.
begin
	perform autopost.enter_workspace(p_workspace_id);
	perform autopost.require_argument('run_id', p_run_id <> ''), autopost.require_argument('limit', p_limit > 0);
	return query select s.* from autopost.lease_sources(p_workspace_id, p_run_id, null, p_limit) s;
end
$$;

create or replace function autopost.lease_sources(p_workspace_id text, p_run_id text, p_kinds text[], p_limit int)
	returns setof autopost.due_source
language plpgsql
as $$
-- Purpose: leases due sources of these kinds to a run; null: of every kind, to an unknown caller.
--          Folders have claim_file_source.
-- Locks:   pull_cursors (skip locked).
-- Writes:  pull_cursors.
declare
	v_now timestamptz;
	v_ids text[];
begin
	insert into autopost.pull_cursors (workspace_id, source_id, next_poll_at, updated_at)
	select s.workspace_id, s.source_id, autopost.now_ts(), autopost.now_ts() from autopost.pull_sources s
	where s.workspace_id = p_workspace_id and s.enabled
	and not exists (select 1 from autopost.pull_cursors c
		where c.workspace_id = p_workspace_id and c.source_id = s.source_id)
	on conflict (workspace_id, source_id) do nothing;
	v_now := autopost.now_ts();
	select array_agg(l.source_id) into v_ids
	from (
		select c.source_id from autopost.pull_cursors c
		join autopost.pull_sources s on s.workspace_id = p_workspace_id and s.source_id = c.source_id
		where c.workspace_id = p_workspace_id and s.enabled and s.kind <> 'filebus' and c.next_poll_at <= v_now
		and (p_kinds is null or s.kind = any (p_kinds))
		order by c.next_poll_at
		limit p_limit
		for no key update of c skip locked) l;
	update autopost.pull_cursors c
	set next_poll_at = v_now + autopost.setting_interval('pull_lease_seconds'), leased_by = p_run_id,
		leased_until = v_now + autopost.setting_interval('pull_lease_seconds')
	where c.workspace_id = p_workspace_id and c.source_id = any (v_ids);
	return query
	select s.workspace_id, s.source_id, e.endpoint_id, s.kind, s.config_json, c.cursor_json
	from autopost.pull_sources s
	join autopost.pull_cursors c on c.workspace_id = p_workspace_id and c.source_id = s.source_id
	left join autopost.workspace_endpoints e on e.workspace_id = p_workspace_id and e.source_id = s.source_id
		and e.kind = 'pull_source' and e.enabled
	where s.workspace_id = p_workspace_id and s.source_id = any (v_ids)
	order by s.source_id;
end
$$;
