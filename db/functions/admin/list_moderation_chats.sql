create or replace function autopost.moderation_chats_shown(p_workspace_id text)
	returns table (chat_id text, platform text, auth_ref text, target_id text, users text[], enabled boolean,
		waiting bigint, sent_at timestamptz, failures int, last_error jsonb, fault text, created_at timestamptz,
		updated_at timestamptz)
language plpgsql stable
as $$
-- Purpose: the moderators' chats, with the number of messages that wait for a press, and why nobody can
--          be asked or decide there: the credential, the rights of the bot, the last call, or the
--          updates of the bot.
-- Reads:   moderation_chats, moderation_messages, credential_bindings, sealed_secrets,
--          discovered_chats, workspace_endpoints, bot_subscriptions.
begin
	return query
	select c.chat_id, b.platform, c.auth_ref, c.target_id, c.users, c.enabled,
		(select count(*) from autopost.moderation_messages m
			where m.workspace_id = p_workspace_id and m.chat_id = c.chat_id and m.status = 'open'),
		c.sent_at, c.failures, c.last_error,
		coalesce(autopost.credential_fault(p_workspace_id, c.auth_ref, coalesce(b.platform, 'telegram')),
			case when c.failures > 0 then coalesce(c.last_error ->> 'message', c.last_error ->> 'code') end,
			case when not h.may_post then h.reason end,
			autopost.missing_bot_endpoint(p_workspace_id, c.auth_ref),
			s.fault),
		c.created_at, c.updated_at
	from autopost.moderation_chats c
	left join autopost.credential_bindings b on b.workspace_id = p_workspace_id and b.auth_ref = c.auth_ref
	left join autopost.discovered_chats h on h.workspace_id = p_workspace_id and h.platform = b.platform
		and h.auth_ref = c.auth_ref and h.target_id = split_part(c.target_id, ':', 1)
	left join lateral (
		select case when bool_or(t.subscribed_at is not null and t.error is null) then null
			else coalesce('the platform does not send the updates of the bot: ' || max(t.error ->> 'message'),
				'the platform was not yet asked for the updates of the bot') end as fault
		from autopost.workspace_endpoints e
		left join autopost.bot_subscriptions t on t.workspace_id = p_workspace_id and t.endpoint_id = e.endpoint_id
		where e.workspace_id = p_workspace_id and e.kind = 'bot_webhook' and e.meta ->> 'auth_ref' = c.auth_ref) s
			on true
	where c.workspace_id = p_workspace_id;
end
$$;

create or replace function autopost.list_moderation_chats(p_workspace_id text, p_limit int)
	returns table (chat_id text, platform text, auth_ref text, target_id text, users text[], enabled boolean,
		waiting bigint, sent_at timestamptz, failures int, last_error jsonb, fault text, created_at timestamptz,
		updated_at timestamptz)
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: lists the moderators' chats by id. fault says why nobody can be asked or decide there. Only
--          the engine may call it.
-- Raises:  AP001 for a limit outside 1 to 10000.
-- Reads:   as moderation_chats_shown.
begin
	perform autopost.enter_workspace(p_workspace_id);
	perform autopost.check_read('{}', '{}', p_limit);
	return query
	select t.* from autopost.moderation_chats_shown(p_workspace_id) t order by t.chat_id limit p_limit;
end
$$;
