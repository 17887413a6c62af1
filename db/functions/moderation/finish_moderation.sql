create or replace function autopost.finish_moderation(p_workspace_id text, p_kind text, p_id uuid, p_token text,
	p_outcome jsonb) returns jsonb
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: ends a call of claim_moderation. p_kind, p_id and p_token are those of the call. p_outcome:
--          {"ok": true, "provider_message_id": of an ask} or {"ok": false, "error": error
--          contract}. After a failure the chat waits, longer each time, at least as long as the
--          platform asks. An ask with an unknown outcome is sent once more. A chat with three
--          failures, or a refusal, raises an alert. Only the engine may call it.
-- Returns: {"applied": true, "status"}; or {"applied": false, "reason": "stale" | "unknown"}.
-- Raises:  AP001 for a wrong argument.
-- Locks:   moderation_chats, moderation_messages, moderation_presses, alerts, audit_heads.
-- Writes:  moderation_chats, moderation_messages, moderation_presses, alerts, admin_audit_log (a moved
--          chat).
declare
	v_error jsonb;
begin
	perform autopost.enter_workspace(p_workspace_id);
	perform autopost.require_argument('id', p_id is not null), autopost.require_argument('token', p_token <> ''),
		autopost.require_argument('outcome', jsonb_typeof(p_outcome -> 'ok') = 'boolean');
	if coalesce(p_kind not in ('ask', 'close', 'answer'), true) then
		perform autopost.raise_argument('kind', format('must be ask, close or answer, got %s', coalesce(p_kind,
			'null')),
			'pass the kind of the call');
	end if;
	v_error := case when p_outcome -> 'ok' = 'false' then p_outcome -> 'error' end;
	if p_kind = 'answer' then
		return autopost.finish_answer(p_workspace_id, p_id, p_token, v_error);
	end if;
	return autopost.finish_chat_message(p_workspace_id, p_id, p_token, case when v_error is null
		then p_outcome ->> 'provider_message_id' end, v_error);
end
$$;

create or replace function autopost.finish_answer(p_workspace_id text, p_id uuid, p_token text, p_error jsonb)
	returns jsonb
language plpgsql
as $$
-- Purpose: ends an answer to a pressed button. A failed one is repeated for two minutes, unless the
--          platform refuses it: platforms forget presses soon.
-- Locks:   moderation_presses.
-- Writes:  moderation_presses.
declare
	v_press autopost.moderation_presses;
	v_now timestamptz;
	v_status text;
	v_due_at timestamptz;
begin
	select p.* into v_press from autopost.moderation_presses p
	where p.workspace_id = p_workspace_id and p.press_id = p_id
	for no key update of p;
	if v_press.press_id is null then
		return '{"applied": false, "reason": "unknown"}';
	elsif v_press.claim_token is distinct from p_token then
		return '{"applied": false, "reason": "stale"}';
	end if;
	v_now := autopost.now_ts();
	v_status := case when p_error is null then 'answered'
		when p_error ->> 'category' = 'PERMANENT' or v_press.pressed_at < v_now - interval '2 minutes' then 'failed'
		else 'pending' end;
	v_due_at := v_now + greatest(interval '1 second' * least(2 ^ v_press.attempt, 30),
		make_interval(secs => coalesce((p_error ->> 'retry_after_ms')::numeric, 0) / 1000));
	update autopost.moderation_presses p
	set status = v_status, claim_token = null, lease_until = null, error = autopost.normalised_error(p_error),
		answered_at = case when v_status = 'answered' then v_now end, due_at = v_due_at
	where p.workspace_id = p_workspace_id and p.press_id = p_id;
	return jsonb_build_object('applied', true, 'status', v_status);
end
$$;

create or replace function autopost.finish_chat_message(p_workspace_id text, p_id uuid, p_token text,
	p_provider_id text, p_error jsonb) returns jsonb
language plpgsql
as $$
-- Purpose: ends the send or the change of a message in a chat.
-- Locks:   moderation_chats, moderation_messages, alerts.
-- Writes:  moderation_chats, moderation_messages, alerts.
declare
	v_chat autopost.moderation_chats;
	v_message autopost.moderation_messages;
	v_unknown boolean := p_error -> 'known' is not distinct from 'false';
	v_refused boolean := p_error ->> 'category' = 'PERMANENT' and p_error ->> 'scope' = 'delivery';
	v_status text;
	v_now timestamptz;
begin
	select c.* into v_chat from autopost.moderation_chats c
	where c.workspace_id = p_workspace_id and c.chat_id = (
		select m.chat_id from autopost.moderation_messages m where m.workspace_id = p_workspace_id
			and m.message_id = p_id)
	for no key update of c;
	select m.* into v_message from autopost.moderation_messages m
	where m.workspace_id = p_workspace_id and m.message_id = p_id
	for no key update of m;
	if v_message.message_id is null then
		return '{"applied": false, "reason": "unknown"}';
	elsif v_message.claim_token is distinct from p_token then
		return '{"applied": false, "reason": "stale"}';
	end if;
	v_status := case
		when v_message.status = 'closing' then case when p_error is null or v_refused or v_message.attempt >= 5 or p_error ? 'moved'
			then 'closed' else 'closing' end
		when p_error is null or v_unknown and v_message.unknowns >= 1 then 'open'
		when v_refused then 'failed'
		else 'pending' end;
	v_now := autopost.now_ts();
	update autopost.moderation_messages m
	set status = v_status, claim_token = null, lease_until = null, error = autopost.normalised_error(p_error),
		provider_ids = case when m.status = 'sending' and p_provider_id is not null
			and p_provider_id <> all (m.provider_ids)
			then m.provider_ids || p_provider_id else m.provider_ids end,
		unknowns = m.unknowns + (m.status = 'sending' and v_unknown)::int,
		sent_at = case when v_status = 'open' then v_now else m.sent_at end,
		closed_at = case when v_status = 'closed' then v_now end
	where m.workspace_id = p_workspace_id and m.message_id = p_id;
	perform autopost.note_chat_result(v_chat, v_message, p_error);
	return jsonb_build_object('applied', true, 'status', v_status);
end
$$;

create or replace function autopost.note_chat_result(p_chat autopost.moderation_chats,
	p_message autopost.moderation_messages, p_error jsonb) returns void
language plpgsql
as $$
-- Purpose: keeps the result of the last call to a locked chat: its wait after a failure, its new id, and
--          its alert. A change of a message that people removed does not
--          count as a failure of the chat.
-- Writes:  moderation_chats, alerts, admin_audit_log.
declare
	v_now timestamptz := autopost.now_ts();
	v_failures int := p_chat.failures + 1;
	v_subject text := 'moderation_chat:' || p_chat.chat_id;
	v_moved text := (select m.target from (select (p_error #>> '{moved,to}')
			|| coalesce(substring(p_chat.target_id from ':.*'), '') as target) m
		where split_part(p_chat.target_id, ':', 1) = p_error #>> '{moved,from}' and not exists (
			select 1 from autopost.moderation_chats o
			where o.workspace_id = p_chat.workspace_id and o.auth_ref = p_chat.auth_ref and o.target_id = m.target));
begin
	if p_error is null or p_message.status = 'closing' and p_error ->> 'scope' = 'delivery'
		and p_error ->> 'category' = 'PERMANENT' then
		update autopost.moderation_chats c
		set failures = 0, last_error = null, sent_at = case when p_message.status = 'sending' then v_now
			else c.sent_at end
		where c.workspace_id = p_chat.workspace_id and c.chat_id = p_chat.chat_id;
		perform autopost.end_alert(p_chat.workspace_id, 'moderation_chat_failing', v_subject);
		return;
	end if;
	update autopost.moderation_chats c
	set failures = v_failures, last_error = autopost.normalised_error(p_error),
		target_id = coalesce(v_moved, c.target_id),
		next_at = greatest(c.next_at, v_now + greatest(
			least(interval '1 second' * case p_error ->> 'category' when 'PERMANENT' then 60 else 2 end
				* 2 ^ least(v_failures - 1, 10), interval '15 minutes'),
			make_interval(secs => coalesce((p_error ->> 'retry_after_ms')::numeric, 0) / 1000)))
	where c.workspace_id = p_chat.workspace_id and c.chat_id = p_chat.chat_id;
	if v_failures >= 3 or p_error ->> 'category' = 'PERMANENT' then
		perform autopost.raise_alert(p_chat.workspace_id, 'moderation_chat_failing', v_subject, p_error,
			jsonb_build_object('failures', v_failures));
	end if;
	perform autopost.audit(p_chat.workspace_id, 'move_moderation_chat', v_subject, jsonb_build_object('operator',
		'autopost', 'reason', 'the platform gave the chat a new id'), jsonb_build_object('target_id', p_chat.target_id),
		jsonb_build_object('target_id', v_moved)) where v_moved is not null;
end
$$;
