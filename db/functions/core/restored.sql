create or replace function autopost.this_cluster() returns text
language plpgsql stable
as $$
-- Purpose: the system identifier of the running cluster. A new cluster has another one; a replica
--          and a copied data folder have the same. A connection reads the file of the cluster once,
--          because every claim asks, and a connection never changes its cluster.
begin
	if coalesce(current_setting('autopost.cluster', true), '') = '' then
		perform set_config('autopost.cluster', c.system_identifier::text, false) from pg_catalog.pg_control_system() c;
	end if;
	return current_setting('autopost.cluster');
end
$$;

create or replace function autopost.is_distributed() returns boolean
language plpgsql stable
as $$
-- Purpose: true if workspaces may be on different nodes (Citus).
begin
	return exists (select 1 from pg_catalog.pg_extension x where x.extname = 'citus');
end
$$;

create or replace function autopost.is_restored() returns boolean
language plpgsql stable
as $$
-- Purpose: true if this database was restored into another cluster and is not confirmed. Such a
--          copy sends nothing, because the original may still run or has sent since the backup.
-- Reads:   cluster_identity.
begin
	return exists (select 1 from autopost.cluster_identity i where i.system_identifier <> autopost.this_cluster());
end
$$;
