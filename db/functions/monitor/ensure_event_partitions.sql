create or replace function autopost.ensure_event_partitions() returns jsonb
language plpgsql security definer set search_path = autopost, pg_temp set standard_conforming_strings = on
as $$
-- Purpose: creates day partitions of events for today and event_partition_days ahead, each with
--          forced row-level security.
-- Returns: {"made", "in_default"}: rows in the default partition were written before their
--          partition existed. The operator must check them; their day cannot get a partition.
-- Writes:  partitions of events.
declare
	v_day date;
	v_name text;
	v_made int := 0;
begin
	perform autopost.enter_all_workspaces();
	perform autopost.take_turn('event_partitions');
	for v_day in select (autopost.now_ts() at time zone 'UTC')::date + n
		from generate_series(0, autopost.setting('event_partition_days')::int) n loop
		v_name := 'events_' || to_char(v_day, 'YYYYMMDD');
		continue when to_regclass('autopost.' || v_name) is not null
			or exists (select 1 from autopost.events_default e
				where e.ts >= v_day::timestamp at time zone 'UTC' and e.ts < (v_day + 1)::timestamp at time zone 'UTC');
		execute format('create table autopost.%I partition of autopost.events for values from (%L) to (%L)', v_name,
			v_day::timestamp at time zone 'UTC', (v_day + 1)::timestamp at time zone 'UTC');
		execute format('alter table autopost.%I enable row level security, force row level security', v_name);
		execute format($p$create policy workspace on autopost.%I
			using (workspace_id = current_setting('autopost.workspace_id', true))$p$, v_name);
		execute format($p$create policy owner_session on autopost.%I to autopost_owner
			using (coalesce(current_setting('autopost.workspace_id', true), '') = '')$p$, v_name);
		v_made := v_made + 1;
	end loop;
	return jsonb_build_object('made', v_made, 'in_default', (select count(*) from autopost.events_default));
end
$$;
