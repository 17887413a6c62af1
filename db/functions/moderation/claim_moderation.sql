create or replace function autopost.claim_moderation(p_workspace_id text, p_limit int) returns setof jsonb
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: leases up to p_limit (1 to 100) calls to moderators' chats to the caller, who makes them and
--          calls finish_moderation: answers to pressed buttons, changes of messages that can no
--          longer be decided on, and new messages. A chat has one message in flight and keeps the
--          rate of its platform. A send with an expired lease counts as one with an unknown
--          outcome. Only the engine may call it.
-- Returns: {"kind": answer | ask | close, "id", "token", "platform", "auth_ref", "target_id", "text"}
--          each; ask has "buttons": [{"text", "data"}], close has "provider_ids", answer has
--          "callback_id".
-- Locks:   moderation_presses, moderation_chats (skip locked), moderation_messages.
-- Reads:   submissions, discovered_chats, platforms, credential_bindings.
-- Writes:  moderation_presses, moderation_chats, moderation_messages.
declare
	v_now timestamptz;
	v_call jsonb;
	v_chat autopost.moderation_chats;
	v_left int := p_limit;
begin
	if autopost.enter_workspace(p_workspace_id) = 'disabled' then
		return;
	elsif coalesce(p_limit not between 1 and 100, true) then
		perform autopost.raise_argument('limit', 'must be between 1 and 100',
			'pass the number of calls to make at once');
	end if;
	if autopost.is_restored() then
		return; -- the original asks
	end if;
	for v_call in select c.* from autopost.claim_answers(p_workspace_id, p_limit) c loop
		return next v_call;
		v_left := v_left - 1;
	end loop;
	for v_chat in
		select c.* from autopost.moderation_chats c
		where c.workspace_id = p_workspace_id and c.next_at <= autopost.now_ts()
		order by c.chat_id
		for no key update of c skip locked
	loop
		exit when v_left <= 0;
		v_now := autopost.now_ts();
		perform autopost.settle_chat_messages(v_chat, v_now);
		continue when exists (
			select 1 from autopost.moderation_messages m
			where m.workspace_id = p_workspace_id and m.chat_id = v_chat.chat_id
			and m.status in ('sending', 'closing') and m.lease_until > v_now);
		v_call := coalesce(autopost.claim_closing(v_chat, v_now), autopost.claim_ask(v_chat, v_now));
		continue when v_call is null;
		perform autopost.spend_chat_rate(v_chat, v_now);
		return next v_call;
		v_left := v_left - 1;
	end loop;
end
$$;

create or replace function autopost.claim_answers(p_workspace_id text, p_limit int) returns setof jsonb
language plpgsql
as $$
-- Purpose: leases due answers to pressed buttons. A repeated answer does no harm, and the person waits
--          for it, so the lease is short.
-- Locks:   moderation_presses (skip locked).
-- Writes:  moderation_presses.
declare
	v_lease interval := least(autopost.setting_interval('alert_lease_seconds'), interval '45 seconds');
	v_now timestamptz := autopost.now_ts();
	v_ids uuid[];
	v_tokens text[];
begin
	v_ids := array(
		select p.press_id from autopost.moderation_presses p
		where p.workspace_id = p_workspace_id and p.status in ('pending', 'sending') and p.due_at <= v_now
		order by p.due_at, p.press_id
		limit p_limit
		for no key update of p skip locked);
	v_tokens := array(select autopost.new_id()::text from unnest(v_ids));
	update autopost.moderation_presses p
	set status = 'sending', attempt = p.attempt + 1, claim_token = d.token, lease_until = v_now + v_lease,
		due_at = v_now + v_lease
	from unnest(v_ids, v_tokens) d (press_id, token)
	where p.workspace_id = p_workspace_id and p.press_id = d.press_id;
	return query
	select jsonb_build_object('kind', 'answer', 'id', p.press_id, 'token', p.claim_token, 'platform', p.platform,
		'auth_ref', p.auth_ref, 'callback_id', p.callback_id, 'text', p.answer)
	from autopost.moderation_presses p
	where p.workspace_id = p_workspace_id and p.press_id = any (v_ids);
end
$$;

create or replace function autopost.settle_chat_messages(p_chat autopost.moderation_chats, p_now timestamptz)
	returns void
language plpgsql
as $$
-- Purpose: takes back messages of a locked chat whose lease has expired, and ends those that were not
--          sent and are no longer needed. After two sends with an unknown outcome a message counts as
--          sent: a press on it brings its id.
-- Writes:  moderation_messages.
declare
	v_ids uuid[];
begin
	update autopost.moderation_messages m
	set status = case when m.status = 'closing' then 'closing' when m.unknowns >= 1 then 'open' else 'pending' end,
		unknowns = m.unknowns + (m.status = 'sending')::int, claim_token = null, lease_until = null
	where m.workspace_id = p_chat.workspace_id and m.chat_id = p_chat.chat_id and m.status in ('sending', 'closing')
	and m.lease_until <= p_now;
	v_ids := array(
		select m.message_id from autopost.moderation_messages m
		where m.workspace_id = p_chat.workspace_id and m.chat_id = p_chat.chat_id
		and (m.status = 'pending' or m.status = 'open' and m.provider_ids = '{}')
		and not autopost.is_asked(row(m.*)::autopost.moderation_messages, p_chat.enabled));
	update autopost.moderation_messages m
	set status = 'closed', closed_at = p_now
	where m.workspace_id = p_chat.workspace_id and m.message_id = any (v_ids)
	and (m.status = 'pending' or m.status = 'open' and m.provider_ids = '{}');
end
$$;

create or replace function autopost.claim_closing(p_chat autopost.moderation_chats, p_now timestamptz) returns jsonb
language plpgsql
as $$
-- Purpose: leases the oldest message of a locked chat that can no longer be decided on, to show why and
--          to remove its buttons, else null.
-- Writes:  moderation_messages.
declare
	v_void uuid := autopost.oldest_void_message(p_chat);
	v_message autopost.moderation_messages;
	v_token text := autopost.new_id();
begin
	select m.* into v_message from autopost.moderation_messages m
	where m.workspace_id = p_chat.workspace_id and m.chat_id = p_chat.chat_id
	and (m.status = 'closing' or m.message_id = v_void)
	order by m.created_at, m.message_id
	limit 1
	for no key update of m;
	if v_message.message_id is null then
		return null;
	end if;
	update autopost.moderation_messages m
	set status = 'closing', attempt = case when m.status = 'closing' then m.attempt + 1 else 1 end,
		claim_token = v_token,
		lease_until = p_now + autopost.setting_interval('alert_lease_seconds')
	where m.workspace_id = p_chat.workspace_id and m.message_id = v_message.message_id
	returning m.* into v_message;
	return autopost.moderation_call(v_message, 'close') || jsonb_build_object('provider_ids', v_message.provider_ids,
		'text', autopost.closing_text(v_message, p_chat));
end
$$;

create or replace function autopost.claim_ask(p_chat autopost.moderation_chats, p_now timestamptz) returns jsonb
language plpgsql
as $$
-- Purpose: leases the next message of a locked chat that asks for a decision: one to repeat, else a new
--          one for the oldest submission, else null. A changed chat gets a new target.
-- Reads:   submissions, credential_bindings.
-- Writes:  moderation_messages.
declare
	v_message autopost.moderation_messages;
	v_token text := autopost.new_id();
	v_submission autopost.submissions;
	v_platform text := (select b.platform from autopost.credential_bindings b
		where b.workspace_id = p_chat.workspace_id and b.auth_ref = p_chat.auth_ref);
begin
	select m.* into v_message from autopost.moderation_messages m
	where m.workspace_id = p_chat.workspace_id and m.chat_id = p_chat.chat_id and m.status = 'pending'
	order by m.created_at, m.message_id
	limit 1
	for no key update of m;
	if v_message.message_id is null then
		v_submission := autopost.unasked_submission(p_chat, p_now);
		if v_submission.submission_id is null or coalesce(v_platform not in ('telegram', 'max'), true) then
			return null;
		end if;
		insert into autopost.moderation_messages (workspace_id, message_id, chat_id, submission_id, digest,
			approve_nonce, reject_nonce, platform, auth_ref, target_id, text, status, created_at)
		values (p_chat.workspace_id, autopost.new_id(), p_chat.chat_id, v_submission.submission_id, v_submission.digest,
			autopost.button_nonce(), autopost.button_nonce(), v_platform, p_chat.auth_ref, p_chat.target_id,
			autopost.ask_text(v_submission, v_platform), 'pending', p_now)
		returning * into v_message;
	end if;
	update autopost.moderation_messages m
	set status = 'sending', attempt = m.attempt + 1, claim_token = v_token,
		lease_until = p_now + autopost.setting_interval('alert_lease_seconds'), auth_ref = p_chat.auth_ref,
		target_id = p_chat.target_id
	where m.workspace_id = p_chat.workspace_id and m.message_id = v_message.message_id
	returning m.* into v_message;
	return autopost.moderation_call(v_message, 'ask') || jsonb_build_object('text', v_message.text, 'buttons',
		jsonb_build_array(jsonb_build_object('text', 'Approve', 'data', 'm:' || v_message.approve_nonce),
			jsonb_build_object('text', 'Reject', 'data', 'm:' || v_message.reject_nonce)));
end
$$;

create or replace function autopost.moderation_call(p_message autopost.moderation_messages, p_kind text) returns jsonb
language sql immutable
as $$
-- Purpose: the common part of the calls for a message.
select jsonb_build_object('kind', p_kind, 'id', p_message.message_id, 'token', p_message.claim_token, 'platform',
	p_message.platform, 'auth_ref', p_message.auth_ref, 'target_id', p_message.target_id, 'chat_id', p_message.chat_id)
$$;

create or replace function autopost.spend_chat_rate(p_chat autopost.moderation_chats, p_now timestamptz) returns void
language plpgsql
as $$
-- Purpose: sets when the next message may go to a locked chat: a second later, in groups of Telegram
--          also at most 20 a minute, of which 5 may come at once. A chat of unknown kind counts as
--          a group.
-- Reads:   platforms, discovered_chats.
-- Writes:  moderation_chats.
declare
	v_pace interval;
	v_burst constant int := 5;
	v_paid timestamptz;
begin
	select case when p.group_chat_rps is null or p_chat.target_id !~ '^[-@]' or h.kind = 'channel'
		then interval '1 second'
		-- A burst and 15 more are 20 in its first minute.
		else interval '60 seconds' / greatest(floor(p.group_chat_rps * 60) + 1 - v_burst, 1) end into v_pace
	from autopost.credential_bindings b
	join autopost.platforms p on p.platform = b.platform
	left join autopost.discovered_chats h on h.workspace_id = p_chat.workspace_id and h.platform = p.platform
		and h.auth_ref = p_chat.auth_ref and h.target_id = split_part(p_chat.target_id, ':', 1)
	where b.workspace_id = p_chat.workspace_id and b.auth_ref = p_chat.auth_ref;
	v_pace := coalesce(v_pace, interval '1 second');
	v_paid := greatest(p_chat.paid_until, p_now) + v_pace;
	update autopost.moderation_chats c
	set paid_until = v_paid, next_at = greatest(p_now + interval '1 second', v_paid - (v_burst - 1) * v_pace)
	where c.workspace_id = p_chat.workspace_id and c.chat_id = p_chat.chat_id;
end
$$;
