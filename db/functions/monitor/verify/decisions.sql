create or replace function autopost.verify_i34(p_workspace_id text) returns setof jsonb
language plpgsql stable
as $$
-- Purpose: finds violations of I34. No delivery comes from a moderated submission before its approval.
--          An enqueued one has an approval of its stored plan, and its channels got a text of that
--          plan. A press in a chat counts for the plan that its message shows, and each decision in a
--          chat has its press. A channel that changed after the submission came, a post that was changed later, and
--          a delivery that was refused before its first call are not compared.
begin
	return query
	with moderated as materialized (
		select s.submission_id, s.status, s.decision, s.digest, s.plan, s.trace_id, s.run_id, s.message_id, s.channels,
			s.created_at
		from autopost.submissions s
		where s.workspace_id = p_workspace_id and s.moderated
	)
	select jsonb_build_object('what', 'queued before its approval', 'submission_id', m.submission_id, 'delivery_id',
		d.delivery_id)
	from moderated m
	join autopost.deliveries d on d.workspace_id = p_workspace_id and (d.trace_id = m.trace_id
		or (d.message_id = m.message_id and d.channel_id = any (m.channels) and d.ingest_run_id = m.run_id))
	where m.status in ('fetching', 'pending', 'rejected', 'expired')
	union all
	select jsonb_build_object('what', 'enqueued without an approval of its plan', 'submission_id', m.submission_id)
	from moderated m
	where m.status = 'enqueued'
	and (m.decision is distinct from 'approve' or m.digest is distinct from autopost.plan_digest(m.plan)
		or not exists (
			select 1 from autopost.approvals a
			where a.workspace_id = p_workspace_id and a.subject = 'submission:' || m.submission_id
				and a.decision = 'approve' and a.voided_at is null and a.digest = m.digest))
	union all
	select jsonb_build_object('what', 'another text than the approved one', 'submission_id', m.submission_id,
		'delivery_id',
		d.delivery_id, 'text', d.rendered_text)
	from moderated m
	join autopost.deliveries d on d.workspace_id = p_workspace_id and d.trace_id = m.trace_id
	join autopost.channels c on c.workspace_id = p_workspace_id and c.channel_id = d.channel_id
		and c.updated_at < m.created_at
	where m.status = 'enqueued' and d.rendered_text is not null
	and (d.attempt > 0 or d.status <> 'failed_permanent')
	and not m.plan -> 'renderings' @> jsonb_build_array(jsonb_build_object('text', d.rendered_text))
	and not exists (select 1 from autopost.post_acts p where p.workspace_id = p_workspace_id
		and p.delivery_id = d.delivery_id)
	union all
	select jsonb_build_object('what', 'a press counted for another plan than its message shows', 'submission_id',
		b.submission_id, 'press_id', b.press_id)
	from autopost.moderation_presses b
	join autopost.moderation_messages g on g.workspace_id = p_workspace_id and g.message_id = b.message_id
	where b.workspace_id = p_workspace_id and b.result in ('approved', 'counted', 'rejected') and not exists (
		select 1 from autopost.approvals a
		where a.workspace_id = p_workspace_id and a.subject = 'submission:' || b.submission_id
			and a.approver = b.approver and a.decision = b.decision and a.digest = g.digest)
	union all
	select jsonb_build_object('what', 'a decision in a chat without its press', 'submission_id', m.submission_id,
		'approver', a.approver)
	from moderated m
	join autopost.approvals a on a.workspace_id = p_workspace_id and a.subject = 'submission:' || m.submission_id
	where a.source in ('telegram', 'max') and not exists (
		select 1 from autopost.moderation_presses b
		where b.workspace_id = p_workspace_id and b.submission_id = m.submission_id and b.approver = a.approver
			and b.decision = a.decision and b.result in ('approved', 'counted', 'rejected'));
end
$$;
