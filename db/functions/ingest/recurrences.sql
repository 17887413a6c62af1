-- Posts that repeat. A rule becomes local times in the daemon, and instants and posts here.

create or replace function autopost.lead_of(p_workspace_id text, p_endpoint_id text) returns interval
language plpgsql stable
as $$
-- Purpose: how long before its instant an occurrence becomes a post: a minute, to fetch media; a day if
--          people decide about it.
begin
	return (select case when e.moderated then interval '1 day' else interval '1 minute' end
	from autopost.workspace_endpoints e
	where e.workspace_id = p_workspace_id and e.endpoint_id = p_endpoint_id);
end
$$;

create or replace function autopost.arm_recurrence(p_workspace_id text, p_recurrence_id uuid) returns void
language plpgsql
as $$
-- Purpose: sets when the stage has something to do for a locked recurrence, and wakes the stage.
-- Writes:  recurrences.
declare
	v_next timestamptz := (
		select least(r.expand_at, (
			select min(o.at) from autopost.occurrences o
			where o.workspace_id = p_workspace_id and o.recurrence_id = p_recurrence_id and o.status = 'expected')
			- autopost.lead_of(p_workspace_id, r.endpoint_id))
		from autopost.recurrences r
		where r.workspace_id = p_workspace_id and r.recurrence_id = p_recurrence_id);
begin
	update autopost.recurrences r
	set next_at = v_next
	where r.workspace_id = p_workspace_id and r.recurrence_id = p_recurrence_id;
	perform pg_notify('autopost_wake', 'recurrences');
end
$$;

create or replace function autopost.skip_expected(p_recurrence autopost.recurrences, p_until timestamptz, p_reason text)
	returns void
language plpgsql
as $$
-- Purpose: skips the expected occurrences of a locked recurrence before p_until. One event has their
--          number and the first and last instant.
-- Writes:  occurrences, events (occurrence_skipped).
declare
	v_meta jsonb;
	v_now timestamptz := autopost.now_ts();
begin
	with skipped as (
		update autopost.occurrences o
		set status = 'skipped', reason = p_reason, updated_at = v_now
		where o.workspace_id = p_recurrence.workspace_id and o.recurrence_id = p_recurrence.recurrence_id
			and o.status = 'expected' and o.at < p_until
		returning o.at
	)
	select jsonb_build_object('recurrence_id', p_recurrence.recurrence_id, 'cause', p_reason, 'occurrences', count(*),
		'first_at', autopost.utc(min(s.at)), 'last_at', autopost.utc(max(s.at))) into v_meta
	from skipped s having count(*) > 0;
	perform autopost.emit_note(p_recurrence.workspace_id, 'occurrence_skipped', 'ok', null, null, null, v_meta)
		where v_meta is not null;
end
$$;
