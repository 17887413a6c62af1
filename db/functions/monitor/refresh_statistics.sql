create or replace function autopost.refresh_statistics() returns jsonb
language plpgsql security definer set search_path = autopost, pg_temp set standard_conforming_strings = on
	set lock_timeout = '100ms'
as $$
-- Purpose: analyzes tables that grew by a factor of ten and a thousand rows since their statistics.
--          Until then, plans for a few rows scan all of them, and autovacuum runs at most once a
--          minute. Skips tables that are being analyzed or vacuumed. Then keep_plans.
-- Returns: {"analyzed": [tables]}.
-- Writes:  statistics, settings of functions.
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
	perform autopost.keep_plans();
	return jsonb_build_object('analyzed', v_analyzed);
end
$$;
