-- +goose Up
-- Views are for autopost_reader, whose members see the workspaces that role_workspaces names for them. A view reads as the owner, before
-- whom all workspaces lie open, so it says itself whose rows it shows, behind a barrier: no function of the reader's own is asked about
-- any other row. What functions read stays without: one view more a read model, of the same columns, with _rows behind its name. Keys of
-- the API are no read model of theirs.
create view autopost.readable_workspaces as
select w.workspace_id
from autopost.workspaces w
where exists (
	select 1 from autopost.role_workspaces rw
	join pg_catalog.pg_roles r on r.rolname = rw.role_name
	where rw.workspace_id in (w.workspace_id, '*')
	and pg_catalog.pg_has_role(case current_setting('role') when 'none' then session_user else current_setting('role')::name end, r.oid, 'member'));

-- +goose StatementBegin
do $$
declare
	v_view text;
begin
	for v_view in
		select c.relname from pg_catalog.pg_class c
		join pg_catalog.pg_attribute k on k.attrelid = c.oid and k.attname = 'workspace_id'
		where c.relnamespace = 'autopost'::regnamespace and c.relkind = 'v' and c.relname not in ('readable_workspaces', 'list_api_keys')
		order by c.relname
	loop
		execute format('create view autopost.%I as %s', v_view || '_rows', pg_catalog.pg_get_viewdef(format('autopost.%I', v_view)::regclass));
		execute format('create or replace view autopost.%I with (security_barrier = true) as select %s from autopost.%I v
			where v.workspace_id = any (array(select r.workspace_id from autopost.readable_workspaces r))',
			v_view,
			-- A source's config_json, and the address that it moved to, may hold keys. list_sources(), the function, masks them.
			(select string_agg(case when v_view = 'list_sources' and a.attname = 'config_json' then 'null::jsonb as config_json'
					when v_view = 'list_sources' and a.attname = 'moved_to' then $m$regexp_replace(v.moved_to, '[?#].*$', '') as moved_to$m$
					else format('v.%I', a.attname) end, ', ' order by a.attnum)
				from pg_catalog.pg_attribute a
				where a.attrelid = format('autopost.%I', v_view)::regclass and a.attnum > 0 and not a.attisdropped),
			v_view || '_rows');
	end loop;
end
$$;
-- +goose StatementEnd
