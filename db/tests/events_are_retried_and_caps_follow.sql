-- An event whose text the channel had already is retried when the channel would take it. Names of
-- avatars. The caps of Global X follow its channel, and quotas of operators stay.
begin;
\ir fake_clock.sql
\ir world.sql
select plan(41);

create function test.combat(p_id text, p_more jsonb default '{}') returns jsonb
language sql
as $$
select autopost.receive_event('w', 'in', jsonb_build_object('event', 'COMBAT.SUMMARY.GENERATED', 'payload',
	'{"type": "combat", "winner": {"id": "a1", "name": "Nyx"}, "loser": {"id": "b2", "name": "Helion"},
	"summaryText": "Nyx won", "rounds": 7, "createdAt": "2026-06-01T14:00:00Z"}'::jsonb
	|| jsonb_build_object('encounterId', p_id) || p_more))
$$;
create function test.put(p_fields jsonb) returns jsonb
language sql
as $$
select autopost.put_x_post_config('w', p_fields, 'olga', 'test', false)
$$;
create function test.last() returns autopost.x_post_events
language sql
as $$
select p from autopost.list_x_posts('w', '{}', 1) p
$$;
create function test.retry(p_dry_run boolean default false) returns jsonb
language sql
as $$
select autopost.retry_submission('w', (test.last())."_id", 'olga', 'again', p_dry_run)
$$;
create function test.caps() returns text[]
language sql
as $$
select array(select concat_ws(' ', q.channel_id, q.window_seconds, q.max_sends, case when q.global_x then 'global' end)
	from autopost.quotas q order by 1)
$$;

select test.channel('x1', p_platform => 'x', p_rate_group => 'xg', p_max_parallel => 5);
select test.bind('xg', 'x');
select test.put('{"channel_id": "x1"}');
select is(test.combat('e1') ->> 'status', 'approved');
select test.tick('1 second');
select is(test.combat('e2') ->> 'status', 'approved', 'another event, but the channel has its text');
select is((test.last()).status || ' ' || (test.last())."lastError", 'skipped duplicate');
select is(test.retry() ->> 'reason', 'duplicate', 'it waits there');
select is(test.retry() ->> 'delivery_id', (test.row('x1')).delivery_id::text, 'the answer names it');
select is(test.retry(true) ->> 'reason', 'duplicate');
select is((select count(*)::int from autopost.admin_audit_log l where l.action = 'x_post_event_retry'), 0);
select test.round('x1', test.sent('1001'));
select test.tick('1 hour');
select is(test.retry() ->> 'reason', 'duplicate', 'it was sent lately');

-- Another text goes out.
select test.put('{"templates": {"combat": "{winner_name} beat {loser_name}"}}');
select is(test.retry(true) ->> 'applied', 'true');
select is((test.last()).status, 'skipped', 'a dry run changes nothing');
select is(test.retry() ->> 'applied', 'true');
select is((test.last()).status || ' ' || (test.last())."resolvedContent", 'approved Nyx beat Helion');
select is((select count(*)::int from autopost.admin_audit_log l where l.action = 'x_post_event_retry'), 1);
select is(test.retry() ->> 'reason', 'not_failed', 'it waits for its turn');
select test.round('x1', test.sent('1002'));

-- The same text goes out after the dedup window.
select test.tick('1 second');
select is(test.combat('e3') ->> 'status', 'approved');
select is((test.last()).status, 'skipped');
select test.tick('8 days');
select is(test.retry() ->> 'applied', 'true');
select is((test.last()).status, 'approved');
select is((select count(*)::int from autopost.deliveries d where d.rendered_text = 'Nyx beat Helion'), 2);
select test.tick('1 second');
select is(test.retry() ->> 'reason', 'not_failed');
select test.round('x1', test.sent('1003'));

-- An approved event keeps what was approved.
select test.put('{"moderation": {"enabled": true}}');
select is(test.combat('e4') ->> 'status', 'pending');
select is(autopost.decide_submission('w', (test.last())."_id", 'approve', '{}', 'user:olga', 'fine') ->> 'status', 'duplicate');
select test.put('{"templates": {"combat": "{winner_name} won"}}');
select is(test.retry() ->> 'reason', 'duplicate', 'the approved text is still there');
select test.tick('8 days');
select is(test.retry() ->> 'applied', 'true');
select is((test.last()).status || ' ' || (test.last())."resolvedContent", 'approved Nyx beat Helion');

-- Names of avatars.
select is(autopost.put_avatar('w', 'a-7', '{"name": "Nyx"}', 'olga', 'new', true) -> 'after', '{"name": "Nyx"}');
select is(autopost.list_configuration('w', 'avatar', '{}', 10), null, 'a dry run');
select is(autopost.put_avatar('w', 'a-7', '{"name": "Nyx"}', 'olga', 'new', false) -> 'created', 'true');
select is(autopost.put_avatar('w', 'a-7', '{"name": "Nyx"}', 'olga', 'new', false) ->> 'reason', 'unchanged');
select is(autopost.put_avatar('w', 'a-7', '{"name": " "}', 'olga', 'new', false) #>> '{errors,0,field}', 'name');
select is(autopost.list_configuration('w', 'avatar', '{}', 10), '{"avatar_id": "a-7", "name": "Nyx"}');
select is(autopost.put_avatar('w', 'a-7', '{"name": null}', 'olga', 'gone', false) -> 'applied', 'true');
select is(autopost.put_avatar('w', 'a-7', '{"name": null}', 'olga', 'gone', false) ->> 'reason', 'unchanged');
select is((select array_agg(l.after ->> 'name' order by l.seq) from autopost.admin_audit_log l
	where l.action = 'put_avatar'), array['Nyx', null]);

-- The caps follow the channel of the avatar. A quota that an operator set stays.
select test.put('{"channel_id": null}');
select is(test.caps(), '{}', 'without a channel there is no cap');
select test.channel('x2', p_platform => 'x', p_rate_group => 'xg');
select autopost.put_quota('w', 'channel:x2', 60, '{"max_sends": 3}', 'olga', 'slow', false);
select autopost.put_quota('w', 'channel:x1', 3600, '{"max_sends": 5}', 'olga', 'slow', false);
update autopost.channels set settings = '{"avatar_id": "one"}' where channel_id = 'x1';
update autopost.channels set settings = '{"avatar_id": "two"}' where channel_id = 'x2';
select is(test.caps(), '{"x1 3600 5","x2 60 3"}');
select test.set('global_x_account_avatar_id', '"two"');
select is(test.caps(), '{"x1 3600 5","x2 3600 8 global","x2 60 3","x2 86400 30 global"}');
select test.put('{"mode": "hold"}');
select test.set('global_x_account_avatar_id', '"one"');
select is(test.caps(), '{"x1 3600 8 global","x1 86400 30 global","x2 60 3"}', 'the caps move, the quota of x2 stays');
select is(array(select c.channel_id from autopost.channels c where c.held_until is not null), '{x1}', 'so does the hold');
update autopost.channels set settings = '{"avatar_id": "one"}' where channel_id = 'x2';
select is(test.caps(), '{"x1 3600 8 global","x1 86400 30 global","x2 60 3"}',
	'two channels with the avatar: the caps stay');
select test.set('global_x_account_avatar_id', '""');
select is(test.caps(), '{"x2 60 3"}');
select is(array(select c.channel_id from autopost.channels c where c.held_until is not null), '{}');

select * from finish();
rollback;
