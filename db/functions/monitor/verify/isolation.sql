-- Isolation of workspaces and secrets. Each function returns the offending rows.

create or replace function autopost.verify_i26(p_workspace_id text) returns setof jsonb
language plpgsql stable
as $$
-- Purpose: finds violations of I26. Rows of other workspaces are not visible, so a reference to a
--          missing row may lead to another workspace. Also checks the catalogue: forced row-level
--          security with a policy on each table with workspace_id, and owners and runtime roles
--          that it binds.
begin
	return query
	select jsonb_build_object('table', 'deliveries', 'delivery_id', d.delivery_id, 'message_id', d.message_id,
		'channel_id',
		d.channel_id)
	from autopost.deliveries d
	where d.workspace_id = p_workspace_id
	and (not exists (select 1 from autopost.messages m where m.workspace_id = p_workspace_id
		and m.message_id = d.message_id)
		or not exists (select 1 from autopost.channel_gates g
			where g.workspace_id = p_workspace_id and g.channel_id = d.channel_id))
	union all
	select jsonb_build_object('table', 'events', 'id', e.id, 'action', e.action, 'delivery_id', e.delivery_id,
		'message_id',
		e.message_id, 'channel_id', e.channel_id)
	from autopost.events e
	left join autopost.deliveries d on d.workspace_id = p_workspace_id and d.delivery_id = e.delivery_id
	where e.workspace_id = p_workspace_id and e.delivery_id is not null
	and (d.message_id is distinct from e.message_id or d.channel_id is distinct from e.channel_id)
	union all
	select jsonb_build_object('table', 'workspace_endpoints', 'endpoint_id', e.endpoint_id)
	from autopost.workspace_endpoints e
	where e.workspace_id = p_workspace_id and e.enabled and e.secret_hash is not null
	and not exists (
		select 1 from autopost.secret_lookup l
		where l.workspace_id = p_workspace_id and l.kind = e.kind and l.secret_hash = e.secret_hash
			and l.subject_id = e.endpoint_id);
	return query
	select jsonb_build_object('catalogue', 'table', 'name', c.relname, 'owner', c.relowner::regrole,
		'row_security', c.relrowsecurity, 'forced', c.relforcerowsecurity)
	from pg_catalog.pg_class c
	join pg_catalog.pg_attribute a on a.attrelid = c.oid and a.attname = 'workspace_id' and not a.attisdropped
	where c.relnamespace = 'autopost'::regnamespace and c.relkind in ('r', 'p')
	and not (c.relrowsecurity and c.relforcerowsecurity and c.relowner = 'autopost_owner'::regrole
		and exists (select 1 from pg_catalog.pg_policy p where p.polrelid = c.oid))
	union all
	select jsonb_build_object('catalogue', 'role', 'name', r.rolname)
	from pg_catalog.pg_roles r
	where r.rolname in ('autopost_owner', 'autopost_engine', 'autopost_caller', 'autopost_reader')
		and (r.rolsuper or r.rolbypassrls);
end
$$;

create or replace function autopost.verify_i36(p_workspace_id text) returns setof jsonb
language plpgsql stable
as $$
-- Purpose: finds violations of I36. Finds texts with the shape of a bot token or bearer token in
--          the newest 10,000 events and all stored errors. The finding has the location, not the
--          secret.
begin
	return query
	with spoken as (
		(select 'events' as place, e.id::text as id, concat(e.error::text, e.meta::text) as words from autopost.events e
		where e.workspace_id = p_workspace_id
		order by e.ts desc
		limit 10000)
		union all
		select 'deliveries', d.delivery_id::text, d.last_error::text from autopost.deliveries d
		where d.workspace_id = p_workspace_id and d.last_error is not null
		union all
		select 'post_acts', a.act_id::text, a.last_error::text from autopost.post_acts a
		where a.workspace_id = p_workspace_id and a.last_error is not null
		union all
		select 'submissions', s.submission_id::text, s.last_error::text from autopost.submissions s
		where s.workspace_id = p_workspace_id and s.last_error is not null
		union all
		select 'pull_cursors', c.source_id, c.last_error::text from autopost.pull_cursors c
		where c.workspace_id = p_workspace_id and c.last_error is not null
	)
	select jsonb_build_object('place', s.place, 'id', s.id)
	from spoken s
	where s.words ~ '\d{6,12}:[A-Za-z0-9_-]{30,}' or s.words ~* '\mbearer\s+[a-z0-9._~+/-]{20,}';
end
$$;
