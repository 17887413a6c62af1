create or replace function autopost.preview_x_post(p_workspace_id text, p_type text, p_template text, p_context jsonb)
	returns jsonb
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: the text that an event of Global X would have. p_type: image, video or combat. p_template:
--          a draft; null: the newest version. p_context: the template variables.
-- Returns: {"status": "ok", "text", "truncated", "length", "limit"}, or {"status": "invalid", "errors":
--          [{"field", "reason", "remedy"}]}.
-- Raises:  AP001 for a wrong argument.
-- Reads:   templates.
declare
	v_template autopost.templates;
	v_errors jsonb;
	v_text jsonb;
	v_unknown text;
begin
	perform autopost.enter_workspace(p_workspace_id);
	perform autopost.require_argument('context', jsonb_typeof(p_context) = 'object');
	if coalesce(p_type not in ('image', 'video', 'combat'), true) then
		perform autopost.raise_argument('type', format('must be image, video or combat, got %s', coalesce(p_type,
			'null')),
			'pass the type of the event');
	end if;
	v_template := autopost.x_template(p_workspace_id, p_type);
	if p_template is not null then
		v_template := autopost.template_of(p_workspace_id, p_type, 'x', autopost.x_template_fields(p_type, p_template));
	end if;
	v_errors := case when p_template is not null then autopost.x_config_errors(p_workspace_id,
		jsonb_build_object('templates.' || p_type, p_template)) else '[]' end;
	select k.key into v_unknown from jsonb_object_keys(p_context) k (key)
	where k.key <> all (autopost.template_vars(v_template)) order by 1 limit 1;
	if v_unknown is not null then
		v_errors := v_errors || autopost.field_error('context.' || v_unknown, 'must be a variable of the template',
			'use ' || array_to_string(autopost.template_vars(v_template), ', '));
	end if;
	if v_errors = '[]' then
		v_text := autopost.event_post(v_template, p_context);
		v_errors := coalesce(v_text -> 'errors', '[]');
	end if;
	return case when v_errors <> '[]' then jsonb_build_object('status', 'invalid', 'errors', v_errors)
		else v_text - 'mode' || jsonb_build_object('status', 'ok', 'limit', coalesce(v_template.max_length, 260)) end;
end
$$;
