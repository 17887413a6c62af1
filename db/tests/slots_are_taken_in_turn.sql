-- The next free slot of a channel keeps its window, its gap, its quotas and its budget, and all that is planned.
begin;
\ir fake_clock.sql
\ir world.sql
select plan(35);

create function test.slots(p_channel_id text default 'a', p_limit int default 3,
	p_after timestamptz default null) returns text
language sql as $$
-- Day and time of the next free slots.
select string_agg(to_char((i.value ->> 'at')::timestamptz at time zone 'UTC', 'DD HH24:MI'), ', ' order by i.ordinality)
from jsonb_array_elements(autopost.next_free_slots('w', p_channel_id, p_after, p_limit) -> 'items') with ordinality i
$$;
create function test.gap(p_channel_id text, p_seconds int) returns void
language sql as $$
update autopost.channels set settings = jsonb_build_object('min_gap_seconds', p_seconds)
where channel_id = p_channel_id
$$;
create function test.plan_for(p_text text, p_at text, p_channel_id text default 'a') returns jsonb
language sql as $$
select test.post(jsonb_build_object('text', p_text, 'scheduled_for', p_at, 'routing',
	jsonb_build_object('include_channels',
	jsonb_build_array(p_channel_id))))
$$;
create function test.take(p_text text, p_channel_id text default 'a') returns jsonb
language sql as $$
select test.post(jsonb_build_object('text', p_text, 'slot', 'next_free', 'routing',
	jsonb_build_object('include_channels',
	jsonb_build_array(p_channel_id))))
$$;
create function test.time(p_text text) returns text
language sql as $$
-- The time of a post.
select to_char(d.scheduled_for at time zone 'UTC', 'DD HH24:MI') from autopost.deliveries d
	where d.rendered_text = p_text
$$;
create function test.send(p_text text) returns void
language sql as $$
-- Sends the post that is due.
select test.claimed();
select autopost.start_call('w', d.delivery_id, d.claim_token) from autopost.deliveries d where d.rendered_text = p_text;
select autopost.commit_outcome('w', d.delivery_id, d.claim_token, test.sent('1')) from autopost.deliveries d
where d.rendered_text = p_text
$$;

-- The gap.
select test.channel('a'), test.channel('b');
select is(test.slots(), '01 12:00, 01 12:01, 01 12:02', 'a minute by default');
select test.gap('a', 3600);
select is(test.slots(), '01 12:00, 01 13:00, 01 14:00');
select is(test.slots(p_after => '2026-06-01 12:30:00+00'), '01 12:30, 01 13:30, 01 14:30');
select test.plan_for('one', '2026-06-01T13:30:00Z');
select is(test.slots(), '01 12:00, 01 14:30, 01 15:30', 'what is planned counts');
select is(test.take('two') #>> '{deliveries,0,scheduled_for}', '2026-06-01T12:00:00+00:00', 'the answer has the slot');
select is(test.time('two'), '01 12:00');
select test.take('three');
select is(test.time('three'), '01 14:30');
select is(test.slots(), '01 15:30, 01 16:30, 01 17:30');
select is(test.slots('b', 1), '01 12:00', 'each channel has its own');
select test.tick('1 second');
select test.send('two');
select is(test.slots(p_limit => 1), '01 15:30');
delete from autopost.post_acts;
select autopost.skip_deliveries('w', array(select d.delivery_id from autopost.deliveries d
	where d.status = 'queued'), 'o', 'r', false);
select is(test.slots(p_limit => 1), '01 13:00', 'the last sent post counts');

-- The posting window.
update autopost.channels set window_mode = 'windowed', timezone = 'UTC',
	posting_window = '{"mon": [["09:00", "14:00"]], "tue": [["09:00", "11:00"]]}'
where channel_id = 'a';
select is(test.slots(), '01 13:00, 02 09:00, 02 10:00');
update autopost.channels set paused_until = '2026-06-02 09:30:00+00' where channel_id = 'a';
select is(test.slots(), '02 09:30, 02 10:30, 08 09:00', 'a pause counts');
update autopost.channels set window_mode = 'immediate', paused_until = null where channel_id = 'a';

-- Quotas of the channel and of its group.
select autopost.put_quota('w', 'channel:a', 86400, '{"max_sends": 2}', 'o', 'r', false);
select test.take('q1'), test.take('q2'), test.take('q3');
select is((select array_agg(to_char(d.scheduled_for, 'DD HH24:MI') order by d.scheduled_for) from autopost.deliveries d
	where d.status = 'queued'), '{"01 13:00","01 14:00","02 13:00"}', 'two in any day');
select test.plan_for('in between', '2026-06-03T13:00:00Z');
select is(test.slots(p_limit => 1), '03 14:00', 'a day that starts before it has two, or one that ends after it');
select autopost.put_quota('w', 'channel:a', 86400, '{"max_sends": 100}', 'o', 'r', false);
select autopost.put_quota('w', 'group:telegram/bot', 7200, '{"max_sends": 1}', 'o', 'r', false);
select is(test.slots('b', 1), '01 16:00', 'the group is shared');
select autopost.delete_quota('w', 'group:telegram/bot', 7200, 'o', 'r', false);

-- The budget.
select test.channel('x', p_platform => 'x', p_rate_group => 'xacc');
select test.bind('xacc', 'x');
select autopost.put_budget('w', 'xacc', jsonb_build_object('month_usd', (select p.post_micros * 2 / 1000000.0
	from autopost.platforms p
	where p.platform = 'x')), 'o', 'r', false);
select test.take('x1', 'x'), test.take('x2', 'x'), test.take('x3', 'x');
select is(test.time('x2'), '01 12:01');
select is((select d.scheduled_for from autopost.deliveries d where d.rendered_text = 'x3'), '2026-07-01 00:00:00+00',
	'the next month has money again');

-- Moves.
select test.channel('m');
select test.gap('m', 3600);
select test.posts('many', 3, '{"include_channels": ["m"]}');
select is((select array_agg(r.value ->> 'status') from jsonb_array_elements(autopost.reschedule('w',
	array(select d.delivery_id
	from autopost.deliveries d where d.channel_id = 'm' order by d.delivery_id), null, 'o', 'r', true) -> 'results') r),
	'{moved,moved,moved}');
select is((select count(*)::int from autopost.deliveries d where d.channel_id = 'm' and d.scheduled_for is not null),
	0);
select autopost.reschedule('w', array(select d.delivery_id from autopost.deliveries d where d.channel_id = 'm'
	order by d.delivery_id),
	null, 'o', 'r', false);
select is((select array_agg(to_char(d.scheduled_for, 'HH24:MI') order by d.delivery_id) from autopost.deliveries d
	where d.channel_id = 'm'), '{12:00,13:00,14:00}', 'in their order');
select is(test.slots('m', 1), '01 15:00');

-- The dry run, and a decision.
select is(jsonb_path_query_array(autopost.plan('w',
	'{"text": "planned", "slot": "next_free", "routing": {"include_channels": ["m"]}}', null),
	'$.channels[*].held_by[*] ? (@.gate == "scheduled_for").until'),
		jsonb_build_array('2026-06-01 15:00:01.001+00'::timestamptz),
	'a plan shows the slot');
select is(test.slots('m', 1), '01 15:00', 'and takes none');
update autopost.channels set moderated = true where channel_id = 'm';
select is(test.take('decided', 'm') -> 'pending', '1');
select is(test.slots('m', 1), '01 15:00', 'what waits for a decision has no slot');
select autopost.decide_submission('w', l.submission_id, 'approve', '{}', 'olga', 'good')
	from autopost.list_submissions('w', '{}', 1) l;
select is(test.time('decided'), '01 15:00', 'its approval takes one');

-- A post to more channels than one transaction takes.
select test.channel('f' || n) from generate_series(1, 3) n;
update autopost.settings set value = '2' where key = 'fanout_chunk_channels';
select is(test.post('{"text": "to many", "slot": "next_free", "routing": {"include_channels": ["f1", "f2", "f3"]}}') ->> 'fanout', 'running');
select autopost.run_fanout('w', 2);
select autopost.run_fanout('w', 2);
select is((select array_agg(d.channel_id || to_char(d.scheduled_for, ' HH24:MI') order by d.channel_id) from autopost.deliveries d
	where d.rendered_text = 'to many'), '{"f1 12:00","f2 12:00","f3 12:00"}', 'the job takes the slots');
select test.post('{"text": "to many again", "slot": "next_free", "routing": {"include_channels": ["f1"]}}');
select is(test.time('to many again'), '01 12:01');

-- Wrong input.
select is(autopost.payload_errors('{"text": "x", "slot": "soon"}') #>> '{0,reason}', 'must be next_free, got soon');
select is(autopost.payload_errors('{"text": "x", "slot": "next_free", "scheduled_for": "2026-06-02T10:00:00Z"}') #>> '{0,remedy}',
	'give a time or a slot');
select throws_like($$select autopost.next_free_slots('w', 'nope', null, 1)$$,
	'argument channel_id: must be a channel of the workspace, got nope');
select throws_like($$select autopost.next_free_slots('w', 'a', null, 0)$$, 'argument limit: must be 1 to 100, got 0');

select is((select array_agg(v.invariant || v.sample::text) from autopost.verify('w') v where v.violations > 0), null);
select * from finish();
rollback;
