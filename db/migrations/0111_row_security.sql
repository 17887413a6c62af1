-- +goose Up
-- Row security, forced on every table with a workspace_id. Inside a function autopost.workspace_id is set,
-- and only rows of that workspace exist. The owner's own session and cross-workspace functions leave it
-- empty and see all rows. A later migration does the same for its new tables.

-- +goose StatementBegin
do $$
declare
	v_table regclass;
begin
	for v_table in
		select c.oid::regclass
		from pg_catalog.pg_class c
		join pg_catalog.pg_attribute a on a.attrelid = c.oid and a.attname = 'workspace_id' and not a.attisdropped
		where c.relnamespace = 'autopost'::regnamespace
		and c.relkind in ('r', 'p')
		order by c.relname
	loop
		execute format('alter table %s enable row level security, force row level security', v_table);
		execute format($p$create policy workspace on %s
			using (workspace_id = current_setting('autopost.workspace_id', true))$p$, v_table);
		execute format($p$create policy owner_session on %s to autopost_owner
			using (coalesce(current_setting('autopost.workspace_id', true), '') = '')$p$, v_table);
	end loop;
end
$$;
-- +goose StatementEnd

-- The operator @@ may use an index only where row security adds no condition: it could show its argument. The words
-- name messages, whose rows stay protected. messages_like, their only reader, names the workspace.
create policy search on autopost.message_words for select to autopost_owner using (true);
