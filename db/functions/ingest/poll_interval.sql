create or replace function autopost.poll_interval(p_workspace_id text, p_source_id text, p_hint_seconds numeric)
	returns interval
language plpgsql stable
as $$
-- Purpose: the time between two polls: the source's interval_seconds, at least 1. Without it: 300,
--          or the longer hint of the source, at most pull_hint_max.
-- Reads:   pull_sources.
begin
	return (
		select make_interval(secs => case
			when jsonb_typeof(s.config_json -> 'interval_seconds') = 'number'
				then greatest(1, (s.config_json ->> 'interval_seconds')::numeric)
			else greatest(300, least(coalesce(p_hint_seconds, 0), autopost.pull_hint_max())) end::float8)
		from autopost.pull_sources s
		where s.workspace_id = p_workspace_id and s.source_id = p_source_id);
end
$$;
