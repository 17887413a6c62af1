create or replace function autopost.known_endpoint(p_workspace_id text, p_endpoint_id text)
	returns autopost.workspace_endpoints
language plpgsql stable
as $$
-- Purpose: the enabled endpoint.
-- Raises:  AP001 if it does not exist or is disabled.
-- Reads:   workspace_endpoints.
declare
	v_endpoint autopost.workspace_endpoints;
begin
	perform autopost.require_argument('endpoint_id', p_endpoint_id <> '');
	select e.* into v_endpoint from autopost.workspace_endpoints e
	where e.workspace_id = p_workspace_id and e.endpoint_id = p_endpoint_id and e.enabled;
	if v_endpoint.endpoint_id is null then
		perform autopost.raise_argument('endpoint_id', format('must be an enabled endpoint, got %s', p_endpoint_id),
			'run autopost endpoint list');
	end if;
	return v_endpoint;
end
$$;

create or replace function autopost.only_endpoint(p_workspace_id text) returns text
language plpgsql stable
as $$
-- Purpose: the only enabled endpoint of the workspace for pushed posts.
-- Raises:  AP001 if there is not exactly one, with the names of all.
-- Reads:   workspace_endpoints.
declare
	v_ids text[] := array(
		select e.endpoint_id from autopost.workspace_endpoints e
		where e.workspace_id = p_workspace_id and e.kind = 'webhook_push' and e.enabled
		order by e.endpoint_id);
begin
	if cardinality(v_ids) <> 1 then
		perform autopost.raise_argument('endpoint_id', case
			when v_ids = '{}' then 'must name an enabled endpoint of kind webhook_push, and the workspace has none'
			else format('must be given, because the workspace has several: %s', array_to_string(v_ids, ', ')) end,
			case when v_ids = '{}' then 'run autopost endpoint add ID' else 'pass one of them' end);
	end if;
	return v_ids[1];
end
$$;

create or replace function autopost.refuse_disabled(p_workspace_id text) returns void
language plpgsql stable
as $$
-- Purpose: refuses posts of a disabled workspace.
-- Raises:  AP001.
-- Reads:   workspaces.
begin
	if (select w.status from autopost.workspaces w where w.workspace_id = p_workspace_id) = 'disabled' then
		perform autopost.raise_argument('workspace_id', format('workspace %s is disabled', p_workspace_id),
			'set its status to active or paused');
	end if;
end
$$;

create or replace function autopost.known_sender(p_workspace_id text, p_endpoint_id text) returns void
language plpgsql stable
as $$
-- Purpose: checks that the endpoint is enabled and its workspace is not disabled.
-- Raises:  AP001.
begin
	perform autopost.known_endpoint(p_workspace_id, p_endpoint_id);
	perform autopost.refuse_disabled(p_workspace_id);
end
$$;
