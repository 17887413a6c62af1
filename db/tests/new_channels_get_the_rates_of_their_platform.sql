-- A new channel and a new rate group have the limits that the platform publishes. A limit that a person
-- sets stays.
begin;
\ir fake_clock.sql
\ir world.sql
select plan(28);
select test.publish();

create function test.add(p_channel_id text, p_platform text, p_target_id text, p_more jsonb default '{}') returns text
language sql
as $$
select autopost.put_channel('w', p_channel_id, jsonb_build_object('platform', p_platform, 'target_id', p_target_id,
	'auth_ref', p_platform || '-bot') || p_more, 'olga', 'new', false);
select c.rate_rps::text from autopost.channels c where c.workspace_id = 'w' and c.channel_id = p_channel_id
$$;
create function test.group_rate(p_platform text, p_group text) returns numeric
language sql
as $$
select l.rate_rps from autopost.platform_limits l
where l.workspace_id = 'w' and l.platform = p_platform and l.rate_group = p_group
$$;

select is(test.add('t1', 'telegram', '@city'), '1', 'a channel');
select is(test.group_rate('telegram', 'telegram-bot'), 25::numeric, 'all chats of a bot');
select is(test.add('t2', 'telegram', '-1001234567890'), '1', 'it may be a channel');
select is(test.add('t3', 'telegram', '-1001234567890:7'), '0.33', 'a topic is in a group chat: 20 a minute');
select is(test.add('t4', 'telegram', '-123456'), '0.33', 'a small group chat');
insert into autopost.discovered_chats (workspace_id, platform, auth_ref, target_id, kind, first_seen, last_seen)
values ('w', 'telegram', 'telegram-bot', '-1001234567891', 'chat', autopost.now_ts(), autopost.now_ts());
select is(test.add('t5', 'telegram', '-1001234567891'), '0.33', 'an update said that it is a group chat');
select is(test.add('t6', 'telegram', '-1001234567891:1', '{"rate_rps": 0.5}'), '0.5', 'a stated rate stays');
select is(test.add('t3', 'telegram', '-1001234567890:7', '{"rate_rps": null}'), '0.33', 'null restores the default');
select is(test.add('m1', 'max', '-1'), '1', 'MAX takes two a second in each chat');
select is(test.group_rate('max', 'max-bot'), 25::numeric);
select test.add('x1', 'x', '@city');
select is(test.group_rate('x', 'x-bot'), 0.11, '100 in 15 minutes');
select test.add('y1', 'youtube', 'UCabcdefgh');
select is((select count(*)::int from autopost.platform_limits where platform = 'youtube'), 0, 'YouTube publishes none');

select autopost.put_rate_group('w', 'telegram', 'telegram-bot', '{"rate_rps": 0}', 'olga', 'paid', false);
select test.add('t7', 'telegram', '@other');
select is(test.group_rate('telegram', 'telegram-bot'), null, 'a group without a limit keeps that');
select is((select platform_rps from autopost.list_rate_groups('w', 10) g where g.platform = 'telegram'), 25::numeric,
	'the list names the limit of the platform');
select is(jsonb_path_query_first(autopost.export_config('w'), '$.**? (@.id == "telegram/telegram-bot").fields'),
	'{"rate_rps": 0}', 'no limit is exported, because it is not the default');

-- The group of a credential follows the credential. A group that was chosen stays.
select autopost.put_channel('w', 't1', '{"auth_ref": "bot-2"}', 'olga', 'new bot', false);
select is((select c.rate_group from autopost.channels c where c.channel_id = 't1'), 'bot-2');
select is(test.group_rate('telegram', 'bot-2'), 25::numeric);
select autopost.put_channel('w', 't1', '{"rate_group": "shared"}', 'olga', 'share', false);
select autopost.put_channel('w', 't1', '{"auth_ref": "bot-3"}', 'olga', 'new bot', false);
select is((select c.rate_group from autopost.channels c where c.channel_id = 't1'), 'shared');

-- Each way to add the row of a group gives it this limit.
select test.channel('plain', p_rate_group => 'plain');
select is(test.group_rate('telegram', 'plain'), 25::numeric, 'a channel of plain SQL');
update autopost.channels set rate_group = 'moved' where channel_id = 'plain';
select is(test.group_rate('telegram', 'moved'), 25::numeric, 'a group of plain SQL');
delete from autopost.platform_limits where rate_group = 'moved';
select test.post('{"text": "one", "routing": {"include_channels": ["plain"]}}');
select test.tick('1 second');
select is(test.claimed(), '{plain}');
select autopost.lock_for_commit('w', array(select delivery_id from autopost.deliveries where channel_id = 'plain'), true);
select is(test.group_rate('telegram', 'moved'), 25::numeric, 'a commit');
delete from autopost.platform_limits where rate_group = 'moved';
select autopost.cool_down('w', test.channel_row('plain'), 'platform', autopost.now_ts() + interval '1 minute', '{}');
select is(test.group_rate('telegram', 'moved'), 25::numeric, 'a cooldown');
insert into autopost.quotas (workspace_id, platform, rate_group, window_seconds, max_sends)
values ('w', 'telegram', 'counted', 60, 3);
select is(test.group_rate('telegram', 'counted'), 25::numeric, 'a quota');
update autopost.platform_limits set rate_rps = 0 where rate_group = 'moved';
update autopost.channels set rate_group = 'plain' where channel_id = 'plain';
update autopost.channels set rate_group = 'moved' where channel_id = 'plain';
select is(test.group_rate('telegram', 'moved'), 0::numeric, 'a group without a limit keeps that');

-- A group may have no limit before its first channel.
select is(autopost.put_rate_group('w', 'telegram', 'early', '{"rate_rps": 25}', 'olga', 'paid', false) ->> 'reason',
	'unchanged', 'a new group has the limit of its platform');
select is(autopost.put_rate_group('w', 'telegram', 'early', '{"rate_rps": 0}', 'olga', 'paid', false) -> 'before',
	'{"rate_rps": 25}');
select test.channel('early', p_rate_group => 'early');
select is(test.group_rate('telegram', 'early'), null, 'a group without a limit keeps that');
select * from finish();
rollback;
