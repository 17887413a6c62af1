-- A post to many channels is durable at once and is processed in ranges. Each channel gets it once.
begin;
\ir fake_clock.sql
\ir world.sql
select plan(69);

create function test.run(p_limit int default 100) returns jsonb
language sql
as $$
select autopost.run_fanout('w', p_limit)
$$;
create function test.counts(p_answer jsonb) returns text
language sql
as $$
-- "status enqueued deduped invalid skipped"
select concat_ws(' ', p_answer ->> 'status', p_answer ->> 'enqueued', p_answer ->> 'deduped', p_answer ->> 'invalid',
	p_answer ->> 'skipped')
$$;
create function test.reached(p_text text) returns text
language sql
as $$
-- Channels that have a delivery of this text, in order, each as often as it has one.
select coalesce(string_agg(d.channel_id, ',' order by d.channel_id), '') from autopost.deliveries d
join autopost.messages m on m.workspace_id = d.workspace_id and m.message_id = d.message_id
	where m.payload ->> 'text' = p_text
$$;
create function test.broken() returns text[]
language sql
as $$
select coalesce(array_agg(v.invariant || ' ' || v.sample), '{}') from autopost.verify('w') v where v.violations > 0
$$;
create function test.run_row(p_answer jsonb) returns autopost.ingest_runs
language sql
as $$
select r from autopost.ingest_runs r where r.run_id = (p_answer ->> 'run_id')::uuid
$$;

select test.channel('c' || n) from generate_series(1, 3) n;
update autopost.settings set value = '3' where key = 'fanout_chunk_channels';
select is(test.say('to three') ->> 'fanout', 'done', 'as many channels as fit: at once');
select is((select count(*)::int from autopost.fanout_jobs), 0);
select is(test.run() ->> 'status', 'idle');
select is(array(select autopost.ready_fanout_workspaces(10)), '{}');
select test.channel('c' || n) from generate_series(4, 8) n;

-- The answer: what is planned, and nothing done yet but what makes it certain.
create temp table big on commit drop as
	select test.post('{"text": "to eight", "scheduled_for": "2026-06-01T12:30:00Z"}') as a;
select is((select test.counts(a) || ' ' || (a ->> 'fanout') || ' ' || (a ->> 'planned') || ' ' || (a ->> 'deliveries')
	from big), 'enqueued 8 0 0 0 running 8 []');
select is((select count(*)::int from autopost.messages m, big where m.message_id = (a ->> 'message_id')::uuid), 1,
	'its message is kept');
select is(test.reached('to eight'), '');
select is((select (test.run_row(a)).stats_json -> 'enqueued' from big), '0', 'what is planned is not counted as done');
select is((select (test.run_row(a)).finished_at from big), null, 'nor is the run over');
select is((select autopost.get_run('w', (a ->> 'run_id')::uuid) #>> '{items,0,fanout}' from big), 'running');
select is((select autopost.get_run('w', (a ->> 'run_id')::uuid) #>> '{items,0,enqueued}' from big), '0',
	'progress is what was done');
select is(array(select autopost.ready_fanout_workspaces(10)), '{w}');
select is(test.broken(), '{}');

-- A range at a time, in the order of the channels.
select test.tick('1 second');
select is(test.counts(test.run(2)), 'running 2 0 0 0', 'no more than asked for');
select is(test.reached('to eight'), 'c1,c2');
select is((test.row('c1')).scheduled_for, '2026-06-01 12:30:00+00'::timestamptz);
select is((select array_agg(distinct enqueue_batch_id) = (select array_agg(job_id) from autopost.fanout_jobs)
	from autopost.deliveries where enqueue_batch_id is not null), true);
select is(test.count_events('enqueue'), 1, 'its event waits for the end');
select is(test.broken(), '{}', 'every committed moment is sound');
select is(test.counts(test.run()), 'running 5 0 0 0', 'nor than the setting allows');
select is(test.reached('to eight'), 'c1,c2,c3,c4,c5');
select is((test.gate('c4')).ready_at, '2026-06-01 12:30:00+00', 'its gates are armed');
select is((test.gate('c6')).ready_at, 'infinity');
select is(test.broken(), '{}');

-- A range that dies changes nothing.
savepoint crash;
select is(test.counts(test.run()), 'running 8 0 0 0');
rollback to crash;
select is(test.reached('to eight'), 'c1,c2,c3,c4,c5');
select is((select enqueued || ' ' || position from autopost.fanout_jobs), '5 c5');

-- A channel that comes meanwhile gets it, if its place is yet to come.
select test.channel('c0'), test.channel('c9');
select is(test.counts(test.run()), 'running 8 0 0 0', 'begun again where it stood');
select is(test.counts(test.run()), 'done 9 0 0 0');
select is(test.reached('to eight'), 'c1,c2,c3,c4,c5,c6,c7,c8,c9', 'everyone once');
select is((select count(*)::int || ' ' || max(e.meta ->> 'enqueued') from autopost.events e, big
	where e.action = 'enqueue' and e.message_id = (a ->> 'message_id')::uuid), '1 9',
		'one event for the message and run');
select is((select (test.run_row(a)).stats_json -> 'enqueued' from big), '9');
select isnt((select (test.run_row(a)).finished_at from big), null);
select is((select autopost.get_run('w', (a ->> 'run_id')::uuid) #>> '{items,0,fanout}' from big), 'done');
select is((select autopost.get_run('w', (a ->> 'run_id')::uuid) -> 'deliveries' from big), '{"queued": 9}');
select is((select (status, post)::text from autopost.fanout_jobs), '(done,)', 'what was frozen is let go');
select is(test.run() ->> 'status', 'idle');
select is(test.broken(), '{}');
update autopost.channels set enabled = false where channel_id in ('c0', 'c9');

-- The same content, while it is on its way: first to one of the last, who even has it sent before its range comes.
select test.tick('1 second');
select test.say('twice');
select is(test.counts(test.run()), 'running 3 0 0 0');
select is(test.counts(test.post('{"text": "twice", "routing": {"include_channels": ["c8"]}}')), 'enqueued 1 0 0 0');
select test.tick('1 second');
select test.claimed();
select test.start('c8');
select is(test.commit('c8', test.sent('8')) ->> 'status', 'sent');
select test.tick('1 second');
select is(test.counts(test.say('twice')), 'enqueued 8 0 0 0', 'and to all again, as a job behind the first');
select is(test.counts(test.run()), 'running 6 0 0 0');
select is(test.counts(test.run()), 'done 7 1 0 0', 'who has it is left out');
select is(test.counts(test.run()), 'running 0 3 0 0');
select is(test.counts(test.run()), 'running 0 6 0 0');
select is(test.counts(test.run()), 'done 0 8 0 0', 'and of the repetition nobody gets it');
select is(test.reached('twice'), 'c1,c2,c3,c4,c5,c6,c7,c8');
select is(test.count_events('dedup_suppressed'), 9, 'each repeat has an event');
select is(test.broken(), '{}');

-- The hints and tags are the post's, also after the request. Filters are the channels' at fan-out time.
update autopost.channels set route_filter = '{"include_any": ["a"]}' where channel_id in ('c2', 'c3', 'c8');
select is(test.post('{"text": "hinted #a", "routing": {"exclude_channels": ["c4"]}}') ->> 'planned', '7');
update autopost.channels set route_filter = '{"include_any": ["b"]}' where channel_id = 'c8';
select test.run(), test.run(), test.run();
select is(test.reached('hinted #a'), 'c1,c2,c3,c5,c6,c7');
update autopost.channels set route_filter = null;

-- Not everyone's to have.
update autopost.channels set send_mode = 'media' where channel_id = 'c5';
select test.tick('1 second');
select test.post(jsonb_build_object('text', 'short', 'variants',
	jsonb_build_object('c2', jsonb_build_object('text', repeat('x', 4097)))));
select test.run(), test.run();
select is(test.counts(test.run()), 'done 6 0 1 1', 'invalid and skipped are counted through all ranges');
select is(test.count_events('validation_failed', 'c2'), 1);
select is((test.row('c2')).status, 'failed_permanent');
select is(test.broken(), '{}');

-- Posts of one array, each to many: jobs that keep their order, and so does every channel.
update autopost.channels set send_mode = 'mixed';
create temp table many on commit drop as
select autopost.enqueue_messages_and_deliveries_batch('w', 'in', 'command',
	'[{"text": "z first"}, {"text": "a second"}, {"text": "z first"}, {"text": ""}]') as a;
select is((select jsonb_path_query_array(a, '$[*].fanout') from many), '["running", "running", "running"]');
select test.run(), test.run(), test.run();
select is(test.reached('z first') || ';' || test.reached('a second'), 'c1,c2,c3,c4,c5,c6,c7,c8;', 'one after another');
select test.run(), test.run(), test.run(), test.run(), test.run(), test.run();
select is((select string_agg(m.payload ->> 'text', ', ' order by d.due_at) from autopost.deliveries d
	join autopost.messages m on m.message_id = d.message_id
	where d.channel_id = 'c7' and m.payload ->> 'text' in ('z first', 'a second')), 'z first, a second');
select is((select (stats_json ->> 'enqueued') || ' ' || (stats_json ->> 'deduped') || ' ' || (finished_at is not null)
	from autopost.ingest_runs where kind = 'command'), '16 8 true');

-- A failed range is deferred and logged, and does not block other ranges.
create function test.refuse_c2() returns trigger
language plpgsql
as $$
begin
	raise exception 'c2 is ill';
end
$$;
select test.say('unlucky'), test.say('behind it');
create trigger refuse_c2 before insert on autopost.deliveries for each row
	when (new.channel_id = 'c2') execute function test.refuse_c2();
select is((select (a ->> 'status') || ': ' || (a #>> '{error,message}') from test.run() a), 'failed: c2 is ill');
drop trigger refuse_c2 on autopost.deliveries;
select is(test.counts(test.run()), 'running 3 0 0 0');
select is(test.reached('unlucky') || ';' || test.reached('behind it'), ';c1,c2,c3');
select test.run(), test.run();
select is(test.run() ->> 'status', 'idle');
select test.tick('2 seconds');
select is(test.counts(test.run()), 'running 3 0 0 0', 'later it goes on');
select is((select count(*)::int from autopost.fanout_jobs where last_error is not null), 0);
select test.run(), test.run();
select is(test.broken(), '{}');

-- Up to a thousand repeats of a post are reported one by one, over all its ranges.
select test.channel('d' || lpad(n::text, 4, '0')) from generate_series(1, 1001) n;
update autopost.channels set enabled = channel_id ~ '^d';
update autopost.settings set value = '2000' where key = 'fanout_chunk_channels';
select test.say('crowd');
update autopost.settings set value = '600' where key = 'fanout_chunk_channels';
select test.say('crowd'), test.run(1000), test.run(1000);
select is((select count(*) filter (where channel_id is not null) || ' ' || max(jsonb_array_length(meta -> 'channels'))
	from autopost.events where action = 'dedup_suppressed' and (channel_id ~ '^d' or meta ? 'channels')), '600 401');
select is(test.broken(), '{}');

select * from finish();
rollback;
