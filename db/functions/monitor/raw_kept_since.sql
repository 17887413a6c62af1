create or replace function autopost.raw_kept_since() returns text
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: the first day (UTC, YYYYMMDD) whose raw payloads are kept, by raw_retention_days, and no
--          longer than their events. All earlier ones must be removed; with raw_retention_days 0
--          that is every one. Works across workspaces. Only the engine may call it.
-- Reads:   settings.
declare
	v_days int := least(autopost.setting('raw_retention_days'), autopost.setting('event_retention_days'));
begin
	perform autopost.enter_all_workspaces();
	return to_char((autopost.now_ts() at time zone 'UTC')::date - v_days + (v_days = 0)::int, 'YYYYMMDD');
end
$$;
