create or replace function autopost.put_avatar(p_workspace_id text, p_avatar_id text, p_fields jsonb, p_operator text,
	p_reason text, p_dry_run boolean) returns jsonb
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: names an avatar for {avatar_name} of events that bring no name. p_fields: {"name"}; null
--          removes it. Later events use it.
-- Returns: {"applied": true, "dry_run", "created", "before", "after"}, or {"applied": false,
--          "dry_run"} with reason unchanged, or invalid and "errors": [{"field", "reason",
--          "remedy"}].
-- Raises:  AP001 for a wrong argument.
-- Locks:   workspaces, audit_heads.
-- Writes:  avatars, admin_audit_log.
declare
	v_rules constant jsonb := '{"name": {"is": "text"}}';
	v_act jsonb;
	v_before jsonb;
	v_put jsonb;
	v_answer jsonb;
begin
	perform autopost.enter_workspace(p_workspace_id);
	v_act := autopost.manual_act(p_operator, p_reason, p_dry_run);
	perform autopost.require_argument('avatar_id', p_avatar_id <> '');
	perform autopost.lock_configuration(p_workspace_id) where not p_dry_run;
	v_before := (select autopost.row_fields(to_jsonb(a), v_rules) from autopost.avatars a
		where a.workspace_id = p_workspace_id and a.avatar_id = p_avatar_id);
	perform autopost.check_new_id('avatar_id', p_avatar_id) where v_before is null;
	v_put := autopost.put_row(p_fields, v_rules, v_before);
	v_answer := autopost.put_answer(v_put, case when length(v_put -> 'after' ->> 'name') > 100
		or btrim(v_put -> 'after' ->> 'name') = '' then autopost.field_error('name', 'must have 1 to 100 characters',
		'write a shorter name, or null to remove it') end, p_dry_run);
	if v_before is null and v_put -> 'after' -> 'name' = 'null' then
		return jsonb_build_object('applied', false, 'dry_run', p_dry_run, 'reason', 'unchanged');
	elsif v_answer -> 'applied' = 'true' and not p_dry_run then
		delete from autopost.avatars a
		where a.workspace_id = p_workspace_id and a.avatar_id = p_avatar_id and v_put -> 'after' -> 'name' = 'null';
		insert into autopost.avatars (workspace_id, avatar_id, name)
		select p_workspace_id, p_avatar_id, v_put -> 'after' ->> 'name'
		where v_put -> 'after' -> 'name' <> 'null'
		on conflict (workspace_id, avatar_id) do update set name = excluded.name;
		perform autopost.audit(p_workspace_id, 'put_avatar', 'avatar:' || p_avatar_id, v_act, v_answer -> 'before',
			v_answer -> 'after');
	end if;
	return v_answer;
end
$$;
