create or replace function autopost.export_config(p_workspace_id text) returns jsonb
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: returns the items from which apply_config creates this workspace again, at one instant:
--          [{"kind", "id", "fields"}] by kind and id. Defaults are omitted; config_json of a source
--          is complete. Only the locations of secrets are included. An endpoint with only the
--          values that its source gave it is omitted. A rule of the bot has its enabled version;
--          drafts and disabled rules are omitted. Only the engine may call it.
-- Reads:   workspaces, credential_bindings, platform_limits, templates, channels, channel_auth,
--          quotas, budgets, own_retry_policies, pull_sources, workspace_endpoints, result_webhooks, recurrences, alert_targets,
--          moderation_chats, bot_rules.
begin
	perform autopost.enter_workspace(p_workspace_id);
	return (
		select jsonb_agg(jsonb_build_object('kind', i.kind, 'id', i.id, 'fields', i.fields)
			order by i.n, i.id collate "C")
		from (
			select 1 as n, 'workspace' as kind, w.workspace_id as id, autopost.fields_that_differ(
				jsonb_build_object('name', w.name, 'status', w.status, 'approvals_needed', w.approvals_needed),
				'{"name": "", "status": "active", "approvals_needed": 1}') as fields
			from autopost.workspaces w where w.workspace_id = p_workspace_id
			union all
			select 2, 'credential', b.auth_ref, jsonb_strip_nulls(jsonb_build_object('platform', b.platform,
				'secret_ref', b.secret_ref, 'hosts', b.hosts))
			from autopost.credential_bindings b where b.workspace_id = p_workspace_id
			union all
			select 3, 'group', l.platform || '/' || l.rate_group,
				jsonb_build_object('rate_rps', coalesce(l.rate_rps, 0))
			from autopost.platform_limits l
			join autopost.platforms p on p.platform = l.platform
			where l.workspace_id = p_workspace_id and coalesce(l.rate_rps, 0) <> coalesce(p.group_rps, 0)
			union all
			select 4, 'template', t.template_id || case t.platform when '*' then '' else '/' || t.platform end,
				autopost.fields_that_differ(autopost.template_fields(row(t.*)::autopost.templates) - 'enabled',
					autopost.template_fields(
					autopost.template_of(p_workspace_id, t.template_id, t.platform,
						jsonb_build_object('body', t.body))) - 'body')
			from (
				select distinct on (v.template_id, v.platform) v.* from autopost.templates v
				where v.workspace_id = p_workspace_id and v.enabled
				order by v.template_id, v.platform, v.version desc) t
			union all
			select 5, 'channel', f.id, autopost.fields_that_differ(f.fields,
				autopost.default_fields(autopost.channel_rules(f.fields ->> 'auth_ref',
					autopost.default_rate(p_workspace_id, f.fields))))
			from (
				select c.channel_id as id, autopost.channel_fields(row(c.*)::autopost.channels) as fields
				from autopost.channels c where c.workspace_id = p_workspace_id) f
			union all
			select 6, 'quota', q.subject || '/' || q.window_seconds, 
				autopost.fields_that_differ(autopost.row_fields(to_jsonb(q), autopost.quota_rules()),
					autopost.default_fields(autopost.quota_rules()))
			from autopost.quotas q where q.workspace_id = p_workspace_id
			union all
			select 7, 'budget', b.auth_ref, jsonb_build_object('month_usd', autopost.dollars(b.month_micros))
			from autopost.budgets b where b.workspace_id = p_workspace_id
			union all
			select 8, 'retry_policy', r.platform || '/' || r.code, autopost.fields_that_differ(
				autopost.row_fields(to_jsonb(r), p.rules), autopost.default_fields(p.rules))
			from autopost.own_retry_policies r
			cross join lateral (select autopost.retry_policy_rules(
				autopost.retry_policy(p_workspace_id, r.platform, r.code, true)) as rules) p
			where r.workspace_id = p_workspace_id
			union all
			select 9, 'source', f.id,
				autopost.fields_that_differ(f.fields || jsonb_build_object('endpoint_id',
				coalesce(f.fields ->> 'endpoint_id', f.id)),
				autopost.default_fields(autopost.source_rules(f.id)))
			from (
				select s.source_id as id, autopost.source_fields(row(s.*)::autopost.pull_sources) as fields
				from autopost.pull_sources s where s.workspace_id = p_workspace_id) f
			union all
			select 10, 'endpoint', f.id, f.fields
			from (
				select e.endpoint_id as id, e.enabled,
					autopost.fields_that_differ(autopost.endpoint_fields(row(e.*)::autopost.workspace_endpoints),
					autopost.default_fields(autopost.endpoint_rules())) as fields
				from autopost.workspace_endpoints e where e.workspace_id = p_workspace_id) f
			where not (f.enabled and f.fields ->> 'kind' = 'pull_source'
				and f.fields - '{kind,source_id}'::text[] = '{}')
			union all
			select 11, 'webhook', w.webhook_id,
				autopost.fields_that_differ(autopost.row_fields(to_jsonb(w), autopost.webhook_rules()),
				autopost.default_fields(autopost.webhook_rules()))
			from autopost.result_webhooks w where w.workspace_id = p_workspace_id
			union all
			select 12, 'recurrence', f.id, autopost.fields_that_differ(f.fields,
				autopost.default_fields(autopost.recurrence_rules()))
			from (
				select r.recurrence_id::text as id, autopost.recurrence_fields(row(r.*)::autopost.recurrences) as fields
				from autopost.recurrences r where r.workspace_id = p_workspace_id) f
			union all
			select 13, 'alert_target', t.target_id, autopost.fields_that_differ(
				autopost.row_fields(to_jsonb(t), autopost.alert_target_rules()),
					autopost.default_fields(autopost.alert_target_rules()))
			from autopost.alert_targets t where t.workspace_id = p_workspace_id
			union all
			select 13, 'moderation_chat', t.chat_id, autopost.fields_that_differ(
				autopost.row_fields(to_jsonb(t), autopost.moderation_chat_rules()),
				autopost.default_fields(autopost.moderation_chat_rules()))
			from autopost.moderation_chats t where t.workspace_id = p_workspace_id
			union all
			select 14, 'bot_rule', r.rule_id, autopost.fields_that_differ(autopost.bot_rule_row(row(r.*)::autopost.bot_rules),
				autopost.default_fields(autopost.bot_rule_fields()))
			from autopost.bot_rules r where r.workspace_id = p_workspace_id and r.enabled) i);
end
$$;
