-- Functions that write a row of configuration of any kind by rules. A rule of a field:
--   {"is": text | number | integer | boolean | object | list (of strings) | numbers (a list of whole ones),
--    "default": for null and for a new row, "required": must have a value,
--    "fixed": cannot change after insert, "in": [allowed values], "min", "max",
--    "remedy": text instead of the default remedy}

create or replace function autopost.lock_configuration(p_workspace_id text) returns void
language plpgsql
as $$
-- Purpose: allows one change of a workspace's configuration at a time. Enqueues and dispatch do not
--          wait for it.
-- Locks:   workspaces.
begin
	perform 1 from autopost.workspaces w where w.workspace_id = p_workspace_id for no key update of w;
end
$$;

create or replace function autopost.field_fault(p_value jsonb, p_rule jsonb) returns text
language sql immutable parallel safe
as $$
-- Purpose: the violation of a rule by a value; null if it is valid.
select case
	when coalesce(p_value, 'null') in ('null', case when p_rule -> 'required' = 'true' then '""' else 'null' end::jsonb)
		then case when p_rule -> 'required' = 'true' then 'is missing' end
	when jsonb_typeof(p_value) <> case p_rule ->> 'is' when 'text' then 'string' when 'integer' then 'number'
		when 'list' then 'array' when 'numbers' then 'array' else p_rule ->> 'is' end
		then format('must be %s', case p_rule ->> 'is' when 'integer' then 'a whole number'
			when 'object' then 'an object' when 'numbers' then 'a list of whole numbers' else 'a ' || (p_rule ->> 'is') end)
	when p_rule ->> 'is' = 'list' and jsonb_path_exists(p_value, '$[*] ? (@.type() != "string" || @ == "")')
		then 'must hold texts only'
	when p_rule ->> 'is' = 'numbers' and exists (
		select 1 from jsonb_array_elements(p_value) e
		where autopost.field_fault(e.value, p_rule || '{"is": "integer", "required": true}') is not null)
		then 'must hold whole numbers in range only'
	when p_rule ->> 'is' = 'text' and p_value #>> '{}' ~ '[\u0001-\u001F\u007F]' then 'must not have control characters'
	when p_rule ->> 'is' = 'integer' and (p_value #>> '{}')::numeric % 1 <> 0 then 'must be a whole number'
	when p_rule ? 'in' and not p_rule -> 'in' @> p_value then format('%s is unknown', p_value)
	when (p_rule ->> 'is') in ('number', 'integer')
		and (p_value #>> '{}')::numeric not between coalesce((p_rule ->> 'min')::numeric, '-Infinity')
			and coalesce((p_rule ->> 'max')::numeric, 'Infinity')
		then format('%s is out of range', p_value)
	end
$$;

create or replace function autopost.field_code(p_value jsonb, p_rule jsonb) returns text
language sql immutable parallel safe
as $$
-- Purpose: the code of the rule that a value breaks, for a value with a field_fault.
select case
	when coalesce(p_value, 'null') in ('null', '""') then 'missing'
	when p_rule ->> 'is' = 'integer' and (jsonb_typeof(p_value) <> 'number' or (p_value #>> '{}')::numeric % 1 <> 0)
		then 'not_whole_number'
	when p_rule ->> 'is' = 'number' and jsonb_typeof(p_value) <> 'number' then 'not_number'
	when p_rule ? 'in' then 'unknown_value'
	when p_rule ->> 'is' in ('number', 'integer') then 'out_of_range'
	else 'wrong_type' end
$$;

create or replace function autopost.field_remedy(p_rule jsonb) returns text
language sql immutable parallel safe
as $$
-- Purpose: the remedy for a violated rule.
select coalesce(p_rule ->> 'remedy', case
	when p_rule ? 'in' then 'use ' || (select string_agg(v.value, ', ' order by v.ordinality)
		from jsonb_array_elements_text(p_rule -> 'in') with ordinality v)
	when p_rule ? 'min' and p_rule ? 'max' then format('write a %s from %s to %s', k.kind, p_rule ->> 'min',
		p_rule ->> 'max')
	when p_rule ? 'min' then format('write a %s from %s', k.kind, p_rule ->> 'min')
	when p_rule ->> 'is' = 'list' then 'write ["…", "…"]'
	when p_rule ->> 'is' = 'object' then 'write {"…": …}'
	when p_rule ->> 'is' = 'boolean' then 'write true or false'
	else 'write a ' || k.kind end)
from (select case p_rule ->> 'is' when 'integer' then 'whole number' else p_rule ->> 'is' end) k (kind)
$$;

create or replace function autopost.fields_that_differ(p_fields jsonb, p_from jsonb) returns jsonb
language sql immutable parallel safe
as $$
-- Purpose: the fields whose value differs in p_from (missing = null).
select coalesce(jsonb_object_agg(f.key, f.value), '{}') from jsonb_each(p_fields) f
where f.value is distinct from coalesce(p_from -> f.key, 'null')
$$;

create or replace function autopost.default_fields(p_rules jsonb) returns jsonb
language sql immutable parallel safe
as $$
-- Purpose: all fields of a kind with their defaults.
select coalesce(jsonb_object_agg(r.key, coalesce(r.value -> 'default', 'null')), '{}') from jsonb_each(p_rules) r
$$;

create or replace function autopost.row_fields(p_row jsonb, p_rules jsonb) returns jsonb
language sql immutable parallel safe
as $$
-- Purpose: the configurable fields of a stored row (to_jsonb of it); null without a row.
select case when p_row is not null then
	(select jsonb_object_agg(r.key, coalesce(p_row -> r.key, 'null')) from jsonb_each(p_rules) r) end
$$;

create or replace function autopost.put_row(p_fields jsonb, p_rules jsonb, p_before jsonb) returns jsonb
language plpgsql immutable
as $$
-- Purpose: applies p_fields to a row. Missing fields stay; null restores the default or clears a
--          field. p_before: the stored fields (row_fields), null for a new row.
-- Returns: {"created", "before", "after", "defaults", "errors": [{"field", "reason", "remedy"}]};
--          before and after have all fields.
-- Raises:  AP001 if p_fields is not an object or has an unknown field.
declare
	v_bad text;
	v_defaults jsonb := autopost.default_fields(p_rules);
	v_after jsonb;
	v_errors jsonb;
begin
	if jsonb_typeof(p_fields) is distinct from 'object' then
		perform autopost.raise_argument('fields', 'must be a JSON object', 'pass {"field": value} for what changes');
	end if;
	select f.key into v_bad from jsonb_object_keys(p_fields) f (key) where not p_rules ? f.key order by 1 limit 1;
	if v_bad is not null then
		perform autopost.raise_argument('fields', format('have the unknown field %L', v_bad),
			'use ' || (select string_agg(k.key, ', ' order by k.key) from jsonb_object_keys(p_rules) k (key)));
	end if;
	select coalesce(p_before, v_defaults)
		|| coalesce(jsonb_object_agg(f.key, case f.value when 'null' then v_defaults -> f.key else f.value end), '{}')
	into v_after from jsonb_each(p_fields) f;
	-- Unchanged values are not checked again.
	select coalesce(jsonb_agg(e.value order by a.key), '[]') into v_errors
	from jsonb_each(v_after) a
	cross join lateral (select p_rules -> a.key as rule) r
	cross join lateral (select case
		when p_before is not null and r.rule -> 'fixed' = 'true' then 'cannot be changed'
		else autopost.field_fault(a.value, r.rule) end as fault) t
	cross join lateral jsonb_array_elements(autopost.field_error(a.key, t.fault,
		case t.fault when 'cannot be changed' then 'add another one, and disable this'
			else autopost.field_remedy(r.rule) end,
		case t.fault when 'cannot be changed' then 'fixed' else autopost.field_code(a.value, r.rule) end)) e
	where t.fault is not null and a.value is distinct from p_before -> a.key;
	return jsonb_build_object('created', p_before is null, 'before', coalesce(p_before, '{}'), 'after', v_after,
		'defaults', v_defaults, 'errors', v_errors);
end
$$;

create or replace function autopost.put_answer(p_put jsonb, p_errors jsonb, p_dry_run boolean) returns jsonb
language sql immutable parallel safe
as $$
-- Purpose: the answer of a function that writes a row, from put_row's answer and further errors
--          (null: none).
-- Returns: {"applied": true, "dry_run", "created", "before", "after"} with changed fields, for a
--          new row those other than the default; or {"applied": false, "dry_run"} with reason
--          unchanged, or invalid and "errors".
select case
	when p_put -> 'errors' || coalesce(p_errors, '[]') <> '[]' then
		jsonb_build_object('applied', false, 'dry_run', p_dry_run, 'reason', 'invalid', 'errors',
			p_put -> 'errors' || coalesce(p_errors, '[]'))
	when p_put -> 'before' = p_put -> 'after' then jsonb_build_object('applied', false, 'dry_run', p_dry_run, 'reason',
		'unchanged')
	else jsonb_build_object('applied', true, 'dry_run', p_dry_run, 'created', p_put -> 'created',
		'before', autopost.fields_that_differ(p_put -> 'before', p_put -> 'after'),
		'after', autopost.fields_that_differ(p_put -> 'after', case
			when p_put -> 'created' = 'true' then p_put -> 'defaults' else p_put -> 'before' end)) end
$$;
