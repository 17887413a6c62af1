-- why_source, why_webhook and why of a running fan-out say in words what is done, what it waits for and until when.
begin;
\ir fake_clock.sql
\ir world.sql
select plan(40);

create function test.gates(p_why jsonb) returns text[]
language sql
as $$
select array(select h.value ->> 'gate' from jsonb_array_elements(p_why #> '{now,held_by}') with ordinality h
	order by h.ordinality)
$$;

-- Sources.
create function test.source(p_id text default 'feed') returns text
language sql
as $$
select concat_ws(' | ', w #>> '{now,sentence}', nullif(array_to_string(test.gates(w), ','), ''),
	w #>> '{now,held_by,0,until}')
from autopost.why_source('w', p_id) w
$$;
select is(autopost.why_source('w', 'none'), null);
insert into autopost.pull_sources (workspace_id, source_id, kind, config_json)
values ('w', 'feed', 'rss', '{"url": "https://example.com/feed", "interval_seconds": 600}');
insert into autopost.workspace_endpoints (workspace_id, endpoint_id, kind, source_id)
values ('w', 'feed', 'pull_source', 'feed');
select is(test.source(), 'is due: the next free daemon with the stage ingest polls it');
select autopost.touch_run('daemon'), autopost.claim_sources('w', 'daemon', 1);
select is(test.source(),
	'is being polled by run daemon, lease until 2026-06-01T12:02:00Z | lease | 2026-06-01T12:02:00+00:00');
select is(autopost.why_source('w', 'feed') #>> '{source,leased_by}', 'daemon');
select is((autopost.why_source('w', 'feed') #>> '{now,daemon_seen_at}')::timestamptz, autopost.now_ts());
select test.tick('121 seconds');
select is(test.source(), 'is due: the next free daemon with the stage ingest polls it', 'the lease is over');
select autopost.claim_sources('w', 'daemon', 1);
select autopost.set_pull_cursor('w', 'feed', '{}');
select is(test.source(), 'waits for its next poll at 2026-06-01T12:12:01Z | interval | 2026-06-01T12:12:01+00:00');
select test.tick('10 minutes');
select autopost.claim_sources('w', 'daemon', 1);
select autopost.fail_poll('w', 'feed', '{"code": "http_503", "message": "busy"}');
select is(test.source(),
	'fails: 1 poll failed in a row, the next poll is at 2026-06-01T12:22:01Z, the last error: http_503: busy'
	' | poll_failed | 2026-06-01T12:22:01+00:00');
select test.tick('10 minutes');
select autopost.claim_sources('w', 'daemon', 1);
select autopost.fail_poll('w', 'feed', '{"code": "http_503", "message": "busy"}');
select is(autopost.why_source('w', 'feed') #> '{source,failures}', '2');
select matches(test.source(), '^fails: 2 polls failed in a row');
select test.tick('1 hour');
select is(test.source(), 'fails: 2 polls failed in a row, the next free daemon polls it, the last error: http_503: busy'
	' | poll_failed | 2026-06-01T12:42:01+00:00');
update autopost.workspace_endpoints set enabled = false where endpoint_id = 'feed';
select matches(test.source(), '^is polled, but its endpoint is disabled: its posts are refused');
update autopost.workspace_endpoints set enabled = true where endpoint_id = 'feed';
select autopost.claim_sources('w', 'daemon', 1);
select autopost.fail_poll('w', 'feed', '{"code": "http_410", "message": "gone", "gone": true}');
select is(test.source(), 'is stopped since 2026-06-01T13:22:01Z: http_410: gone | source_stopped');
update autopost.pull_sources set stopped = null;
select matches(test.source(), '^is disabled by an operator');
update autopost.workspaces set status = 'paused';
select is(test.gates(autopost.why_source('w', 'feed')), '{workspace,source_disabled}');
update autopost.workspaces set status = 'active';

-- Calls of result webhooks.
create function test.hook(p_event int default null) returns text
language sql
as $$
select concat_ws(' | ', w #>> '{now,sentence}', nullif(array_to_string(test.gates(w), ','), ''), w #>> '{now,send_at}')
from autopost.why_webhook('w', 'crm', md5(p_event::text)::uuid) w
$$;
create function test.answers(p_event int, p_outcome jsonb) returns text
language sql
as $$
select autopost.commit_webhook('w', 'crm', s.event_id, s.claim_token, p_outcome) ->> 'status'
from autopost.webhook_sends s where s.event_id = md5(p_event::text)::uuid
$$;
select is(autopost.why_webhook('w', 'none'), null);
insert into autopost.result_webhooks (workspace_id, webhook_id, url, signing_ref, enabled_at, next_send_at, max_parallel)
values ('w', 'crm', 'https://example.com/hook', 'key', autopost.now_ts(), autopost.now_ts(), 1);
select is(autopost.why_webhook('w', 'crm', md5('1')::uuid), null);
select is(test.hook(), 'works, no call waits');
insert into autopost.webhook_sends (workspace_id, webhook_id, event_id, event_type, event_at, body, due_at, created_at)
select 'w', 'crm', md5(n::text)::uuid, 'delivery.sent', autopost.now_ts(), '{}',
	autopost.now_ts() - (3 - n) * interval '1 second', autopost.now_ts()
from generate_series(1, 2) n;
select is(test.hook(1),
	'waits for its first call: the next free daemon with the stage webhooks makes it | 2026-06-01T13:22:01+00:00');
select is(test.hook(2), 'waits for its first call | queue', 'behind another');
select is(test.hook(), 'works, 2 calls wait | 2026-06-01T13:21:59+00:00');
select autopost.claim_webhooks('w', 10);
select is(test.hook(1), 'call 1 of 10 is running, lease until 2026-06-01T13:22:31Z');
select is(test.gates(autopost.why_webhook('w', 'crm')), '{webhook_capacity}', 'one at a time');
select is(autopost.why_webhook('w', 'crm') #> '{webhook,running}', '1');
select is(test.answers(1, '{"http_status": 503, "error": "the answer was 503"}'), 'pending');
update autopost.webhook_sends set due_at = autopost.now_ts() + interval '5 seconds' where attempt = 1;
select is(test.hook(1),
	'waits for call 2 of 10, the last answer was 503, the next try is at 2026-06-01T13:22:06Z'
	' | retry | 2026-06-01T13:22:06+00:00');
select matches(test.hook(), '^fails since 2026-06-01T13:22:01Z, 2 calls wait');
select is((autopost.why_webhook('w', 'crm', md5('1')::uuid) -> 'call') - '{attempted_at,event_id}'::text[],
	'{"type": "delivery.sent", "status": "pending", "attempt": 1, "http_status": 503, "error": "the answer was 503"}');
select test.tick('10 seconds');
update autopost.webhook_sends set attempt = 9 where attempt = 1;
update autopost.webhook_sends set due_at = autopost.now_ts() + interval '1 day' where attempt = 0;
select autopost.claim_webhooks('w', 10);
select is(test.answers(1, '{"error": "connection refused"}'), 'dead');
select is(test.hook(1), 'gave up at 2026-06-01T13:22:11Z after 10 calls, no answer arrived: connection refused');
select is(autopost.why_webhook('w', 'crm', md5('1')::uuid) #>> '{now,lifts}',
	'autopost webhook replay crm --event ' || md5('1')::uuid || ' --reason fixed');
select is(test.hook(),
	'fails since 2026-06-01T13:22:01Z, 1 call waits, the next is at 2026-06-02T13:22:11Z | 2026-06-02T13:22:11+00:00');
update autopost.webhook_sends set due_at = autopost.now_ts();
select test.tick('1 second'), autopost.claim_webhooks('w', 10);
select is(test.answers(2, '{"http_status": 410}'), 'pending');
select matches(test.hook(), '^is disabled: its address answered 410 Gone, 1 call waits');
select is((test.gates(autopost.why_webhook('w', 'crm')))[1], 'webhook_disabled');
update autopost.result_webhooks set enabled = true, disabled_reason = null;
update autopost.webhook_sends set due_at = autopost.now_ts() where status = 'pending';
select autopost.claim_webhooks('w', 10), test.answers(2, '{"http_status": 204}');
select matches(test.hook(2), '^delivered at 2026-06-01T13:22:12Z by call \d, the answer was 204$');

-- A running fan-out, by its message and by its run.
select test.channel('c' || n) from generate_series(1, 30) n;
select test.set('fanout_chunk_channels', '10');
create temp table posted on commit drop as select a, (a ->> 'message_id')::uuid as message_id
from (select test.say(t) from unnest('{first,second}'::text[]) t) x (a);
select is(array(select autopost.why('w', p.message_id) #>> '{now,sentence}' from posted p order by p.message_id),
	'{"fans out: 0 of 30 channels are through",'
	'"fans out: 0 of 30 channels are through, it waits for 1 earlier fan-out"}');
select is(autopost.why('w', j.run_id) ->> 'status', 'fanout') from autopost.fanout_jobs j order by j.job_id limit 1;
update autopost.fanout_jobs set attempt = 2, next_attempt_at = autopost.now_ts() + interval '4 seconds', enqueued = 10,
	last_error = '{"code": "40P01", "message": "deadlock detected"}'
	where message_id = (select min(message_id::text)::uuid from posted);
select is(array(select autopost.why('w', p.message_id) #>> '{now,sentence}' from posted p order by p.message_id),
	'{"fans out: 10 of 30 channels are through, the last range failed 2 times: 40P01: deadlock detected, '
	'the next try is at 2026-06-01T13:22:16Z",'
	'"fans out: 0 of 30 channels are through"}', 'a failing one lets the next one pass');
select is(autopost.why('w', (select min(message_id::text)::uuid from posted)) #> '{now,held_by,0}',
	'{"gate": "fanout", "until": "2026-06-01T13:22:16+00:00", '
	'"lifts": "a daemon with the stage ingest adds the next channels", "attempt": 2, "done": 10, "planned": 30}');

select * from finish();
rollback;
