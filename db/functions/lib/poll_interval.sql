create or replace function autopost.poll_interval(p_workspace_id text, p_source_id text) returns interval
language plpgsql stable
as $$
-- The source's own interval_seconds, 300 by default, at least 1.
begin
	return (
		select make_interval(secs => greatest(1, coalesce((s.config_json ->> 'interval_seconds')::numeric, 300))::float8)
		from autopost.pull_sources s
		where s.workspace_id = p_workspace_id and s.source_id = p_source_id
		and coalesce(jsonb_typeof(s.config_json -> 'interval_seconds'), 'number') = 'number');
end
$$;
