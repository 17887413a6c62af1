create or replace function autopost.alert_target_rules() returns jsonb
language sql immutable parallel safe
as $$
-- Purpose: the fields of an alert target, for put_row.
select '{
	"kind": {"is": "text", "required": true, "fixed": true, "in": ["telegram", "max", "email", "webhook"]},
	"address": {"is": "text", "required": true},
	"auth_ref": {"is": "text"},
	"enabled": {"is": "boolean", "required": true, "default": true},
	"min_severity": {"is": "text", "required": true, "default": "warning", "in": ["warning", "error", "critical"]},
	"kinds": {"is": "list"},
	"quiet_hours": {"is": "text", "remedy": "write from-until by the clock of timezone, as in 22:00-07:30"},
	"timezone": {"is": "text", "required": true, "default": "UTC"},
	"quiet_critical": {"is": "boolean", "required": true, "default": true},
	"digest_minutes": {"is": "integer", "required": true, "default": 0, "min": 0, "max": 1440},
	"daily_limit": {"is": "integer", "required": true, "default": 50, "min": 1, "max": 1000},
	"health_at": {"is": "text", "remedy": "write a time of the day by the clock of timezone, as in 09:00"},
	"health_on_alert": {"is": "boolean", "required": true, "default": false}
}'::jsonb
$$;

create or replace function autopost.alert_target_errors(p_workspace_id text, p_fields jsonb) returns jsonb
language plpgsql stable
as $$
-- Purpose: checks an alert target beyond the form of its fields.
-- Returns: an array of {field, reason, remedy}.
-- Reads:   platforms, credential_bindings.
declare
	v_clock constant text := '([01]\d|2[0-3]):[0-5]\d';
	v_kind text := p_fields ->> 'kind';
	v_address text := p_fields ->> 'address';
	v_platform text := case v_kind when 'email' then 'smtp' else v_kind end;
	v_unknown text := (
		select k.value from jsonb_array_elements_text(case jsonb_typeof(p_fields -> 'kinds')
			when 'array' then p_fields -> 'kinds' else '[]' end) k
		where k.value not in (select a.kind from autopost.alert_kinds() a) order by 1 limit 1);
begin
	return case
		when v_kind in ('telegram', 'max') and not exists (select 1 from autopost.platforms p
			where p.platform = v_kind and v_address ~ coalesce(p.target_form, ''))
			then autopost.field_error('address',
				format('must be a target of %s, got %s', v_kind, p_fields -> 'address'),
				'write one such as ' || (select p.target_example from autopost.platforms p where p.platform = v_kind))
		when v_kind = 'email' and v_address !~ '^[^\s@<>,;:"()\[\]\\]+@[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?$'
			then autopost.field_error('address', 'must be a mail address',
				'write one such as ops@example.com, without a name')
		when v_kind = 'webhook' and v_address !~ '^https?://[^\s/?#@]+([/?][^\s#]*)?$'
			then autopost.field_error('address', 'must be an https address without user and fragment',
				'write one such as https://example.com/alerts')
		else '[]' end
	|| case
		when p_fields ->> 'auth_ref' is null and v_kind <> 'email'
			then autopost.field_error('auth_ref', 'is missing', format('name a credential of platform %s', v_platform))
		when p_fields ->> 'auth_ref' is not null and not exists (
			select 1 from autopost.credential_bindings b
			where b.workspace_id = p_workspace_id and b.auth_ref = p_fields ->> 'auth_ref' and b.platform = v_platform)
			then autopost.field_error('auth_ref',
				format('must be a credential of platform %s, got %s', v_platform, p_fields -> 'auth_ref'),
				'bind or set the credential first')
		else '[]' end
	|| case when not autopost.is_zone(p_fields ->> 'timezone')
		then autopost.field_error('timezone', format('must be a known time zone, got %s', p_fields -> 'timezone'),
			'use a name such as Europe/Moscow, or UTC') else '[]' end
	|| case when p_fields ->> 'quiet_hours' !~ ('^' || v_clock || '-' || v_clock || '$')
		then autopost.field_error('quiet_hours', 'must be a span of hours', 'write from-until, as in 22:00-07:30')
			else '[]' end
	|| case when p_fields ->> 'health_at' !~ ('^' || v_clock || '$')
		then autopost.field_error('health_at', 'must be a time of day', 'write one such as 09:00') else '[]' end
	|| case when v_unknown is not null
		then autopost.field_error('kinds', format('must be kinds of alerts, got %s', v_unknown),
			'use ' || (select string_agg(a.kind, ', ' order by a.kind) from autopost.alert_kinds() a)) else '[]' end;
end
$$;

create or replace function autopost.alert_target_note(p_workspace_id text, p_target_id text,
	p_fields jsonb) returns jsonb
language plpgsql stable
as $$
-- Purpose: {"note"} if a target uses the credential of channels and no enabled target uses another
--          one: an alert about that credential would not arrive. Otherwise {}.
-- Reads:   channels, channel_auth, alert_targets.
declare
	v_auth_ref text := p_fields ->> 'auth_ref';
begin
	if p_fields -> 'enabled' <> 'true' or autopost.channels_of_credential(p_workspace_id, v_auth_ref) = '{}'
		or exists (
			select 1 from autopost.alert_targets t
			where t.workspace_id = p_workspace_id and t.target_id <> p_target_id and t.enabled
			and t.auth_ref is distinct from v_auth_ref) then
		return '{}';
	end if;
	return jsonb_build_object('note', format(
		'if credential %s is refused, this target cannot be reached: add another one with another credential', v_auth_ref));
end
$$;

create or replace function autopost.is_quiet(p_target autopost.alert_targets, p_at timestamptz) returns boolean
language plpgsql stable
as $$
-- Purpose: true in the quiet hours of a target, in its time zone.
declare
	v_spans jsonb;
begin
	if p_target.quiet_hours is null then
		return false;
	end if;
	v_spans := jsonb_build_array(jsonb_build_array(split_part(p_target.quiet_hours, '-', 1),
		split_part(p_target.quiet_hours, '-', 2)));
	return autopost.next_open(p_target.timezone, (select jsonb_object_agg(d.day, v_spans)
		from unnest('{mon,tue,wed,thu,fri,sat,sun}'::text[]) d (day)), p_at) = p_at;
end
$$;

create or replace function autopost.next_health(p_health_at text, p_timezone text, p_after timestamptz)
	returns timestamptz
language plpgsql stable
as $$
-- Purpose: the next instant with that time of day in the zone; null without a time.
declare
	v_today date := (p_after at time zone p_timezone)::date;
begin
	return (
		select min(autopost.zoned_instant(p_timezone, v_today + n + p_health_at::time))
			filter (where autopost.zoned_instant(p_timezone, v_today + n + p_health_at::time) > p_after)
		from generate_series(0, 2) n);
end
$$;
