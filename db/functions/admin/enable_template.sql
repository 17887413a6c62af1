create or replace function autopost.enable_template(
	p_workspace_id text, p_template_id text, p_platform text, p_version int, p_enabled boolean, p_operator text,
		p_reason text
) returns jsonb
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: enables or disables a version of a template. New posts use the newest enabled version;
--          rendered deliveries do not change.
-- Returns: {"applied": true}; or {"applied": false} with reason unknown_version or unchanged.
-- Raises:  AP001 for a wrong argument.
-- Locks:   workspaces.
-- Writes:  templates, admin_audit_log.
declare
	v_act jsonb;
begin
	perform autopost.enter_workspace(p_workspace_id);
	v_act := autopost.manual_act(p_operator, p_reason, false);
	perform autopost.require_argument('template_id', p_template_id <> ''),
		autopost.require_argument('version', p_version > 0),
		autopost.require_argument('enabled', p_enabled is not null);
	perform autopost.lock_configuration(p_workspace_id);
	update autopost.templates t
	set enabled = p_enabled
	where t.workspace_id = p_workspace_id and t.template_id = p_template_id and t.platform = coalesce(p_platform, '*')
		and t.version = p_version
	and t.enabled <> p_enabled;
	if found then
		perform autopost.audit(p_workspace_id, 'enable_template',
			format('template:%s/%s@%s', p_template_id, coalesce(p_platform, '*'), p_version), v_act,
			jsonb_build_object('enabled', not p_enabled), jsonb_build_object('enabled', p_enabled));
		return '{"applied": true}';
	end if;
	return jsonb_build_object('applied', false, 'reason', case when exists (select 1 from autopost.templates t
		where t.workspace_id = p_workspace_id and t.template_id = p_template_id
			and t.platform = coalesce(p_platform, '*') and t.version = p_version)
		then 'unchanged' else 'unknown_version' end);
end
$$;
