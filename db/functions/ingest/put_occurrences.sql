create or replace function autopost.put_occurrences(p_workspace_id text, p_recurrence_id uuid, p_local timestamp[],
	p_through timestamp default null, p_revision int default null, p_error jsonb default null) returns jsonb
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: stores local times of a rule as expected occurrences. A repeated one is ignored, as are those
--          whose instant an earlier one has: a skipped hour maps to the end of the gap. p_through: the
--          rule has no other times until then (default: the last of p_local; infinity: no more at all).
--          p_revision: of the expanded recurrence; another one is refused. p_error: the rule cannot be
--          expanded; the next try is an hour later. Expected instants follow a changed time zone database.
-- Returns: {"applied": true, "added"}, or {"applied": false, "reason"}: unknown_recurrence or changed.
-- Raises:  AP001 for a wrong argument.
-- Locks:   recurrences.
-- Writes:  occurrences, recurrences.
declare
	v_recurrence autopost.recurrences;
	v_added int;
	v_now timestamptz;
	v_ids uuid[];
	v_instants timestamptz[];
	v_expand_at timestamptz;
begin
	perform autopost.enter_workspace(p_workspace_id);
	perform autopost.require_argument('recurrence_id', p_recurrence_id is not null);
	perform autopost.require_argument('local', p_local is not null);
	select r.* into v_recurrence from autopost.recurrences r
	where r.workspace_id = p_workspace_id and r.recurrence_id = p_recurrence_id for no key update;
	if v_recurrence.recurrence_id is null or p_revision <> v_recurrence.revision then
		return jsonb_build_object('applied', false, 'reason', case when v_recurrence.recurrence_id is null
			then 'unknown_recurrence' else 'changed' end);
	end if;
	v_now := autopost.now_ts();
	select array_agg(o.occurrence_id), array_agg(i.at) into v_ids, v_instants
	from autopost.occurrences o
	cross join lateral (select autopost.zoned_instant(v_recurrence.zone, o.local_at) as at) i
	where o.workspace_id = p_workspace_id and o.recurrence_id = p_recurrence_id and o.status = 'expected' and not o.moved
		and o.at <> i.at;
	update autopost.occurrences o
	set at = i.at, updated_at = v_now
	from unnest(v_ids, v_instants) i (occurrence_id, at)
	where o.workspace_id = p_workspace_id and o.occurrence_id = i.occurrence_id;
	insert into autopost.occurrences (workspace_id, occurrence_id, recurrence_id, local_at, at, updated_at)
	select p_workspace_id, autopost.new_id(), p_recurrence_id, x.local_at, x.at, v_now
	from (
		select distinct on (i.at) l.local_at, i.at from unnest(p_local) l (local_at)
		cross join lateral (select autopost.zoned_instant(v_recurrence.zone, l.local_at) as at) i
		where l.local_at > v_recurrence.expanded_to
		order by i.at, l.local_at) x
	where not exists (select 1 from autopost.occurrences o
		where o.workspace_id = p_workspace_id and o.recurrence_id = p_recurrence_id
		and (o.at = x.at and not o.moved or o.local_at = x.local_at))
	order by x.at;
	get diagnostics v_added = row_count;
	v_recurrence.expanded_to := greatest(v_recurrence.expanded_to, p_through, (select max(l.l)
		from unnest(p_local) l (l)));
	v_expand_at := case
		when p_error is not null then v_now + interval '1 hour'
		when not isfinite(v_recurrence.expanded_to) then 'infinity'
		-- in the middle of what is stored
		else v_now + (greatest(autopost.zoned_instant(v_recurrence.zone,
			date_trunc('second', v_recurrence.expanded_to)),
			v_now) - v_now) / 2 end;
	update autopost.recurrences r
	set expanded_to = v_recurrence.expanded_to, last_error = p_error, expand_at = v_expand_at
	where r.workspace_id = p_workspace_id and r.recurrence_id = p_recurrence_id;
	perform autopost.arm_recurrence(p_workspace_id, p_recurrence_id);
	return jsonb_build_object('applied', true, 'added', v_added);
end
$$;
