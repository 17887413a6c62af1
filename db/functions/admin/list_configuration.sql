create or replace function autopost.list_configuration(p_workspace_id text, p_kind text, p_filter jsonb, p_limit int)
	returns setof jsonb
language plpgsql security definer set search_path = autopost, pg_temp set plan_cache_mode = force_custom_plan
as $$
-- Purpose: lists the configuration of a workspace, one object per row, by id. p_kind: workspace
--          (itself), channel, group (id "platform/rate_group"), chat (id
--          "platform/auth_ref/target_id"), endpoint, source, credential (name and health), quota
--          (id "subject/window_seconds"), budget, retry_policy (id "platform/code"), webhook (result webhook), alert (open ones),
--          alert_target, avatar (name for {avatar_name}), moderation_chat, setting (of the installation). All keys of p_filter are optional: id,
--          after (ids after this one: the next page). Secrets and their hashes are not shown.
-- Raises:  AP001 for an unknown kind or key, or a limit outside 1 to 10000.
-- Reads:   workspaces, channels, channel_gates, channel_auth, discovered_chats, platform_limits,
--          workspace_endpoints, pull_sources, pull_cursors, credential_bindings, quotas,
--          quota_uses, budgets, charges, retry_policies, own_retry_policies, result_webhooks, alerts, alert_targets,
--          moderation_chats, avatars, settings.
begin
	perform autopost.enter_workspace(p_workspace_id);
	perform autopost.check_read(p_filter, '{id,after}', p_limit);
	if coalesce(p_kind not in ('workspace', 'channel', 'chat', 'group', 'endpoint', 'source', 'credential', 'quota',
		'budget', 'retry_policy', 'webhook', 'alert', 'alert_target', 'avatar', 'moderation_chat', 'setting'), true) then
		perform autopost.raise_argument('kind', format('%s is unknown', coalesce(p_kind, 'null')),
			'use workspace, channel, chat, group, endpoint, source, credential, quota, budget, retry_policy, webhook, alert, alert_target, avatar, moderation_chat or setting');
	end if;
	return query
	select l.shown
	from autopost.configuration_of(p_workspace_id, p_kind,
		case when p_filter ? 'id' then coalesce(p_filter ->> 'id', '') end, coalesce(p_filter ->> 'after', ''),
			p_limit) l
	order by l.id;
end
$$;
