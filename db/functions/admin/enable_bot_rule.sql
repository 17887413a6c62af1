create or replace function autopost.enable_bot_rule(p_workspace_id text, p_rule_id text, p_version int,
	p_operator text, p_reason text, p_dry_run boolean) returns jsonb
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: makes a stored version the enabled one of its rule; version 0 disables the rule.
-- Returns: {"applied": true, "dry_run", "version", "before": the version that was enabled, 0 for none};
--          or {"applied": false, "dry_run", "reason": unchanged | unknown_rule | unknown_rule_version}.
-- Raises:  AP001 for a wrong argument; AP002, AP003, AP005 as enter_workspace.
-- Locks:   workspaces, bot_rules, audit_heads.
-- Writes:  bot_rules, admin_audit_log.
declare
	v_act jsonb;
	v_before int;
	v_refusal text;
begin
	perform autopost.enter_workspace(p_workspace_id);
	v_act := autopost.manual_act(p_operator, p_reason, p_dry_run);
	perform autopost.require_argument('rule_id', p_rule_id <> ''), autopost.require_argument('version', p_version >= 0);
	perform autopost.lock_configuration(p_workspace_id) where not p_dry_run;
	v_before := coalesce((select r.version from autopost.bot_rules r
		where r.workspace_id = p_workspace_id and r.rule_id = p_rule_id and r.enabled), 0);
	v_refusal := case
		when not exists (select 1 from autopost.bot_rules r
			where r.workspace_id = p_workspace_id and r.rule_id = p_rule_id) then 'unknown_rule'
		when p_version > 0 and not exists (select 1 from autopost.bot_rules r where r.workspace_id = p_workspace_id
			and r.rule_id = p_rule_id and r.version = p_version) then 'unknown_rule_version'
		when p_version = v_before then 'unchanged' end;
	if v_refusal is not null then
		return jsonb_build_object('applied', false, 'dry_run', p_dry_run, 'reason', v_refusal);
	end if;
	if not p_dry_run then
		update autopost.bot_rules r set enabled = false
		where r.workspace_id = p_workspace_id and r.rule_id = p_rule_id and r.enabled;
		update autopost.bot_rules r set enabled = true
		where r.workspace_id = p_workspace_id and r.rule_id = p_rule_id and r.version = p_version;
		perform autopost.audit(p_workspace_id, 'enable_bot_rule', 'bot_rule:' || p_rule_id, v_act,
			jsonb_build_object('version', v_before), jsonb_build_object('version', p_version));
	end if;
	return jsonb_build_object('applied', true, 'dry_run', p_dry_run, 'version', p_version, 'before', v_before);
end
$$;
