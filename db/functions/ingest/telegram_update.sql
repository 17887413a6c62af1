create or replace function autopost.telegram_rights(p_type text, p_member jsonb) returns jsonb
language sql immutable parallel safe
as $$
-- Purpose: the rights of a bot with this membership: {"present", "may_post", "reason"}; may_post is
--          null for an unknown status.
select jsonb_build_object('present', coalesce(m.status not in ('left', 'kicked'), true), 'may_post', m.obstacle = '',
	'reason', nullif(m.obstacle, ''))
from (
	select s.status, case
		when s.status in ('left', 'kicked') then 'the bot is not in the chat: add it'
		when s.status = 'creator' then ''
		when p_type = 'channel' and s.status = 'administrator' and p_member -> 'can_post_messages' = 'true' then ''
		when p_type = 'channel' and s.status = 'administrator'
			then 'the bot is an administrator that may not post messages: give it that right'
		when p_type = 'channel' and s.status in ('member', 'restricted')
			then 'the bot is not an administrator of the channel: make it one that may post messages'
		when s.status in ('administrator', 'member') then ''
		when s.status = 'restricted' and p_member -> 'can_send_messages' = 'true' then ''
		when s.status = 'restricted' then 'the bot may not send messages in the chat: lift the restriction' end
			as obstacle
	from (select autopost.words_in(p_member -> 'status', 32) as status) s) m
$$;

create or replace function autopost.telegram_update(p_update jsonb) returns jsonb
language plpgsql immutable parallel safe
as $$
-- Purpose: parses an update of the Telegram Bot API. Any form gives an answer. The key is
--          update_id, or the hash of the body if it is missing.
-- Returns: {"key", "kind", "chat_id", "chats": facts for note_chat}.
declare
	v_kind text := coalesce((select left(k.key, 64) from jsonb_each(p_update) k where jsonb_typeof(k.value) = 'object'
		order by k.key limit 1), 'unknown');
	v_body jsonb := p_update -> v_kind;
	v_chat jsonb := coalesce(v_body -> 'chat', v_body -> 'message' -> 'chat');
	v_type text := autopost.words_in(v_chat -> 'type', 32);
	v_to text := autopost.id_in(v_body -> 'migrate_to_chat_id');
	v_fact jsonb;
	v_facts jsonb := '[]';
begin
	v_fact := jsonb_strip_nulls(jsonb_build_object('target_id', autopost.id_in(v_chat -> 'id'), 'title',
		autopost.words_in(v_chat -> 'title', 255),
		'username', autopost.words_in(v_chat -> 'username', 64), 'kind', case v_type when 'channel' then 'channel'
			when 'private' then 'dialog' else 'chat' end,
		'at', autopost.platform_instant(v_body -> 'date', 1), 'seq', autopost.id_in(p_update -> 'update_id')));
	if not v_fact ? 'target_id' then
		null;
	elsif v_kind = 'my_chat_member' then
		v_facts := jsonb_build_array(v_fact || autopost.telegram_rights(v_type, v_body -> 'new_chat_member'));
	elsif v_to is not null then
		v_facts := jsonb_build_array(v_fact || jsonb_build_object('migrated_to', v_to),
			v_fact || jsonb_build_object('target_id', v_to));
	elsif v_type in ('channel', 'group', 'supergroup') then
		v_facts := jsonb_build_array(v_fact);
	end if;
	return jsonb_build_object('key', autopost.update_key(p_update, array[autopost.id_in(p_update -> 'update_id')]),
		'kind', v_kind, 'chat_id', v_fact -> 'target_id', 'chats', v_facts);
end
$$;
