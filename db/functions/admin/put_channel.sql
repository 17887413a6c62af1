create or replace function autopost.put_channel(
	p_workspace_id text, p_channel_id text, p_fields jsonb, p_operator text, p_reason text, p_dry_run boolean
) returns jsonb
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: adds or changes a channel. p_fields has changed fields (see channel_rules); null
--          restores the default or clears a field. A new channel needs platform, target_id and
--          auth_ref; its rate and that of a new rate group are those of the platform. The credential of an existing one changes only with nothing in flight.
--          A rate group with the name of the credential follows it. Enabling a channel resets its
--          error streak.
-- Returns: {"applied": true, "dry_run", "created", "before", "after", "note": settings that nothing
--          reads, if any}; or {"applied": false, "dry_run"} with reason unchanged, or invalid and
--          "errors": [{"field", "reason", "remedy"}].
-- Raises:  AP001 for a wrong argument.
-- Locks:   workspaces, settings (shared), channels, channel_gates.
-- Reads:   platforms, templates, settings, deliveries, discovered_chats.
-- Writes:  channels, channel_auth, channel_gates, platform_limits, events(auth_rotated | channel_enabled |
--          channel_disabled), admin_audit_log.
declare
	v_act jsonb;
	v_old autopost.channels;
	v_new autopost.channels;
	v_put jsonb;
	v_answer jsonb;
begin
	perform autopost.enter_workspace(p_workspace_id);
	v_act := autopost.manual_act(p_operator, p_reason, p_dry_run);
	perform autopost.require_argument('channel_id', p_channel_id <> '');
	if not p_dry_run then
		perform autopost.lock_configuration(p_workspace_id);
		perform autopost.lock_channels_to_put(p_workspace_id,
			jsonb_build_object(p_channel_id, p_fields -> 'target_id'));
		perform autopost.lock_gates(p_workspace_id, array[p_channel_id]) where p_fields ? 'auth_ref';
	end if;
	select c.* into v_old from autopost.channels c where c.workspace_id = p_workspace_id
		and c.channel_id = p_channel_id;
	perform autopost.check_new_id('channel_id', p_channel_id) where v_old.channel_id is null;
	v_put := autopost.channel_fields(v_old);
	if p_fields ? 'auth_ref' and not p_fields ? 'rate_group' and v_put -> 'rate_group' = v_put -> 'auth_ref' then
		p_fields := p_fields || '{"rate_group": null}'; -- the group of the credential follows it
	end if;
	v_put := autopost.put_row(autopost.channel_fields_to_put(p_fields),
		autopost.channel_rules(coalesce(p_fields ->> 'auth_ref', v_put ->> 'auth_ref'),
			autopost.default_rate(p_workspace_id, coalesce(v_put, '{}') || p_fields)), v_put);
	v_answer := autopost.put_answer(v_put, case when v_put -> 'errors' = '[]' then
		autopost.channel_errors(p_workspace_id, p_channel_id, v_put -> 'before', v_put -> 'after') end, p_dry_run);
	if v_answer -> 'after' ? 'settings' then
		v_answer := v_answer || autopost.channel_note(v_put -> 'after');
	end if;
	if v_answer -> 'applied' <> 'true' or p_dry_run then
		return v_answer;
	end if;
	v_new := jsonb_populate_record(v_old, v_put -> 'after');
	if v_old.channel_id is null then
		perform autopost.add_channel(p_workspace_id, p_channel_id, v_new);
	else
		perform autopost.give_auth(p_workspace_id, v_old, v_new.auth_ref, v_new.rate_group, v_act)
			where v_answer -> 'after' ? 'auth_ref';
		perform autopost.change_channel(p_workspace_id, v_old, v_new, v_act);
	end if;
	perform autopost.audit(p_workspace_id, 'put_channel', 'channel:' || p_channel_id, v_act, v_answer -> 'before',
		v_answer -> 'after');
	return v_answer;
end
$$;
