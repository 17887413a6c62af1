create or replace function autopost.apply_config(p_workspace_id text, p_items jsonb, p_operator text, p_reason text,
	p_dry_run boolean) returns jsonb
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: makes a workspace equal to a configuration file, completely or not at all. A dry run
--          does the same and rolls back. An item of p_items may refer only to earlier ones:
--          {"kind": workspace | credential | group | template | channel | quota | budget |
--          retry_policy | source | endpoint | webhook | recurrence |
--          alert_target | moderation_chat | bot_rule, "id",
--          "fields": as the function of the kind takes them, but the whole config_json of a source}, or {"kind", "id", "retire": true} to
--          disable. An item of kind workspace may create it. Only the engine may call it.
-- Returns: {"applied": true, "dry_run", "unchanged": the number of items, "items": [each changed
--          one as {"kind", "id", "created", "before", "after", and "note" if manual work is
--          left}]}; or {"applied": false, "dry_run"} with reason unchanged or invalid; invalid has
--          "item" (index of the first refused item) and "errors": [{"field", "reason", "remedy"}].
-- Raises:  AP001 for a wrong argument.
-- Locks:   workspaces, workspace_endpoints, pull_sources, pull_cursors, platform_limits, quotas,
--          budgets, channels, channel_gates, result_webhooks, audit_heads; only rows of changed
--          items.
-- Writes:  as the functions of the kinds.
declare
	v_items jsonb;
	v_item record;
	v_answer jsonb;
	v_changes jsonb := '[]';
	v_index int;
	v_errors jsonb;
	v_message text;
	v_hint text;
begin
	if p_items -> 0 ->> 'kind' = 'workspace' then
		perform autopost.enter_new_workspace(p_workspace_id);
	else
		perform autopost.enter_workspace(p_workspace_id);
	end if;
	perform autopost.manual_act(p_operator, p_reason, p_dry_run);
	if jsonb_typeof(p_items) is distinct from 'array'
		or jsonb_path_exists(p_items, '$[*] ? (@.type() != "object")') then
		perform autopost.raise_argument('items', 'must be a JSON array of objects', 'pass [{"kind", "id", "fields"}]');
	end if;
	begin
		v_items := autopost.items_to_put(p_workspace_id, p_items, p_operator, p_reason);
		perform autopost.lock_items(p_workspace_id, v_items);
		for v_item in select i.value from jsonb_array_elements(v_items) with ordinality i order by i.ordinality loop
			v_index := (v_item.value ->> 'n')::int;
			v_answer := autopost.put_item(p_workspace_id, v_item.value, p_operator, p_reason, false);
			v_errors := case when v_answer -> 'applied' <> 'true' and v_answer ->> 'reason' <> 'unchanged'
				then coalesce(v_answer -> 'errors',
					autopost.field_error('', v_answer ->> 'reason', 'see the function of this kind')) end;
			exit when v_errors is not null;
			if v_answer -> 'applied' = 'true' then
				v_changes := v_changes || (jsonb_build_object('kind', v_item.value -> 'kind', 'id',
					v_item.value -> 'id',
					'created', v_answer -> 'created', 'before', v_answer -> 'before', 'after', v_answer -> 'after')
					|| case when v_answer ? 'note' then jsonb_build_object('note', v_answer -> 'note') else '{}' end);
			end if;
		end loop;
		if p_dry_run or v_errors is not null then
			raise exception 'planned' using errcode = 'AP900';
		end if;
	exception
		when sqlstate 'AP900' then
			null; -- the writes are rolled back, the variables stay
		when sqlstate 'AP001' then
			get stacked diagnostics v_message = message_text, v_hint = pg_exception_hint;
			v_errors := autopost.field_error(coalesce(substring(v_message from '^argument (\w+): '), ''),
				regexp_replace(v_message, '^argument \w+: ', ''), v_hint);
	end;
	if v_errors is not null then
		return jsonb_build_object('applied', false, 'dry_run', p_dry_run, 'reason', 'invalid', 'item', v_index,
			'errors', v_errors);
	elsif v_changes = '[]' then
		return jsonb_build_object('applied', false, 'dry_run', p_dry_run, 'reason', 'unchanged');
	end if;
	return jsonb_build_object('applied', true, 'dry_run', p_dry_run, 'unchanged',
		jsonb_array_length(p_items) - jsonb_array_length(v_changes), 'items', v_changes);
end
$$;
