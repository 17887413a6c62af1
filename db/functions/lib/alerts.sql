create or replace function autopost.raise_alert(p_workspace_id text, p_kind text, p_subject text, p_error jsonb, p_meta jsonb) returns void
language plpgsql
as $$
-- Tells people of something, once until it has ended.
-- Writes: alerts.
begin
	insert into autopost.alerts (workspace_id, alert_id, kind, subject, raised_at, error, meta)
	values (p_workspace_id, autopost.new_id(), p_kind, p_subject, autopost.now_ts(), autopost.redact(p_error), autopost.redact(p_meta))
	on conflict (workspace_id, kind, subject) where ended_at is null do nothing;
end
$$;

create or replace function autopost.end_alert(p_workspace_id text, p_kind text, p_subject text) returns void
language plpgsql
as $$
-- What people were told of is over.
-- Writes: alerts.
begin
	update autopost.alerts a set ended_at = autopost.now_ts()
	where a.workspace_id = p_workspace_id and a.kind = p_kind and a.subject = p_subject and a.ended_at is null;
end
$$;
