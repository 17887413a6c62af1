create or replace function autopost.template_tokens(p_body text) returns table (n bigint, raw text, name text,
	optional boolean, literal text)
language sql immutable parallel safe
as $$
-- Purpose: the body of a template as tokens in order: placeholders {name} and {name?}, and literal
--          text. {{ and }} are braces.
select m.n, m.part[1], m.part[2], m.part[3] is not null, case when m.part[2] is null
	then replace(replace(m.part[1], '{{', '{'), '}}', '}') end
from regexp_matches(p_body, '(\{\{|\}\}|\{([A-Za-z][A-Za-z0-9_]{0,63})(\?)?\}|[^{}]+|[{}])',
	'g') with ordinality m (part, n)
$$;

create or replace function autopost.template_vars(p_template autopost.templates) returns text[]
language sql immutable parallel safe
as $$
-- Purpose: the variables that a post may set in a template.
select coalesce(p_template.vars, array(
	select t.name from autopost.template_tokens(p_template.body) t where t.name is not null
	union select k from jsonb_object_keys(p_template.defaults) k
	order by 1))
$$;

create or replace function autopost.template_faults(p_template autopost.templates) returns jsonb
language plpgsql immutable parallel safe
as $$
-- Purpose: the errors of a template: [{field, reason, remedy}].
declare
	v_vars text[] := autopost.template_vars(p_template) || '{text,link}'::text[];
	v_errors jsonb := '[]';
	v_bad text;
begin
	if coalesce(p_template.template_id !~ '^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$', true) then
		v_errors := v_errors || autopost.field_error('template_id', 'must be a name',
			'use 1 to 64 letters, digits, points, dashes and underscores');
	end if;
	if coalesce(btrim(p_template.body) = '' or length(p_template.body) > 20000
		or p_template.body ~ '[\uE000-\uE003]', true) then
		v_errors := v_errors || autopost.field_error('body', 'must have 1 to 20000 characters and no private-use ones',
			'write text with placeholders like {title}');
	end if;
	select substr(p_template.body, 1 + t.before, 30) into v_bad
	from (select k.n, k.raw, (sum(length(k.raw)) over (order by k.n) - length(k.raw))::int as before
		from autopost.template_tokens(p_template.body) k) t
	where t.raw in ('{', '}')
	order by t.n
	limit 1;
	if v_bad is not null then
		v_errors := v_errors || autopost.field_error('body', 'has a brace outside a placeholder: ' || v_bad,
			'write {name} or {name?}, and {{ or }} for a brace');
	end if;
	if (select count(*) from autopost.template_tokens(p_template.body) t where t.name is not null) > 100 then
		v_errors := v_errors || autopost.field_error('body', 'has more than 100 placeholders', 'use fewer');
	end if;
	for v_bad in select distinct t.name from autopost.template_tokens(p_template.body) t where t.name <> all (v_vars)
		order by 1 loop
		v_errors := v_errors || autopost.field_error('body', format('uses the undeclared variable {%s}', v_bad),
			'use ' || array_to_string(v_vars, ', '));
	end loop;
	if exists (select 1 from unnest(p_template.vars) v where v !~ '^[A-Za-z][A-Za-z0-9_]{0,63}$') then
		v_errors := v_errors || autopost.field_error('vars', 'must contain only names',
			'use letters, digits and underscores, a letter first');
	end if;
	if exists (select 1 from jsonb_each(p_template.defaults) d where d.key <> all (v_vars)
		or jsonb_typeof(d.value) not in ('string', 'number', 'boolean')) then
		v_errors := v_errors || autopost.field_error('defaults',
			'must contain only declared variables with text values', 'correct the defaults');
	end if;
	if exists (select 1 from unnest(p_template.sanitize) s where s <> all (v_vars)) then
		v_errors := v_errors || autopost.field_error('sanitize', 'must contain only declared variables',
			'use ' || array_to_string(v_vars, ', '));
	end if;
	return v_errors;
end
$$;

create or replace function autopost.guard_template() returns trigger
language plpgsql
as $$
-- Purpose: refuses an invalid template and any change of a stored version except enabled.
-- Raises:  AP001.
declare
	v_faults jsonb := autopost.template_faults(row(new.*)::autopost.templates);
begin
	if tg_op = 'UPDATE' and (to_jsonb(new) - 'enabled') is distinct from (to_jsonb(old) - 'enabled') then
		raise exception 'version % of template % must not change', old.version, old.template_id
			using errcode = 'insufficient_privilege', hint = 'write the next version';
	elsif v_faults <> '[]' then
		perform autopost.raise_argument(v_faults -> 0 ->> 'field', v_faults -> 0 ->> 'reason',
			v_faults -> 0 ->> 'remedy');
	end if;
	return new;
end
$$;

create or replace trigger guard_template before insert or update on autopost.templates
	for each row execute function autopost.guard_template();

create or replace function autopost.newest_template(p_workspace_id text, p_name text,
	p_platform text) returns autopost.templates
language plpgsql stable
as $$
-- Purpose: the newest enabled version of a template, the platform's before that of all platforms;
--          null if none.
-- Reads:   templates.
declare
	v_template autopost.templates;
begin
	select t.* into v_template from autopost.templates t
	where t.workspace_id = p_workspace_id and t.template_id = p_name and t.platform in (p_platform, '*') and t.enabled
	order by t.platform = '*', t.version desc
	limit 1;
	return v_template;
end
$$;

create or replace function autopost.template_of(p_workspace_id text, p_template_id text, p_platform text,
	p_template jsonb) returns autopost.templates
language plpgsql stable
as $$
-- Purpose: a template from {"body", "defaults", "vars", "sanitize", "parse_mode", "max_length"};
--          only body is required.
-- Raises:  AP001 for an invalid template.
declare
	v_template autopost.templates;
	v_bad text;
begin
	perform autopost.require_argument('template', jsonb_typeof(p_template) = 'object');
	select k into v_bad from jsonb_object_keys(p_template) k
		where k not in ('body', 'defaults', 'vars', 'sanitize', 'parse_mode', 'max_length') limit 1;
	if v_bad is not null then
		perform autopost.raise_argument('template', format('has the unknown key %L', v_bad),
			'use body, defaults, vars, sanitize, parse_mode, max_length');
	elsif exists (select 1 from jsonb_each(p_template) f
		join (values ('body', 'string'), ('defaults', 'object'), ('vars', 'array'), ('sanitize', 'array'),
			('parse_mode', 'string'), ('max_length', 'number')) w (key, kind) on w.key = f.key
		where jsonb_typeof(f.value) not in (w.kind, 'null'))
		or coalesce(p_template ->> 'parse_mode', 'None') not in ('HTML', 'Markdown', 'None')
		or coalesce((p_template ->> 'max_length')::numeric, 1) not between 1 and 100000
	then
		perform autopost.raise_argument('template', 'has a field of a wrong type',
			'body and parse_mode (HTML, Markdown, None) are strings, vars and sanitize arrays, defaults an object, max_length a number from 1');
	end if;
	v_template.workspace_id := p_workspace_id;
	v_template.template_id := p_template_id;
	v_template.platform := coalesce(p_platform, '*');
	v_template.body := p_template ->> 'body';
	v_template.defaults := coalesce(nullif(p_template -> 'defaults', 'null'), '{}');
	v_template.vars := case jsonb_typeof(p_template -> 'vars') when 'array'
		then array(select jsonb_array_elements_text(p_template -> 'vars')) end;
	v_template.sanitize := case jsonb_typeof(p_template -> 'sanitize') when 'array'
		then array(select jsonb_array_elements_text(p_template -> 'sanitize')) else '{}' end;
	v_template.parse_mode := coalesce(p_template ->> 'parse_mode', 'None');
	v_template.max_length := (p_template ->> 'max_length')::numeric::int;
	v_template.enabled := true;
	return v_template;
end
$$;

create or replace function autopost.sanitize_value(p_value text) returns text
language plpgsql immutable parallel safe
as $$
-- Purpose: a value in one line without @mentions, control characters and invisible characters.
declare
	v_value text := regexp_replace(p_value, '[\u0001-\u001F\u007F-\u009F\u00AD\u034F\u061C\u115F\u1160\u17B4\u17B5'
		'\u180B-\u180F\u200B\u200E\u200F\u2028-\u202E\u2060-\u206F\u3164\uFEFF\uFFA0\uFFF9-\uFFFB'
		'\U000E0000-\U000E0FFF]+', ' ', 'g');
begin
	-- Joiners and variation selectors stay in emoji, not behind an @.
	v_value := regexp_replace(v_value, '([@＠])[\u200C\u200D\uFE00-\uFE0F]+', '\1', 'g');
	while v_value ~ '(?<![A-Za-z0-9_])[@＠]+[A-Za-z0-9_]' loop
		v_value := regexp_replace(v_value, '(?<![A-Za-z0-9_])(?:[@＠]+[A-Za-z0-9_]+)+', '', 'g');
	end loop;
	return btrim(autopost.collapse_spaces(v_value));
end
$$;

create or replace function autopost.template_values(p_template autopost.templates, p_vars jsonb) returns jsonb
language sql immutable parallel safe
as $$
-- Purpose: the values of a template: the given ones over its defaults. A blank value counts as
--          missing.
select coalesce(jsonb_object_agg(v.key, v.value), '{}')
from (
	select e.key, case when e.key = any (p_template.sanitize)
		then autopost.sanitize_value(e.value) else e.value end as value
	from jsonb_each_text(p_template.defaults || coalesce(p_vars, '{}')) e
	where btrim(e.value) <> ''
) v
where v.value <> ''
$$;

create or replace function autopost.missing_values(p_template autopost.templates, p_values jsonb) returns text[]
language sql immutable parallel safe
as $$
-- Purpose: the required placeholders without a value.
select array(
	select t.name from autopost.template_tokens(p_template.body) t where not t.optional and t.name is not null
		and not p_values ? t.name group by t.name order by min(t.n))
$$;

create or replace function autopost.fill_template(p_template autopost.templates, p_values jsonb,
	p_text_mode text) returns jsonb
language plpgsql immutable parallel safe
as $$
-- Purpose: fills a template. A value is plain text and is not searched for placeholders; only
--          {text} brings the markup of the post (p_text_mode).
-- Returns: {"text", "mode": HTML or None} or {"error"}.
declare
	v_rich boolean := p_template.parse_mode <> 'None'
		or (coalesce(p_text_mode, 'None') <> 'None' and p_template.body ~ '\{text\??\}');
	v_body text;
	v_part record;
	v_value text;
	v_out text := '';
begin
	-- U+E002, number, U+E003 replace a placeholder while the markup is parsed.
	select string_agg(coalesce(t.literal, U&'\E002' || t.n || U&'\E003'), '' order by t.n) into v_body
		from autopost.template_tokens(p_template.body) t;
	v_body := case when p_template.parse_mode = 'Markdown' then autopost.markdown_to_html(v_body)
		when v_rich and p_template.parse_mode = 'None' then autopost.html_escape(v_body)
		else v_body end;
	for v_part in
		select s.words, t.name from regexp_split_to_table(v_body, '(?=\uE002)|(?<=\uE003)') s (words)
		left join autopost.template_tokens(p_template.body) t on s.words = U&'\E002' || t.n || U&'\E003'
	loop
		v_value := coalesce(p_values ->> v_part.name, '');
		v_out := v_out || case
			when v_part.name is null then v_part.words
			when not v_rich then v_value
			when v_part.name = 'text' and p_text_mode = 'Markdown' then autopost.markdown_to_html(v_value)
			when v_part.name = 'text' and p_text_mode = 'HTML' then v_value
			else replace(autopost.html_escape(v_value), '"', '&quot;') end;
		if length(v_out) > 100000 then
			return '{"error": "is longer than 100000 characters with these values"}';
		end if;
	end loop;
	return jsonb_build_object('text', autopost.normalize_text(v_out, case when v_rich then 'HTML' end), 'mode', case
		when v_rich then 'HTML' else 'None' end);
end
$$;

create or replace function autopost.given_values(p_template autopost.templates, p_payload jsonb,
	p_variant jsonb) returns jsonb
language sql immutable parallel safe
as $$
-- Purpose: the values of a payload for a template: its vars, text and link; those of the variant
--          win.
select autopost.template_values(p_template, jsonb_strip_nulls(jsonb_build_object(
	'text', coalesce(p_variant ->> 'text', p_payload ->> 'text'),
		'link', coalesce(p_variant ->> 'link', p_payload ->> 'link')))
	|| jsonb_strip_nulls(coalesce(p_payload -> 'template' -> 'vars', '{}')))
$$;

create or replace function autopost.value_errors(p_templates autopost.templates[], p_raw jsonb) returns jsonb
language plpgsql immutable parallel safe
as $$
-- Purpose: the errors of a raw post's values for the templates of one name: undeclared and missing
--          ones.
declare
	v_name text := p_raw -> 'template' ->> 'name';
	v_declared text[] := '{text,link}';
	v_missing text[] := '{}';
	v_template autopost.templates;
	v_var text;
	v_errors jsonb := '[]';
begin
	foreach v_template in array p_templates loop
		v_declared := v_declared || autopost.template_vars(v_template);
		v_missing := v_missing || autopost.missing_values(v_template, autopost.given_values(v_template, p_raw, null));
	end loop;
	for v_var in select k from jsonb_object_keys(coalesce(p_raw -> 'template' -> 'vars', '{}')) k
		where k <> all (v_declared) order by 1 loop
		v_errors := v_errors || autopost.field_error('template.vars.' || v_var,
			format('is not declared by template %s', v_name), 'leave it out');
	end loop;
	for v_var in select distinct m from unnest(v_missing) m order by 1 loop
		v_errors := v_errors || autopost.field_error('template.vars.' || v_var,
			format('is missing or blank, and template %s needs it', v_name), 'give it a value');
	end loop;
	return v_errors;
end
$$;

create or replace function autopost.template_errors(p_workspace_id text, p_raw jsonb) returns jsonb
language plpgsql stable
as $$
-- Purpose: the errors of the template that a raw post names, on all platforms: [{field, reason,
--          remedy}].
-- Reads:   platforms, templates.
declare
	v_name text := p_raw -> 'template' ->> 'name';
	v_templates autopost.templates[];
begin
	if v_name is null then
		return '[]';
	end if;
	select array_agg(n) into v_templates
	from autopost.platforms p, autopost.newest_template(p_workspace_id, v_name, p.platform) n
	where n.template_id is not null;
	if v_templates is null then
		return autopost.field_error('template.name', format('must be a template of the workspace, got %s', v_name),
			'write it first, or leave template out and send text');
	end if;
	return autopost.value_errors(v_templates, p_raw);
end
$$;

create or replace function autopost.post_errors(p_workspace_id text, p_raw jsonb) returns jsonb
language plpgsql stable
as $$
-- Purpose: the errors of a raw post in this workspace: its envelope, then its template.
-- Reads:   platforms, templates.
declare
	v_errors jsonb := autopost.payload_errors(p_raw);
begin
	return case when v_errors = '[]' then autopost.template_errors(p_workspace_id, p_raw) else v_errors end;
end
$$;

create or replace function autopost.in_template(p_template autopost.templates, p_payload jsonb,
	p_choice jsonb) returns jsonb
language plpgsql immutable parallel safe
as $$
-- Purpose: a rendering_choice with the text of a filled template: {"body", "body_mode",
--          "template_version", "max_length"} added, or {"refusal"}.
declare
	v_name text := p_template.template_id || '@' || coalesce(p_template.version::text, 'new');
	v_values jsonb := autopost.given_values(p_template, p_payload, p_choice -> 'variant');
	v_missing text[] := autopost.missing_values(p_template, v_values);
	v_filled jsonb;
begin
	if v_missing <> '{}' then
		return p_choice || jsonb_build_object('refusal',
			format('template %s needs template.vars.%s', v_name, v_missing[1]));
	end if;
	v_filled := autopost.fill_template(p_template, v_values, p_choice ->> 'parse_mode');
	if v_filled ? 'error' then
		return p_choice || jsonb_build_object('refusal', format('template %s %s', v_name, v_filled ->> 'error'));
	end if;
	return p_choice || jsonb_strip_nulls(jsonb_build_object(
		'body', v_filled -> 'text', 'body_mode', v_filled -> 'mode', 'max_length', p_template.max_length,
			'template_version', v_name));
end
$$;

create or replace function autopost.with_template(p_workspace_id text, p_payload jsonb, p_choice jsonb) returns jsonb
language plpgsql stable
as $$
-- Purpose: a rendering_choice in its template: the post's, else the channel's, else the one named
--          default; unchanged without any. A variant's text replaces the post's template, and is
--          the {text} of the others.
-- Reads:   templates.
declare
	v_platform text := p_choice ->> 'platform';
	v_name text := case when not coalesce(p_choice -> 'variant' ? 'text', false)
		then p_payload -> 'template' ->> 'name' end;
	v_template autopost.templates;
begin
	if v_name is not null then
		v_template := autopost.newest_template(p_workspace_id, v_name, v_platform);
		if v_template.template_id is null and not p_payload ? 'text' then
			return p_choice || jsonb_build_object('refusal',
				format('template %s does not exist for %s, and the post has no text', v_name, v_platform));
		end if;
	end if;
	if v_template.template_id is null and p_choice ? 'template_ref' then
		v_template := autopost.newest_template(p_workspace_id, p_choice ->> 'template_ref', v_platform);
		if v_template.template_id is null then
			return p_choice || jsonb_build_object('refusal',
				format('the channel names the template %s, which is not there', p_choice ->> 'template_ref'));
		end if;
	end if;
	if v_template.template_id is null then
		v_template := autopost.newest_template(p_workspace_id, 'default', v_platform);
	end if;
	return case when v_template.template_id is null
		then p_choice else autopost.in_template(v_template, p_payload, p_choice) end;
end
$$;

create or replace function autopost.template_fields(p_template autopost.templates) returns jsonb
language sql immutable parallel safe
as $$
-- Purpose: the written fields of a template version and whether it is enabled; null without a
--          template.
select case when p_template.template_id is not null
	then to_jsonb(p_template) - '{workspace_id,template_id,platform,version,created_at}'::text[] end
$$;
