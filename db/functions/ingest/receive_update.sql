create or replace function autopost.receive_update(p_workspace_id text, p_endpoint_id text, p_update jsonb)
	returns jsonb
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: takes one update from a bot's platform, once: for receipt_ttl_hours a repeat is
--          recognised by its id at any endpoint. The endpoint has kind bot_webhook; its
--          meta.auth_ref is the bot's credential. The same transaction records the bot's chats. If
--          the bot loses the right to post, the channels of the chat pause; if it regains the
--          right, they resume. A pressed button of a decision is handled at once. The shop
--          bot decides about its answer (bot_receive). An update of an unknown type is kept without effect.
-- Returns: {"status": "stored" | "duplicate", "kind", "rights": "lost" | "regained" if channels
--          changed, "bot": status of bot_receive unless it ignored the update}.
-- Raises:  AP001 for a wrong argument.
-- Locks:   submissions, moderation_messages, bot_updates (a concurrent duplicate waits),
--          bot_state, bot_inbox, discovered_chats, channels (channel_id), channel_gates, audit_heads, in this order.
-- Writes:  bot_updates, discovered_chats, channels, channel_gates, alerts, events (channel_paused,
--          channel_enabled), admin_audit_log; as bot_receive and take_press.
declare
	v_bot record;
	v_read jsonb;
	v_press jsonb;
	v_now timestamptz;
	v_limit constant int := 120; -- far more than people write; a busy chat must not fill the disk
	v_rights text;
	v_bot_answer jsonb;
begin
	perform autopost.enter_workspace(p_workspace_id);
	v_bot := autopost.bot_of(p_workspace_id, p_endpoint_id);
	if jsonb_typeof(p_update) is distinct from 'object' then
		perform autopost.raise_argument('update', 'must be a JSON object', 'pass the body as the platform sent it');
	end if;
	v_read := case v_bot.o_platform when 'telegram' then autopost.telegram_update(p_update)
		else autopost.max_update(p_update) end;
	v_press := autopost.button_press(v_bot.o_platform, p_update);
	perform autopost.lock_pressed(p_workspace_id, v_bot.o_auth_ref, v_press) where v_press is not null;
	v_now := autopost.now_ts();
	delete from autopost.bot_updates u
	where u.workspace_id = p_workspace_id and u.auth_ref = v_bot.o_auth_ref and u.update_key = v_read ->> 'key'
		and u.expires_at <= v_now;
	insert into autopost.bot_updates (workspace_id, auth_ref, update_key, endpoint_id, kind, chat_id, payload,
		received_at, expires_at)
	values (p_workspace_id, v_bot.o_auth_ref, v_read ->> 'key', p_endpoint_id, v_read ->> 'kind', v_read ->> 'chat_id',
		case when autopost.chat_updates(p_workspace_id, v_bot.o_auth_ref, v_read ->> 'chat_id',
			v_now - interval '1 minute', v_limit) < v_limit
			then autopost.capped_texts(p_update, v_bot.o_text_limit) end,
		v_now, v_now + autopost.setting_interval('receipt_ttl_hours'))
	on conflict do nothing;
	if not found then
		return jsonb_build_object('status', 'duplicate', 'kind', v_read -> 'kind');
	end if;
	v_bot_answer := autopost.bot_receive(p_workspace_id, p_endpoint_id, p_update);
	select max(autopost.note_chat(p_workspace_id, v_bot.o_platform, v_bot.o_auth_ref, f.value)) into v_rights
	from (select * from jsonb_array_elements(v_read -> 'chats') order by value ->> 'target_id') f;
	perform autopost.take_press(p_workspace_id, v_bot.o_platform, v_bot.o_auth_ref, v_press) where v_press is not null;
	return jsonb_strip_nulls(jsonb_build_object('status', 'stored', 'kind', v_read -> 'kind', 'rights', v_rights,
		'bot', case when v_bot_answer ->> 'status' <> 'ignored' then v_bot_answer -> 'status' end));
end
$$;
