create or replace function autopost.x_config_errors(p_workspace_id text, p_fields jsonb) returns jsonb
language plpgsql stable
as $$
-- Purpose: the errors of a channel and of templates in a change of Global X: [{field, reason, remedy}].
-- Reads:   channels.
declare
	v_field record;
	v_template autopost.templates;
	v_faults jsonb;
	v_errors jsonb := '[]';
begin
	if jsonb_typeof(p_fields -> 'channel_id') = 'string' and not exists (select 1 from autopost.channels c
		where c.workspace_id = p_workspace_id and c.channel_id = p_fields ->> 'channel_id' and c.platform = 'x') then
		v_errors := autopost.field_error('channel_id', format('must be an X channel, got %s',
			p_fields ->> 'channel_id'),
			'add the channel first');
	end if;
	for v_field in select f.key, f.value from jsonb_each(p_fields) f
		where f.key like 'templates.%' and jsonb_typeof(f.value) = 'string' order by f.key loop
		v_template := autopost.template_of(p_workspace_id, split_part(v_field.key, '.', 2), 'x',
			autopost.x_template_fields(split_part(v_field.key, '.', 2), v_field.value #>> '{}'));
		v_faults := autopost.template_faults(v_template);
		if v_faults <> '[]' then
			v_errors := v_errors || (v_faults -> 0 || jsonb_build_object('field', v_field.key));
		elsif exists (select 1 from autopost.template_tokens(v_template.body) t where t.name in ('text', 'link')) then
			v_errors := v_errors || autopost.field_error(v_field.key, 'must not use {text} or {link}', 'use '
				|| array_to_string(autopost.template_vars(v_template), ', '));
		end if;
	end loop;
	return v_errors;
end
$$;

create or replace function autopost.put_x_post_config(p_workspace_id text, p_fields jsonb, p_operator text,
	p_reason text, p_dry_run boolean) returns jsonb
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: changes fields of the configuration of Global X; missing fields stay, null restores the
--          default. p_fields: {"enabled", "enableImages", "enableVideos", "enableCombat",
--          "moderation": {"enabled"}, "rate": {"perHour", "perDay"}, "templates": {"image", "video",
--          "combat"}, "mode": live, hold or shadow, "channel_id"}. A template gets a new version. The
--          channel gets the caps as quotas.
-- Returns: {"applied": true, "dry_run", "before", "after", "stored", "effective"}; or {"applied":
--          false, "dry_run"} with reason unchanged (and "stored",
--          "effective"), or invalid and "errors": [{"field", "reason",
--          "remedy"}].
-- Raises:  AP001 for a wrong argument.
-- Locks:   workspaces, x_post_config, quotas, channels, channel_gates, audit_heads.
-- Writes:  x_post_config, templates, quotas, channels, admin_audit_log.
declare
	v_act jsonb;
	v_rules jsonb := '{"enabled": {"is": "boolean"}, "enableImages": {"is": "boolean"}, "enableVideos": {"is": "boolean"},
		"enableCombat": {"is": "boolean"}, "moderation.enabled": {"is": "boolean"},
		"rate.perHour": {"is": "integer", "min": 1, "max": 1000000}, "rate.perDay": {"is": "integer", "min": 1,
			"max": 1000000},
		"mode": {"is": "text", "in": ["live", "hold", "shadow"]}, "channel_id": {"is": "text"},
		"templates.image": {"is": "text"}, "templates.video": {"is": "text"}, "templates.combat": {"is": "text"}}';
	v_put jsonb;
	v_answer jsonb;
	v_before jsonb;
	v_given jsonb := autopost.flat_fields(case when jsonb_typeof(p_fields) = 'object' then p_fields else '{}' end);
	v_defaults jsonb := autopost.x_defaults() || (select jsonb_object_agg('templates.' || b.template_id, b.body)
		from autopost.x_default_templates(p_workspace_id) b);
	v_now timestamptz;
begin
	perform autopost.enter_workspace(p_workspace_id);
	v_act := autopost.manual_act(p_operator, p_reason, p_dry_run);
	perform autopost.require_argument('fields', jsonb_typeof(p_fields) = 'object');
	v_rules := (select jsonb_object_agg(r.key, r.value || jsonb_build_object('default', v_defaults -> r.key))
		from jsonb_each(v_rules) r);
	perform autopost.lock_configuration(p_workspace_id) where not p_dry_run;
	v_before := v_defaults || coalesce((select autopost.flat_fields(c.config) from autopost.x_post_config c
		where c.workspace_id = p_workspace_id and c.key = 'global'), '{}') || autopost.x_templates(p_workspace_id);
	v_put := autopost.put_row(v_given, v_rules, v_before);
	v_answer := autopost.put_answer(v_put, autopost.x_config_errors(p_workspace_id, v_given), p_dry_run) - 'created';
	if v_answer -> 'applied' = 'true' and not p_dry_run then
		perform autopost.ensure_x_config(p_workspace_id);
		v_now := autopost.now_ts();
		update autopost.x_post_config c
		set updated_at = v_now, config = autopost.nested_fields((
			select coalesce(jsonb_object_agg(f.key, f.value), '{}')
			from jsonb_each(autopost.flat_fields(c.config) || v_given) f
			where f.value <> 'null' and f.key not like 'templates.%'))
		where c.workspace_id = p_workspace_id and c.key = 'global';
		perform autopost.put_template(p_workspace_id, split_part(f.key, '.', 2), 'x', autopost.x_template_fields(split_part(f.key, '.', 2),
			f.value #>> '{}'),
			p_operator, p_reason)
		from jsonb_each(v_answer -> 'after') f where f.key like 'templates.%';
		perform autopost.apply_x_config(p_workspace_id);
		perform autopost.audit(p_workspace_id, 'x_post_config_update', 'x_post_config:global', v_act,
			v_answer -> 'before', v_answer -> 'after');
	end if;
	return v_answer || case when v_answer ->> 'reason' is distinct from 'invalid' then autopost.get_x_post_config(p_workspace_id)
		else '{}' end;
end
$$;
