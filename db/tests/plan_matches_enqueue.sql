-- A plan is a rolled-back enqueue: same verdicts and texts for each channel, with reason and time.
-- It changes nothing.
begin;
\ir fake_clock.sql
\ir world.sql
select plan(62);
select test.bind();
select test.bind(b) from unnest('{other,shared,bot2,bot3}'::text[]) b;
select test.bind('maxbot', 'max');

create function test.plan(p_raw text, p_now timestamptz default null) returns jsonb
language sql
as $$
select autopost.plan('w', p_raw::jsonb, p_now)
$$;
create function test.planned(p_raw text, p_channel_id text, p_now timestamptz default null) returns jsonb
language sql
as $$
-- The plan of one channel.
select c.value from jsonb_array_elements(test.plan(p_raw, p_now) -> 'channels') c
	where c.value ->> 'channel_id' = p_channel_id
$$;
create function test.verdicts(p_plan jsonb) returns text
language sql
as $$
select string_agg(format('%s %s', c.value ->> 'channel_id', c.value ->> 'verdict'), ', ' order by c.ordinality)
	from jsonb_array_elements(p_plan -> 'channels') with ordinality c
$$;
create function test.gates(p_entry jsonb) returns text
language sql
as $$
select coalesce(string_agg(h.value ->> 'gate', ',' order by h.ordinality), '')
	from jsonb_array_elements(p_entry -> 'held_by') with ordinality h
$$;
create function test.rows() returns bigint[]
language sql
as $$
-- How much is written where an enqueue writes.
select array[(select count(*) from autopost.messages), (select count(*) from autopost.deliveries), (select count(*)
	from autopost.events),
	(select count(*) from autopost.ingest_runs), (select count(*) from autopost.channel_gates
		where ready_at < 'infinity'), (select sum(seen_count) from autopost.messages)]
$$;

-- Channels that get it, and skipped channels with their reasons.
select test.channel('a');
select test.channel('b', p_platform => 'max');
select test.channel(c) from unnest('{c-any,c-all,c-none,d-off,e-media,f-had}'::text[]) c;
update autopost.channels set route_filter = '{"include_any": ["rent", "sale"]}' where channel_id = 'c-any';
update autopost.channels set route_filter = '{"include_all": ["news", "ru"]}' where channel_id = 'c-all';
update autopost.channels set route_filter = '{"exclude": ["news", "ad"]}' where channel_id = 'c-none';
update autopost.channels set enabled = false where channel_id = 'd-off';
update autopost.channels set send_mode = 'media' where channel_id = 'e-media';
select test.post('{"text": "Hello #news", "routing": {"include_channels": ["f-had"]}}');
select test.round('f-had', test.sent('7'));
select test.tick('1 hour');
create temp table before on commit drop as select test.rows();
create temp table p on commit drop as select test.plan('{"text": "Hello #news", "tags": ["Tips"]}') as plan;
select is(test.rows(), (select rows from before), 'nothing is written');
select is(test.verdicts(plan), 'a queued, b queued, c-all not_routed, c-any not_routed, c-none not_routed, d-off disabled, e-media skipped, f-had deduped') from p;
select is(plan -> 'counts',
	'{"channels": 8, "queued": 2, "pending": 0, "deduped": 1, "invalid": 0, "skipped": 1, "not_routed": 3, "disabled": 1}') from p;
select is(plan ->> 'status', 'planned') from p;
create temp table said on commit drop as select c.value ->> 'channel_id' as channel_id, c.value as entry
	from p, jsonb_array_elements(plan -> 'channels') c;
select is(entry ->> 'reason', 'route_filter.include_any wants one of rent, sale; the post has news, tips') from said
	where channel_id = 'c-any';
select is(entry ->> 'reason', 'route_filter.include_all wants ru, which the post has not') from said
	where channel_id = 'c-all';
select is(entry ->> 'reason', 'route_filter.exclude has the post''s tag news') from said where channel_id = 'c-none';
select is(entry ->> 'reason', 'the channel is disabled') from said where channel_id = 'd-off';
select is(entry ->> 'reason', 'the channel takes media only') from said where channel_id = 'e-media';
select is(entry ->> 'reason',
	format('sent there at 2026-06-01T12:00:00Z as delivery %s; again from 2026-06-08T12:00:00Z on',
	(test.row('f-had')).delivery_id)) from said where channel_id = 'f-had';
select is(entry -> 'twin' ->> 'delivery_id', (test.row('f-had')).delivery_id::text) from said
	where channel_id = 'f-had';
select is(entry ->> 'text', 'Hello #news', 'as what text') from said where channel_id = 'a';
select is(entry -> 'held_by', '[]', 'held by nothing') from said where channel_id = 'a';
select is((entry ->> 'send_at')::timestamptz, autopost.now_ts(), 'at once') from said where channel_id = 'a';
select is(test.planned('{"text": "x", "routing": {"include_channels": ["b"]}}', 'a') ->> 'reason',
	'routing.include_channels does not name it');
select is(test.planned('{"text": "x", "routing": {"exclude_channels": ["a"]}}', 'a') ->> 'reason',
	'routing.exclude_channels names it');
select is(test.planned('{"text": "x"}', 'c-any') ->> 'reason',
	'route_filter.include_any wants one of rent, sale; the post has no tags');
select is(test.planned(jsonb_build_object('text', repeat('x', 4097))::text, 'a') - 'platform',
	'{"channel_id": "a", "verdict": "invalid", "reason": "text has 4097 characters, telegram takes at most 4096"}',
		'which limit');
select is(test.plan(jsonb_build_object('text', repeat('x', 4097))::text) -> 'counts' -> 'invalid', '4');
select is(
	test.planned('{"text": "<b>bold</b> & more", "parse_mode": "HTML", "variants": {"max": {"text": "*for MAX*"}}}',
	'b') ->> 'text', '*for MAX*');

-- The same refusals as the enqueue's.
select is(test.plan('{"text": ""}') - 'warnings',
	jsonb_build_object('status', 'rejected', 'errors', test.post('{"text": ""}') -> 'errors'));
select is(test.plan('null') ->> 'status', 'rejected');
select is(test.plan('{"text": "x", "colour": "red"}') -> 'warnings', '["colour"]', 'fields that mean nothing');
select is(jsonb_array_length(test.plan('{"media": [{"type": "image", "url": "https://e.x/1.png"}]}') -> 'notes'), 1,
	'media that nobody has seen yet');
select throws_ok($$select autopost.plan('w', '{"text": "x"}', 'infinity')$$, 'AP001');
update autopost.workspaces set status = 'disabled';
select throws_ok($$select test.plan('{"text": "x"}')$$, 'AP001', 'argument workspace_id: workspace w is disabled');
update autopost.workspaces set status = 'paused';
select is(test.gates(test.planned('{"text": "x"}', 'a')), 'workspace', 'a paused one takes posts and sends nothing');
select is(test.planned('{"text": "x"}', 'a') ->> 'send_at', null, 'no clock lifts that');
update autopost.workspaces set status = 'active';

-- The description of a filter matches the routing.
select is((select count(*)::int from (
	select r.filter, t.tags, c from
		(values (null), ('{}'), ('{"include_any": []}'), ('{"include_any": ["a"]}'), ('{"include_all": ["a", "b"]}'),
			('{"exclude": ["a"]}'), ('{"exclude": []}'),
			('{"include_any": ["a", "c"], "include_all": ["b"], "exclude": ["d"]}')) r (filter)
		cross join (values ('{}'), ('{a}'), ('{b}'), ('{a,b}'), ('{b,c}'), ('{a,b,d}')) t (tags)
		cross join lateral (select jsonb_populate_record(test.channel_row('a'),
			jsonb_build_object('route_filter', r.filter::jsonb)) as c) c
	where (autopost.route_refusal(c, '{}', t.tags::text[]) is null) <> autopost.route_matches(r.filter::jsonb,
		t.tags::text[])) x), 0, 'a reason exactly where the filter refuses');

-- A plan, then the enqueue: the same.
delete from autopost.channels where channel_id = 'none';
create temp table did on commit drop as select test.plan('{"text": "Same #news"}') as plan,
	test.post('{"text": "Same #news"}') as answer;
select is(answer ->> 'enqueued', plan -> 'counts' ->> 'queued') from did;
select is((select string_agg(d.value ->> 'channel_id', ',' order by 1)
	from jsonb_array_elements(answer -> 'deliveries') d where d.value ->> 'status' = 'queued'),
	(select string_agg(c.value ->> 'channel_id', ',' order by 1) from jsonb_array_elements(plan -> 'channels') c
		where c.value ->> 'verdict' = 'queued')) from did;
select is((test.row('a')).rendered_text, (select c.value ->> 'text' from jsonb_array_elements(plan -> 'channels') c
	where c.value ->> 'channel_id' = 'a')) from did;
select is((test.row('a')).render_meta, (select c.value -> 'meta' from jsonb_array_elements(plan -> 'channels') c
	where c.value ->> 'channel_id' = 'a')) from did;
select is(test.planned('{"text": "Same #news"}', 'a') ->> 'reason',
	format('in flight there as delivery %s, queued', (test.row('a')).delivery_id), 'and again: it is there');

-- At another time: p_now decides, for each caller.
select is(test.planned('{"text": "Hello #news"}', 'f-had', '2026-06-08 12:00:00+00') ->> 'verdict', 'queued',
	'after the TTL');
create role contract_planner login in role autopost_caller;
insert into autopost.role_workspaces (role_name, workspace_id) values ('contract_planner', 'w');
insert into autopost.workspaces (workspace_id) values ('v');
set local session authorization contract_planner;
select is(test.planned('{"text": "Hello #news"}', 'f-had', '2026-06-08 12:00:00+00') ->> 'verdict', 'queued',
	'with a caller''s rights');
select throws_ok($$select autopost.plan('v', '{"text": "x"}', null)$$, 'AP002');
reset session authorization;
select is(test.planned('{"text": "Hello #news"}', 'f-had', '2026-06-08 11:59:59+00') ->> 'verdict', 'deduped',
	'not before');
select is((test.planned('{"text": "Hello #news"}', 'f-had', '2026-06-08 12:00:00+00') ->> 'send_at')::timestamptz,
	'2026-06-08 12:00:00+00');

-- When: the latest of all that holds it.
select test.claimed();
select autopost.start_call('w', d.delivery_id, d.claim_token) from autopost.deliveries d where d.status = 'sending';
select autopost.mark_sent('w', d.delivery_id, d.claim_token, '1', null, null) from autopost.deliveries d
	where d.status = 'sending';
select test.channel('t', p_rate_group => 'other');
create function test.when_for(p_raw text default '{"text": "when"}') returns text
language sql
as $$
-- The instant and the gates of channel t, from the hour on.
select to_char((e ->> 'send_at')::timestamptz at time zone 'UTC', 'DD HH24:MI:SS') || ' ' || test.gates(e)
	from test.planned(p_raw, 't') e
$$;
select is(test.when_for(), '01 13:00:00 ');
select is(test.when_for('{"text": "when", "scheduled_for": "2026-06-01T14:00:00Z"}'), '01 14:00:00 scheduled_for');
select is(test.when_for('{"text": "when", "scheduled_for": "2026-05-01T14:00:00Z"}'), '01 13:00:00 ',
	'a time that has passed');
update autopost.channels set paused_until = '2026-06-01 15:00+00' where channel_id = 't';
select is(test.when_for('{"text": "when", "scheduled_for": "2026-06-01T14:00:00Z"}'),
	'01 15:00:00 scheduled_for,channel_paused');
update autopost.channels set cooldown_until = '2026-06-01 16:00+00' where channel_id = 't';
select is(test.when_for(), '01 16:00:00 channel_paused,channel_cooldown');
insert into autopost.platform_limits (workspace_id, platform, rate_group, cooldown_until)
	values ('w', 'telegram', 'other', '2026-06-01 17:00+00');
select is(test.when_for(), '01 17:00:00 channel_paused,channel_cooldown,group_cooldown');
update autopost.channels set window_mode = 'windowed',
	posting_window = '{"mon": [["18:00", "18:01"]], "tue": [["09:00", "10:00"]]}' where channel_id = 't';
select is(test.when_for(), '01 18:00:00 channel_paused,channel_cooldown,group_cooldown,window');
update autopost.channels set paused_until = null, cooldown_until = null, rate_rps = 0.1 where channel_id = 't';
update autopost.platform_limits set cooldown_until = null;
select is(test.when_for(), '01 18:00:00 window', 'rate alone holds nobody who is the first');
select test.posts('ahead', 5, '{"include_channels": ["t"]}');
select is(test.when_for(), '01 18:00:50 window,queue,channel_rate', 'five before it, ten seconds each');
select is((select h.value - 'lifts' from jsonb_array_elements(test.planned('{"text": "when"}', 't') -> 'held_by') h
	where h.value ->> 'gate' = 'queue'),
	'{"gate": "queue", "until": null, "ahead": 5}');
select test.posts('more', 2, '{"include_channels": ["t"]}');
select is(test.when_for(), '02 09:00:10 window,queue,channel_rate',
	'six go before the window closes, one and then it in the next');
update autopost.channels set posting_window = '{}' where channel_id = 't';
select is(test.planned('{"text": "when"}', 't') ->> 'send_at', null, 'no window ever opens');
update autopost.channels set window_mode = 'immediate', rate_rps = null where channel_id = 't';
select test.claimed();
select is(test.gates(test.planned('{"text": "when"}', 't')), 'max_parallel,queue', 'its place is taken');

-- The turn in the rate group: what waits there, and the channels before it in this plan.
select test.channel('u' || n, p_rate_group => 'shared') from generate_series(1, 3) n;
insert into autopost.platform_limits (workspace_id, platform, rate_group, rate_rps, next_allowed_at)
	values ('w', 'telegram', 'shared', 0.5, autopost.now_ts() + interval '10 seconds');
select test.posts('waits', 2, '{"include_channels": ["u2"]}');
create temp table turns on commit drop as
	select test.plan('{"text": "turn", "routing": {"include_channels": ["u1", "u2", "u3"]}}') as plan;
select is((select string_agg(format('%s +%s', c.value ->> 'channel_id',
	extract(epoch from (c.value ->> 'send_at')::timestamptz - autopost.now_ts())::numeric(9, 0)), ', ' order by 1)
	from jsonb_array_elements(plan -> 'channels') c where c.value ->> 'verdict' = 'queued'), 'u1 +14, u2 +16, u3 +18',
		'two that wait, then one after the other, two seconds each') from turns;
select is((plan ->> 'last_at')::timestamptz - (plan ->> 'first_at')::timestamptz, '4 seconds') from turns;
select is(test.gates(plan -> 'channels' -> 11), 'group_rate') from turns;

-- Many channels: the first thousand are listed, all are counted.
insert into autopost.channels (workspace_id, channel_id, platform, target_id, auth_ref, rate_group, rate_rps)
select 'w', 'z' || lpad(n::text, 4, '0'), 'telegram', '@z' || n, 'bot', 'many', null from generate_series(1, 2500) n;
update autopost.channels set route_filter = '{"include_any": ["odd"]}'
	where channel_id like 'z%' and right(channel_id, 1)::int % 2 = 0;
create temp table many on commit drop as select test.plan('{"text": "many"}') as plan, test.rows() as rows;
select is(jsonb_array_length(plan -> 'channels'), 1000) from many;
select is((select count(*)::int from jsonb_array_elements(plan -> 'channels') c where c.value ->> 'verdict' is null), 0)
	from many;
select is((plan -> 'counts' ->> 'queued')::int, 1250 + 8) from many;
select is((plan -> 'counts' ->> 'not_routed')::int, 1250 + 2) from many;
select is((plan -> 'counts' ->> 'channels')::int, 2500 + 12) from many;
update autopost.platform_limits set rate_rps = 10, next_allowed_at = null where rate_group = 'shared';
update autopost.channels set rate_group = 'shared' where channel_id like 'z%';
select is((autopost.plan('w', '{"text": "slowly", "routing": {"exclude_channels": ["t"]}}',
	null) ->> 'last_at')::timestamptz - autopost.now_ts(), '125.4 seconds',
	'ten a second: two that wait, 3 + 1250 of these, the last of all');
select is((select string_agg(v.invariant, ',') from autopost.verify('w') v where v.violations > 0), null,
	'and the invariants hold');

select * from finish();
rollback;
