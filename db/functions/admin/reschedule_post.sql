create or replace function autopost.reschedule_post(p_workspace_id text, p_message_id uuid, p_to jsonb, p_operator text,
	p_reason text, p_dry_run boolean) returns jsonb
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: moves a post in all its channels: its deliveries that wait or are in flight, at most 1,000
--          a call. p_to is one of {"at": instant with offset}, {"seconds": later, or earlier if
--          negative} and {"slot": "next_free"}. A first call moves all up to 1,000; pass the last
--          delivery_id of its answer as "after" of p_to while "more" is true.
-- Returns: as reschedule, with "more". {"applied": false, "reason"}: unknown_message, nothing_waits,
--          or fanout_running: channels still get their deliveries.
-- Raises:  AP001 for a wrong argument.
-- Locks:   as reschedule.
-- Reads:   messages, fanout_jobs.
-- Writes:  as reschedule.
declare
	v_ids uuid[];
	v_reason text;
	v_more boolean;
	v_base jsonb := jsonb_build_object('applied', false, 'dry_run', p_dry_run, 'moved', 0, 'refused', 0, 'results',
		'[]'::jsonb);
begin
	perform autopost.enter_workspace(p_workspace_id);
	perform autopost.manual_act(p_operator, p_reason, p_dry_run);
	perform autopost.require_argument('message_id', p_message_id is not null);
	perform autopost.check_target_time(p_to);
	select (array_agg(w.delivery_id order by w.delivery_id))[:1000], count(*) > 1000 into v_ids, v_more
	from (
		select d.delivery_id from autopost.deliveries d
		where d.workspace_id = p_workspace_id and d.message_id = p_message_id
			and d.phase in ('active', 'claimed', 'retry')
			and (not p_to ? 'after' or d.delivery_id > (p_to ->> 'after')::uuid)
		order by d.delivery_id
		limit 1001) w;
	v_reason := case
		when not exists (select 1 from autopost.messages m where m.workspace_id = p_workspace_id
			and m.message_id = p_message_id) then 'unknown_message'
		when exists (select 1 from autopost.fanout_jobs j where j.workspace_id = p_workspace_id
			and j.message_id = p_message_id and j.status = 'running') then 'fanout_running'
		when v_ids is null and not p_to ? 'after' then 'nothing_waits' end;
	if v_reason is not null then
		return v_base || jsonb_build_object('reason', v_reason);
	elsif v_ids is null then
		return v_base || '{"more": false}';
	end if;
	return autopost.moved(p_workspace_id, v_ids, p_to - 'after', p_operator, p_reason, p_dry_run)
		|| jsonb_build_object('more', v_more);
end
$$;

create or replace function autopost.check_target_time(p_to jsonb) returns void
language plpgsql stable
as $$
-- Purpose: checks the target of a move: see reschedule_post.
-- Raises:  AP001.
begin
	perform autopost.require_argument('to', jsonb_typeof(p_to) = 'object');
	if (select count(*) from jsonb_object_keys(p_to) k (key) where k.key in ('at', 'seconds', 'slot')) <> 1
		or p_to - '{at,seconds,slot,after}'::text[] <> '{}' then
		perform autopost.raise_argument('to', 'must have one of at, seconds and slot',
			'pass {"at": "2026-12-01T10:00:00+03:00"}, {"seconds": 7200} or {"slot": "next_free"}');
	elsif p_to ? 'at' and autopost.timestamp_of(p_to ->> 'at') is null then
		perform autopost.raise_argument('at', format('must be a time with an offset, got %s', coalesce(p_to ->> 'at',
			'null')),
			'write 2026-12-01T10:00:00+03:00');
	elsif p_to ? 'slot' and p_to ->> 'slot' is distinct from 'next_free' then
		perform autopost.raise_argument('slot', format('must be next_free, got %s', p_to -> 'slot'),
			'write "next_free"');
	elsif p_to ? 'seconds' and coalesce(jsonb_typeof(p_to -> 'seconds') <> 'number'
		or p_to ->> 'seconds' !~ '^-?\d{1,9}$',
		true) then
		perform autopost.raise_argument('seconds', format('must be a whole number, got %s', p_to -> 'seconds'),
			'pass 7200 for two hours later, -7200 for two hours earlier');
	elsif p_to ? 'after' and not autopost.is_uuid(p_to ->> 'after') then
		perform autopost.raise_argument('after', 'must be a delivery_id',
			'pass the last delivery_id of the answer before');
	end if;
	perform autopost.check_move_time('at', autopost.timestamp_of(p_to ->> 'at')) where p_to ? 'at';
	perform autopost.check_shift((p_to ->> 'seconds')::int) where p_to ? 'seconds';
end
$$;
