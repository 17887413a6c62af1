-- Channels pause when their bot loses its rights and continue when the rights return. Chats that contain bots are
-- discovered.
begin;
\ir fake_clock.sql
\ir world.sql
insert into autopost.credential_bindings (workspace_id, auth_ref, platform, secret_ref)
	values ('w', 'bot', 'telegram', 'env:TG'), ('w', 'mx', 'max', 'env:MX');
insert into autopost.workspace_endpoints (workspace_id, endpoint_id, kind, secret_hash, meta) values
	('w', 'tg', 'bot_webhook', repeat('1', 64), '{"auth_ref": "bot"}'), ('w', 'mx', 'bot_webhook', repeat('3', 64),
		'{"auth_ref": "mx"}');
select test.channel(c) from unnest('{news,topic,other,person,off}'::text[]) c;
update autopost.channels set target_id = t.target
	from (values ('news', '-100'), ('topic', '-100:7'), ('other', '-200'), ('person', '8'), ('off', '@Demo_Shop')) t (
	id, target) where channel_id = t.id;
select test.channel('mxnews', p_platform => 'max', p_rate_group => 'mx');
update autopost.channels set target_id = '-68' where channel_id = 'mxnews';
select test.channel('separate', p_rate_group => 'bot2');
update autopost.channels set target_id = '-100:9' where channel_id = 'separate';

create sequence test.updates;
create function test.member(p_chat_id bigint, p_status text, p_more jsonb default '{}', p_type text default 'channel',
	p_date bigint default null, p_username text default null) returns text
language sql
as $$
-- A my_chat_member update; what channels did about it.
select coalesce(autopost.receive_update('w', 'tg',
	jsonb_build_object('update_id', nextval('test.updates'), 'my_chat_member', jsonb_build_object(
	'chat', jsonb_strip_nulls(jsonb_build_object('id', p_chat_id, 'type', p_type, 'title', 'Chat ' || p_chat_id,
		'username', p_username)),
	'date', coalesce(p_date, extract(epoch from autopost.now_ts())::bigint), 'new_chat_member',
		jsonb_build_object('status', p_status) || p_more))) ->> 'rights', '-')
$$;
create function test.max(p_type text, p_more jsonb default '{}') returns text
language sql
as $$
select coalesce(autopost.receive_update('w', 'mx',
	jsonb_build_object('update_type', p_type, 'timestamp',
	floor(extract(epoch from autopost.now_ts()) * 1000) + nextval('test.updates'),
	'chat_id', -68, 'is_channel', true, 'user', '{"user_id": 5}'::jsonb) || p_more) ->> 'rights', '-')
$$;
create function test.held() returns text language sql as $$
select string_agg(c.channel_id, ',' order by c.channel_id) from autopost.channels c
	where c.rights_held is not null and c.paused_until > autopost.now_ts() + interval '300 days' $$;
create function test.alerts() returns text language sql as $$
select string_agg(a.subject, ',' order by a.subject) from autopost.alerts a
	where a.kind = 'rights_lost' and a.ended_at is null $$;
create function test.chat(p_target_id text) returns autopost.list_chats language sql as $$ select l
	from autopost.list_chats('w', 100) l where l.target_id = p_target_id $$;
select plan(71);

select test.posts('post', 2);
select test.tick('1 second');
select is(test.member(-100, 'kicked'), 'lost');
select is(test.held(), 'news,topic', 'the channels of that chat and bot pause, of all its threads, and no other');
select is(test.alerts(), 'channel:news,channel:topic', 'operators get alerts');
select is((select e.error ->> 'message' from autopost.events e
	where e.action = 'channel_paused' and e.channel_id = 'news'), 'the bot is not in the chat: add it',
	'with the reason');
select is((select a.operator || ' ' || a.reason from autopost.admin_audit_log a where a.subject = 'channel:news'),
	'telegram the bot is not in the chat: add it');
select alike(autopost.why('w', r.delivery_id)::text,
	'%the rights of its bot (the bot is not in the chat: add it), or resume_channel%', 'why says it')
	from test.row('news') r;
select is(test.claimed(), '{mxnews,off,other,person,separate}', 'nothing of them is claimed');
select is(test.member(-100, 'left'), '-', 'a repeated update changes nothing');
select is(test.count_events('channel_paused'), 2);
select is(array[(test.chat('-100')).may_post::text, (test.chat('-100')).left_at::text,
	array_to_string((test.chat('-100')).channel_ids, ',')], array['false', autopost.now_ts()::text, 'news,topic']);
select test.tick('2 days');
select is(test.member(-100, 'member'), '-', 'a member of a channel may not post');
select is(test.member(-100, 'administrator', '{"can_post_messages": false}'), '-',
	'nor an administrator without that right');
select is(test.member(-100, 'administrator', '{"can_post_messages": true}'), 'regained');
select is(test.held(), null);
select is(test.alerts(), null, 'the alerts are over');
select is((select array_agg(d.status) from autopost.deliveries d where d.channel_id = 'news'), '{queued,queued}',
	'their queue waited');
select ok(test.claimed() @> '{news,topic}', 'and goes on');

-- The newest update decides, in any order of arrival.
select is(test.member(-200, 'creator', p_date => 1795000010), '-');
select is(test.member(-200, 'kicked', p_date => 1795000009), '-', 'an update that comes late changes nothing');
select is(test.member(-200, 'kicked', p_date => 1795000010), 'lost', 'update ids decide within one second');
select is(test.member(-200, 'restricted', '{"can_send_messages": true}', 'supergroup', 1795000011), 'regained');
select is(test.member(-200, 'a status of 2031', '{}', 'supergroup', 1795000012), '-',
	'a status that nobody knows changes nothing');
select is((test.chat('-200')).may_post, null, 'and is asked about');
select is(test.member(8, 'kicked', p_type => 'private'), 'lost', 'a person who blocks the bot');
select is(test.member(8, 'member', p_type => 'private'), 'regained');
select is(test.member(9, 'kicked', p_type => 'private'), '-');
select is((test.chat('9')).target_id, null, 'a person without a channel is not stored');
select is(test.member(-300, 'left', p_username => 'demo_shop'), 'lost', 'a channel by its name');

-- Other pauses of a channel remain.
select is(autopost.pause_channel('w', 'news', 3600, 'olga', 'lunch', false) -> 'applied', 'true');
select is(test.member(-100, 'kicked'), 'lost');
select test.tick('1 minute');
select is(test.member(-100, 'administrator', '{"can_post_messages": true}'), 'regained');
select is((test.channel_row('news')).paused_until, autopost.now_ts() + interval '59 minutes',
	'a person''s pause is not ended');
select is((test.channel_row('topic')).paused_until, null);
select is(autopost.disable_group('w', 'telegram', 'bot', 'olga', 'holidays', false) -> 'applied', 'true');
select test.tick('2 hours');
select is(test.member(-100, 'kicked') || test.member(-100, 'administrator', '{"can_post_messages": true}'),
	'lostregained');
select ok(not (test.channel_row('news')).enabled, 'what a person disabled stays so');
select is(autopost.enable_group('w', 'telegram', 'bot', 'olga', 'back', false) -> 'applied', 'true');
-- By hand, by another bot, by another chat.
select is(test.member(-100, 'kicked'), 'lost');
select is(autopost.resume_channel('w', 'news', 'olga', 'I know better', false) -> 'applied', 'true');
select is((test.channel_row('news')).rights_held, null);
select is(test.alerts(), 'channel:topic');
update autopost.channels set target_id = '-400' where channel_id = 'topic';
select is((test.channel_row('topic')).paused_until, null, 'another chat has other rights');
select is(test.alerts(), null);
update autopost.channels set target_id = '-100:7' where channel_id = 'topic';
select is(test.member(-100, 'left'), 'lost');
update autopost.channels set auth_ref = 'bot3' where channel_id = 'topic';
select is((test.channel_row('topic')).rights_held, null, 'and so has another bot');
update autopost.channels set auth_ref = 'bot' where channel_id = 'topic';
-- A credential that was refused meanwhile.
update autopost.channels set auth_held = true, auth_lost_at = autopost.now_ts() where channel_id = 'news';
select is(test.member(-100, 'administrator', '{"can_post_messages": true}'), 'regained');
select ok(c.auth_held and c.paused_until = autopost.auth_hold_until(), 'it waits for its credential now')
	from test.channel_row('news') c;
select is(test.member(-100, 'left'), 'lost');
select is(autopost.resume_for_auth('w', 'bot', '{}') -> 'resumed', '0');
select ok(not c.auth_held and c.rights_held is not null and c.paused_until > autopost.now_ts(),
	'and now for its rights alone') from test.channel_row('news') c;
update autopost.events set delivery_id = null, channel_id = null where channel_id = 'topic';
delete from autopost.deliveries d where d.channel_id = 'topic';
delete from autopost.channels where channel_id = 'topic';
select is(test.alerts(), 'channel:news', 'a deleted channel has no alert');

-- A group that became a supergroup: its channel gets the new id when it sends.
select is(test.member(-200, 'left', p_type => 'group', p_date => 1795000013), 'lost');
select is(autopost.receive_update('w', 'tg', '{"update_id": 9001, "message": {"message_id": 1, "chat": {"id": -200, "type": "group", "title": "Group"}, "migrate_to_chat_id": -100200}}') ->> 'rights', 'regained');
select is(array[(test.chat('-200')).migrated_to, (test.chat('-100200')).title, (test.chat('-100200')).may_post::text],
	array['-100200', 'Group', null]);

-- MAX: an added bot may not write yet, and no update reports the right.
select is(test.max('bot_removed'), 'lost');
select is(test.held(), 'mxnews,news', 'of MAX, too');
select is(test.member(-300, 'left', p_username => 'demo_shop'), 'lost',
	'what a person resumed is held again when the platform says it again');
select is(test.max('chat_title_changed', '{"title": "Demo shop"}'), '-');
select is(test.max('bot_added'), '-');
select is(array[(test.chat('-68')).title, (test.chat('-68')).kind, (test.chat('-68')).may_post::text],
	array['Demo shop', 'channel', null]);
create temp table asked on commit drop as select a.value
	from jsonb_array_elements(autopost.list_unasked_chats('w', 100)) a;
select is((select array_agg(value ->> 'target_id' order by value ->> 'target_id') from asked),
	'{-100,-100200,-300,-68}', 'the platform is asked where nobody has said, and where a channel waits');
select is(autopost.list_unasked_chats('w', 100), '[]', 'by one daemon at a time');
create function test.answer(p_target_id text, p_right jsonb) returns jsonb language sql as $$
select autopost.record_chat_rights('w', a.value ->> 'platform', a.value ->> 'auth_ref',
	p_target_id, (a.value ->> 'ask_at')::timestamptz, p_right) from asked a
	where a.value ->> 'target_id' = p_target_id $$;
select is(test.answer('-68', '{"title": "Shop", "may_post": true}'), '{"applied": true, "rights": "regained"}');
select is(test.answer('-300', '{"may_post": false, "reason": "the bot is not in the chat"}'), '{"applied": true}',
	'a paused channel stays paused');
select test.member(-100, 'administrator', '{"can_post_messages": true}');
select is(test.answer('-100', '{"may_post": false, "reason": "old news"}'), '{"applied": false, "reason": "stale"}',
	'an update that came meanwhile counts more');
select is(test.held(), 'off');
select is(autopost.record_chat_rights('w', 'max', 'mx', '-68', (select h.ask_at from autopost.discovered_chats h
	where h.target_id = '-68'), '{"may_post": false, "reason": "no"}') ->> 'rights', 'lost');
select autopost.resume_channel('w', 'mxnews', 'olga', 'try', false);
select test.tick('5 minutes');
select ok(autopost.list_unasked_chats('w', 100) @> '[{"target_id": "-68"}]',
	'MAX sends no update about it: it is asked again');
select is(test.max('bot_added', '{"chat_id": -69, "is_channel": false}') || (test.chat('-69')).may_post, '-true',
	'in a group of MAX a member may write');
select is((test.chat('-69')).channel_ids, '{}', 'this could become a channel');

select is(autopost.record_chat_rights('w', 'max', 'mx', '-1', autopost.now_ts(), '{"may_post": true}'),
	'{"applied": false, "reason": "unknown"}');

select * from finish();
rollback;
