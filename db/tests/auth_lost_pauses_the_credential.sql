-- If the platform refuses a credential, all its channels pause. Their queues wait or fail.
begin;
\ir fake_clock.sql
\ir world.sql
select plan(49);

create function test.refused(p_channel_id text, p_code text default 'tg_unauthorized') returns text
language sql
as $$
-- Starts the channel's oldest delivery in flight, commits a refused credential and returns the status.
select autopost.start_call('w', d.delivery_id, d.claim_token) from (
	select d.* from autopost.deliveries d where d.channel_id = p_channel_id and d.status = 'sending'
		order by d.delivery_id limit 1) d;
select autopost.commit_outcome('w', d.delivery_id, d.claim_token,
	test.failure('PERMANENT', 'channel', p_code)) ->> 'status' from (
	select d.* from autopost.deliveries d where d.channel_id = p_channel_id and d.status = 'sending'
		order by d.delivery_id limit 1) d
$$;
create function test.statuses(p_channel_id text) returns text[]
language sql
as $$
select array_agg(d.status order by d.delivery_id) from autopost.deliveries d where d.channel_id = p_channel_id
$$;
create function test.held() returns text[]
language sql
as $$
select array_agg(c.channel_id order by c.channel_id) from autopost.channels c where c.auth_held
$$;

-- Errors of the credential, and errors of the chat only.
select is((select array_agg(autopost.is_auth_lost(test.failure('PERMANENT', 'channel', c) -> 'error') order by n)
	from unnest(
	'{auth_lost,tg_unauthorized,tg_bad_token_or_method,tg_frozen,max_unauthorized,x_unauthorized,x_token_revoked,yt_invalid_grant,yt_401,http_401}'::text[]) with ordinality u (c, n)),
	array_fill(true, array[10]));
select is((select array_agg(autopost.is_auth_lost(test.failure('PERMANENT', 'channel', c) -> 'error') order by n)
	from unnest(
	'{http_403,tg_forbidden,tg_chat_not_found,max_chat_denied,tg_4010,unauthorized_chat}'::text[]) with ordinality u (c,
		n)), array_fill(false, array[6]));
select ok(not autopost.is_auth_lost(test.failure('PERMANENT', 'delivery', 'http_401') -> 'error'),
	'a refused post is not a refused credential');
select ok(not autopost.is_auth_lost(test.failure('TRANSIENT', 'channel', 'http_401') -> 'error'));

select test.channel(c) from unnest('{a,b,fails}'::text[]) c;
select test.channel('rotated');
insert into autopost.channel_auth (workspace_id, channel_id, auth_ref) values ('w', 'rotated', 'bot2');
select test.channel('separate', p_rate_group => 'bot2');
select test.channel('namesake', p_platform => 'max');
update autopost.channels set on_auth_lost = 'fail' where channel_id = 'fails';
select test.posts('post', 2);
select test.post(jsonb_build_object('text', 'later', 'scheduled_for', autopost.now_ts() + interval '3 days', 'routing',
	'{"include_channels": ["a", "fails"]}'::jsonb));
create temp table lost on commit drop as select autopost.now_ts() as at;

select is(test.claimed(), '{a,b,fails,namesake,rotated,separate}');
select autopost.release_claims('w', array(select claim_token from autopost.deliveries
	where channel_id in ('b', 'fails', 'namesake') and status = 'sending'));
update autopost.channels set enabled = false where channel_id = 'namesake';
select is(test.refused('a'), 'failed_permanent', 'the started delivery has failed');
select is(test.held(), '{a,b,fails}', 'every channel that uses the credential waits, and no other');
select is((select array_agg(distinct paused_until) from autopost.channels where auth_held),
	array[autopost.now_ts() + interval '7 days 1 hour'], 'for as long as a queue may wait');
select is((select array_agg(distinct auth_lost_at) from autopost.channels where auth_held), array[autopost.now_ts()]);
select is((select array_agg(error_streak order by channel_id) from autopost.channels where auth_held), '{1,0,0}',
	'it is the failure of one call');
select is((select array_agg(channel_id order by channel_id) from autopost.events where action = 'channel_paused'),
	'{a,b,fails}', 'each pause has an event');
select is((select jsonb_agg(distinct meta - 'until') from autopost.events
	where action = 'channel_paused' and channel_id in ('b', 'fails')), '[{"auth_ref": "bot", "refused_on": "a"}]');
select is((select array_agg(v.channel_id) from autopost.list_channels('w', 10) v where v.auth_held), '{a,b,fails}',
	'list_channels shows it');
select test.tick('1 hour');
select is(test.claimed(), '{}', 'nothing of it is claimed');
select is(test.refused('rotated'), 'failed_permanent');
select is(test.held(), '{a,b,fails,rotated,separate}',
	'the credential is the one in use, not the one the channel began with');

-- hold: the queue waits; fail: it fails, and what comes fails too.
select is(test.statuses('b'), '{retry,queued}', 'the queue waits');
select is(test.statuses('a'), '{failed_permanent,queued,queued}');
select is(test.statuses('fails'), '{failed_permanent,failed_permanent,queued}',
	'or fails, all but what is for another day');
select is((select array_agg(distinct last_error) from autopost.deliveries
	where channel_id = 'fails' and status = 'failed_permanent'),
	array['{"code": "auth_lost", "known": true, "scope": "channel", "message": "the credential is refused", "category": "PERMANENT"}'::jsonb]);
select is((select count(*)::int from autopost.events where action = 'failed_permanent' and channel_id = 'fails'), 2);
select is((select count(*)::int from autopost.deliveries where channel_id = 'fails' and finished_at is null), 1);
select test.say('news');
select is(autopost.expire_auth_lost('w'), '{"dead": 0, "failed": 1, "ended": 1}', 'what comes meanwhile fails as well');
select is((test.row('fails')).status, 'failed_permanent');
select is((test.row('b')).status, 'queued');
select is(autopost.expire_auth_lost('w'), '{"dead": 0, "failed": 0, "ended": 0}');

-- A delivery that waits too long is dead. The time counts from its due time.
select test.set_clock((select at + interval '7 days' - interval '1 second' from lost));
select is(autopost.expire_auth_lost('w'), '{"dead": 0, "failed": 1, "ended": 1}',
	'what was for another day fails on that day');
select test.tick('1 second');
select is(autopost.expire_auth_lost('w'), '{"dead": 3, "failed": 0, "ended": 3}');
select is(test.statuses('b'), '{dead,dead,queued}');
select is(test.statuses('a'), '{failed_permanent,dead,queued,queued}', 'what came or was due later waits on');
select is((select array_agg(distinct array[action, error ->> 'code', error ->> 'message']) from autopost.events
	where action = 'dead_letter'),
	array[array['dead_letter', 'auth_lost', 'the credential was refused for too long']]);
select is(test.claimed(), '{}');
select test.tick('1 hour 1 second');
select is((select array_agg(distinct c order by c) from unnest(test.claimed()) c), '{a,b}',
	'the pause is over when what it was for is over');
select is(test.refused('a'), 'failed_permanent');
select is((test.channel_row('a')).auth_lost_at, autopost.now_ts(), 'a new refusal restarts the count');
select ok((test.channel_row('b')).paused_until > autopost.now_ts() + interval '7 days',
	'the pause of the others is longer again');

-- Each end of the pause ends the wait.
select is(test.held(), '{a,b,fails,rotated,separate}');
select autopost.resume_channel('w', 'b', 'ann', 'linked again', false);
select is(test.held(), '{a,fails,rotated,separate}');
select test.claimed();
select is((test.gate('a')).ready_at, (test.channel_row('a')).paused_until);
update autopost.channels set auth_ref = 'bot3' where channel_id = 'a';
select is((select array[auth_held::text, paused_until::text] from test.channel_row('a')), '{false,null}',
	'a channel with another credential goes on');
select ok((test.gate('a')).ready_at <= autopost.now_ts(), 'at once');
select autopost.pause_channel('w', 'fails', 60, 'ann', 'to look', false);
select ok(not (test.channel_row('fails')).auth_held, 'a person''s own pause is the person''s');
select is(autopost.expire_auth_lost('w') -> 'failed', '0', 'and its queue waits');

-- Another failure of a channel that waits, or waited, changes nothing of that.
update autopost.channels set enabled = true, paused_until = null, error_streak = 0, max_parallel = 5
	where platform = 'telegram';
select is(test.held(), null);
select test.posts('more', 2, '{"include_channels": ["separate", "b"]}');
select test.claimed();
select test.refused('b'), test.refused('b', 'http_403');
select is((select array[auth_held, paused_until > autopost.now_ts() + interval '7 days'] from test.channel_row('b')),
	'{t,t}');
select is((test.channel_row('b')).error_streak, 2);
select is((test.channel_row('separate')).auth_held, false);
select test.refused('separate', 'http_403');
select is((select array[auth_held, paused_until > autopost.now_ts() + interval '1 hour']
	from test.channel_row('separate')), '{f,f}', 'a missing chat is not a lost credential');

select is((select jsonb_agg(v) from autopost.verify('w') v where v.violations > 0), null, 'the invariants hold');
select * from finish();
rollback;
