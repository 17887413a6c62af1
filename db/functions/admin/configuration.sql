create or replace function autopost.require_platform(p_platform text) returns void
language plpgsql stable
as $$
-- Purpose: checks that the platform exists.
-- Raises:  AP001 for an unknown platform.
begin
	if not exists (select 1 from autopost.platforms p where p.platform = p_platform) then
		perform autopost.raise_argument('platform', format('%s is unknown', coalesce(p_platform, 'null')),
			'use ' || (select string_agg(p.platform, ', ' order by p.platform) from autopost.platforms p));
	end if;
end
$$;

create or replace function autopost.quota_of(p_workspace_id text, p_subject text, p_window_seconds int)
	returns autopost.quotas
language plpgsql stable
as $$
-- Purpose: the identified quota, stored or not, with its channel or its platform and rate group.
-- Raises:  AP001 for a malformed subject or window.
declare
	v_part text[] := regexp_match(p_subject, '^(?:channel:(.+)|group:([^/]+)/(.+))$');
	v_quota autopost.quotas;
begin
	if v_part is null then
		perform autopost.raise_argument('subject', 'must be a channel or a rate group',
			'pass channel:ID or group:PLATFORM/GROUP');
	elsif coalesce(p_window_seconds not between 1 and 2678400, true) then
		perform autopost.raise_argument('window_seconds', 'must be between 1 and 2678400', 'pass a second to 31 days');
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

create or replace function autopost.quota_rules() returns jsonb
language sql immutable parallel safe
as $$
-- Purpose: the rules of the fields of a quota; see put_row.
select '{"max_sends": {"is": "integer", "required": true, "min": 1, "max": 2147483647},
	"counts": {"is": "text", "in": ["posts", "calls"], "default": "posts"}}'::jsonb
$$;

create or replace function autopost.lock_quota(p_workspace_id text, p_quota autopost.quotas) returns void
language plpgsql
as $$
-- Purpose: locks the rows that a change of a quota needs.
-- Locks:   workspaces, platform_limits, quotas.
begin
	perform autopost.lock_configuration(p_workspace_id);
	perform 1 from autopost.platform_limits l
	where l.workspace_id = p_workspace_id and l.platform = p_quota.platform
		and l.rate_group = p_quota.rate_group for no key update of l;
	perform 1 from autopost.quotas q
	where q.workspace_id = p_workspace_id and q.subject = p_quota.subject
		order by q.window_seconds for no key update of q;
end
$$;

create or replace function autopost.credential_platforms() returns text[]
language plpgsql stable
as $$
-- Purpose: the platforms of credentials: those of channels, http and postgres for sources, smtp for
--          mail, webhook for signing keys.
-- Reads:   platforms.
begin
	return array(select p.platform from autopost.platforms p union select unnest('{http,postgres,smtp,webhook}'::text[])
		order by 1);
end
$$;

create or replace function autopost.binding_errors(p_fields jsonb) returns jsonb
language plpgsql stable
as $$
-- Purpose: checks a credential binding. The answer never repeats the value of secret_ref, which may
--          be a secret.
-- Returns: an array of {field, reason, remedy}.
-- Reads:   platforms.
begin
	return case when p_fields ->> 'platform' <> all (autopost.credential_platforms())
		then autopost.field_error('platform', format('%s is unknown', p_fields -> 'platform'),
			'use ' || array_to_string(autopost.credential_platforms(), ', ')) else '[]' end
	|| case when p_fields ->> 'secret_ref' !~ '^(env:[A-Za-z_][A-Za-z0-9_]*|file:/.+|sealed:.+)$'
		then autopost.field_error('secret_ref', 'must be a reference to a secret',
			'write env:NAME, file:/path or sealed:NAME, never the secret itself') else '[]' end
	|| case when autopost.hosts_fault(p_fields ->> 'platform', autopost.texts_of(p_fields -> 'hosts')) is not null
		then autopost.field_error('hosts', autopost.hosts_fault(p_fields ->> 'platform',
			autopost.texts_of(p_fields -> 'hosts')), autopost.hosts_remedy()) else '[]' end;
end
$$;

create or replace function autopost.hosts_fault(p_platform text, p_hosts text[]) returns text
language sql immutable parallel safe
as $$
-- Purpose: the violation of the rule that a secret of platform http, and no other, has hosts; null if
--          the hosts are valid.
select case
	when p_platform <> 'http' then case when p_hosts <> '{}' then 'must be empty for platform ' || p_platform end
	when coalesce(p_hosts, '{}') = '{}' then 'must name the hosts that get the secret'
	when exists (select 1 from unnest(p_hosts) h (host)
		where h.host !~ '^([a-z0-9._-]+|\[[0-9a-f:.]+\])(:[0-9]{1,5})?$')
		then 'must be hosts in lower case, without scheme and path' end
$$;

create or replace function autopost.hosts_remedy() returns text
language sql immutable parallel safe
as $$
-- Purpose: how an operator names the hosts of a credential.
select 'write them as in api.example.com or api.example.com:8443 (autopost credential set NAME --host HOST)'
$$;

create or replace function autopost.source_host_errors(p_workspace_id text, p_after jsonb) returns jsonb
language plpgsql stable
as $$
-- Purpose: checks that the credential of a source may be sent to its address. The fetcher checks it
--          again before each poll, as the credential may change.
-- Returns: an array of {field, reason, remedy}.
-- Reads:   credential_bindings.
begin
	return (select coalesce(jsonb_agg(e.value), '[]')
	from autopost.credential_bindings b
	cross join lateral (select substring(lower(p_after #>> '{config_json,url}') from
		'^https?://(?:[^/?#]*@)?([^/?#]+)') as host) u
	cross join lateral jsonb_array_elements(autopost.field_error('config_json.auth_ref',
		format('%s must not be sent to %s', b.auth_ref, u.host),
		format('use an address of %s; an operator of the installation adds hosts: autopost credential set %s --host %s',
			array_to_string(b.hosts, ', '), b.auth_ref, u.host))) e
	where b.workspace_id = p_workspace_id and p_after ->> 'kind' = 'api' and b.platform = 'http'
	and b.auth_ref = p_after #>> '{config_json,auth_ref}' and u.host <> all (b.hosts));
end
$$;

create or replace function autopost.split_id(p_id text) returns text[]
language sql immutable parallel safe
as $$
-- Purpose: the two parts of an id: "telegram/bot" is a platform and a rate group, "digest/x" a
--          template and a platform. The second is null in an id such as "digest", a template for
--          all platforms.
select array[split_part(p_id, '/', 1), nullif(substr(p_id, length(split_part(p_id, '/', 1)) + 2), '')]
$$;

create or replace function autopost.put_template_item(p_workspace_id text, p_id text, p_fields jsonb, p_operator text,
	p_reason text) returns jsonb
language plpgsql
as $$
-- Purpose: put_template with "created", "before" and "after".
-- Reads:   templates.
declare
	v_key text[] := autopost.split_id(p_id);
	v_before jsonb := autopost.template_fields(autopost.template_in_use(p_workspace_id, v_key));
	v_answer jsonb := autopost.put_template(p_workspace_id, v_key[1], v_key[2], p_fields, p_operator, p_reason);
	v_after jsonb := autopost.template_fields(autopost.template_in_use(p_workspace_id, v_key));
begin
	return v_answer || jsonb_build_object('created', v_before is null, 'before',
		autopost.fields_that_differ(coalesce(v_before, '{}'), v_after),
		'after', autopost.fields_that_differ(v_after, coalesce(v_before, '{}')));
end
$$;

create or replace function autopost.template_in_use(p_workspace_id text, p_key text[]) returns autopost.templates
language plpgsql stable
as $$
-- Purpose: the newest enabled version of a template for exactly this platform.
-- Reads:   templates.
declare
	v_template autopost.templates;
begin
	select t.* into v_template from autopost.templates t
	where t.workspace_id = p_workspace_id and t.template_id = p_key[1] and t.platform = coalesce(p_key[2], '*')
		and t.enabled
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
-- Purpose: put_source, but keys missing in config_json are removed.
-- Reads:   pull_sources.
declare
	v_gone jsonb := (
		select coalesce(jsonb_object_agg(k.key, null), '{}')
		from autopost.pull_sources s
		cross join lateral jsonb_object_keys(s.config_json) k (key)
		where s.workspace_id = p_workspace_id and s.source_id = p_source_id);
begin
	return autopost.put_source(p_workspace_id, p_source_id, p_fields || case jsonb_typeof(p_fields -> 'config_json')
		when 'object' then jsonb_build_object('config_json', v_gone || (p_fields -> 'config_json')) else '{}' end,
			p_operator, p_reason, p_dry_run);
end
$$;

create or replace function autopost.put_endpoint_item(
	p_workspace_id text, p_endpoint_id text, p_fields jsonb, p_operator text, p_reason text, p_dry_run boolean
) returns jsonb
language plpgsql
as $$
-- Purpose: put_endpoint with changed fields in "before" and "after", conflicts as "errors", and a
--          note if the signing key is missing.
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
		when v_answer -> 'created' = 'true' then jsonb_build_object('after',
			autopost.fields_that_differ(v_after, autopost.default_fields(v_rules)))
		when v_answer -> 'applied' = 'true' then
			jsonb_build_object('before', autopost.fields_that_differ(v_before, v_after), 'after',
				autopost.fields_that_differ(v_after, v_before))
		when v_answer ->> 'reason' = 'secret_in_use' then jsonb_build_object('errors',
			autopost.field_error('enabled', 'must be false: another endpoint has its secret',
				'disable the other endpoint first'))
		when v_answer ->> 'reason' = 'source_in_use' then jsonb_build_object('errors',
			autopost.field_error('source_id', 'must not have another enabled endpoint',
				'disable the other endpoint first'))
		else '{}' end;
end
$$;

create or replace function autopost.put_bot_rule_item(
	p_workspace_id text, p_rule_id text, p_fields jsonb, p_operator text, p_reason text, p_dry_run boolean
) returns jsonb
language plpgsql
as $$
-- Purpose: put_bot_rule for a file, which describes the version that answers. A draft beside this
--          version changes nothing. With enabled false the fields are a draft.
-- Reads:   bot_rules.
declare
	v_old jsonb := (
		select autopost.bot_rule_row(row(r.*)::autopost.bot_rules) from autopost.bot_rules r
		where r.workspace_id = p_workspace_id and r.rule_id = p_rule_id and r.enabled
			and p_fields -> 'enabled' is distinct from 'false');
	v_seen jsonb;
	v_answer jsonb;
begin
	if v_old is not null then
		v_seen := autopost.put_answer(autopost.put_row(autopost.bot_rule_given(p_fields), autopost.bot_rule_fields(),
			v_old), null, p_dry_run);
		if v_seen ->> 'reason' = 'unchanged' then
			return v_seen;
		end if;
	end if;
	v_answer := autopost.put_bot_rule(p_workspace_id, p_rule_id, p_fields, p_operator, p_reason, p_dry_run);
	return v_answer || case when v_answer -> 'applied' = 'true' and v_old is not null
		then jsonb_build_object('before', v_seen -> 'before', 'after', v_seen -> 'after') else '{}' end;
end
$$;

create or replace function autopost.put_item(p_workspace_id text, p_item jsonb, p_operator text, p_reason text,
	p_dry_run boolean) returns jsonb
language plpgsql
as $$
-- Purpose: writes one item of a configuration file, {"kind", "id", "fields"}. With "retire" it
--          disables the item if its kind can be disabled. A new kind needs a branch here and a lock
--          in lock_items.
-- Returns: as the function of the kind; null if that has no dry run.
-- Writes:  as the functions of the kinds.
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
		return autopost.put_quota(p_workspace_id, regexp_replace(v_id, '/[^/]*$', ''),
			substring(v_id from '/(\d{1,9})$')::int, v_fields, p_operator, p_reason, p_dry_run);
	when 'budget' then
		return autopost.put_budget(p_workspace_id, v_id, v_fields, p_operator, p_reason, p_dry_run);
	when 'retry_policy' then
		v_key := autopost.split_id(v_id);
		return autopost.put_retry_policy(p_workspace_id, v_key[1], v_key[2], v_fields, p_operator, p_reason, p_dry_run);
	when 'source' then
		return autopost.put_source_item(p_workspace_id, v_id, v_fields, p_operator, p_reason, p_dry_run);
	when 'endpoint' then
		return autopost.put_endpoint_item(p_workspace_id, v_id, v_fields, p_operator, p_reason, p_dry_run);
	when 'webhook' then
		return autopost.put_webhook(p_workspace_id, v_id, v_fields, p_operator, p_reason, p_dry_run);
	when 'recurrence' then
		perform autopost.require_uuid('items', v_id);
		return autopost.put_recurrence(p_workspace_id, v_id::uuid, v_fields, p_operator, p_reason, p_dry_run)
			- 'recurrence_id';
	when 'alert_target' then
		return autopost.put_alert_target(p_workspace_id, v_id, v_fields, p_operator, p_reason, p_dry_run);
	when 'moderation_chat' then
		return autopost.put_moderation_chat(p_workspace_id, v_id, v_fields, p_operator, p_reason, p_dry_run);
	when 'bot_rule' then
		return autopost.put_bot_rule_item(p_workspace_id, v_id, v_fields, p_operator, p_reason, p_dry_run);
	else
		perform autopost.raise_argument('items',
			format('have the unknown kind %s', coalesce(p_item ->> 'kind', 'null')),
			'use workspace, credential, group, template, channel, quota, budget, retry_policy, source, endpoint, webhook, recurrence, alert_target, moderation_chat or bot_rule');
	end case;
	return null;
end
$$;

create or replace function autopost.retire_item(p_workspace_id text, p_kind text, p_id text, p_operator text,
	p_reason text) returns jsonb
language plpgsql
as $$
-- Purpose: disables an item and keeps its row. A rate group gets the limit of its platform, a
--          template or rule of the bot loses its enabled versions, a retry policy becomes the inherited one. The endpoint in use by a source gets default fields. Quotas, budgets and
--          credentials cannot be disabled and stay unchanged.
-- Returns: as the function of the kind.
-- Reads:   templates, list_sources (view).
declare
	v_key text[] := autopost.split_id(p_id);
	v_version int;
	v_answer jsonb := '{"applied": false, "reason": "unchanged"}';
	v_fields jsonb := '{"enabled": false}';
begin
	case p_kind
	when 'group' then
		return autopost.put_rate_group(p_workspace_id, v_key[1], v_key[2], '{"rate_rps": null}', p_operator, p_reason,
			false);
	when 'template' then
		for v_version in
			select t.version from autopost.templates t
			where t.workspace_id = p_workspace_id and t.template_id = v_key[1] and t.platform = coalesce(v_key[2], '*')
				and t.enabled
			order by t.version
		loop
			v_answer := autopost.enable_template(p_workspace_id, v_key[1], v_key[2], v_version, false, p_operator,
				p_reason)
				|| '{"created": false, "before": {"enabled": true}, "after": {"enabled": false}}';
		end loop;
		return v_answer;
	when 'quota', 'budget', 'credential' then
		return v_answer;
	when 'bot_rule' then
		v_answer := autopost.enable_bot_rule(p_workspace_id, p_id, 0, p_operator, p_reason, false);
		return v_answer || case when v_answer -> 'applied' = 'true'
			then '{"created": false, "before": {"enabled": true}, "after": {"enabled": false}}'::jsonb else '{}' end;
	when 'retry_policy' then
		v_fields := (select jsonb_object_agg(r.key, null) from jsonb_each(autopost.retry_policy_rules(null)) r);
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
	return autopost.put_item(p_workspace_id, jsonb_build_object('kind', p_kind, 'id', p_id, 'fields', v_fields),
		p_operator, p_reason, false);
end
$$;

create or replace function autopost.items_to_put(p_workspace_id text, p_items jsonb, p_operator text, p_reason text)
	returns jsonb
language plpgsql
as $$
-- Purpose: the items of a configuration file that differ from the database, each with "n", its
--          index. Equal items are neither locked nor written. The configuration lock stops
--          concurrent changes. An item that needs an earlier one to be written first cannot be
--          compared; it and all later ones are returned.
-- Locks:   workspaces.
declare
	v_item record;
	v_left jsonb := '[]';
	v_judged int := 0;
begin
	perform autopost.lock_configuration(p_workspace_id);
	begin
		for v_item in select i.value, i.ordinality::int as n from jsonb_array_elements(p_items) with ordinality i
			order by i.ordinality loop
			if autopost.put_item(p_workspace_id, v_item.value, p_operator, p_reason,
				true) ->> 'reason' is distinct from 'unchanged' then
				v_left := v_left || (v_item.value || jsonb_build_object('n', v_item.n - 1));
			end if;
			v_judged := v_item.n;
		end loop;
	exception when sqlstate 'AP001' or sqlstate 'AP003' then
		null; -- put_item reports the error later; a new workspace exists only after its item
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
-- Purpose: locks all rows that items of a configuration file may change, in the lock order of the
--          installation. The items are then written in the order of their references, and each ends
--          with the audit log, which is locked last.
-- Locks:   workspaces, workspace_endpoints, pull_sources, pull_cursors, moderation_chats,
--          platform_limits, quotas, budgets, channels, settings (shared), channel_gates,
--          result_webhooks, alert_targets.
declare
	v_refs text[] := array(select i.value ->> 'id' from jsonb_array_elements(p_items) i
		where i.value ->> 'kind' = 'budget');
	v_endpoints text[] := array(select i.value ->> 'id' from jsonb_array_elements(p_items) i
		where i.value ->> 'kind' = 'endpoint');
	v_sources text[] := array(select i.value ->> 'id' from jsonb_array_elements(p_items) i
		where i.value ->> 'kind' = 'source');
	v_subjects text[] := array(
		select case i.value ->> 'kind' when 'group' then 'group:' || (i.value ->> 'id')
			else regexp_replace(i.value ->> 'id', '/[^/]*$', '') end
		from jsonb_array_elements(p_items) i where i.value ->> 'kind' in ('group', 'quota'));
	v_targets jsonb;
begin
	perform autopost.lock_configuration(p_workspace_id);
	perform 1 from autopost.workspace_endpoints e
	where e.workspace_id = p_workspace_id and e.endpoint_id = any (v_endpoints)
		order by e.endpoint_id for no key update of e;
	perform 1 from autopost.pull_sources s
	where s.workspace_id = p_workspace_id and s.source_id = any (v_sources) order by s.source_id for no key update of s;
	perform 1 from autopost.pull_cursors c
	where c.workspace_id = p_workspace_id and c.source_id = any (v_sources) order by c.source_id for no key update of c;
	perform 1 from autopost.moderation_chats t
	where t.workspace_id = p_workspace_id and t.chat_id in (select i.value ->> 'id'
		from jsonb_array_elements(p_items) i where i.value ->> 'kind' = 'moderation_chat')
	order by t.chat_id for no key update of t;
	perform 1 from autopost.platform_limits l
	where l.workspace_id = p_workspace_id and autopost.group_subject(l.platform, l.rate_group) = any (v_subjects)
	order by l.platform, l.rate_group for no key update of l;
	perform 1 from autopost.quotas q
	where q.workspace_id = p_workspace_id and q.subject = any (v_subjects)
		order by q.subject, q.window_seconds for no key update of q;
	perform 1 from autopost.budgets b
	where b.workspace_id = p_workspace_id and b.auth_ref = any (v_refs) order by b.auth_ref for no key update of b;
	select coalesce(jsonb_object_agg(c.id, c.target order by c.target nulls first), '{}') into v_targets
	from (
		select i.value ->> 'id' as id, i.value -> 'fields' ->> 'target_id' as target
		from jsonb_array_elements(p_items) i where i.value ->> 'kind' = 'channel'
		union all
		select substring(s.subject from '^channel:(.+)$'), null from unnest(v_subjects) s (subject)
		union all
		select w.id, null from unnest(autopost.waiting_for_credentials(p_workspace_id, array(select i.value ->> 'id'
			from jsonb_array_elements(p_items) i where i.value ->> 'kind' = 'credential'))) w (id)) c
	where c.id is not null;
	perform autopost.lock_channels_to_put(p_workspace_id, v_targets);
	-- as guard_dedup_ttl
	perform 1 from autopost.settings s where s.key = 'delivery_retention_days' and v_targets <> '{}' for share;
	perform autopost.lock_gates(p_workspace_id,
		array(select jsonb_object_keys(v_targets)) || autopost.channels_that_use(p_workspace_id, v_refs));
	perform 1 from autopost.result_webhooks w
	where w.workspace_id = p_workspace_id and w.webhook_id in (select i.value ->> 'id'
		from jsonb_array_elements(p_items) i where i.value ->> 'kind' = 'webhook')
	order by w.webhook_id for no key update of w;
	perform 1 from autopost.alert_targets t
	where t.workspace_id = p_workspace_id and t.target_id in (select i.value ->> 'id'
		from jsonb_array_elements(p_items) i where i.value ->> 'kind' = 'alert_target')
	order by t.target_id for no key update of t;
end
$$;
