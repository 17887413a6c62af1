-- Valid settings of a Telegram channel. The service chat for copies is a separate chat.
begin;
\ir fake_clock.sql
\ir world.sql
select plan(15);

create function test.put(p_channel text, p_fields jsonb) returns text
language sql
as $$
select coalesce((select string_agg(e.value ->> 'field' || ' ' || (e.value ->> 'reason'), '; ')
	from jsonb_array_elements(a.answer -> 'errors') e), a.answer ->> 'applied')
from autopost.put_channel('w', p_channel, p_fields, 'me', 'test', false) a (answer)
$$;
create function test.news(p_service jsonb, p_target text default '-1001') returns jsonb
language sql
as $$
select jsonb_build_object('platform', 'telegram', 'target_id', p_target, 'auth_ref', 'bot', 'settings',
	jsonb_build_object('service_chat_id', p_service))
$$;
select is(test.put('a', test.news('"-1009"')), 'settings.service_chat_id must be the number of a chat');
select is(test.put('a', test.news('1.5')), 'settings.service_chat_id must be the number of a chat');
select is(test.put('a', test.news('0')), 'settings.service_chat_id must be the number of a chat');
select is(test.put('a', test.news('-1001')),
	'settings.service_chat_id must not be the target of channel a: its readers would see lookups', 'not its own');
select is(test.put('a', test.news('-1009')), 'true');
select is(test.put('b', test.news('-1009', '-1002:5')), 'true', 'several may share one');
select is(test.put('c', test.news('-1002', '-1003')),
	'settings.service_chat_id must not be the target of channel b: its readers would see lookups',
	'nor another''s, with a thread or without');
select is(test.put('a', '{"target_id": "-1009"}'),
	'settings.service_chat_id must not be the target of channel a: its readers would see lookups',
	'whichever of the two changes');
select is(test.put('a', '{"settings": {"service_chat_id": null}}'), 'true');

-- Other settings that the adapter reads.
create function test.set(p_settings jsonb) returns text
language sql
as $$
select test.put('a', jsonb_build_object('settings', p_settings))
$$;
select is(test.set('{"disable_notification": true, "protect_content": true, "has_spoiler": true, "show_caption_above_media": true,
	"link_preview_options": {"prefer_large_media": true, "show_above_text": true}, "another": 1}'), 'true');
select is(test.set('{"has_spoiler": "yes", "protect_content": 1}'),
	'settings.has_spoiler must be a boolean; settings.protect_content must be a boolean');
select is(test.set(p), 'settings.link_preview_options must be an object of Telegram''s booleans', p::text)
from unnest(array['{"link_preview_options": true}', '{"link_preview_options": {"prefer_large_media": 1}}',
	'{"link_preview_options": {"is_disabled": true}}',
	'{"link_preview_options": {"prefer_small_media": true, "prefer_large_media": true}}']::jsonb[]) p;

select * from finish();
rollback;
