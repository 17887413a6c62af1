-- Updates of platforms as messages to the bot.

create or replace function autopost.bot_said_telegram(p_update jsonb) returns jsonb
language plpgsql immutable parallel safe
as $$
-- Purpose: bot_said for Telegram.
declare
	v_press jsonb := p_update -> 'callback_query';
	v_edited boolean := jsonb_typeof(p_update -> 'edited_message') is not distinct from 'object';
	v_body jsonb := coalesce(p_update -> 'message', p_update -> 'edited_message', v_press -> 'message');
	v_from jsonb := coalesce(v_press -> 'from', v_body -> 'from');
	v_id text := autopost.id_in(v_body -> 'message_id');
begin
	return jsonb_build_object(
		'kind', case when v_press is not null then 'callback' when v_edited then 'edit' else 'message' end,
		'key', case when v_press is not null then 'callback:' || autopost.words_in(v_press -> 'id', 200)
			when v_edited then concat_ws(':', 'edit', v_id, autopost.id_in(v_body -> 'edit_date'),
				autopost.id_in(p_update -> 'update_id'))
			else v_id end,
		'chat_id', autopost.id_in(v_body -> 'chat' -> 'id'),
		'dialog', v_body -> 'chat' ->> 'type' is not distinct from 'private',
		'is_bot', coalesce(v_from -> 'is_bot' = 'true', false),
		'text', case when v_press is not null then autopost.words_in(v_press -> 'data', 4096)
			else coalesce(autopost.words_in(v_body -> 'text', 4096), autopost.words_in(v_body -> 'caption', 4096)) end,
		'name', autopost.words_in(v_from -> 'first_name', 64),
		'language', autopost.words_in(v_from -> 'language_code', 16),
		'callback_id', autopost.words_in(v_press -> 'id', 200),
		'reply_to', autopost.id_in(v_body -> 'reply_to_message' -> 'message_id'));
end
$$;

create or replace function autopost.bot_said_max(p_update jsonb) returns jsonb
language plpgsql immutable parallel safe
as $$
-- Purpose: bot_said for MAX.
declare
	v_type text := autopost.words_in(p_update -> 'update_type', 64);
	v_body jsonb := p_update -> 'message';
	v_to jsonb := v_body -> 'recipient';
	v_from jsonb := case v_type when 'message_callback' then p_update -> 'callback' -> 'user'
		when 'bot_started' then p_update -> 'user' else v_body -> 'sender' end;
	v_press text := autopost.words_in(p_update -> 'callback' -> 'callback_id', 1000);
	v_mid text := autopost.words_in(v_body -> 'body' -> 'mid', 200);
	v_at text := autopost.id_in(p_update -> 'timestamp');
begin
	if coalesce(v_type not in ('message_created', 'message_edited', 'message_callback', 'bot_started'), true) then
		return null;
	end if;
	return jsonb_build_object(
		'kind', case v_type when 'message_created' then 'message' when 'message_edited' then 'edit'
			when 'message_callback' then 'callback' else 'start' end,
		'key', case v_type when 'message_created' then v_mid
			when 'message_edited' then 'edit:' || v_mid || ':' || v_at
			when 'message_callback' then 'callback:' || left(v_press, 200)
			else 'start:' || v_at end,
		'chat_id', coalesce(autopost.id_in(v_to -> 'chat_id'), autopost.id_in(p_update -> 'chat_id')),
		'dialog', v_type = 'bot_started' or v_to ->> 'chat_type' is not distinct from 'dialog',
		'is_bot', coalesce(v_from -> 'is_bot' = 'true', false),
		'text', case v_type when 'message_callback' then autopost.words_in(p_update -> 'callback' -> 'payload', 4096)
			when 'bot_started' then concat_ws(' ', '/start', autopost.words_in(p_update -> 'payload', 512))
			else autopost.words_in(v_body -> 'body' -> 'text', 4096) end,
		'name', coalesce(autopost.words_in(v_from -> 'first_name', 64), autopost.words_in(v_from -> 'name', 64)),
		'language', autopost.words_in(p_update -> 'user_locale', 16),
		'callback_id', v_press,
		'reply_to', case when v_body -> 'link' ->> 'type' = 'reply'
			then autopost.words_in(v_body -> 'link' -> 'message' -> 'mid', 200) end);
end
$$;

create or replace function autopost.bot_said(p_provider text, p_update jsonb) returns jsonb
language sql immutable parallel safe
as $$
-- Purpose: what an update says to the bot: {"kind": message | callback | start | edit, "key": identifies
--          it in its chat, "chat_id", "dialog", "is_bot", "text", "name", "language", "callback_id",
--          "reply_to"}; null if it says nothing. A press of a button of a decision is not for it.
select jsonb_strip_nulls(s.said)
from (select case p_provider when 'telegram' then case when p_update ?| '{message,edited_message,callback_query}'
	then autopost.bot_said_telegram(p_update) end else autopost.bot_said_max(p_update) end as said) s
where s.said ->> 'chat_id' is not null and s.said ->> 'key' is not null
and coalesce(s.said ->> 'text' !~ '^m:[A-Za-z0-9_-]{22}$' or s.said ->> 'kind' <> 'callback', true)
$$;
