create or replace function autopost.require_platform(p_platform text) returns void
language plpgsql stable
as $$
-- Raises AP001 unless there is such a platform.
begin
	if not exists (select 1 from autopost.platforms p where p.platform = p_platform) then
		perform autopost.refuse('platform', format('%s is unknown', coalesce(p_platform, 'null')), 'use one of autopost.platforms');
	end if;
end
$$;

create or replace function autopost.quota_of(p_workspace_id text, p_subject text, p_window_seconds int) returns autopost.quotas
language plpgsql stable
as $$
-- The quota that is meant, stored or not: its channel, or its platform and rate group. Raises AP001 for a subject or a window that none can have.
declare
	v_part text[] := regexp_match(p_subject, '^(?:channel:(.+)|group:([^/]+)/(.+))$');
	v_quota autopost.quotas;
begin
	if v_part is null then
		perform autopost.refuse('subject', 'is neither a channel nor a rate group', 'pass channel:ID or group:PLATFORM/GROUP');
	elsif coalesce(p_window_seconds not between 1 and 2678400, true) then
		perform autopost.refuse('window_seconds', 'is not between 1 and 2678400', 'pass a second to 31 days');
	end if;
	perform autopost.require_platform(v_part[2]) where v_part[2] is not null;
	v_quota.workspace_id := p_workspace_id;
	v_quota.channel_id := v_part[1];
	v_quota.platform := v_part[2];
	v_quota.rate_group := v_part[3];
	v_quota.subject := p_subject;
	v_quota.window_seconds := p_window_seconds;
	return v_quota;
end
$$;

create or replace function autopost.lock_quota(p_workspace_id text, p_quota autopost.quotas) returns void
language plpgsql
as $$
-- Whatever a change of a quota comes by.
-- Locks: workspaces, platform_limits, quotas.
begin
	perform autopost.lock_configuration(p_workspace_id);
	perform 1 from autopost.platform_limits l
	where l.workspace_id = p_workspace_id and l.platform = p_quota.platform and l.rate_group = p_quota.rate_group for no key update of l;
	perform 1 from autopost.quotas q
	where q.workspace_id = p_workspace_id and q.subject = p_quota.subject order by q.window_seconds for no key update of q;
end
$$;

create or replace function autopost.binding_errors(p_fields jsonb) returns jsonb
language plpgsql stable
as $$
-- What is wrong with a binding: an array of {field, reason, remedy}, which never shows what was written where a secret may have been.
-- Reads: platforms.
begin
	return case when p_fields ->> 'platform' not in ('webhook', 'smtp') and not exists (select 1 from autopost.platforms p where p.platform = p_fields ->> 'platform')
		then autopost.field_error('platform', format('%s is unknown', p_fields -> 'platform'), 'use one of autopost.platforms, webhook for what signs posts, or smtp for a mail server') else '[]' end
	|| case when p_fields ->> 'secret_ref' !~ '^(env:[A-Za-z_][A-Za-z0-9_]*|file:/.+|sealed:.+)$'
		then autopost.field_error('secret_ref', 'is no reference to a secret', 'write env:NAME, file:/path or sealed:NAME, never the secret itself') else '[]' end;
end
$$;

create or replace function autopost.split_id(p_id text) returns text[]
language sql immutable parallel safe
as $$
-- The two halves of an id: "telegram/bot" is a platform and its rate group, "digest/x" a template and its platform; the second is null where
-- there is none, as in "digest", which is for all platforms.
select array[split_part(p_id, '/', 1), nullif(substr(p_id, length(split_part(p_id, '/', 1)) + 2), '')]
$$;

create or replace function autopost.put_template_item(p_workspace_id text, p_id text, p_fields jsonb, p_operator text, p_reason text) returns jsonb
language plpgsql
as $$
-- put_template, with what it changes: "created", "before", "after".
-- Reads: templates.
declare
	v_key text[] := autopost.split_id(p_id);
	v_before jsonb := autopost.template_fields(autopost.template_in_use(p_workspace_id, v_key));
	v_answer jsonb := autopost.put_template(p_workspace_id, v_key[1], v_key[2], p_fields, p_operator, p_reason);
	v_after jsonb := autopost.template_fields(autopost.template_in_use(p_workspace_id, v_key));
begin
	return v_answer || jsonb_build_object('created', v_before is null, 'before', autopost.fields_that_differ(coalesce(v_before, '{}'), v_after),
		'after', autopost.fields_that_differ(v_after, coalesce(v_before, '{}')));
end
$$;

create or replace function autopost.template_in_use(p_workspace_id text, p_key text[]) returns autopost.templates
language plpgsql stable
as $$
-- The newest enabled version of a template of exactly this platform. Reads: templates.
declare
	v_template autopost.templates;
begin
	select t.* into v_template from autopost.templates t
	where t.workspace_id = p_workspace_id and t.template_id = p_key[1] and t.platform = coalesce(p_key[2], '*') and t.enabled
	order by t.version desc
	limit 1;
	return v_template;
end
$$;

create or replace function autopost.put_source_item(
	p_workspace_id text, p_source_id text, p_fields jsonb, p_operator text, p_reason text, p_dry_run boolean
) returns jsonb
language plpgsql
as $$
-- put_source, but what config_json does not name goes.
-- Reads: pull_sources.
declare
	v_gone jsonb := (
		select coalesce(jsonb_object_agg(k.key, null), '{}')
		from autopost.pull_sources s
		cross join lateral jsonb_object_keys(s.config_json) k (key)
		where s.workspace_id = p_workspace_id and s.source_id = p_source_id);
begin
	return autopost.put_source(p_workspace_id, p_source_id, p_fields || case jsonb_typeof(p_fields -> 'config_json')
		when 'object' then jsonb_build_object('config_json', v_gone || (p_fields -> 'config_json')) else '{}' end, p_operator, p_reason, p_dry_run);
end
$$;

create or replace function autopost.put_endpoint_item(
	p_workspace_id text, p_endpoint_id text, p_fields jsonb, p_operator text, p_reason text, p_dry_run boolean
) returns jsonb
language plpgsql
as $$
-- put_endpoint, with the fields that differ in "before" and "after", what is in use already as errors, and a note where its signing key is not there.
declare
	v_rules jsonb := autopost.endpoint_rules();
	v_answer jsonb := autopost.put_endpoint(p_workspace_id, p_endpoint_id, p_fields, p_operator, p_reason, p_dry_run);
	v_before jsonb := autopost.row_fields(v_answer -> 'before', v_rules);
	v_after jsonb := autopost.row_fields(v_answer -> 'after', v_rules);
begin
	if v_answer -> 'bound' = 'false' then
		v_answer := v_answer || '{"note": "its signing_ref names no credential of platform webhook: nothing signed is taken until it does"}';
	end if;
	return v_answer || case
		when v_answer -> 'created' = 'true' then jsonb_build_object('after', autopost.fields_that_differ(v_after, autopost.default_fields(v_rules)))
		when v_answer -> 'applied' = 'true' then
			jsonb_build_object('before', autopost.fields_that_differ(v_before, v_after), 'after', autopost.fields_that_differ(v_after, v_before))
		when v_answer ->> 'reason' = 'secret_in_use' then jsonb_build_object('errors',
			autopost.field_error('enabled', 'cannot be: another endpoint has its secret', 'disable that one first'))
		when v_answer ->> 'reason' = 'source_in_use' then jsonb_build_object('errors',
			autopost.field_error('source_id', 'has another enabled endpoint', 'disable that one first'))
		else '{}' end;
end
$$;

create or replace function autopost.put_item(p_workspace_id text, p_item jsonb, p_operator text, p_reason text, p_dry_run boolean) returns jsonb
language plpgsql
as $$
-- Writes one thing of a configuration file, {"kind", "id", "fields"}; with "retire" it is disabled instead, and kept. What cannot be disabled stays.
-- Answers as the function of its kind does; null where that knows no dry run. Each further kind is a line here, and what it locks one in lock_items.
declare
	v_id text := p_item ->> 'id';
	v_fields jsonb := p_item -> 'fields';
	v_key text[];
begin
	if p_dry_run and (p_item ->> 'kind' = 'template' or p_item -> 'retire' = 'true') then
		return null;
	elsif p_item -> 'retire' = 'true' then
		return autopost.retire_item(p_workspace_id, p_item ->> 'kind', v_id, p_operator, p_reason);
	end if;
	case p_item ->> 'kind'
	when 'workspace' then
		return autopost.put_workspace(p_workspace_id, v_fields, p_operator, p_reason, p_dry_run);
	when 'credential' then
		return autopost.put_credential_binding(p_workspace_id, v_id, v_fields, p_operator, p_reason, p_dry_run);
	when 'group' then
		v_key := autopost.split_id(v_id);
		return autopost.put_rate_group(p_workspace_id, v_key[1], v_key[2], v_fields, p_operator, p_reason, p_dry_run);
	when 'template' then
		return autopost.put_template_item(p_workspace_id, v_id, v_fields, p_operator, p_reason);
	when 'channel' then
		return autopost.put_channel(p_workspace_id, v_id, v_fields, p_operator, p_reason, p_dry_run);
	when 'quota' then
		return autopost.put_quota(p_workspace_id, regexp_replace(v_id, '/[^/]*$', ''), substring(v_id from '/(\d{1,9})$')::int, v_fields, p_operator, p_reason, p_dry_run);
	when 'budget' then
		return autopost.put_budget(p_workspace_id, v_id, v_fields, p_operator, p_reason, p_dry_run);
	when 'source' then
		return autopost.put_source_item(p_workspace_id, v_id, v_fields, p_operator, p_reason, p_dry_run);
	when 'endpoint' then
		return autopost.put_endpoint_item(p_workspace_id, v_id, v_fields, p_operator, p_reason, p_dry_run);
	when 'webhook' then
		return autopost.put_webhook(p_workspace_id, v_id, v_fields, p_operator, p_reason, p_dry_run);
	when 'alert_target' then
		return autopost.put_alert_target(p_workspace_id, v_id, v_fields, p_operator, p_reason, p_dry_run);
	else
		perform autopost.refuse('items', format('have the unknown kind %s', coalesce(p_item ->> 'kind', 'null')),
			'use workspace, credential, group, template, channel, quota, budget, source, endpoint, webhook or alert_target');
	end case;
	return null;
end
$$;

create or replace function autopost.retire_item(p_workspace_id text, p_kind text, p_id text, p_operator text, p_reason text) returns jsonb
language plpgsql
as $$
-- Puts something out of use without forgetting it: it is disabled; a rate group loses its limit, a template all versions that are in use, and
-- the endpoint that a source has in use goes back to what a source makes itself. Answers as the function of its kind does. Quotas,
-- budgets and credentials have no such state and stay, unchanged.
-- Reads: templates, list_sources (view).
declare
	v_key text[] := autopost.split_id(p_id);
	v_version int;
	v_answer jsonb := '{"applied": false, "reason": "unchanged"}';
	v_fields jsonb := '{"enabled": false}';
begin
	case p_kind
	when 'group' then
		return autopost.put_rate_group(p_workspace_id, v_key[1], v_key[2], '{"rate_rps": null}', p_operator, p_reason, false);
	when 'template' then
		for v_version in
			select t.version from autopost.templates t
			where t.workspace_id = p_workspace_id and t.template_id = v_key[1] and t.platform = coalesce(v_key[2], '*') and t.enabled
			order by t.version
		loop
			v_answer := autopost.enable_template(p_workspace_id, v_key[1], v_key[2], v_version, false, p_operator, p_reason)
				|| '{"created": false, "before": {"enabled": true}, "after": {"enabled": false}}';
		end loop;
		return v_answer;
	when 'quota', 'budget', 'credential' then
		return v_answer;
	when 'endpoint' then
		if exists (
			select 1 from autopost.list_sources_rows v
			where v.workspace_id = p_workspace_id and v.endpoint_id = p_id and v.endpoint_enabled
		) then
			v_fields := autopost.default_fields(autopost.endpoint_rules() - '{kind,source_id}'::text[]);
		end if;
	else
		null;
	end case;
	return autopost.put_item(p_workspace_id, jsonb_build_object('kind', p_kind, 'id', p_id, 'fields', v_fields), p_operator, p_reason, false);
end
$$;

create or replace function autopost.items_to_put(p_workspace_id text, p_items jsonb, p_operator text, p_reason text) returns jsonb
language plpgsql
as $$
-- The items of a configuration file that are not so already, each with "n", its index: what is so is neither locked nor written. No other
-- change of the configuration may come between, so its lock is held. From the first on that cannot be judged before the others are written, all are.
-- Locks: workspaces.
declare
	v_item record;
	v_left jsonb := '[]';
	v_judged int := 0;
begin
	perform autopost.lock_configuration(p_workspace_id);
	begin
		for v_item in select i.value, i.ordinality::int as n from jsonb_array_elements(p_items) with ordinality i order by i.ordinality loop
			if autopost.put_item(p_workspace_id, v_item.value, p_operator, p_reason, true) ->> 'reason' is distinct from 'unchanged' then
				v_left := v_left || (v_item.value || jsonb_build_object('n', v_item.n - 1));
			end if;
			v_judged := v_item.n;
		end loop;
	exception when sqlstate 'AP001' or sqlstate 'AP003' then
		null; -- that is told when it is written; no workspace is there before its item is
	end;
	return v_left || (
		select coalesce(jsonb_agg(i.value || jsonb_build_object('n', i.ordinality - 1) order by i.ordinality), '[]')
		from jsonb_array_elements(p_items) with ordinality i
		where i.ordinality > v_judged);
end
$$;

create or replace function autopost.lock_items(p_workspace_id text, p_items jsonb) returns void
language plpgsql
as $$
-- All that items of a configuration file may change, in the order of the house: they are written in the order in which they refer to each
-- other, and each ends with the audit log, which is the last to be locked.
-- Locks: workspaces, workspace_endpoints, pull_sources, pull_cursors, platform_limits, quotas, budgets, channels, channel_gates, result_webhooks, alert_targets.
declare
	v_refs text[] := array(select i.value ->> 'id' from jsonb_array_elements(p_items) i where i.value ->> 'kind' = 'budget');
	v_endpoints text[] := array(select i.value ->> 'id' from jsonb_array_elements(p_items) i where i.value ->> 'kind' = 'endpoint');
	v_sources text[] := array(select i.value ->> 'id' from jsonb_array_elements(p_items) i where i.value ->> 'kind' = 'source');
	v_subjects text[] := array(
		select case i.value ->> 'kind' when 'group' then 'group:' || (i.value ->> 'id') else regexp_replace(i.value ->> 'id', '/[^/]*$', '') end
		from jsonb_array_elements(p_items) i where i.value ->> 'kind' in ('group', 'quota'));
	v_targets jsonb;
begin
	perform autopost.lock_configuration(p_workspace_id);
	perform 1 from autopost.workspace_endpoints e
	where e.workspace_id = p_workspace_id and e.endpoint_id = any (v_endpoints) order by e.endpoint_id for no key update of e;
	perform 1 from autopost.pull_sources s
	where s.workspace_id = p_workspace_id and s.source_id = any (v_sources) order by s.source_id for no key update of s;
	perform 1 from autopost.pull_cursors c
	where c.workspace_id = p_workspace_id and c.source_id = any (v_sources) order by c.source_id for no key update of c;
	perform 1 from autopost.platform_limits l
	where l.workspace_id = p_workspace_id and autopost.group_subject(l.platform, l.rate_group) = any (v_subjects)
	order by l.platform, l.rate_group for no key update of l;
	perform 1 from autopost.quotas q
	where q.workspace_id = p_workspace_id and q.subject = any (v_subjects) order by q.subject, q.window_seconds for no key update of q;
	perform 1 from autopost.budgets b
	where b.workspace_id = p_workspace_id and b.auth_ref = any (v_refs) order by b.auth_ref for no key update of b;
	select coalesce(jsonb_object_agg(c.id, c.target order by c.target nulls first), '{}') into v_targets
	from (
		select i.value ->> 'id' as id, i.value -> 'fields' ->> 'target_id' as target
		from jsonb_array_elements(p_items) i where i.value ->> 'kind' = 'channel'
		union all
		select substring(s.subject from '^channel:(.+)$'), null from unnest(v_subjects) s (subject)) c
	where c.id is not null;
	perform autopost.lock_channels_to_put(p_workspace_id, v_targets);
	perform autopost.lock_gates(p_workspace_id, array(select jsonb_object_keys(v_targets)) || autopost.channels_that_use(p_workspace_id, v_refs));
	perform 1 from autopost.result_webhooks w
	where w.workspace_id = p_workspace_id and w.webhook_id in (select i.value ->> 'id' from jsonb_array_elements(p_items) i where i.value ->> 'kind' = 'webhook')
	order by w.webhook_id for no key update of w;
	perform 1 from autopost.alert_targets t
	where t.workspace_id = p_workspace_id and t.target_id in (select i.value ->> 'id' from jsonb_array_elements(p_items) i where i.value ->> 'kind' = 'alert_target')
	order by t.target_id for no key update of t;
end
$$;
