-- The views of a message with all its deliveries, of a delivery with its history, and of a
-- workspace without secrets.
begin;
\ir fake_clock.sql
\ir world.sql
select plan(20);

select test.channel('a'), test.channel('b', p_platform => 'max', p_rate_group => 'other');
select test.say('one');
create temp table m on commit drop as select message_id as id from autopost.messages;
create temp table d on commit drop as select delivery_id as id from autopost.deliveries where channel_id = 'a';
select autopost.skip_deliveries('w', array[(select id from d)], 'ann', 'no', false);

select is((select autopost.get_message('w', id) -> 'counts' from m), '{"dead": 1, "queued": 1}');
select is((select jsonb_path_query_array(autopost.get_message('w', id), '$.deliveries[*].channel_id') from m),
	'["a", "b"]');
select is((select autopost.get_message('w', id) #>> '{payload,text}' from m), 'one');
select is((select autopost.get_message('w', id) #>> '{deliveries,1,text}' from m), 'one');
select is(autopost.get_message('w', gen_random_uuid()), null);
select is((select autopost.get_delivery('w', id) #>> '{delivery,status}' from d), 'dead');
select is((select jsonb_path_query_array(autopost.get_delivery('w', id), '$.events[*].action') from d),
	'["manual_skip"]', 'its events as they were written');
select is((select autopost.get_delivery('w', id) -> 'chain' from d), (select autopost.why('w', id) -> 'chain' from d),
	'and in words');
select is(autopost.get_delivery('w', gen_random_uuid()), null);

insert into autopost.credential_bindings (workspace_id, auth_ref, platform, secret_ref)
	values ('w', 'bot', 'telegram', 'env:CANARY_NAME');
insert into autopost.pull_sources (workspace_id, source_id, kind, config_json)
	values ('w', 's', 'rss', '{"url": "https://example.org/?access_token=canary-token"}');
insert into autopost.platform_limits (workspace_id, platform, rate_group, rate_rps)
	values ('w', 'telegram', 'bot', 25), ('w', 'telegram', 'empty', 1);
create function test.shown(p_kind text, p_filter jsonb default '{}', p_path text default '$.*') returns text
language sql
as $$
select string_agg(s ->> p_path, ' ') from autopost.list_configuration('w', p_kind, p_filter, 10) s
$$;
select is(test.shown('workspace', p_path => 'workspace_id'), 'w', 'the own one');
select is(test.shown('channel', p_path => 'channel_id'), 'a b');
select is(test.shown('channel', '{"after": "a"}', 'channel_id'), 'b', 'the next page');
select is(test.shown('channel', '{"id": "a"}', 'target_id'), '@a');
select is(test.shown('group', p_path => 'group_id'), 'max/other telegram/bot telegram/empty',
	'also without a limit, also without a channel');
select is(test.shown('group', '{"id": "telegram/bot"}', 'channels'), '1');
select is(test.shown('endpoint', p_path => 'has_secret'), 'true');
select is(test.shown('credential', p_path => 'kept_in') || test.shown('credential', p_path => 'channels'), 'env1');
select is(test.shown('setting', '{"id": "max_attempts"}', 'value'), '5');
select is((select count(*)::int from unnest('{workspace,channel,group,endpoint,source,credential,setting}'::text[]) k,
	autopost.list_configuration('w', k, '{}', 100) s
	where s::text ~ 'canary|CANARY' or s::text ~ repeat('a', 64)), 0,
		'no secret, no name of where one is kept, no hash');
select throws_ok($$select autopost.list_configuration('w', 'colour', '{}', 1)$$, 'AP001', null);

select * from finish();
rollback;
