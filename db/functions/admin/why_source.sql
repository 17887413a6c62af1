create or replace function autopost.source_holds(p_status text, p_source autopost.pull_sources,
	p_cursor autopost.pull_cursors, p_endpoint_enabled boolean, p_now timestamptz) returns jsonb
language sql stable
as $$
-- Purpose: the reasons why a source is not polled now. p_status: of the workspace.
select coalesce(jsonb_agg(autopost.hold(h.gate, h.until, h.lifts) order by h.n), '[]')
from (values
	(1, 'workspace', p_status <> 'active', null::timestamptz, 'an active workspace: it is ' || p_status),
	(2, 'source_stopped', not p_source.enabled and p_source.stopped is not null, null,
		'autopost source enable ' || p_source.source_id || ', after its address is corrected'),
	(3, 'source_disabled', not p_source.enabled and p_source.stopped is null, null,
		'autopost source enable ' || p_source.source_id),
	(4, 'endpoint_disabled', p_source.enabled and not p_endpoint_enabled, null,
		'autopost endpoint enable, for the endpoint of the source'),
	(5, 'lease', p_source.enabled and autopost.is_polled(p_cursor, p_now), p_cursor.leased_until,
		'the end of the running poll'),
	(6, 'poll_failed', p_source.enabled and p_cursor.failures > 0 and not autopost.is_polled(p_cursor, p_now),
		p_cursor.next_poll_at, 'the next poll, or autopost source set ' || p_source.source_id
			|| ' with a corrected configuration, which polls at once'),
	(7, 'interval', p_source.enabled and p_cursor.failures = 0 and p_cursor.next_poll_at > p_now
		and not autopost.is_polled(p_cursor, p_now), p_cursor.next_poll_at, 'the time of the next poll')
) h (n, gate, holds, until, lifts)
where h.holds
$$;

create or replace function autopost.is_polled(p_cursor autopost.pull_cursors, p_now timestamptz) returns boolean
language sql immutable parallel safe
as $$
-- Purpose: true if a daemon polls the source now.
select coalesce(p_cursor.leased_by is not null and p_cursor.leased_until > p_now
	and p_cursor.next_poll_at = p_cursor.leased_until, false)
$$;

create or replace function autopost.source_sentence(p_source autopost.pull_sources, p_cursor autopost.pull_cursors,
	p_held_by jsonb, p_now timestamptz) returns text
language sql stable
as $$
-- Purpose: the state of a source in words.
select case p_held_by -> 0 ->> 'gate'
	when 'workspace' then 'is not polled: the workspace is not active'
	when 'source_stopped' then 'is stopped since ' || autopost.instant_text((p_source.stopped ->> 'at')::timestamptz)
		|| ': ' || autopost.failure_text(p_source.stopped)
	when 'source_disabled' then 'is disabled by an operator'
	when 'endpoint_disabled' then 'is polled, but its endpoint is disabled: its posts are refused'
	when 'lease' then format('is being polled by run %s, lease until %s', p_cursor.leased_by,
		autopost.instant_text(p_cursor.leased_until))
	when 'poll_failed' then format('fails: %s failed in a row', case p_cursor.failures when 1 then '1 poll'
		else p_cursor.failures || ' polls' end)
		|| case when p_cursor.next_poll_at > p_now
			then ', the next poll is at ' || autopost.instant_text(p_cursor.next_poll_at)
			else ', the next free daemon polls it' end
	when 'interval' then 'waits for its next poll at ' || autopost.instant_text(p_cursor.next_poll_at)
	else 'is due: the next free daemon with the stage ingest polls it' end
	|| case when p_source.stopped is null and p_cursor.last_error is not null
		then ', the last error: ' || autopost.failure_text(p_cursor.last_error) else '' end
$$;

create or replace function autopost.why_source(p_workspace_id text, p_source_id text) returns jsonb
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: explains a source: its polls, and why it is not polled now.
-- Returns: {"status": "source", "source": {"source_id", "kind", "enabled", "last_poll_at", "next_poll_at",
--          "failures", "last_error", "leased_by"}, "now": {"sentence", "held_by": [{"gate", "until",
--          "lifts"}], "daemon_seen_at"}}; null if the source does not exist.
-- Raises:  AP001 for a wrong argument; AP002, AP003, AP005 as enter_workspace.
-- Reads:   pull_sources, pull_cursors, workspace_endpoints, dispatch_runs.
declare
	v_status text := autopost.enter_workspace(p_workspace_id);
	v_source autopost.pull_sources;
	v_cursor autopost.pull_cursors;
	v_endpoint boolean;
	v_now timestamptz := autopost.now_ts();
	v_held jsonb;
begin
	perform autopost.require_argument('source_id', p_source_id <> '');
	select s.* into v_source from autopost.pull_sources s
	where s.workspace_id = p_workspace_id and s.source_id = p_source_id;
	if v_source.source_id is null then
		return null;
	end if;
	select c.* into v_cursor from autopost.pull_cursors c
	where c.workspace_id = p_workspace_id and c.source_id = p_source_id;
	v_endpoint := exists (select 1 from autopost.workspace_endpoints e
		where e.workspace_id = p_workspace_id and e.source_id = p_source_id and e.kind = 'pull_source' and e.enabled);
	v_held := autopost.source_holds(v_status, v_source, v_cursor, v_endpoint, v_now);
	return jsonb_build_object('status', 'source',
		'source', jsonb_build_object('source_id', p_source_id, 'kind', v_source.kind, 'enabled', v_source.enabled,
			'last_poll_at', v_cursor.last_poll_at, 'next_poll_at', case when v_source.enabled
				then nullif(v_cursor.next_poll_at, 'infinity') end,
			'failures', coalesce(v_cursor.failures, 0), 'last_error', coalesce(v_source.stopped, v_cursor.last_error),
			'leased_by', case when autopost.is_polled(v_cursor, v_now) then v_cursor.leased_by end),
		'now', jsonb_build_object('sentence', autopost.source_sentence(v_source, v_cursor, v_held, v_now),
			'held_by', v_held,
			'daemon_seen_at', (select max(r.seen_at) from autopost.dispatch_runs r)));
end
$$;
