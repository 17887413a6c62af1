create or replace function autopost.refresh_statistics() returns jsonb
language plpgsql security definer set search_path = autopost, pg_temp set lock_timeout = '100ms'
as $$
-- Statistics of the tables that have outgrown theirs ten times and by a thousand rows: plans that were made for a few rows read all of them until then, and autovacuum
-- comes by once a minute, if it is on. Whose table is being analyzed or vacuumed is left out.
-- Returns {"analyzed": [tables]}. Writes: statistics.
declare
	v_table text;
	v_analyzed text[] := '{}';
begin
	perform autopost.enter_all_workspaces();
	for v_table in
		select c.relname from pg_class c
		where c.relnamespace = 'autopost'::regnamespace and c.relkind = 'r'
		and pg_stat_get_mod_since_analyze(c.oid) > 1000 + 10 * greatest(c.reltuples, 0)
		order by c.relname
	loop
		begin
			execute format('analyze autopost.%I', v_table);
			v_analyzed := v_analyzed || v_table;
		exception when lock_not_available then
			continue;
		end;
	end loop;
	return jsonb_build_object('analyzed', v_analyzed);
end
$$;
