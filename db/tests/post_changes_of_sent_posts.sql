begin;
\ir fake_clock.sql
\ir world.sql
select plan(70);

create function test.ids(p_channel_id text default 'a') returns uuid[]
language sql as $$ select array[(test.row(p_channel_id)).delivery_id] $$;
create function test.ask(p_kind text, p_changes jsonb default null, p_at timestamptz default null,
	p_channel_id text default 'a', p_dry_run boolean default false) returns jsonb
language sql as $$ select autopost.request_acts('w', p_kind, null, test.ids(p_channel_id), p_changes, p_at, 'olga',
	'wrong price', p_dry_run) $$;
create function test.claim_acts(p_limit int default 100) returns text[]
language sql as $$
-- Claims, and says what came: "kind attempt", in order.
select coalesce(array_agg(c.kind || ' ' || c.attempt), '{}') from autopost.claim_acts('w', 'run-1', p_limit) c
$$;
create function test.act(p_kind text) returns autopost.post_acts
language sql as $$ select a from autopost.post_acts a where a.workspace_id = 'w' and a.kind = p_kind
	order by a.act_id desc limit 1 $$;
create function test.start_act(p_kind text) returns jsonb
language sql as $$ select autopost.start_act('w', a.act_id, a.claim_token) from test.act(p_kind) a $$;
create function test.commit_act(p_kind text, p_outcome jsonb default '{"ok": true}') returns jsonb
language sql as $$ select autopost.commit_act('w', a.act_id, a.claim_token, p_outcome) from test.act(p_kind) a $$;
create function test.lapses(p_kind text) returns text[]
language sql as $$
-- The calls of an act whose lease ran out: "call known".
select coalesce(array_agg((e.meta ->> 'call') || ' ' || (e.error ->> 'known') order by e.ts, e.id), '{}')
	from autopost.events e
where e.action = 'act_retry_scheduled' and e.error ->> 'code' = 'lease_expired'
	and e.meta ->> 'act_id' = (test.act(p_kind)).act_id::text
$$;

select test.channel('a');
select test.say('<old>');
select is(test.ask('edit', '{"text": "new"}') -> 'results' -> 0 ->> 'reason', 'not_sent',
	'what waits cannot be edited');
select test.tick('1 second');
select test.round('a', '{"ok": true, "provider_message_id": "7", "raw": {"ids": ["7"], "steps": {"text": ["7"]}}}');

-- A request is judged, rendered and recorded.
select throws_ok($$select test.ask('like')$$, 'AP001');
select throws_ok($$select test.ask('edit')$$, 'AP001');
select throws_ok($$select test.ask('edit', '{}')$$, 'AP001');
select throws_ok($$select test.ask('edit', '{"media": []}')$$, 'AP001',
	'argument media: cannot be changed in a post that was sent');
select throws_ok($$select test.ask('edit', '{"text": ""}')$$, 'AP001', 'argument text: the post is empty');
select throws_ok($$select test.ask('edit', '{"variants": {"telegram": 1}}')$$, 'AP001',
	'argument variants: must be an object of objects');
select throws_ok($$select test.ask('delete', '{"text": "x"}')$$, 'AP001');
select throws_ok($$select test.ask('delete', null, '2099-01-01')$$, 'AP001',
	'argument at: must be within the retention of deliveries');
select throws_ok($$select autopost.request_acts('w', 'pin', null, null, null, null, 'o', 'r', false)$$, 'AP001');
select is(test.ask('edit', jsonb_build_object('text', repeat('x', 5000))) -> 'results' -> 0,
	jsonb_build_object('delivery_id', (test.ids())[1], 'channel_id', 'a', 'applied', false, 'reason',
		'validation_failed', 'message', 'text has 5000 characters, telegram takes at most 4096'),
	'what the platform would refuse is refused at once');
select is(test.ask('edit', '{"text": "new"}', p_dry_run => true) - 'results',
	'{"applied": true, "dry_run": true, "requested": 1, "refused": 0}');
select is((select count(*)::int from autopost.post_acts), 0, 'a dry run leaves nothing');
select is(test.ask('edit', '{"text": "<b>new</b> & more", "parse_mode": "HTML"}') - 'results',
	'{"applied": true, "dry_run": false, "requested": 1, "refused": 0}');
select is((test.act('edit')).rendered_text, '<b>new</b> &amp; more', 'rendered as an enqueue would');
select is((test.act('edit')).render_meta ->> 'parse_mode', 'HTML');
select is(test.actions('a'), '{send_attempt,sent,act_requested}');
select is((select l.action || ' ' || l.operator || ' ' || l.reason from autopost.admin_audit_log l),
	'request_acts olga wrong price');
select is((test.row('a')).status, 'sent');

-- Claim, start, commit; one at a time, in order.
select test.ask('pin');
select is(array(select * from autopost.ready_act_workspaces(10)), '{w}');
select is(test.claim_acts(), '{edit 1}', 'one act of a delivery at a time');
select is(array(select * from autopost.ready_act_workspaces(10)), '{}');
select is(test.start_act('edit') - 'now' - 'deadline', '{"applied": true}', 'nothing limits');
select is(test.start_act('edit') - 'now' - 'deadline', '{"applied": true}', 'repeatable');
select is(test.commit_act('edit', test.failure('TRANSIENT', 'delivery', 'not_called')) - 'next_at',
	'{"applied": true, "status": "retry", "attempt": 0}', 'a call that the daemon did not make costs no attempt');
select test.tick('1 minute'), test.claim_acts(), test.start_act('edit');
select is(test.commit_act('edit', test.failure('TRANSIENT', 'delivery', 'tg_5xx')) - 'next_at',
	'{"applied": true, "status": "retry", "attempt": 1}');
select is(test.claim_acts(), '{}', 'it waits, and so do those behind it');
select test.tick('1 minute');
select is(test.claim_acts(), '{edit 2}');
select is((select c.render_meta -> 'series_progress' -> 'steps' from autopost.post_acts a
	cross join lateral (select jsonb_build_object('series_progress',
		jsonb_build_object('steps', autopost.sent_ids(d.render_meta, d.provider_message_id, p))) as render_meta
		from autopost.deliveries d, autopost.platforms p
			where d.delivery_id = a.delivery_id and p.platform = 'telegram') c
			where a.kind = 'edit'), '{"text": ["7"]}');
create temporary table token as select (test.act('edit')).claim_token as token, (test.act('edit')).act_id as id;
select is(test.commit_act('edit'), '{"applied": true, "status": "done", "attempt": 2}');
select is(autopost.commit_act('w', t.id, t.token, '{"ok": true}'),
	'{"applied": true, "status": "done", "attempt": 2, "repeated": true}') from token t;
select is(autopost.commit_act('w', t.id, 'other', '{"ok": true}') ->> 'reason', 'stale') from token t;
select is(autopost.commit_act('w', (test.ids())[1], 'other', '{"ok": true}') ->> 'reason', 'unknown_act');
select is(test.claim_acts(), '{pin 1}', 'and then the next');

-- Unknown outcomes are tried again; a lost claim comes back when its lease is over.
select is(test.commit_act('pin', test.failure('TRANSIENT', 'delivery', 'unknown_outcome',
	'{"known": false}')) ->> 'status', 'retry', 'done twice is done once');
select test.tick('1 minute');
select is(test.claim_acts(), '{pin 2}');
select test.tick('299 seconds');
select is(test.claim_acts(), '{}');
select test.tick('1 second');
select is(test.start_act('pin') ->> 'reason', 'stale', 'its lease is over');
select is(test.claim_acts(), '{pin 3}', 'a claim that died comes again');
select is(test.lapses('pin'), '{"2 true"}', 'the event says that its call did not start');
select is(test.commit_act('pin', test.failure('PERMANENT', 'channel', 'tg_no_rights')),
	'{"applied": true, "status": "failed", "attempt": 3}');
select is((select (c.enabled, c.paused_until, c.error_streak)::text from autopost.channels c), '(t,,0)',
	'that a post cannot be pinned says nothing about the channel');
select is((select e.result || ' ' || (e.error ->> 'code') from autopost.events e where e.action = 'act_failed'),
	'error tg_no_rights');

-- Attempts are bounded, also where every call is lost.
select test.ask('unpin');
select test.claim_acts(), test.tick('5 minutes') from generate_series(1, 5);
select is(test.claim_acts(), '{}');
select is((test.act('unpin')).status || ' ' || ((test.act('unpin')).last_error ->> 'code'), 'failed unknown_outcome');

-- A removal waits for none, and leaves nothing else to be done. A timed one waits for its time.
select test.ask('delete', null, autopost.now_ts() + interval '1 hour');
select test.ask('edit', '{"text": "newer"}'), test.claim_acts();
select test.commit_act('edit', test.failure('TRANSIENT', 'channel', 'tg_429', '{"retry_after_ms": 7200000}'));
select is((test.channel_row('a')).cooldown_until > autopost.now_ts() + interval '2 hours' - interval '1 second', true,
	'a wait is the channel''s');
select test.tick('1 hour');
select is(test.claim_acts(), '{}', 'nothing begins inside a platform''s wait');
update autopost.channels set cooldown_until = null;
select test.tick('30 seconds');
select is(test.claim_acts(), '{"delete 1"}', 'the removal is due, the edit waits');
select is(test.commit_act('delete') ->> 'status', 'done');
select is((test.act('edit')).status, 'void');
select is(test.ask('edit', '{"text": "late"}') -> 'results' -> 0 ->> 'reason', 'deleted');
select is((test.row('a')).status, 'sent', 'the delivery stays what it was');
select alike(autopost.why('w', (test.ids())[1]) #>> '{now,sentence}', 'sent at % as 7, taken down at %');
select is(jsonb_array_length(autopost.why('w', (test.ids())[1]) -> 'acts'), 5);
select is((select count(*)::int from jsonb_array_elements(autopost.why('w', (test.ids())[1]) -> 'chain') c
	where c.value ->> 'sentence' = replace(c.value ->> 'action', '_', ' ')), 0, 'each event has a sentence');

-- A stopped channel or workspace waits; a person may think better of it.
select test.tick('1 second'), test.say('another');
select test.tick('1 second'), test.round('a', '{"ok": true, "provider_message_id": "8"}');
select test.ask('delete');
update autopost.channels set paused_until = autopost.now_ts() + interval '1 hour';
select is(test.claim_acts(), '{}');
update autopost.channels set paused_until = null;
select test.tick('30 seconds'), test.claim_acts();
update autopost.workspaces set status = 'paused';
select is(test.start_act('delete') ->> 'reason', 'workspace');
select is((test.act('delete')).attempt, 0, 'handed back, and not counted');
update autopost.workspaces set status = 'active';
select is(autopost.cancel_acts('w', array[(test.act('delete')).act_id, (test.ids())[1]], 'olga', 'it was right',
	false) -> 'results',
	jsonb_build_array(jsonb_build_object('act_id', (test.act('delete')).act_id, 'applied', true, 'before', 'retry',
		'after', 'void'),
		jsonb_build_object('act_id', (test.ids())[1], 'applied', false, 'reason', 'unknown_act')));
select is(autopost.cancel_acts('w', array[(test.act('delete')).act_id], 'olga', 'again',
	false) -> 'results' -> 0 ->> 'reason', 'not_waiting');
select is((select count(*)::int from autopost.list_acts('w', jsonb_build_object('delivery_id', (test.ids())[1]), 10)),
	1);
select is((select count(*)::int from autopost.list_acts('w', '{}', 3)), 3);

-- A claim that died during its call is an unknown outcome. It is void after the post was removed.
select test.ask('edit', '{"text": "newest"}'), test.claim_acts(), test.start_act('edit'), test.ask('delete');
create temporary table dead as select (test.act('edit')).claim_token as token, (test.act('edit')).act_id as id;
select test.tick('5 minutes');
select is(test.claim_acts(1), '{"delete 1"}', 'the removal waits for a claim that lives');
select is(test.commit_act('delete') ->> 'status', 'done');
select is(test.claim_acts(), '{}', 'nothing is done to what was removed');
select is((test.act('edit')).status || ' ' || (test.act('edit')).attempt, 'void 1');
select is(test.lapses('edit'), '{"1 false"}');
select is(autopost.commit_act('w', t.id, t.token, '{"ok": true}') ->> 'reason', 'stale', 'the old claim is stale')
	from dead t;

-- Changes that each platform accepts, and the post data that they need.
select test.channel('x', p_platform => 'x', p_rate_group => 'x'),
	test.channel('m', p_platform => 'max', p_rate_group => 'm');
select test.tick('1 second'), test.post('{"text": "to all", "routing": {"include_channels": ["x", "m"]}}'),
	test.tick('1 second');
select test.round('x', '{"ok": true, "provider_message_id": "9"}'),
	test.commit('m', '{"ok": true, "provider_message_id": "mid.1"}');
select is(test.ask('edit', '{"text": "new"}', p_channel_id => 'x') -> 'results' -> 0 ->> 'message',
	'x takes no edit of a post: it takes delete');
select is(autopost.request_acts('w', 'edit', (test.row('x')).message_id, null, '{"text": "new"}', null, 'o', 'r',
	false) - 'results',
	'{"applied": true, "dry_run": false, "requested": 1, "refused": 1}',
		'a whole message, each channel by its own platform');

select * from finish();
rollback;
