-- Pressed buttons of messages that ask for a decision. The decision is a part of the transaction that
-- stores the update, so it is taken once, and the platform repeats the update until it is committed.

create or replace function autopost.button_press(p_platform text, p_update jsonb) returns jsonb
language sql immutable parallel safe
as $$
-- Purpose: the press in an update: {"nonce", "callback_id", "user", "name", "chat", "message_id"}; null if
--          the update is not about a button of a decision.
select jsonb_strip_nulls(jsonb_build_object('nonce', substr(f.data, 3), 'callback_id', f.callback_id, 'user', f.person,
	'name', left(regexp_replace(f.name, '[\u0001-\u001F\u007F]', ' ', 'g'), 64), 'chat', f.chat, 'message_id',
		f.message_id))
from (
	select autopost.words_in(p_update #> '{callback_query,data}', 200) as data,
		autopost.words_in(p_update #> '{callback_query,id}', 200) as callback_id,
		autopost.id_in(p_update #> '{callback_query,from,id}') as person,
		nullif(concat_ws(' ', autopost.words_in(p_update #> '{callback_query,from,first_name}', 64),
			autopost.words_in(p_update #> '{callback_query,from,last_name}', 64)), '') as name,
		autopost.id_in(p_update #> '{callback_query,message,chat,id}') as chat,
		nullif(autopost.id_in(p_update #> '{callback_query,message,message_id}'), '0') as message_id
	where p_platform = 'telegram'
	union all
	select autopost.words_in(p_update #> '{callback,payload}', 200),
		autopost.words_in(p_update #> '{callback,callback_id}', 1000),
		autopost.id_in(p_update #> '{callback,user,user_id}'),
		coalesce(autopost.words_in(p_update #> '{callback,user,name}', 64),
			autopost.words_in(p_update #> '{callback,user,first_name}', 64)),
		autopost.id_in(p_update #> '{message,recipient,chat_id}'),
		autopost.words_in(p_update #> '{message,body,mid}', 200)
	where p_platform = 'max' and p_update ->> 'update_type' = 'message_callback') f
where f.data ~ '^m:[A-Za-z0-9_-]{22}$' and f.callback_id is not null and f.person is not null
$$;

create or replace function autopost.pressed_message(p_workspace_id text, p_nonce text)
	returns autopost.moderation_messages
language plpgsql stable
as $$
-- Purpose: the message with a button; null if it is not known.
-- Reads:   moderation_messages.
declare
	v_message autopost.moderation_messages;
begin
	select m.* into v_message from autopost.moderation_messages m
	where m.workspace_id = p_workspace_id and (m.approve_nonce = p_nonce or m.reject_nonce = p_nonce);
	return v_message;
end
$$;

create or replace function autopost.lock_pressed(p_workspace_id text, p_auth_ref text, p_press jsonb) returns void
language plpgsql
as $$
-- Purpose: locks what a press may change, in the order of locks. A press brings the id of a message
--          that was sent with an unknown outcome.
-- Locks:   submissions, moderation_messages.
-- Writes:  moderation_messages.
declare
	v_message autopost.moderation_messages := autopost.pressed_message(p_workspace_id, p_press ->> 'nonce');
	v_id uuid;
begin
	perform 1 from autopost.submissions s
	where s.workspace_id = p_workspace_id and s.submission_id = v_message.submission_id
	for no key update of s;
	select m.message_id into v_id from autopost.moderation_messages m
	where m.workspace_id = p_workspace_id and m.message_id = v_message.message_id and m.auth_ref = p_auth_ref
	and p_press ? 'message_id' and p_press ->> 'message_id' <> all (m.provider_ids)
	and autopost.is_press_of(row(m.*)::autopost.moderation_messages, p_auth_ref, p_press)
	for no key update of m;
	update autopost.moderation_messages m
	set provider_ids = m.provider_ids || (p_press ->> 'message_id'),
		status = case when m.status = 'closed' then 'open' else m.status end
	where m.workspace_id = p_workspace_id and m.message_id = v_id;
end
$$;

create or replace function autopost.is_press_of(p_message autopost.moderation_messages, p_auth_ref text,
	p_press jsonb) returns boolean
language plpgsql stable
as $$
-- Purpose: true if a press came through the bot and from the chat of the message. A chat with a name, or
--          one that became a supergroup, has another id in presses.
-- Reads:   discovered_chats.
declare
	v_target text := split_part(p_message.target_id, ':', 1);
begin
	return p_message.auth_ref = p_auth_ref and p_press ? 'chat' and (v_target = p_press ->> 'chat' or exists (
		select 1 from autopost.discovered_chats h
		where h.workspace_id = p_message.workspace_id and h.platform = p_message.platform and h.auth_ref = p_auth_ref
		and (h.target_id = p_press ->> 'chat' and '@' || lower(h.username) = lower(v_target)
			or h.target_id = v_target and h.migrated_to = p_press ->> 'chat')));
end
$$;

create or replace function autopost.person_identity(p_platform text, p_user text) returns text
language sql immutable parallel safe
as $$
-- Purpose: the identity of a person of a platform in the ledger of approvals.
select format('%s:user:%s', p_platform, p_user)
$$;

create or replace function autopost.press_result(p_chat autopost.moderation_chats,
	p_message autopost.moderation_messages, p_press jsonb, p_approver text, p_decision text) returns jsonb
language plpgsql
as $$
-- Purpose: decides about the submission of a pressed button if the person may, and if the message shows
--          the present plan. The submission is locked.
-- Returns: {"result", "answer"}.
-- Writes:  as decide_submission.
declare
	v_submission autopost.submissions;
	v_done jsonb;
	v_missing int;
	v_said text;
begin
	select s.* into v_submission from autopost.submissions s
	where s.workspace_id = p_message.workspace_id and s.submission_id = p_message.submission_id;
	if not autopost.is_of_chat(p_message, p_chat) then
		return '{"result": "disabled", "answer": "This chat no longer decides about posts."}';
	elsif p_chat.users <> '{}' and p_press ->> 'user' <> all (p_chat.users) then
		return jsonb_build_object('result', 'not_allowed', 'answer', format(
			'You may not decide here. An owner of workspace %s can add your id %s to the chat.',
				left(p_chat.workspace_id, 60),
			p_press ->> 'user'));
	elsif v_submission.decision is not null or v_submission.status not in ('pending', 'fetching') then
		return jsonb_build_object('result', 'decided', 'answer', autopost.decision_text(v_submission));
	elsif v_submission.digest is distinct from p_message.digest then
		return '{"result": "changed", "answer": "The post has changed since this message. Decide on the newer one."}';
	end if;
	v_done := autopost.decide_submission(p_message.workspace_id, p_message.submission_id, p_decision,
		jsonb_build_object('source', p_message.platform, 'digest', p_message.digest, 'nonce',
			format('%s:%s', p_press ->> 'nonce', p_press ->> 'user')), p_approver,
		format('pressed %s in chat %s', initcap(p_decision), p_chat.chat_id));
	v_missing := greatest((v_done ->> 'needed')::int - (v_done ->> 'approvals')::int, 0);
	v_said := case
		when v_done -> 'applied' = 'true' and p_decision = 'reject' then 'Rejected.'
		when v_done -> 'applied' = 'true' and v_missing > 0 then format('You approved it. %s needed.',
			autopost.counted(v_missing, 'more approval is', 'more approvals are'))
		when v_done ->> 'status' = 'failed' then 'Approved, but it could not be queued: the message shows why.'
		when v_done -> 'applied' = 'true' then 'Approved.'
		when v_done ->> 'reason' = 'repeated' then 'You approved it already. One more approval is needed.'
		when v_done ->> 'reason' = 'own_approval' then 'You wrote or edited this post: another person must approve it.'
		when v_done ->> 'reason' = 'digest_changed'
			then 'The post has changed since this message. Decide on the newer one.'
		else 'This post does not wait for a decision.' end;
	return jsonb_build_object('result', case when v_done -> 'applied' = 'false' then v_done ->> 'reason'
		when p_decision = 'reject' then 'rejected' when v_missing > 0 then 'counted' else 'approved' end, 'answer',
			v_said);
end
$$;

create or replace function autopost.take_press(p_workspace_id text, p_platform text, p_auth_ref text,
	p_press jsonb) returns void
language plpgsql
as $$
-- Purpose: handles a pressed button after lock_pressed: the decision, its answer to the person, and the
--          audit of a refused press, once for each person and button.
-- Reads:   moderation_chats.
-- Writes:  moderation_presses, admin_audit_log; as decide_submission.
declare
	v_message autopost.moderation_messages := autopost.pressed_message(p_workspace_id, p_press ->> 'nonce');
	v_chat autopost.moderation_chats;
	v_approver text := autopost.person_identity(p_platform, p_press ->> 'user');
	v_decision text := case p_press ->> 'nonce' when v_message.approve_nonce then 'approve'
		when v_message.reject_nonce then 'reject' end;
	v_result jsonb := '{"result": "unknown_button", "answer": "This message is no longer known. Decide on a newer one."}';
	v_repeated boolean;
begin
	if v_message.message_id is not null and autopost.is_press_of(v_message, p_auth_ref, p_press) then
		select c.* into v_chat from autopost.moderation_chats c
		where c.workspace_id = p_workspace_id and c.chat_id = v_message.chat_id;
		v_result := autopost.press_result(v_chat, v_message, p_press, v_approver, v_decision);
	end if;
	v_repeated := exists (
		select 1 from autopost.moderation_presses p
		where p.workspace_id = p_workspace_id and p.approver = v_approver and p.result = v_result ->> 'result'
		and p.message_id is not distinct from v_message.message_id and p.decision is not distinct from v_decision);
	insert into autopost.moderation_presses (workspace_id, press_id, message_id, submission_id, platform, auth_ref,
		callback_id, approver, name, decision, result, answer, status, due_at, pressed_at)
	values (p_workspace_id, autopost.new_id(), v_message.message_id, v_message.submission_id, p_platform, p_auth_ref,
		p_press ->> 'callback_id', v_approver, p_press ->> 'name', v_decision, v_result ->> 'result',
		left(v_result ->> 'answer', 200), 'pending', autopost.now_ts(), autopost.now_ts());
	perform pg_notify('autopost_wake', 'moderation');
	if v_result ->> 'result' not in ('approved', 'counted', 'rejected') and not v_repeated then
		perform autopost.audit(p_workspace_id, 'press_refused', coalesce('submission:' || v_message.submission_id,
			'bot:' || p_auth_ref), jsonb_build_object('operator', v_approver, 'reason', v_result ->> 'answer'), '{}',
			jsonb_strip_nulls(jsonb_build_object('decision', v_decision, 'result', v_result -> 'result', 'chat_id',
				v_message.chat_id, 'name', p_press -> 'name')));
	end if;
end
$$;
