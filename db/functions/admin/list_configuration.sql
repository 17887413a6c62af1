create or replace function autopost.list_configuration(p_workspace_id text, p_kind text, p_filter jsonb, p_limit int) returns setof jsonb
language plpgsql security definer set search_path = autopost, pg_temp set plan_cache_mode = force_custom_plan
as $$
-- How a workspace is set up, an object a row, by id. p_kind: workspace (the own one), channel, group (its id is "platform/rate_group"),
-- chat (its id is "platform/auth_ref/target_id"), endpoint, source, credential (its name and health), webhook (of results), alert (the open ones), alert_target,
-- setting (of the whole installation). p_filter keys, all optional: id, after (an id: what follows it, the next page). No secret and no hash of one is shown.
-- Raises AP001 for an unknown kind or key, or a limit out of 1 to 10000. Reads: workspaces, channels, channel_gates, channel_auth, discovered_chats,
-- platform_limits, workspace_endpoints, pull_sources, pull_cursors, credential_bindings, result_webhooks, alerts, alert_targets, settings.
begin
	perform autopost.enter_workspace(p_workspace_id);
	perform autopost.check_read(p_filter, '{id,after}', p_limit);
	if coalesce(p_kind not in ('workspace', 'channel', 'chat', 'group', 'endpoint', 'source', 'credential', 'webhook', 'alert', 'alert_target', 'setting'), true) then
		perform autopost.refuse('kind', format('%s is unknown', coalesce(p_kind, 'null')),
			'use workspace, channel, chat, group, endpoint, source, credential, webhook, alert, alert_target or setting');
	end if;
	return query
	select l.shown from autopost.configuration_of(p_workspace_id, p_kind) l
	where (not p_filter ? 'id' or l.id = p_filter ->> 'id') and (not p_filter ? 'after' or l.id > p_filter ->> 'after')
	order by l.id
	limit p_limit;
end
$$;
