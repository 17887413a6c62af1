create or replace function autopost.note_cluster() returns jsonb
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: stores the cluster of a new database, and the time at which a restored copy was first
--          seen. A daemon calls it at its start. Only the engine may call it.
-- Returns: {"restored": true if the copy sends nothing until confirm_restore}.
-- Writes:  cluster_identity.
declare
	v_now timestamptz;
begin
	insert into autopost.cluster_identity (system_identifier) values (autopost.this_cluster())
	on conflict (only_row) do nothing;
	v_now := autopost.now_ts();
	update autopost.cluster_identity i set noticed_at = v_now
	where i.noticed_at is null and autopost.is_restored();
	return jsonb_build_object('restored', autopost.is_restored());
end
$$;
