create or replace function autopost.this_cluster() returns text
language sql stable
as $$
-- Purpose: the system identifier of the running cluster. A new cluster has another one; a replica
--          and a copied data folder have the same.
select c.system_identifier::text from pg_catalog.pg_control_system() c
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
