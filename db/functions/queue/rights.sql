create or replace function autopost.channels_of_chat(p_workspace_id text,
	p_chat autopost.discovered_chats) returns text[]
language plpgsql stable
as $$
-- Purpose: the channels, in order, that post to a chat or to one of its threads by the same
--          credential.
-- Reads:   channels, channel_auth.
begin
	return array(
		select c.channel_id from autopost.channels c
		where c.workspace_id = p_workspace_id and c.platform = p_chat.platform
		and lower(split_part(c.target_id, ':', 1)) in (p_chat.target_id, '@' || lower(p_chat.username))
		and autopost.current_auth_ref(p_workspace_id, row(c.*)::autopost.channels) = p_chat.auth_ref
		order by c.channel_id);
end
$$;

create or replace function autopost.hold_for_rights(p_workspace_id text, p_chat autopost.discovered_chats) returns int
language plpgsql
as $$
-- Purpose: pauses the channels of a chat where the bot may not post, until it may again, an
--          operator resumes them, or 365 days pass.
-- Returns: the number of newly paused channels.
-- Locks:   channels (channel_id), audit_heads.
-- Writes:  channels, alerts, events (channel_paused), admin_audit_log.
declare
	v_ids text[] := autopost.channels_of_chat(p_workspace_id, p_chat);
	v_reason text := coalesce(p_chat.reason, 'the bot may not post in the chat');
	v_error jsonb := jsonb_build_object('category', 'PERMANENT', 'scope', 'channel', 'code', 'rights_lost',
		'known', true, 'message', v_reason);
	v_meta jsonb := jsonb_build_object('operator', p_chat.platform, 'reason', v_reason, 'auth_ref', p_chat.auth_ref,
		'target_id', p_chat.target_id);
	v_channel autopost.channels;
	v_now timestamptz;
	v_until timestamptz;
	v_count int := 0;
begin
	perform autopost.lock_channels(p_workspace_id, v_ids);
	v_now := autopost.now_ts();
	for v_channel in
		select c.* from autopost.channels c
		where c.workspace_id = p_workspace_id and c.channel_id = any (v_ids)
			and (c.rights_held is null or c.paused_until <= v_now)
		order by c.channel_id
	loop
		v_until := greatest(v_channel.paused_until, v_now + interval '365 days');
		update autopost.channels c
		set paused_until = v_until, rights_held = v_reason, paused_before = case when v_channel.paused_until > v_now
			then v_channel.paused_until end
		where c.workspace_id = p_workspace_id and c.channel_id = v_channel.channel_id;
		perform autopost.emit_note(p_workspace_id, 'channel_paused', 'error', v_channel.channel_id, null, v_error,
			v_meta || jsonb_build_object('until', v_until));
		perform autopost.raise_alert(p_workspace_id, 'rights_lost', 'channel:' || v_channel.channel_id, v_error,
			v_meta);
		perform autopost.audit(p_workspace_id, 'rights_lost', 'channel:' || v_channel.channel_id, v_meta,
			jsonb_build_object('paused_until', v_channel.paused_until), jsonb_build_object('paused_until', v_until));
		v_count := v_count + 1;
	end loop;
	return v_count;
end
$$;

create or replace function autopost.resume_for_rights(p_workspace_id text, p_chat autopost.discovered_chats) returns int
language plpgsql
as $$
-- Purpose: resumes the channels of a chat that paused only for rights. An older pause goes on, a
--          disabled channel stays disabled, and a channel with a refused credential waits for that.
-- Returns: the number of resumed channels.
-- Locks:   channels (channel_id), channel_gates, audit_heads.
-- Writes:  channels, channel_gates, alerts, events (channel_enabled), admin_audit_log.
declare
	v_ids text[] := autopost.channels_of_chat(p_workspace_id, p_chat);
	v_meta jsonb := jsonb_build_object('operator', p_chat.platform, 'reason', 'the bot may post in the chat',
		'auth_ref', p_chat.auth_ref, 'target_id', p_chat.target_id);
	v_channel autopost.channels;
	v_now timestamptz;
	v_until timestamptz;
	v_count int := 0;
begin
	if not exists (select 1 from autopost.channels c where c.workspace_id = p_workspace_id
		and c.channel_id = any (v_ids) and c.rights_held is not null) then
		return 0;
	end if;
	perform autopost.lock_channels(p_workspace_id, v_ids);
	v_now := autopost.now_ts();
	for v_channel in
		select c.* from autopost.channels c
		where c.workspace_id = p_workspace_id and c.channel_id = any (v_ids) and c.rights_held is not null
		order by c.channel_id
	loop
		v_until := greatest(case when v_channel.paused_before > v_now then v_channel.paused_before end, case
			when v_channel.auth_held then autopost.auth_hold_until() end);
		update autopost.channels c set paused_until = v_until, rights_held = null, paused_before = null
		where c.workspace_id = p_workspace_id and c.channel_id = v_channel.channel_id;
		perform autopost.emit_note(p_workspace_id, 'channel_enabled', 'ok', v_channel.channel_id, null, null,
			v_meta || jsonb_build_object('until', v_until));
		perform autopost.end_alert(p_workspace_id, 'rights_lost', 'channel:' || v_channel.channel_id);
		perform autopost.audit(p_workspace_id, 'rights_regained', 'channel:' || v_channel.channel_id, v_meta,
			jsonb_build_object('paused_until', v_channel.paused_until), jsonb_build_object('paused_until', v_until));
		v_count := v_count + 1;
	end loop;
	return v_count;
end
$$;

create or replace function autopost.lift_rights_hold() returns trigger
language plpgsql
as $$
-- Purpose: ends the wait for rights when a channel gets another bot or chat (which also ends the
--          pause), when its pause ends or is shortened, and when the channel is removed.
-- Writes:  alerts.
begin
	if tg_op = 'DELETE' then
		perform autopost.end_alert(old.workspace_id, 'rights_lost', 'channel:' || old.channel_id);
		return old;
	end if;
	if new.rights_held is null then
		return new;
	end if;
	if (new.auth_ref, new.target_id) is distinct from (old.auth_ref, old.target_id) then
		new.paused_until := old.paused_before;
	elsif coalesce(new.paused_until, '-infinity') >= old.paused_until then
		return new;
	end if;
	new.rights_held := null;
	new.paused_before := null;
	perform autopost.end_alert(old.workspace_id, 'rights_lost', 'channel:' || old.channel_id);
	return new;
end
$$;

create or replace trigger lift_rights_hold before delete
	or update of paused_until, auth_ref, target_id on autopost.channels
	for each row when (old.rights_held is not null) execute function autopost.lift_rights_hold();
