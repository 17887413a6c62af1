create or replace function autopost.credential_uses(p_workspace_id text, p_auth_ref text) returns jsonb
language plpgsql stable
as $$
-- Purpose: what uses a credential: [{"kind", "id"}], at most 500.
-- Reads:   channels, channel_auth, workspace_endpoints, pull_sources, result_webhooks, alert_targets,
--          moderation_chats.
begin
	return (
		select coalesce(jsonb_agg(jsonb_build_object('kind', u.kind, 'id', u.id) order by u.kind, u.id), '[]')
		from (
			select 'channel' as kind, c.channel_id as id from autopost.channels c
			left join autopost.channel_auth a on a.workspace_id = p_workspace_id and a.channel_id = c.channel_id
			where c.workspace_id = p_workspace_id and p_auth_ref in (c.auth_ref, a.auth_ref)
			union all
			select 'endpoint', e.endpoint_id from autopost.workspace_endpoints e
			where e.workspace_id = p_workspace_id
			and p_auth_ref in (e.signing_ref, e.old_signing_ref, e.meta ->> 'auth_ref')
			union all
			select 'source', s.source_id from autopost.pull_sources s
			where s.workspace_id = p_workspace_id
			and p_auth_ref in (s.config_json ->> 'auth_ref', s.config_json ->> 'approval_ref')
			union all
			select 'webhook', w.webhook_id from autopost.result_webhooks w
			where w.workspace_id = p_workspace_id and p_auth_ref in (w.signing_ref, w.old_signing_ref)
			union all
			select 'alert_target', t.target_id from autopost.alert_targets t
			where t.workspace_id = p_workspace_id and t.auth_ref = p_auth_ref
			union all
			select 'moderation_chat', m.chat_id from autopost.moderation_chats m
			where m.workspace_id = p_workspace_id and m.auth_ref = p_auth_ref
			limit 500) u);
end
$$;

create or replace function autopost.remove_credential(p_workspace_id text, p_auth_ref text, p_operator text,
	p_reason text, p_dry_run boolean) returns jsonb
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: removes a credential that nothing uses, with its sealed secrets and the chats that its bot
--          discovered. Only the engine may call it.
-- Returns: {"applied": true, "dry_run", "before", "after": {}}; or {"applied": false, "dry_run"} with
--          reason unknown_auth_ref, or referred_to and "uses": [{"kind", "id"}].
-- Raises:  AP001 for a wrong argument.
-- Locks:   workspaces, audit_heads.
-- Reads:   as credential_uses.
-- Writes:  credential_bindings, credential_health, sealed_secrets, discovered_chats, admin_audit_log.
declare
	v_act jsonb;
	v_bound autopost.credential_bindings;
	v_uses jsonb;
	v_before jsonb;
begin
	perform autopost.enter_workspace(p_workspace_id);
	v_act := autopost.manual_act(p_operator, p_reason, p_dry_run);
	perform autopost.require_argument('auth_ref', p_auth_ref <> '');
	perform autopost.lock_configuration(p_workspace_id) where not p_dry_run;
	select b.* into v_bound from autopost.credential_bindings b
	where b.workspace_id = p_workspace_id and b.auth_ref = p_auth_ref;
	v_uses := autopost.credential_uses(p_workspace_id, p_auth_ref);
	if v_bound.auth_ref is null then
		return jsonb_build_object('applied', false, 'dry_run', p_dry_run, 'reason', 'unknown_auth_ref');
	elsif v_uses <> '[]' then
		return jsonb_build_object('applied', false, 'dry_run', p_dry_run, 'reason', 'referred_to', 'uses', v_uses);
	end if;
	v_before := jsonb_strip_nulls(jsonb_build_object('platform', v_bound.platform, 'kept_in',
		split_part(v_bound.secret_ref, ':', 1), 'hosts', v_bound.hosts));
	if not p_dry_run then
		delete from autopost.discovered_chats h
		where h.workspace_id = p_workspace_id and h.platform = v_bound.platform and h.auth_ref = p_auth_ref;
		delete from autopost.credential_bindings b
		where b.workspace_id = p_workspace_id and b.auth_ref = p_auth_ref;
		perform autopost.audit(p_workspace_id, 'remove_credential', 'credential:' || p_auth_ref, v_act, v_before, '{}');
	end if;
	return jsonb_build_object('applied', true, 'dry_run', p_dry_run, 'before', v_before, 'after', '{}'::jsonb);
end
$$;
