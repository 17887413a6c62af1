create or replace function autopost.get_endpoint(p_workspace_id text, p_endpoint_id text) returns jsonb
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: returns an endpoint.
-- Returns: the row of list_endpoints with "bound": true if the credential of signing_ref exists,
--          "last_hour": the counts of its runs of the last hour, "dropping": the kinds of drops
--          that share a run now, [{"action", "run_id", "since"}]; null if the endpoint does not
--          exist.
-- Reads:   list_endpoints (view), credential_bindings, ingest_runs, ingress_floods.
begin
	perform autopost.enter_workspace(p_workspace_id);
	perform autopost.require_argument('endpoint_id', p_endpoint_id is not null);
	return (
		select to_jsonb(v) - 'workspace_id' || jsonb_build_object(
			'bound', exists (
				select 1 from autopost.credential_bindings b
				where b.workspace_id = p_workspace_id and b.auth_ref = v.signing_ref and b.platform = 'webhook'),
			'last_hour', (
				select coalesce(jsonb_object_agg(k.key, k.total), '{}') from (
					select s.key, sum((s.value #>> '{}')::numeric) as total
					from autopost.ingest_runs r
					cross join lateral jsonb_each(r.stats_json) s
					where r.workspace_id = p_workspace_id and r.endpoint_id = p_endpoint_id
						and r.started_at > autopost.now_ts() - interval '1 hour'
					and jsonb_typeof(s.value) = 'number'
					group by s.key) k),
			'dropping', (
				select coalesce(jsonb_agg(jsonb_build_object('action', f.action, 'run_id', f.run_id, 'since',
					f.opened_at) order by f.action), '[]')
				from autopost.ingress_floods f
				where f.workspace_id = p_workspace_id and f.endpoint_id = p_endpoint_id and f.run_id is not null))
		from autopost.list_endpoints_rows v
		where v.workspace_id = p_workspace_id and v.endpoint_id = p_endpoint_id);
end
$$;
