create or replace function autopost.max_rights(p_kind text, p_is_channel boolean) returns jsonb
language sql immutable parallel safe
as $$
-- Purpose: the rights of a bot after an update of this type: {"present", "may_post", "reason"};
--          null if the update does not concern rights. In a channel only administrators may post;
--          the update of an added bot does not say whether it is one.
select case p_kind
	when 'bot_added' then jsonb_build_object('present', true, 'may_post', case when not p_is_channel then true end)
	when 'bot_removed'
		then '{"present": false, "may_post": false, "reason": "the bot is not in the chat: add it"}'::jsonb
	when 'bot_started' then '{"present": true, "may_post": true}'
	when 'bot_stopped' then '{"present": false, "may_post": false, "reason": "the user stopped the bot"}' end
$$;

create or replace function autopost.max_update(p_update jsonb) returns jsonb
language plpgsql immutable parallel safe
as $$
-- Purpose: parses an update of MAX into the result of telegram_update. MAX does not number its
--          updates. The key of a new message or callback is its id; the key of any other update
--          includes its time.
declare
	v_kind text := coalesce(autopost.words_in(p_update -> 'update_type', 64), 'unknown');
	v_recipient jsonb := p_update -> 'message' -> 'recipient';
	v_chat text := coalesce(autopost.id_in(p_update -> 'chat_id'), autopost.id_in(v_recipient -> 'chat_id'));
	v_at text := autopost.id_in(p_update -> 'timestamp');
	v_mid text := coalesce(autopost.words_in(p_update -> 'message' -> 'body' -> 'mid', 200),
		autopost.words_in(p_update -> 'message_id', 200));
	v_channel boolean := p_update -> 'is_channel' is not distinct from 'true'
		or v_recipient ->> 'chat_type' is not distinct from 'channel';
	v_rights jsonb := autopost.max_rights(v_kind, v_channel);
	v_fact jsonb;
begin
	v_fact := jsonb_strip_nulls(jsonb_build_object('target_id', v_chat, 'title', case
		when v_kind = 'chat_title_changed' then autopost.words_in(p_update -> 'title', 255) end,
		'kind', case
			when v_kind in ('bot_started', 'bot_stopped') or v_kind like 'dialog\_%'
				or v_recipient ->> 'chat_type' = 'dialog' then 'dialog'
			when v_channel then 'channel'
			when v_kind in ('bot_added', 'bot_removed') or v_recipient ? 'chat_type' then 'chat' end,
		'at', autopost.platform_instant(p_update -> 'timestamp', 1000)));
	return jsonb_build_object('kind', v_kind, 'chat_id', v_fact -> 'target_id',
		'key', case
			when v_kind = 'message_created' then autopost.update_key(p_update, array[v_kind, v_mid])
			when v_kind = 'message_callback' then autopost.update_key(p_update,
				array[v_kind, autopost.words_in(p_update -> 'callback' -> 'callback_id', 1000)])
			when v_mid is not null then autopost.update_key(p_update, array[v_kind, v_mid, v_at])
			else autopost.update_key(p_update,
				array[v_kind, v_chat, v_at, coalesce(autopost.id_in(p_update -> 'user' -> 'user_id'),
				autopost.id_in(p_update -> 'user_id'), '-')]) end,
		'chats', case
			when v_chat is null then '[]'
			when v_rights is not null then jsonb_build_array(v_fact || v_rights)
			when v_fact ->> 'kind' = 'dialog' then '[]'
			else jsonb_build_array(v_fact) end);
end
$$;
