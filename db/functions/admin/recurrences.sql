-- The configuration of posts that repeat.

create or replace function autopost.recurrence_rules() returns jsonb
language sql immutable parallel safe
as $$
-- Purpose: the rules of the fields of a recurrence; see put_row.
select '{"endpoint_id": {"is": "text", "required": true}, "rule": {"is": "text", "required": true},
	"zone": {"is": "text", "required": true, "default": "UTC"}, "starts_at": {"is": "text", "required": true},
	"payloads": {"is": "array", "required": true, "remedy": "write [{\"text\": \"…\"}]"},
	"enabled": {"is": "boolean", "default": true}}'::jsonb
$$;

create or replace function autopost.recurrence_fields(p_recurrence autopost.recurrences) returns jsonb
language sql stable
as $$
-- Purpose: the configurable fields of a stored recurrence.
select autopost.row_fields(to_jsonb(p_recurrence) || jsonb_build_object('starts_at',
	to_char(p_recurrence.starts_at, 'YYYY-MM-DD"T"HH24:MI')), autopost.recurrence_rules())
where p_recurrence.recurrence_id is not null
$$;

create or replace function autopost.local_time_of(p_value text) returns timestamp
language plpgsql immutable parallel safe
as $$
-- Purpose: a local time such as 2026-12-01T10:00, without seconds and offset; null for anything else.
begin
	return case when p_value ~ '^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}$'
		then to_timestamp(p_value, 'YYYY-MM-DD"T"HH24:MI')::timestamp end;
exception when data_exception or datetime_field_overflow then
	return null;
end
$$;

create or replace function autopost.repeated_payload_errors(p_workspace_id text, p_payloads jsonb) returns jsonb
language plpgsql stable
as $$
-- Purpose: the errors of the payloads of a recurrence, [{field, reason, remedy}]. Fields that belong to
--          one post only are refused: the recurrence sets them.
begin
	if jsonb_array_length(p_payloads) not between 1 and 50 then
		return autopost.field_error('payloads', format('must have 1 to 50 posts, got %s', jsonb_array_length(p_payloads)),
			'write [{"text": "…"}]');
	elsif octet_length(p_payloads::text) > 1048576 then
		return autopost.field_error('payloads', 'are longer than 1048576 bytes together', 'shorten the posts');
	end if;
	return (
		select coalesce(jsonb_agg(x.error || jsonb_build_object('field', format('payloads[%s]', e.ordinality - 1)
			|| coalesce('.' || nullif(x.error ->> 'field', ''), '')) order by e.ordinality), '[]')
		from jsonb_array_elements(p_payloads) with ordinality e
		cross join lateral (
			select r.value as error from jsonb_array_elements(autopost.entry_errors(p_workspace_id, e.value)) r
			union all
			select autopost.field_error(f.key, 'must be missing: the recurrence sets it', 'remove the field') -> 0
			from unnest('{scheduled_for,source_ref,occurrence,remove_at,slot}'::text[]) f (key)
			where jsonb_typeof(e.value) = 'object' and e.value ? f.key) x);
end
$$;

create or replace function autopost.recurrence_errors(p_workspace_id text, p_after jsonb) returns jsonb
language plpgsql stable
as $$
-- Purpose: the errors of a recurrence whose fields have the right types, [{field, reason, remedy}]. The
--          program checks the rule itself.
-- Reads:   workspace_endpoints; as entry_errors.
begin
	return case when p_after ->> 'rule' !~ '^FREQ=(HOURLY|DAILY|WEEKLY|MONTHLY|YEARLY)(;[A-Z]+=[A-Z0-9,+-]+)*$'
			or length(p_after ->> 'rule') > 500
		then autopost.field_error('rule', 'must be a rule of RFC 5545 from HOURLY to YEARLY, without DTSTART',
			'write FREQ=WEEKLY;BYDAY=MO,FR') else '[]' end
	|| case when not autopost.is_zone(p_after ->> 'zone')
		then autopost.field_error('zone', format('unknown time zone %s', p_after -> 'zone'),
			'use a name such as Europe/Moscow, or UTC') else '[]' end
	|| case when autopost.local_time_of(p_after ->> 'starts_at') is null
		then autopost.field_error('starts_at', 'must be a local time without offset', 'write 2026-12-01T10:00') else '[]' end
	|| case when not exists (select 1 from autopost.workspace_endpoints e
			where e.workspace_id = p_workspace_id and e.endpoint_id = p_after ->> 'endpoint_id' and e.kind = 'webhook_push')
		then autopost.field_error('endpoint_id', 'must be an endpoint of kind webhook_push', 'run autopost endpoint list')
		else '[]' end
	|| autopost.repeated_payload_errors(p_workspace_id, p_after -> 'payloads');
end
$$;
