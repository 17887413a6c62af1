create or replace function autopost.put_template(
	p_workspace_id text, p_template_id text, p_platform text, p_template jsonb, p_operator text, p_reason text
) returns jsonb
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: writes the next version of a template for one platform, or for all (null or '*'). New
--          posts use it. p_template: {"body", "defaults", "vars", "sanitize", "parse_mode",
--          "max_length"}.
-- Returns: {"applied": true, "template_id", "platform", "version"}; or {"applied": false} with
--          reason unchanged (and the version), or invalid (and "errors": [{"field", "reason",
--          "remedy"}]).
-- Raises:  AP001 for a wrong argument.
-- Locks:   workspaces.
-- Writes:  templates, admin_audit_log.
declare
	v_act jsonb;
	v_new autopost.templates;
	v_old autopost.templates;
	v_faults jsonb;
begin
	perform autopost.enter_workspace(p_workspace_id);
	v_act := autopost.manual_act(p_operator, p_reason, false);
	perform autopost.require_argument('template_id', p_template_id <> '');
	if coalesce(p_platform, '*') <> '*' then
		perform autopost.require_platform(p_platform);
	end if;
	v_new := autopost.template_of(p_workspace_id, p_template_id, p_platform, p_template);
	v_faults := autopost.template_faults(v_new);
	if v_faults <> '[]' then
		return jsonb_build_object('applied', false, 'reason', 'invalid', 'errors', v_faults);
	end if;
	perform autopost.lock_configuration(p_workspace_id);
	select t.* into v_old from autopost.templates t
	where t.workspace_id = p_workspace_id and t.template_id = v_new.template_id and t.platform = v_new.platform
	order by t.version desc
	limit 1;
	if v_old.enabled
		and to_jsonb(v_old) - '{version,created_at}'::text[] = to_jsonb(v_new) - '{version,created_at}'::text[] then
		return jsonb_build_object('applied', false, 'reason', 'unchanged', 'template_id', v_old.template_id, 'platform',
			v_old.platform, 'version', v_old.version);
	end if;
	v_new.version := coalesce(v_old.version, 0) + 1;
	v_new.created_at := autopost.now_ts();
	insert into autopost.templates (workspace_id, template_id, platform, version, body, defaults, vars, sanitize,
		parse_mode, max_length, enabled, created_at)
	values (p_workspace_id, v_new.template_id, v_new.platform, v_new.version, v_new.body, v_new.defaults, v_new.vars,
		v_new.sanitize, v_new.parse_mode,
		v_new.max_length, v_new.enabled, v_new.created_at);
	perform autopost.audit(p_workspace_id, 'put_template', 'template:' || v_new.template_id || '/' || v_new.platform,
		v_act,
		coalesce(jsonb_strip_nulls(to_jsonb(v_old)) - 'workspace_id', '{}'),
			jsonb_strip_nulls(to_jsonb(v_new)) - 'workspace_id');
	return jsonb_build_object('applied', true, 'template_id', v_new.template_id, 'platform', v_new.platform, 'version',
		v_new.version);
end
$$;
