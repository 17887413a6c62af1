create or replace function autopost.preview_template(p_workspace_id text, p_template_id text, p_platform text,
	p_template jsonb, p_payload jsonb) returns jsonb
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: renders a post by a template on a platform. The template is stored (p_template null: the
--          newest enabled version) or a draft as in put_template. p_payload is a raw payload;
--          template.vars are the sample, and text is optional.
-- Returns: {"status": "ok", "text", "truncated", "length", "limit", "template_version", "meta"}; or
--          {"status": "invalid", "errors": [{"field", "reason", "remedy"}]}.
-- Raises:  AP001 for a wrong argument.
-- Reads:   platforms, templates.
declare
	v_platform autopost.platforms;
	v_template autopost.templates;
	v_raw jsonb;
	v_payload jsonb;
	v_choice jsonb;
	v_errors jsonb;
	v_out jsonb;
begin
	perform autopost.enter_workspace(p_workspace_id);
	perform autopost.require_argument('template_id', p_template_id <> ''),
		autopost.require_argument('payload', jsonb_typeof(p_payload) = 'object');
	perform autopost.require_platform(p_platform);
	select p.* into v_platform from autopost.platforms p where p.platform = p_platform;
	v_template := case when p_template is null then autopost.newest_template(p_workspace_id, p_template_id, p_platform)
		else autopost.template_of(p_workspace_id, p_template_id, p_platform, p_template) end;
	v_raw := p_payload || jsonb_build_object('template',
		jsonb_build_object('name', p_template_id, 'vars', coalesce(p_payload -> 'template' -> 'vars', '{}')));
	v_errors := case when v_template.template_id is null
		then autopost.field_error('template.name', format('must be a template, got %s', p_template_id),
		'create the template first')
		else autopost.template_faults(v_template) end || autopost.payload_errors(v_raw);
	if v_errors = '[]' then
		v_errors := autopost.value_errors(array[v_template], v_raw);
	end if;
	if v_errors = '[]' then
		v_payload := autopost.normalize_payload(v_raw);
		v_choice := jsonb_strip_nulls(jsonb_build_object('platform', p_platform, 'send_mode', 'mixed', 'parse_mode',
			v_payload -> 'parse_mode'));
		v_out := autopost.render(v_payload, v_platform, autopost.in_template(v_template, v_payload, v_choice), '{}');
		v_errors := case when v_out ->> 'verdict' = 'queued' then v_errors
			else autopost.field_error('payload', v_out ->> 'reason', 'change the template or the sample') end;
	end if;
	if v_errors <> '[]' then
		return jsonb_build_object('status', 'invalid', 'errors', v_errors);
	end if;
	return jsonb_build_object('status', 'ok', 'text', v_out -> 'text', 'truncated',
		coalesce(v_out #> '{meta,truncated}', 'false'), 'length', v_out #> '{meta,length}',
		'limit', coalesce(v_template.max_length, v_platform.template_limit, v_platform.text_limit), 'template_version',
			v_out -> 'template_version', 'meta', v_out -> 'meta');
end
$$;
