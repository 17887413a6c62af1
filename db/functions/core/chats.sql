create or replace function autopost.follow_rights(p_workspace_id text, p_chat autopost.discovered_chats) returns text
language plpgsql
as $$
-- Purpose: pauses or resumes the channels of a chat when the rights of its bot change.
-- Returns: "lost" or "regained" if a channel changed, else null.
begin
	-- A group that became a supergroup has a new id; platforms report it to senders.
	if p_chat.may_post or p_chat.migrated_to is not null then
		return case when autopost.resume_for_rights(p_workspace_id, p_chat) > 0 then 'regained' end;
	elsif not p_chat.may_post then
		return case when autopost.hold_for_rights(p_workspace_id, p_chat) > 0 then 'lost' end;
	end if;
	return null;
end
$$;

create or replace function autopost.changes_chat(p_chat autopost.discovered_chats, p_fact jsonb) returns boolean
language sql stable
as $$
-- Purpose: true if a fact changes the row of a chat. "Still present" counts once per hour.
select p_chat.target_id is null or p_fact ? 'present' or p_fact ? 'migrated_to' or p_chat.left_at is not null
	or p_chat.last_seen < autopost.now_ts() - interval '1 hour'
	or (coalesce(p_fact ->> 'title', p_chat.title), coalesce(p_fact ->> 'username', p_chat.username, ''),
		coalesce(p_fact ->> 'kind', p_chat.kind))
		is distinct from (p_chat.title, coalesce(p_chat.username, ''), p_chat.kind)
$$;

create or replace function autopost.apply_chat_fact(p_chat autopost.discovered_chats,
	p_fact jsonb) returns autopost.discovered_chats
language plpgsql stable
as $$
-- Purpose: the chat after a fact. An older statement about rights than the known one is ignored.
declare
	v_now timestamptz := autopost.now_ts();
	v_at timestamptz := coalesce((p_fact ->> 'at')::timestamptz, v_now);
	v_seq bigint := case when p_fact ->> 'seq' ~ '^[0-9]{1,18}$' then (p_fact ->> 'seq')::bigint else 0 end;
	v_chat autopost.discovered_chats := p_chat;
begin
	v_chat.title := coalesce(p_fact ->> 'title', p_chat.title);
	v_chat.username := case when p_fact ? 'seq' then p_fact ->> 'username'
		else coalesce(p_fact ->> 'username', p_chat.username) end;
	v_chat.kind := coalesce(p_fact ->> 'kind', p_chat.kind);
	v_chat.last_seen := v_now;
	v_chat.migrated_to := coalesce(p_fact ->> 'migrated_to', p_chat.migrated_to);
	if p_fact ? 'migrated_to' then
		v_chat.left_at := coalesce(p_chat.left_at, v_now);
	elsif p_fact ? 'present' and (v_at, v_seq) >= (p_chat.rights_at, p_chat.rights_seq) then
		v_chat.left_at := case when p_fact -> 'present' = 'false' then coalesce(p_chat.left_at, v_now) end;
		v_chat.may_post := (p_fact ->> 'may_post')::boolean;
		v_chat.reason := p_fact ->> 'reason';
		v_chat.rights_at := v_at;
		v_chat.rights_seq := v_seq;
		v_chat.ask_at := '-infinity';
	elsif not p_fact ? 'present' and p_chat.left_at is not null and p_chat.migrated_to is null
		and v_at > p_chat.rights_at then
		-- The bot gets messages of the chat, so it was added again without an update.
		v_chat.left_at := null;
		v_chat.may_post := null;
		v_chat.reason := null;
		v_chat.ask_at := '-infinity';
	end if;
	return v_chat;
end
$$;

create or replace function autopost.note_chat(p_workspace_id text, p_platform text, p_auth_ref text,
	p_fact jsonb) returns text
language plpgsql
as $$
-- Purpose: stores a fact about a chat and lets its channels follow. p_fact: {"target_id", "title",
--          "username", "kind": channel, chat or dialog, "at", "seq", "present", "may_post",
--          "reason", "migrated_to"}; only target_id is required. Dialogs with customers are stored
--          only if a channel uses them.
-- Returns: as follow_rights.
-- Locks:   discovered_chats, then as follow_rights.
-- Writes:  discovered_chats.
declare
	v_chat autopost.discovered_chats;
begin
	v_chat := autopost.chat_row(p_workspace_id, p_platform, p_auth_ref, p_fact ->> 'target_id', false);
	if not autopost.changes_chat(v_chat, p_fact) then
		return null;
	end if;
	if v_chat.target_id is null then
		v_chat.platform := p_platform;
		v_chat.auth_ref := p_auth_ref;
		v_chat.target_id := p_fact ->> 'target_id';
		if p_fact ->> 'kind' = 'dialog' and autopost.channels_of_chat(p_workspace_id, v_chat) = '{}' then
			return null;
		end if;
		insert into autopost.discovered_chats (workspace_id, platform, auth_ref, target_id, first_seen, last_seen)
		values (p_workspace_id, p_platform, p_auth_ref, v_chat.target_id, autopost.now_ts(), autopost.now_ts())
		on conflict do nothing;
	end if;
	v_chat := autopost.apply_chat_fact(autopost.chat_row(p_workspace_id, p_platform, p_auth_ref, v_chat.target_id,
		true), p_fact);
	perform autopost.keep_chat(v_chat);
	return autopost.follow_rights(p_workspace_id, v_chat);
end
$$;

create or replace function autopost.keep_chat(p_chat autopost.discovered_chats) returns void
language plpgsql
as $$
-- Purpose: writes the row of a chat.
-- Writes:  discovered_chats.
begin
	update autopost.discovered_chats h
	set title = p_chat.title, username = p_chat.username, kind = p_chat.kind, may_post = p_chat.may_post,
		reason = p_chat.reason, rights_at = p_chat.rights_at,
		rights_seq = p_chat.rights_seq, migrated_to = p_chat.migrated_to, last_seen = p_chat.last_seen,
			left_at = p_chat.left_at, ask_at = p_chat.ask_at
	where h.workspace_id = p_chat.workspace_id and h.platform = p_chat.platform and h.auth_ref = p_chat.auth_ref
		and h.target_id = p_chat.target_id;
end
$$;

create or replace function autopost.chat_row(p_workspace_id text, p_platform text, p_auth_ref text, p_target_id text,
	p_lock boolean) returns autopost.discovered_chats
language plpgsql
as $$
-- Purpose: the row of a chat; all null if unknown.
-- Locks:   discovered_chats if p_lock.
declare
	v_chat autopost.discovered_chats;
begin
	if p_lock then
		perform 1 from autopost.discovered_chats h
		where h.workspace_id = p_workspace_id and h.platform = p_platform and h.auth_ref = p_auth_ref
			and h.target_id = p_target_id
		for no key update of h;
	end if;
	select h.* into v_chat from autopost.discovered_chats h
	where h.workspace_id = p_workspace_id and h.platform = p_platform and h.auth_ref = p_auth_ref
		and h.target_id = p_target_id;
	return v_chat;
end
$$;
