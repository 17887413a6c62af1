create or replace function autopost.setting(p_key text) returns numeric
language plpgsql stable
as $$
-- Purpose: the value of a numeric setting.
-- Raises:  AP001 for an unknown key.
declare
	v_value numeric;
begin
	select (s.value #>> '{}')::numeric into v_value from autopost.settings s where s.key = p_key;
	if v_value is null then
		perform autopost.raise_argument('key', format('unknown setting %L', p_key), 'run autopost setting list');
	end if;
	return v_value;
end
$$;

create or replace function autopost.setting_is_on(p_key text) returns boolean
language plpgsql stable
as $$
-- Purpose: the value of a boolean setting.
begin
	return (select s.value = 'true' from autopost.settings s where s.key = p_key);
end
$$;

create or replace function autopost.setting_interval(p_key text) returns interval
language plpgsql stable
as $$
-- Purpose: the value of a setting as an interval, by the unit in its key.
begin
	return autopost.setting(p_key) * case
		when p_key like '%\_ms' then interval '1 millisecond'
		when p_key like '%\_minutes' then interval '1 minute'
		when p_key like '%\_hours' then interval '1 hour'
		when p_key like '%\_days' then interval '1 day'
		else interval '1 second' end;
end
$$;

create or replace function autopost.change_settings(p_values jsonb, p_function text, p_act jsonb) returns jsonb
language plpgsql
as $$
-- Purpose: changes several settings, {key: value}; null restores the default. They are checked
--          together after the change. Each change is a row in the audit log of the operator's
--          workspace; without any workspace there is no log. Call it before a workspace is entered.
-- Returns: [{"key", "before", "after"}].
-- Raises:  AP001 as apply_settings.
-- Locks:   settings (key), platforms, quotas, channels and channel_gates for settings of Global X, audit_heads.
-- Reads:   workspaces, x_post_config.
-- Writes:  settings, platforms (upload policies), admin_audit_log; as apply_x_config.
declare
	v_log text;
	v_setting record;
	v_changes jsonb := '[]';
	v_bad text;
	v_now timestamptz;
begin
	select v.key into v_bad from jsonb_object_keys(p_values) v (key)
	where not exists (select 1 from autopost.all_settings() s where s.key = v.key) order by 1 limit 1;
	if v_bad is not null then
		perform autopost.raise_argument('key', format('unknown setting %L', v_bad), 'run autopost setting list');
	end if;
	-- Retentions and dedup windows are checked against each other, so their rows are locked.
	perform 1 from autopost.settings s
	where p_values ? s.key or s.key = 'delivery_retention_days' and p_values::text like '%\_retention\_days"%'
	order by s.key for no key update of s;
	for v_setting in
		select s.key, s.value as before, coalesce(nullif(v.value, 'null'), s.default_value, s.value) as after
		from jsonb_each(p_values) v join autopost.settings s on s.key = v.key
		order by s.key
	loop
		continue when v_setting.after = v_setting.before;
		v_now := autopost.now_ts();
		update autopost.settings s set value = v_setting.after, updated_at = v_now
			where s.key = v_setting.key;
		v_changes := v_changes || jsonb_build_object('key', v_setting.key, 'before', v_setting.before,
			'after', v_setting.after);
	end loop;
	v_changes := v_changes || (
		select coalesce(jsonb_agg(u.change order by u.key) filter (where u.change is not null), '[]') from (
			select v.key, autopost.set_upload_policy(v.key, coalesce(nullif(v.value, 'null'), '{}')) as change
			from jsonb_each(p_values) v where v.key like 'upload\_policy\_%' order by v.key) u);
	perform autopost.check_retention(c.value ->> 'key') from jsonb_array_elements(v_changes) c
		where c.value ->> 'key' like '%\_retention\_days';
	perform autopost.apply_x_config(c.workspace_id) from (
		select x.workspace_id from autopost.x_post_config x order by x.workspace_id) c
	where v_changes @? '$[*].key ? (@ starts with "global_x_")';
	v_log := autopost.operator_workspace();
	perform autopost.audit(v_log, p_function, 'setting:' || (c.value ->> 'key'), p_act,
		jsonb_build_object('value', c.value -> 'before'), jsonb_build_object('value', c.value -> 'after'))
	from jsonb_array_elements(v_changes) c where v_log is not null;
	return v_changes;
end
$$;

create or replace function autopost.operator_workspace() returns text
language plpgsql stable
as $$
-- Purpose: the workspace for alerts of the whole installation: the setting operator_workspace, else
--          the oldest one of workspaces_here. Call it before a workspace is entered.
-- Reads:   settings, workspaces.
declare
	v_named text := (
		select nullif(s.value #>> '{}', '') from autopost.settings s where s.key = 'operator_workspace');
	v_here text[];
begin
	if v_named is not null then
		perform 1 from autopost.workspaces w where w.workspace_id = v_named;
		if found then
			return v_named;
		end if;
	end if;
	v_here := autopost.workspaces_here();
	return (
		select w.workspace_id from autopost.workspaces w
		where v_here is null or w.workspace_id = any (v_here)
		order by w.created_at, w.workspace_id limit 1);
end
$$;
