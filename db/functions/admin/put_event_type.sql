create or replace function autopost.put_event_type(p_workspace_id text, p_event text, p_fields jsonb, p_operator text,
	p_reason text, p_dry_run boolean) returns jsonb
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: adds or changes an own type of domain events. p_fields: {"template_id", "enabled",
--          "moderated", "media_path": JSON path to the URL of a medium in the payload, "tags": they
--          route the posts}.
-- Returns: {"applied": true, "dry_run", "created", "before", "after"}, or {"applied": false,
--          "dry_run"} with reason unchanged, or invalid and "errors": [{"field", "reason",
--          "remedy"}].
-- Raises:  AP001 for a wrong argument.
-- Locks:   workspaces, audit_heads.
-- Writes:  event_types, admin_audit_log.
declare
	v_act jsonb;
	v_rules constant jsonb := '{"template_id": {"is": "text", "required": true},
		"enabled": {"is": "boolean", "default": true}, "moderated": {"is": "boolean", "default": false},
		"media_path": {"is": "text"}, "tags": {"is": "list", "default": []}}';
	v_before jsonb;
	v_put jsonb;
	v_answer jsonb;
	v_errors jsonb := '[]';
begin
	perform autopost.enter_workspace(p_workspace_id);
	v_act := autopost.manual_act(p_operator, p_reason, p_dry_run);
	if coalesce(p_event !~ '^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$', true)
		or exists (select 1 from autopost.event_fields(p_event)) then
		perform autopost.raise_argument('event', format('must be a name that is not built in, got %s', coalesce(p_event,
			'null')), 'use letters, digits, points, dashes and underscores');
	end if;
	perform autopost.lock_configuration(p_workspace_id) where not p_dry_run;
	v_before := (select autopost.row_fields(to_jsonb(t), v_rules) from autopost.event_types t
		where t.workspace_id = p_workspace_id and t.event = p_event);
	v_put := autopost.put_row(p_fields, v_rules, v_before);
	if (autopost.newest_template(p_workspace_id, v_put -> 'after' ->> 'template_id', 'x')).template_id is null then
		v_errors := autopost.field_error('template_id', 'must be a template of the workspace',
			'create the template first');
	end if;
	begin
		perform (v_put -> 'after' ->> 'media_path')::jsonpath;
	exception when syntax_error or data_exception then
		v_errors := v_errors || autopost.field_error('media_path', 'must be a JSON path', 'write $.imageUrl');
	end;
	v_answer := autopost.put_answer(v_put, v_errors, p_dry_run);
	if v_answer -> 'applied' = 'true' and not p_dry_run then
		insert into autopost.event_types (workspace_id, event, template_id, enabled, moderated, media_path, tags,
			updated_at)
		select p_workspace_id, p_event, a.row ->> 'template_id', (a.row -> 'enabled')::boolean,
			(a.row -> 'moderated')::boolean,
			a.row ->> 'media_path', array(select jsonb_array_elements_text(a.row -> 'tags')), autopost.now_ts()
		from (select v_put -> 'after' as row) a
		on conflict (workspace_id, event) do update set template_id = excluded.template_id, enabled = excluded.enabled,
			moderated = excluded.moderated, media_path = excluded.media_path, tags = excluded.tags,
			updated_at = excluded.updated_at;
		perform autopost.audit(p_workspace_id, 'put_event_type', 'event_type:' || p_event, v_act, v_answer -> 'before',
			v_answer -> 'after');
	end if;
	return v_answer;
end
$$;
