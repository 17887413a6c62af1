-- An edit of a post that waits is one transaction: what waits ends, and the new content takes its times and channels,
-- moderated where that is required. What was sent is edited.
begin;
\ir fake_clock.sql
\ir world.sql
select plan(53);

create function test.replace(p_raw jsonb, p_message_id uuid, p_dry_run boolean default false) returns jsonb
language sql as $$
select autopost.replace_post('w', p_message_id, p_raw, 'olga', 'wrong price', p_dry_run)
$$;
create function test.edit(p_changes jsonb, p_message_id uuid, p_dry_run boolean default false) returns jsonb
language sql as $$
select autopost.edit_post('w', p_message_id, p_changes, null, 'olga', 'wrong price', p_dry_run)
$$;
create function test.message(p_text text) returns uuid
language sql as $$ select m.message_id from autopost.messages m where m.payload ->> 'text' = p_text $$;
create function test.queue() returns text[]
language sql as $$
-- The queue: channel, text, time.
select coalesce(array_agg(d.channel_id || ' ' || d.rendered_text || coalesce(' '
	|| to_char(d.scheduled_for at time zone 'UTC',
	'DD HH24:MI'), '') order by d.channel_id), '{}') from autopost.deliveries d where d.status in ('queued', 'retry')
$$;
create function test.changes(p_answer jsonb) returns text[]
language sql as $$
-- Its results: channel, change and reason.
select array_agg(concat_ws(' ', r.value ->> 'channel_id', r.value ->> 'change', r.value ->> 'reason')
	order by r.value ->> 'channel_id')
from jsonb_array_elements(p_answer -> 'results') r
$$;

-- Each channel keeps its time.
select test.channel('a'), test.channel('b'), test.channel('c');
update autopost.channels set route_filter = '{"include_any": ["sale"]}' where channel_id = 'a';
select test.post('{"text": "old", "tags": ["sale"], "scheduled_for": "2026-06-02T10:00:00Z", "source_ref": "cms-1"}');
select autopost.reschedule('w', array[(test.row('b')).delivery_id], '2026-06-03 10:00:00+00', 'o', 'r', false);
select test.tick('1 second');
select is(test.replace('{"text": "new"}', test.message('old'), true) - 'results',
	'{"applied": true, "dry_run": true, "replaced": 3, "pending": 0, "requested": 0, "refused": 0, "message_id": null}');
select is(test.queue(), '{"a old 02 10:00","b old 03 10:00","c old 02 10:00"}', 'a dry run changes nothing');
select is(test.message('new'), null);
create temp table answer on commit drop as select test.replace('{"text": "new"}', test.message('old')) as a;
select is((select a - 'results' - 'message_id' from answer),
	'{"applied": true, "dry_run": false, "replaced": 3, "pending": 0, "requested": 0, "refused": 0}');
select is((select test.changes(a) from answer), '{"a replaced","b replaced","c replaced"}');
select is(test.queue(), '{"a new 02 10:00","b new 03 10:00","c new 02 10:00"}',
	'times and channels of the old, without its filters');
select is((select a ->> 'message_id' from answer), test.message('new')::text);
select is((select array_agg(d.status || ' ' || (d.last_error ->> 'code')) from autopost.deliveries d
	where d.message_id = test.message('old')),
	'{"dead manual_skip","dead manual_skip","dead manual_skip"}');
select is((select count(*)::int from autopost.events e where e.action = 'manual_skip'
	and e.meta ->> 'replaced_by' = test.message('new')::text), 3);
select is((select array_agg(x.a order by x.a) from (select distinct e.action as a from autopost.events e) x),
	'{enqueue,manual_skip,rescheduled}', 'no dead letter');
select is((select m.source_ref from autopost.messages m where m.message_id = test.message('new')), 'cms-1');
select is((select l.before || l.after - '{message_id,deliveries}'::text[] from autopost.admin_audit_log l
	where l.action = 'replace_post'),
	'{"text": "new"}');
select matches((select string_agg(h.value ->> 'sentence', ', ') from jsonb_array_elements(autopost.why('w',
	(select d.delivery_id
	from autopost.deliveries d where d.channel_id = 'a' and d.status = 'dead')) -> 'chain') h),
		'replaced by post .* by olga: wrong price');
select is((select autopost.result_data(e, 'delivery.dead', null) ->> 'replaced_by' from autopost.events e
	where e.action = 'manual_skip'
	limit 1), test.message('new')::text);
select test.set_clock('2026-06-02 10:00:00+00');
select is(test.claimed(), '{a,c}', 'it goes at its time');

-- A part was sent, one is in flight, one waits.
select test.start('a');
select test.commit('a', '{"ok": true, "provider_message_id": "7", "raw": {"ids": ["7"], "steps": {"text": ["7"]}}}');
create temp table parts on commit drop as select test.edit('{"text": "newer"}', test.message('new')) as a;
select is((select test.changes(a) from parts), '{"a edited","b replaced","c refused begun"}');
select is((select a - '{results,message_id}'::text[] from parts),
	'{"applied": true, "dry_run": false, "replaced": 1, "pending": 0, "requested": 1, "refused": 1}');
select is((select p.rendered_text from autopost.post_acts p where p.kind = 'edit'), 'newer');
select is(test.queue(), '{"b newer 03 10:00"}');
select is((select r.value ->> 'message' from parts, jsonb_array_elements(a -> 'results') r
	where r.value ->> 'channel_id' = 'c'),
	'its call has begun: wait for the outcome');
select test.commit('c', test.sent('8'));
select is(test.changes(test.edit('{"media": []}', test.message('newer'))), '{"b refused unchanged"}');
select is(test.changes(test.replace('{"text": "newer"}', test.message('newer'))), '{"b refused unchanged"}');
select is(test.replace('{"text": "newer"}', test.message('newer')) -> 'applied', 'false');

-- Only sent: as request_acts.
select is(test.edit('{"text": "newest"}', test.message('new')) - 'results',
	'{"applied": true, "dry_run": false, "requested": 2, "refused": 0}');
select throws_like($$select test.edit('{"media": []}', test.message('new'))$$,
	'argument media: cannot be changed in a post that was sent');

-- A channel that cannot take the new content keeps the old one.
select test.channel('x', p_platform => 'x', p_rate_group => 'xacc');
select test.tick('1 second');
select test.post('{"text": "short", "scheduled_for": "2026-06-05T10:00:00Z", "routing": {"include_channels": ["b", "x"]}}');
select test.post('{"text": "twin", "scheduled_for": "2026-06-05T10:00:00Z", "routing": {"include_channels": ["b"]}}');
update autopost.channels set settings = '{"long_text": "truncate"}' where channel_id = 'x';
select is(test.changes(test.replace('{"text": "twin"}', test.message('short'))),
	'{"b refused duplicate","x replaced"}');
select is((select array_agg(q order by q) from unnest(test.queue()) q where q like '%05 10:00'),
	'{"b short 05 10:00","b twin 05 10:00","x twin 05 10:00"}');
select is(test.changes(test.replace('{"text": "<b>", "parse_mode": "HTML"}', test.message('short'))),
	'{"b refused validation_failed"}');
select is((select count(*)::int from autopost.deliveries d where d.status = 'failed_permanent'), 0,
	'nothing is left of a refusal');

-- remove_at goes with it.
select test.post('{"text": "for a day", "scheduled_for": "2026-06-06T10:00:00Z", "remove_at": "2026-06-07T10:00:00Z", "routing": {"include_channels": ["c"]}}');
select test.replace('{"text": "for one day"}', test.message('for a day'));
select is((select p.due_at from autopost.post_acts p join autopost.deliveries d using (workspace_id, delivery_id)
	where d.message_id = test.message('for one day')), '2026-06-07 10:00:00+00');

-- A moderated channel.
select test.post('{"text": "free", "scheduled_for": "2026-06-08T10:00:00Z", "routing": {"include_channels": ["a", "c"]}, "tags": ["sale"]}');
update autopost.channels set moderated = true, updated_at = autopost.now_ts() - interval '1 hour'
	where channel_id = 'c';
create temp table held on commit drop as select test.replace('{"text": "costly"}', test.message('free')) as a;
select is((select test.changes(a) from held), '{"a replaced","c pending"}');
select is((select a - '{results,message_id}'::text[] from held),
	'{"applied": true, "dry_run": false, "replaced": 1, "pending": 1, "requested": 0, "refused": 0}');
select is((select array_agg(q) from unnest(test.queue()) q where q like '%08 10:00'), '{"a costly 08 10:00"}',
	'nothing goes there before a decision');
select is((select l.status || ' ' || l.text from autopost.list_submissions('w', '{}', 1) l), 'pending costly');

-- What waits for a decision is replaced, too.
create temp table part on commit drop as select test.post('{"text": "asked", "scheduled_for": "2026-06-09T10:00:00Z", "routing": {"include_channels": ["c"]}}') as a;
select is((select a -> 'pending' from part), '1');
create temp table again on commit drop as select test.replace('{"text": "asked again"}', test.message('asked')) as a;
select is((select (a #> '{results,0}') - '{submission_id,new_submission_id}'::text[] from again),
	'{"applied": true, "change": "pending", "channels": ["c"]}');
select is((select s.status from autopost.submissions s, part where s.submission_id = (a ->> 'submission_id')::uuid),
	'skipped');
select is((select autopost.decide_submission('w', (a ->> 'submission_id')::uuid, 'approve', '{}', 'ivan',
	'good') ->> 'reason' from part), 'not_pending');
select is((select autopost.decide_submission('w', (a #>> '{results,0,new_submission_id}')::uuid, 'approve', '{}',
	'ivan', 'good') ->> 'status' from again), 'enqueued');
select is((select array_agg(q) from unnest(test.queue()) q where q like '%09 10:00'), '{"c asked again 09 10:00"}',
	'with its time');
select is((select autopost.decide_submission('w', (r.value ->> 'submission_id')::uuid, 'approve', '{}', 'ivan',
	'good') ->> 'status'
	from held, jsonb_array_elements(a -> 'results') r where r.value ? 'submission_id'), 'enqueued');
select is((select array_agg(q) from unnest(test.queue()) q where q like '%08 10:00'),
	'{"a costly 08 10:00","c costly 08 10:00"}');

-- A moderated endpoint moderates the new content.
insert into autopost.workspace_endpoints (workspace_id, endpoint_id, kind, secret_hash, moderated)
values ('w', 'mod', 'webhook_push', repeat('b', 64), true);
select autopost.receive_push('w', 'mod',
	'[{"text": "pushed", "scheduled_for": "2026-06-10T10:00:00Z", "routing": {"include_channels": ["b"]}}]');
select autopost.decide_submission('w', l.submission_id, 'approve', '{}', 'ivan', 'good')
	from autopost.list_submissions('w', '{}', 1) l;
select is(test.changes(test.replace('{"text": "pushed again"}', test.message('pushed'))), '{"b pending"}');

-- Wrong input.
select is(test.replace('{"text": "y"}', gen_random_uuid()) ->> 'reason', 'unknown_message');
select is(test.replace('{"text": "y"}', test.message('pushed')) ->> 'reason', 'nothing_waits');
select is(test.replace('{"text": ""}', test.message('costly')) #>> '{errors,0,reason}', 'the post is empty');
select is(test.replace('{"text": "y", "media": [{"type": "image", "url": "https://example.org/1.png"}]}',
	test.message('costly')) #>> '{errors,0,reason}',
	'must be fetched first');
select throws_like($$select test.replace('{"text": "y", "scheduled_for": "2026-06-10T10:00:00Z"}',
	test.message('costly'))$$,
	'argument scheduled_for: must not be given%');
select throws_like($$select test.replace('[]', test.message('costly'))$$, 'argument raw_payload: is missing');
select throws_like($$select test.edit('{}', test.message('costly'))$$, 'argument changes: must have a field');
select is(test.edit('{"text": "y"}', gen_random_uuid()) ->> 'reason', 'unknown_message');
insert into autopost.fanout_jobs (workspace_id, job_id, message_id, run_id, trace_id, post, planned)
	select 'w', gen_random_uuid(), test.message('costly'), gen_random_uuid(), gen_random_uuid(), '{}', 3;
select is(test.replace('{"text": "y"}', test.message('costly')) ->> 'reason', 'fanout_running');
delete from autopost.fanout_jobs;

select test.tick('1 minute');
select is((select array_agg(v.invariant || v.sample::text) from autopost.verify('w') v where v.violations > 0), null);
select * from finish();
rollback;
