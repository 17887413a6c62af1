create or replace function autopost.apply_config(p_workspace_id text, p_items jsonb, p_operator text, p_reason text, p_dry_run boolean) returns jsonb
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Brings a workspace to what a configuration file says, all of it or nothing; a dry run is the same, undone. p_items, in an order in which each
-- refers to earlier ones only: {"kind": workspace | credential | group | template | channel | quota | source | endpoint | webhook, "id", "fields": as
-- the function of its kind takes them, but config_json of a source whole}, or {"kind", "id", "retire": true} for what is to be disabled. An item of
-- kind workspace adds one that is not there. The engine alone may.
-- Returns {"applied": true, "dry_run", "unchanged": how many items, "items": [of the others {"kind", "id", "created", "before", "after", and
-- perhaps "note": what is left to do by hand}]}, or
-- {"applied": false, "dry_run"} with reason unchanged, or invalid, "item" (the index of the first that is refused) and "errors":
-- [{"field", "reason", "remedy"}]. Raises AP001 for a wrong argument.
-- Locks, of what is not so already: workspaces, workspace_endpoints, pull_sources, pull_cursors, platform_limits, quotas, channels, channel_gates,
-- result_webhooks, audit_heads. Writes: what the functions of the kinds write.
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
	if jsonb_typeof(p_items) is distinct from 'array' or jsonb_path_exists(p_items, '$[*] ? (@.type() != "object")') then
		perform autopost.refuse('items', 'are no JSON array of objects', 'pass [{"kind", "id", "fields"}]');
	end if;
	begin
		v_items := autopost.items_to_put(p_workspace_id, p_items, p_operator, p_reason);
		perform autopost.lock_items(p_workspace_id, v_items);
		for v_item in select i.value from jsonb_array_elements(v_items) with ordinality i order by i.ordinality loop
			v_index := (v_item.value ->> 'n')::int;
			v_answer := autopost.put_item(p_workspace_id, v_item.value, p_operator, p_reason, false);
			v_errors := case when v_answer -> 'applied' <> 'true' and v_answer ->> 'reason' <> 'unchanged'
				then coalesce(v_answer -> 'errors', autopost.field_error('', v_answer ->> 'reason', 'see what this kind of thing asks for')) end;
			exit when v_errors is not null;
			if v_answer -> 'applied' = 'true' then
				v_changes := v_changes || (jsonb_build_object('kind', v_item.value -> 'kind', 'id', v_item.value -> 'id',
					'created', v_answer -> 'created', 'before', v_answer -> 'before', 'after', v_answer -> 'after')
					|| case when v_answer ? 'note' then jsonb_build_object('note', v_answer -> 'note') else '{}' end);
			end if;
		end loop;
		if p_dry_run or v_errors is not null then
			raise exception 'planned' using errcode = 'AP900';
		end if;
	exception
		when sqlstate 'AP900' then
			null; -- all that was done is undone; what is known stays
		when sqlstate 'AP001' then
			get stacked diagnostics v_message = message_text, v_hint = pg_exception_hint;
			v_errors := autopost.field_error(coalesce(substring(v_message from '^argument (\w+): '), ''), regexp_replace(v_message, '^argument \w+: ', ''), v_hint);
	end;
	if v_errors is not null then
		return jsonb_build_object('applied', false, 'dry_run', p_dry_run, 'reason', 'invalid', 'item', v_index, 'errors', v_errors);
	elsif v_changes = '[]' then
		return jsonb_build_object('applied', false, 'dry_run', p_dry_run, 'reason', 'unchanged');
	end if;
	return jsonb_build_object('applied', true, 'dry_run', p_dry_run, 'unchanged', jsonb_array_length(p_items) - jsonb_array_length(v_changes), 'items', v_changes);
end
$$;
