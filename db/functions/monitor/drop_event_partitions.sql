create or replace function autopost.drop_event_partitions() returns jsonb
language plpgsql security definer set search_path = autopost, pg_temp set standard_conforming_strings = on
	set lock_timeout = '200ms'
as $$
-- Purpose: drops day partitions of events older than event_retention_days, oldest first, up to 7
--          per call, and deletes about 10,000 such rows from the default partition. Waits at most
--          lock_timeout, because writers of events queue behind it; the next call retries. Works
--          across workspaces.
-- Returns: {"dropped", "busy", "more", "in_default": rows left there, for the operator}.
-- Writes:  events and its partitions.
declare
	v_before date;
	v_name text;
	v_dropped int := 0;
	v_busy boolean := not autopost.try_turn('event_partitions');
	v_stray int;
	v_until timestamptz;
	v_last timestamptz;
begin
	perform autopost.enter_all_workspaces();
	v_before := (autopost.now_ts() at time zone 'UTC')::date - autopost.setting('event_retention_days')::int;
	if v_busy then
		return jsonb_build_object('dropped', 0, 'busy', true, 'more', true,
			'in_default', (select count(*) from autopost.events_default));
	end if;
	for v_name in
		select c.relname from pg_catalog.pg_inherits i
		join pg_catalog.pg_class c on c.oid = i.inhrelid
		where i.inhparent = 'autopost.events'::regclass and c.relname ~ '^events_\d{8}$'
			and to_date(right(c.relname, 8), 'YYYYMMDD') < v_before
		order by c.relname
		limit 7
	loop
		begin
			execute format('drop table autopost.%I', v_name);
			v_dropped := v_dropped + 1;
		exception when lock_not_available then
			v_busy := true;
			exit;
		end;
	end loop;
	v_until := v_before::timestamp at time zone 'UTC';
	v_last := (select x.ts from autopost.events_default x where x.ts < v_until order by x.ts offset 9999 limit 1);
	delete from autopost.events_default e
	where e.ts < v_until and e.ts <= coalesce(v_last, 'infinity');
	get diagnostics v_stray = row_count;
	return jsonb_build_object('dropped', v_dropped, 'busy', v_busy, 'more', v_busy or v_dropped = 7 or v_stray >= 10000,
		'in_default', (select count(*) from autopost.events_default));
end
$$;
