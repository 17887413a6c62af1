create or replace function autopost.further_configuration_of(p_workspace_id text, p_kind text, p_id text, p_after text,
	p_limit int) returns table (id text, shown jsonb)
language plpgsql stable
as $$
-- Purpose: the rows of configuration_of for the kinds that have few rows.
-- Reads:   as list_configuration.
begin
	if p_kind = 'webhook' then
		return query
		select w.webhook_id, to_jsonb(w) - '{workspace_id,next_send_at}'::text[]
		from autopost.result_webhooks w
		where w.workspace_id = p_workspace_id
		and w.webhook_id > p_after and w.webhook_id = coalesce(p_id, w.webhook_id)
		order by 1 limit p_limit;
	elsif p_kind = 'alert' then
		return query
		select a.alert_id::text, to_jsonb(a) - '{workspace_id,look,calm_since,ended_at}'::text[]
		from autopost.alerts a
		where a.workspace_id = p_workspace_id and a.ended_at is null
		and a.alert_id::text > p_after and a.alert_id::text = coalesce(p_id, a.alert_id::text)
		order by 1 limit p_limit;
	elsif p_kind = 'alert_target' then
		return query
		select t.target_id, to_jsonb(t) - '{workspace_id,next_try_at}'::text[]
		from autopost.alert_targets t
		where t.workspace_id = p_workspace_id
		and t.target_id > p_after and t.target_id = coalesce(p_id, t.target_id)
		order by 1 limit p_limit;
	elsif p_kind = 'avatar' then
		return query
		select a.avatar_id, to_jsonb(a) - 'workspace_id'
		from autopost.avatars a
		where a.workspace_id = p_workspace_id
		and a.avatar_id > p_after and a.avatar_id = coalesce(p_id, a.avatar_id)
		order by 1 limit p_limit;
	elsif p_kind = 'moderation_chat' then
		return query
		select t.chat_id, to_jsonb(t)
		from autopost.moderation_chats_shown(p_workspace_id) t
		where t.chat_id > p_after and t.chat_id = coalesce(p_id, t.chat_id)
		order by 1 limit p_limit;
	elsif p_kind = 'quota' then
		return query
		select q.subject || '/' || q.window_seconds,
			to_jsonb(q) || jsonb_build_object('quota_id', q.subject || '/' || q.window_seconds,
			'free_at', case when isfinite(q.free_at) then q.free_at end)
		from autopost.quotas_shown(p_workspace_id) q
		where q.subject || '/' || q.window_seconds > p_after
		and q.subject || '/' || q.window_seconds = coalesce(p_id, q.subject || '/' || q.window_seconds)
		order by 1 limit p_limit;
	elsif p_kind = 'budget' then
		return query
		select b.auth_ref, to_jsonb(b)
		from autopost.budgets_shown(p_workspace_id) b
		where b.auth_ref > p_after and b.auth_ref = coalesce(p_id, b.auth_ref)
		order by 1 limit p_limit;
	elsif p_kind = 'retry_policy' then
		return query
		with policies as materialized (
			select p.own, to_jsonb(p) - '{own,version}'::text[] as fields, p.platform, p.code
			from autopost.policies_of(p_workspace_id) p)
		select r.platform || '/' || r.code, r.fields || jsonb_build_object(
			'retry_policy_id', r.platform || '/' || r.code, 'own', r.own)
		from policies r
		where (r.own or not exists (
			select 1 from policies o where o.own and o.platform = r.platform and o.code = r.code))
		and r.platform || '/' || r.code > p_after
		and r.platform || '/' || r.code = coalesce(p_id, r.platform || '/' || r.code)
		order by 1 limit p_limit;
	elsif p_kind = 'setting' then
		return query
		select s.key, jsonb_build_object('key', s.key, 'value', s.value, 'meaning', s.meaning, 'updated_at',
			s.updated_at,
			'default_value', s.default_value, 'least', s.least, 'most', s.most, 'internal', s.internal)
		from autopost.all_settings() s
		where s.key > p_after and s.key = coalesce(p_id, s.key)
		order by 1 limit p_limit;
	end if;
end
$$;

create or replace function autopost.configuration_of(p_workspace_id text, p_kind text, p_id text, p_after text,
	p_limit int)
	returns table (id text, shown jsonb)
language plpgsql stable
as $$
-- Purpose: the rows of list_configuration for a kind: the row p_id (null: all), after the id p_after
--          ('': from the first). Each kind has its query, so that a filter by id reads no other row.
-- Reads:   as list_configuration.
begin
	if p_kind = 'workspace' then
		return query
		select w.workspace_id, jsonb_build_object('workspace_id', w.workspace_id, 'name', w.name, 'status', w.status,
			'created_at', w.created_at, 'updated_at', w.updated_at)
		from autopost.workspaces w
		where w.workspace_id = p_workspace_id
		and w.workspace_id > p_after and w.workspace_id = coalesce(p_id, w.workspace_id)
		order by 1 limit p_limit;
	elsif p_kind = 'channel' then
		return query
		select c.channel_id, to_jsonb(c) - '{workspace_id,next_allowed_at,last_limited_at,limited_rps,limited_sends,paused_before,held_until}'::text[]
			|| jsonb_build_object('auth_ref', coalesce(a.auth_ref, c.auth_ref), 'inflight', g.inflight, 'paused_until',
				case
				when isfinite(c.paused_until) then c.paused_until end)
		from autopost.channels c
		join autopost.channel_gates g on g.workspace_id = p_workspace_id and g.channel_id = c.channel_id
		left join autopost.channel_auth a on a.workspace_id = p_workspace_id and a.channel_id = c.channel_id
		where c.workspace_id = p_workspace_id
		and c.channel_id > p_after and c.channel_id = coalesce(p_id, c.channel_id)
		order by 1 limit p_limit;
	elsif p_kind = 'chat' then
		return query
		select h.platform || '/' || h.auth_ref || '/' || h.target_id,
			to_jsonb(h) - 'workspace_id' || jsonb_build_object('chat_id', h.platform || '/' || h.auth_ref || '/'
				|| h.target_id)
		from autopost.list_chats_rows h
		where h.workspace_id = p_workspace_id
		and h.platform || '/' || h.auth_ref || '/' || h.target_id > p_after
		and h.platform || '/' || h.auth_ref || '/'
			|| h.target_id = coalesce(p_id, h.platform || '/' || h.auth_ref || '/' || h.target_id)
		order by 1 limit p_limit;
	elsif p_kind = 'group' then
		return query
		select g.platform || '/' || g.rate_group, jsonb_build_object('group_id', g.platform || '/' || g.rate_group,
			'platform',
			g.platform, 'rate_group', g.rate_group, 'rate_rps', l.rate_rps, 'platform_rps', (
				select p.group_rps from autopost.platforms p where p.platform = g.platform),
			'cooldown_until', l.cooldown_until, 'quota_until', l.quota_until, 'breaker_opened_at', l.breaker_opened_at,
				'channels', g.channels, 'enabled', g.enabled, 'paused', g.paused)
		from (
			select x.platform, x.rate_group, count(x.channel_id) as channels,
				count(x.channel_id) filter (where x.enabled) as enabled,
				count(x.channel_id) filter (where x.enabled and x.paused_until > autopost.now_ts()) as paused
			from (
				select c.platform, c.rate_group, c.channel_id, c.enabled, c.paused_until from autopost.channels c
					where c.workspace_id = p_workspace_id
				union all
				select l.platform, l.rate_group, null, null, null from autopost.platform_limits l
					where l.workspace_id = p_workspace_id
			) x
			group by x.platform, x.rate_group
		) g
		left join autopost.platform_limits l on l.workspace_id = p_workspace_id and l.platform = g.platform
			and l.rate_group = g.rate_group
		where g.platform || '/' || g.rate_group > p_after
		and g.platform || '/' || g.rate_group = coalesce(p_id, g.platform || '/' || g.rate_group)
		order by 1 limit p_limit;
	elsif p_kind = 'endpoint' then
		return query
		select e.endpoint_id, jsonb_build_object('endpoint_id', e.endpoint_id, 'kind', e.kind, 'source_id', e.source_id,
			'signing_ref', e.signing_ref, 'enabled', e.enabled,
			'ingress_rps', e.ingress_rps, 'max_payload_bytes', e.max_payload_bytes, 'hash_drop_window_sec',
				e.hash_drop_window_sec, 'moderated', e.moderated,
			'has_secret', e.secret_hash is not null, 'meta', autopost.redact(e.meta), 'created_at', e.created_at,
				'updated_at',
				e.updated_at)
		from autopost.workspace_endpoints e
		where e.workspace_id = p_workspace_id
		and e.endpoint_id > p_after and e.endpoint_id = coalesce(p_id, e.endpoint_id)
		order by 1 limit p_limit;
	elsif p_kind = 'source' then
		return query
		select s.source_id, jsonb_build_object('source_id', s.source_id, 'kind', s.kind, 'config_json',
			autopost.masked_config(s.config_json), 'enabled', s.enabled,
			'polled_at', u.updated_at, 'next_poll_at', case when isfinite(u.next_poll_at) then u.next_poll_at end,
				'failures',
				coalesce(u.failures, 0), 'last_error', u.last_error,
			'created_at', s.created_at, 'updated_at', s.updated_at)
		from autopost.pull_sources s
		left join autopost.pull_cursors u on u.workspace_id = p_workspace_id and u.source_id = s.source_id
		where s.workspace_id = p_workspace_id
		and s.source_id > p_after and s.source_id = coalesce(p_id, s.source_id)
		order by 1 limit p_limit;
	elsif p_kind = 'credential' then
		return query
		select b.auth_ref, jsonb_build_object('auth_ref', b.auth_ref, 'platform', b.platform, 'kept_in',
			split_part(b.secret_ref, ':', 1), 'hosts', coalesce(b.hosts, '{}'), 'rotated_at', b.rotated_at,
			'channels', h.channels, 'held', h.held, 'auth_lost_at', h.auth_lost_at, 'uses',
				autopost.credential_uses(p_workspace_id, b.auth_ref),
			'account', s.account, 'checked_at', s.checked_at, 'rights', coalesce(s.rights, '[]'), 'error', s.error,
				'lost_at',
				s.lost_at, 'valid_until', s.valid_until, 'refreshed_at', s.refreshed_at, 'next_refresh_at',
					s.next_refresh_at,
			'failures', coalesce(s.failures, 0), 'updated_at', b.updated_at)
		from autopost.credential_bindings b
		left join autopost.credential_health s on s.workspace_id = p_workspace_id and s.auth_ref = b.auth_ref
		cross join lateral (
			select count(*) as channels, count(*) filter (where c.auth_held) as held,
				max(c.auth_lost_at) as auth_lost_at
			from autopost.channels c
			left join autopost.channel_auth a on a.workspace_id = p_workspace_id and a.channel_id = c.channel_id
			where c.workspace_id = p_workspace_id and coalesce(a.auth_ref, c.auth_ref) = b.auth_ref) h
		where b.workspace_id = p_workspace_id
		and b.auth_ref > p_after and b.auth_ref = coalesce(p_id, b.auth_ref)
		order by 1 limit p_limit;
	else
		return query
		select c.id, c.shown
		from autopost.further_configuration_of(p_workspace_id, p_kind, p_id, p_after, p_limit) c;
	end if;
end
$$;
