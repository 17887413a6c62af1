create or replace function autopost.named_raw(p_error jsonb, p_has_raw boolean) returns jsonb
language plpgsql volatile
as $$
-- Purpose: the error with a new payload_ref if the caller has a raw payload of it and raw payloads
--          are kept (raw_retention_days). emit_event and emit_note move the name to the event. The
--          caller stores the object after the commit, so an object is never without its event.
begin
	return case when p_has_raw and autopost.setting('raw_retention_days') > 0
		then p_error || jsonb_build_object('payload_ref', autopost.new_payload_ref()) else p_error end;
end
$$;

create or replace function autopost.new_payload_ref() returns text
language sql volatile
as $$
-- Purpose: a new name of a raw payload: raw/YYYYMMDD/UUID. The day (UTC) decides its retention.
select format('raw/%s/%s', to_char(autopost.now_ts() at time zone 'UTC', 'YYYYMMDD'), gen_random_uuid())
$$;

create or replace function autopost.shown_data_key(p_key autopost.data_keys) returns jsonb
language sql stable
as $$
-- Purpose: a data key as the engine reads it; null without a row.
select case when p_key.version is not null then jsonb_build_object('version', p_key.version, 'key_id', p_key.key_id,
	'wrapped_key', encode(p_key.wrapped_key, 'base64')) end
$$;
