-- Moves and replacements. Each function returns the offending rows.

create or replace function autopost.verify_i49(p_workspace_id text) returns setof jsonb
language plpgsql stable
as $$
-- Purpose: finds violations of I49. A moved delivery has the time of its newest event. A replaced one
--          has a successor in its channel: a delivery of the new content, or a submission.
begin
	return query
	select jsonb_build_object('what', 'another time than the event', 'delivery_id', d.delivery_id, 'scheduled_for',
		d.scheduled_for, 'event', l.meta -> 'scheduled_for')
	from autopost.deliveries d
	join (
		select distinct on (e.delivery_id) e.delivery_id, e.meta from autopost.events e
		where e.workspace_id = p_workspace_id and e.action = 'rescheduled'
		order by e.delivery_id, e.ts desc, e.id desc) l on l.delivery_id = d.delivery_id
	where d.workspace_id = p_workspace_id and d.scheduled_for is distinct from (l.meta ->> 'scheduled_for')::timestamptz
	union all
	select jsonb_build_object('what', 'no successor', 'delivery_id', d.delivery_id, 'event', e.meta)
	from autopost.events e
	join autopost.deliveries d on d.workspace_id = p_workspace_id and d.delivery_id = e.delivery_id
	where e.workspace_id = p_workspace_id and e.action = 'manual_skip'
	and (e.meta ? 'replaced_by' and not exists (
			select 1 from autopost.deliveries n
			where n.workspace_id = p_workspace_id and n.message_id = (e.meta ->> 'replaced_by')::uuid
				and n.channel_id = d.channel_id)
		-- retention removes submissions before deliveries
		or e.meta ? 'submission_id' and e.ts > autopost.now_ts() - interval '1 day' and not exists (
			select 1 from autopost.submissions s
			where s.workspace_id = p_workspace_id and s.submission_id = (e.meta ->> 'submission_id')::uuid
				and d.channel_id = any (s.channels)));
end
$$;
