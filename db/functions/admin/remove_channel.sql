create or replace function autopost.remove_channel(p_workspace_id text, p_channel_id text, p_operator text,
	p_reason text, p_dry_run boolean) returns jsonb
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: removes a disabled channel that nothing refers to. Usually a channel is only disabled.
--          Its events keep its id as meta.removed_channel_id. There is no index for them, so
--          this reads all events of the workspace.
-- Returns: {"applied": true, "dry_run", "before", "after": {}}; or {"applied": false, "dry_run"}
--          with reason unknown_channel, enabled, or referred_to and "references": {"deliveries",
--          "quotas"} (counts).
-- Raises:  AP001 for a wrong argument.
-- Locks:   workspaces, channels.
-- Reads:   deliveries, quotas.
-- Writes:  channels, channel_auth, channel_gates, events (channel_id), admin_audit_log.
declare
	v_act jsonb;
	v_channel autopost.channels;
	v_references jsonb;
	v_refusal jsonb;
begin
	perform autopost.enter_workspace(p_workspace_id);
	v_act := autopost.manual_act(p_operator, p_reason, p_dry_run);
	perform autopost.require_argument('channel_id', p_channel_id is not null);
	if not p_dry_run then
		perform autopost.lock_configuration(p_workspace_id);
		perform 1 from autopost.channels c where c.workspace_id = p_workspace_id
			and c.channel_id = p_channel_id for update of c;
	end if;
	select c.* into v_channel from autopost.channels c where c.workspace_id = p_workspace_id
		and c.channel_id = p_channel_id;
	select jsonb_object_agg(r.what, r.n) into v_references
	from (
		select 'deliveries' as what, count(*) as n from autopost.deliveries d
			where d.workspace_id = p_workspace_id and d.channel_id = p_channel_id
		union all
		select 'quotas', count(*) from autopost.quotas q
			where q.workspace_id = p_workspace_id and q.channel_id = p_channel_id) r
	where r.n > 0;
	v_refusal := case
		when v_channel.channel_id is null then '{"reason": "unknown_channel"}'
		when v_channel.enabled then '{"reason": "enabled"}'
		when v_references is not null then jsonb_build_object('reason', 'referred_to', 'references', v_references) end;
	if v_refusal is not null then
		return jsonb_build_object('applied', false, 'dry_run', p_dry_run) || v_refusal;
	end if;
	if not p_dry_run then
		update autopost.events e set channel_id = null,
			meta = e.meta || jsonb_build_object('removed_channel_id', p_channel_id)
		where e.workspace_id = p_workspace_id and e.channel_id = p_channel_id;
		delete from autopost.channels c where c.workspace_id = p_workspace_id and c.channel_id = p_channel_id;
		perform autopost.audit(p_workspace_id, 'remove_channel', 'channel:' || p_channel_id, v_act,
			jsonb_strip_nulls(autopost.channel_fields(v_channel)), '{}');
	end if;
	return jsonb_build_object('applied', true, 'dry_run', p_dry_run, 'before',
		jsonb_strip_nulls(autopost.channel_fields(v_channel)), 'after', '{}'::jsonb);
end
$$;
