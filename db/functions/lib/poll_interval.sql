create or replace function autopost.poll_interval(p_workspace_id text, p_source_id text, p_hint_seconds numeric) returns interval
language plpgsql stable
as $$
-- How long after a poll the next one comes: the source's own interval_seconds, at least 1. Where it has none, 300, or what the source hints
-- at where that is longer, at most pull_hint_max_seconds.
begin
	return (
		select make_interval(secs => case
			when jsonb_typeof(s.config_json -> 'interval_seconds') = 'number' then greatest(1, (s.config_json ->> 'interval_seconds')::numeric)
			else greatest(300, least(coalesce(p_hint_seconds, 0), autopost.setting('pull_hint_max_seconds'))) end::float8)
		from autopost.pull_sources s
		where s.workspace_id = p_workspace_id and s.source_id = p_source_id);
end
$$;
