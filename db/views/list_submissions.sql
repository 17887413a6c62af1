-- Posts that wait for media or a decision, and those that ended without becoming a message.
create or replace view autopost.list_submissions_rows as
select s.workspace_id, s.submission_id, s.kind, s.endpoint_id, s.source_ref, s.status,
	left(s.raw_payload ->> 'text', 200) as excerpt,
	case when jsonb_typeof(s.raw_payload -> 'media') = 'array' then jsonb_array_length(s.raw_payload -> 'media')
		else 0 end as media,
	s.attempt, case when s.status = 'fetching' then s.next_attempt_at end as next_attempt_at, s.last_error, s.run_id,
	s.message_id, s.created_at, s.updated_at, s.moderated, s.raw_payload ->> 'text' as text, s.digest, s.expires_at,
	s.author, s.decision, s.decided_by, s.decided_at, s.decision_source, s.decision_reason
from autopost.submissions s;

create or replace view autopost.list_submissions with (security_barrier = true) as
select v.workspace_id, v.submission_id, v.kind, v.endpoint_id, v.source_ref, v.status, v.excerpt, v.media, v.attempt,
	v.next_attempt_at, v.last_error, v.run_id, v.message_id, v.created_at, v.updated_at, v.moderated, v.text, v.digest,
	v.expires_at, v.author, v.decision, v.decided_by, v.decided_at, v.decision_source, v.decision_reason
from autopost.list_submissions_rows v
where v.workspace_id = any (array(select r.workspace_id from autopost.readable_workspaces r));
