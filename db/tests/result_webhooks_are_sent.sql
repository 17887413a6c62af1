-- Result webhooks are configured. They send each later event once, with retries, and again by replay.
begin;
\ir fake_clock.sql
\ir world.sql
select plan(75);

select test.channel('a');
select test.channel('b');
update autopost.channels set tags = '{news}' where channel_id = 'a';
insert into autopost.credential_bindings (workspace_id, auth_ref, platform, secret_ref) values
	('w', 'key', 'webhook', 'env:KEY'), ('w', 'key2', 'webhook', 'env:KEY2');
create function test.put(p_id text, p_fields jsonb, p_dry_run boolean default false) returns jsonb
language sql
as $$
select autopost.put_webhook('w', p_id, p_fields, 'ann', 'asked for', p_dry_run)
$$;
create function test.hook(p_id text) returns autopost.result_webhooks
language sql
as $$
select w from autopost.result_webhooks w where w.workspace_id = 'w' and w.webhook_id = p_id
$$;
create function test.queued(p_id text) returns text[]
language sql
as $$
select coalesce(array_agg(s.event_type order by s.event_at, s.event_type), '{}') from autopost.webhook_sends s
	where s.webhook_id = p_id
$$;
create function test.pump() returns jsonb
language sql
as $$
-- As a second later.
select test.tick('1 second');
select autopost.enqueue_webhooks('w')
$$;

-- Configured.
select is(test.put('crm', '{"url": "https://crm.example.com/r", "signing_ref": "key"}', true) - 'after',
	'{"applied": true, "dry_run": true, "created": true, "before": {}, "bound": true}');
select is((select count(*)::int from autopost.result_webhooks), 0, 'a dry run makes none');
select is(test.put('crm', '{"url": "https://crm.example.com/r", "signing_ref": "key"}') -> 'after',
	'{"url": "https://crm.example.com/r", "signing_ref": "key"}');
select is(test.put('crm', '{}') ->> 'reason', 'unchanged');
select is(test.put('x', c.f) #>> '{errors,0,field}', c.field, c.f::text)
from (values ('{"signing_ref": "key"}'::jsonb, 'url'), ('{"url": "https://x.example"}', 'signing_ref'),
	('{"url": "ftp://x.example", "signing_ref": "key"}', 'url'),
	('{"url": "https://u:p@x.example", "signing_ref": "key"}', 'url'),
		('{"url": "https://x.example", "signing_ref": "key", "event_types": ["delivery.sunk"]}', 'event_types'),
	('{"url": "https://x.example", "signing_ref": "key", "event_types": []}', 'event_types'),
		('{"url": "https://x.example", "signing_ref": "key", "channel_ids": ["nowhere"]}', 'channel_ids'),
	('{"url": "https://x.example", "signing_ref": "key", "rps": 0}', 'rps')) c (f, field);
select is(test.put('later', '{"url": "https://x.example", "signing_ref": "none"}') -> 'bound', 'false',
	'a credential may come later');
select is(test.put('sent', '{"url": "https://sent.example.com", "signing_ref": "key", "event_types": ["delivery.sent", "post.*"], "tags": ["News"]}') -> 'applied', 'true');
select is(test.put('off', '{"url": "https://off.example.com", "signing_ref": "key", "enabled": false}') -> 'applied',
	'true');
select is(autopost.remove_webhook('w', 'later', 'ann', 'r', false) -> 'applied', 'true');
select is(autopost.remove_webhook('w', 'later', 'ann', 'r', false) ->> 'reason', 'unknown_webhook');

-- Queued: wanted events, once, from the time it was enabled.
select test.tick('1 second');
select test.say('one');
select test.tick('1 millisecond');
select test.claimed();
select test.start('a');
select test.start('b');
select test.commit('a', test.sent('17'));
select is(test.pump() ->> 'busy', 'false');
select is(test.queued('crm'), '{post.accepted,delivery.sent}', 'nothing of a call that only began');
select test.commit('b', test.failure('PERMANENT', 'delivery', 'http_400', '{"message": "no, token=abcdef123456"}'));
select test.pump();
select is(test.queued('crm'), '{post.accepted,delivery.sent,delivery.failed_permanent,post.completed}');
select is(test.queued('sent'), '{post.accepted,delivery.sent,post.completed}',
	'by name and family, of channels with the tag');
select is(test.queued('off'), '{}');
select is((test.pump() ->> 'queued')::int, 0, 'what is read again is queued once');
select is((select s.body::jsonb #- '{data,delivery_id}' #- '{data,message_id}' #- '{data,trace_id}'
	from autopost.webhook_sends s where s.webhook_id = 'crm' and s.event_type = 'delivery.sent'),
	'{"type": "delivery.sent", "timestamp": "2026-06-01T12:00:01.001000Z", "data": {"workspace_id": "w", "channel_id": "a", "platform": "telegram", "attempt": 1,
		"provider_message_id": "17", "url": "https://t.me/a/17"}}');
select is(autopost.post_url('telegram', '@a', 'scheduled-1'), null, 'an id that Telegram did not state has no address');
select is((select s.event_id::text from autopost.webhook_sends s
	where s.webhook_id = 'crm' and s.event_type = 'delivery.sent'),
	(select e.id::text from autopost.events e where e.action = 'sent'), 'webhook-id is the id of the event');
select is((select s.body::jsonb #> '{data,error}' from autopost.webhook_sends s
	where s.event_type = 'delivery.failed_permanent'),
	'{"category": "PERMANENT", "code": "http_400", "message": "no, token=[redacted]"}');
select is((select s.body::jsonb #> '{data,counts}' from autopost.webhook_sends s
	where s.webhook_id = 'crm' and s.event_type = 'post.completed'), '{"sent": 1, "failed_permanent": 1, "dead": 0}');

-- Claimed: no more than places and rate, each with who signs.
create temp table c on commit drop as select x.value as v
	from jsonb_array_elements(autopost.claim_webhooks('w', 100)) x;
select is((select array_agg(t.n order by t.w) from (select v ->> 'webhook_id' as w, count(*) as n from c group by 1) t),
	'{4,3}');
select is((select c.v - '{event_id,claim_token,body}'::text[] from c where v ->> 'webhook_id' = 'crm' limit 1),
	'{"webhook_id": "crm", "url": "https://crm.example.com/r", "timeout_ms": 15000, "auth_refs": ["key"],
		"bound": [{"platform": "webhook", "secret_ref": "env:KEY", "last_version": 0, "stale": false}]}');
select is(autopost.claim_webhooks('w', 100), '[]', 'taken');
create function test.outcome(p_type text, p_outcome jsonb) returns jsonb
language sql
as $$
select autopost.commit_webhook('w', 'crm', s.event_id, s.claim_token, p_outcome) from autopost.webhook_sends s
	where s.webhook_id = 'crm' and s.event_type = p_type
$$;
create function test.send(p_type text) returns autopost.webhook_sends
language sql
as $$
select s from autopost.webhook_sends s where s.webhook_id = 'crm' and s.event_type = p_type
$$;
select is(autopost.commit_webhook('w', 'crm', (test.send('post.accepted')).event_id, 'other', '{"http_status": 204}'),
	'{"applied": false, "reason": "stale"}');
select is(test.outcome('post.accepted', '{"http_status": 204}'), '{"applied": true, "status": "delivered"}');
select is(test.outcome('delivery.sent', '{"error": "connection refused, secret=abcdef12"}') ->> 'status', 'pending');
select ok((test.send('delivery.sent')).due_at - autopost.now_ts() between '4 seconds' and '6 seconds',
	'five seconds, a fifth more or less');
select is((test.send('delivery.sent')).error, 'connection refused, secret=[redacted]');
select is(test.outcome('post.completed', '{"http_status": 503, "retry_after_ms": 60000}') ->> 'status', 'pending');
select ok((test.send('post.completed')).due_at - autopost.now_ts() between '60 seconds' and '72 seconds',
	'never before the wait of the receiver');
select isnt((test.hook('crm')).failing_since, null);
select is(test.outcome('delivery.failed_permanent', '{"http_status": 200}') ->> 'status', 'delivered');
select is((test.hook('crm')).failing_since, null, 'it takes calls again');

-- A lease that ran out: the call is made again. After the last try it is dead.
select test.tick('2 minutes');
select is((select array_agg(v ->> 'webhook_id' order by v ->> 'webhook_id')
	from jsonb_array_elements(autopost.claim_webhooks('w', 100)) x (v)), '{crm,crm,sent,sent,sent}');
update autopost.webhook_sends set attempt = 10 where webhook_id = 'crm' and event_type = 'delivery.sent';
select is(test.outcome('delivery.sent', '{"http_status": 500}') ->> 'status', 'dead');
select is((test.send('delivery.sent')).error, 'the answer was 500');
select test.outcome('post.completed', '{"http_status": 500}');
update autopost.result_webhooks set failing_since = autopost.now_ts(), max_parallel = 10 where webhook_id = 'crm';
select is(autopost.calls_allowed(test.hook('crm'), autopost.now_ts()), 1, 'one that fails has one place');
update autopost.result_webhooks set failing_since = null, rps = 2, next_send_at = autopost.now_ts()
	where webhook_id = 'crm';
select is(autopost.calls_allowed(test.hook('crm'), autopost.now_ts()), 2, 'a second of its rate at once');

-- Again, by what failed, by ids, by time: the same ids.
select is(autopost.replay_webhook('w', 'crm', '{"since": "2026-06-01T12:00:00Z", "failed_only": true}', 'ann', 'r',
	true) - 'unknown', '{"applied": true, "dry_run": true, "queued": 2, "next_since": null}');
select is((test.send('delivery.sent')).status, 'dead', 'a dry run queues nothing');
select is(autopost.replay_webhook('w', 'crm',
	jsonb_build_object('event_ids', jsonb_build_array((test.send('delivery.sent')).event_id,
	'01989f3a-7c1e-7a2b-8d3e-0123456789ab')), 'ann', 'r', false),
	'{"applied": true, "dry_run": false, "queued": 1, "next_since": null, "unknown": ["01989f3a-7c1e-7a2b-8d3e-0123456789ab"]}');
select is((test.send('delivery.sent')).status || (test.send('delivery.sent')).attempt, 'pending0');
create temp table sent_before on commit drop as select s.event_id, s.body from autopost.webhook_sends s
	where s.webhook_id = 'crm';
delete from autopost.webhook_sends where webhook_id = 'crm' and event_type <> 'delivery.sent';
select is((autopost.replay_webhook('w', 'crm', '{"since": "2026-06-01T12:00:00Z"}', 'ann', 'r',
	false) ->> 'queued')::int, 3, 'what waits already is not counted');
select results_eq($$select s.event_id, s.body from autopost.webhook_sends s where s.webhook_id = 'crm'
	order by 1$$, $$select * from sent_before order by 1$$, 'the same ids and bytes, rendered again');
select is(autopost.replay_webhook('w', 'crm', '{"since": "2026-06-01T12:02:00Z"}', 'ann', 'r', false) ->> 'reason',
	'nothing_to_replay');
select is(autopost.replay_webhook('w', 'nowhere', '{"since": "2026-06-01T12:02:00Z"}', 'ann', 'r', false) ->> 'reason',
	'unknown_webhook');
select is(autopost.replay_webhook('w', 'off', '{"since": "2026-06-01T12:02:00Z"}', 'ann', 'r', false) ->> 'reason',
	'disabled');

-- Another key: both sign for a while.
select test.put('crm', '{"signing_ref": "key2", "rps": null}');
select is((select v -> 'auth_refs' from jsonb_array_elements(autopost.claim_webhooks('w', 100)) x (v)
	where v ->> 'webhook_id' = 'crm' limit 1), '["key2", "key"]');

-- A test is tried once; 410 disables.
select is(autopost.test_webhook('w', 'off', 'ann', 'r') ->> 'reason', 'disabled');
select test.tick('1 second');
select is(autopost.test_webhook('w', 'crm', 'ann', 'r') -> 'applied', 'true');
select is((select v -> 'auth_refs' from jsonb_array_elements(autopost.claim_webhooks('w', 100)) x (v)
	where v ->> 'body' ~ 'webhook.test'), '["key2", "key"]');
select is(test.outcome('webhook.test', '{"http_status": 410}') ->> 'status', 'dead');
select is((test.hook('crm')).disabled_reason || (test.hook('crm')).enabled, 'gonefalse');
select is((select kind || ' ' || subject from autopost.list_alerts('w', 1)), 'webhook_disabled webhook:crm');
select is((select operator || ' ' || action from autopost.list_audit('w', '{}', 1)), 'autopost disable_webhook');
select is((select array_agg(l.type order by l.ts desc)
	from autopost.list_webhook_deliveries('w', '{"webhook_id": "crm", "status": "dead"}', 10) l), '{webhook.test}');
select test.put('crm', '{"enabled": true}');
select is((select count(*)::int from autopost.list_alerts('w', 10) where ended_at is null), 0, 'enabled again');

-- One of which all calls fail for days is disabled.
select test.tick('1 hour');
select autopost.claim_webhooks('w', 1000);
select test.outcome('post.completed', '{"http_status": 500}');
update autopost.webhook_sends set status = 'delivered', claim_token = null, finished_at = autopost.now_ts()
	where webhook_id = 'crm' and status = 'sending';
select test.tick('6 days');
select autopost.claim_webhooks('w', 1000);
select test.outcome('post.completed', '{"http_status": 500}');
select is((test.hook('crm')).disabled_reason, 'failing');
select is((autopost.purge_webhook_sends('w') ->> 'purged')::int, 0);
select test.tick('9 days');
select ok((autopost.purge_webhook_sends('w') ->> 'purged')::int > 0, 'what is past its time goes');
select is(test.queued('crm'), '{}');

-- No more at once than it has places, however many wait.
insert into autopost.webhook_sends (workspace_id, webhook_id, event_id, event_type, event_at, body, due_at, created_at)
select 'w', 'sent', gen_random_uuid(), 'delivery.sent', autopost.now_ts(), '{}', autopost.now_ts(), autopost.now_ts()
	from generate_series(1, 50);
select test.tick('1 minute');
update autopost.result_webhooks set max_parallel = 6 where webhook_id = 'sent';
select is((select count(*)::int from jsonb_array_elements(autopost.claim_webhooks('w', 100)) x (v)
	where v ->> 'webhook_id' = 'sent'), 6);
select is((select count(*)::int from jsonb_array_elements(autopost.claim_webhooks('w', 100)) x (v)
	where v ->> 'webhook_id' = 'sent'), 0);

-- A batch of results has the effect of single commits.
create temp table m on commit drop as
select s.event_id, s.claim_token, row_number() over (order by s.event_id) as n from autopost.webhook_sends s
	where s.webhook_id = 'sent' and s.status = 'sending';
create function test.settle() returns text[]
language sql
as $$
select array_agg(coalesce(a.v ->> 'status', a.v ->> 'reason') order by a.n)
from jsonb_array_elements(autopost.commit_webhook_batch('w', (
	select jsonb_agg(jsonb_build_object('webhook_id', 'sent', 'event_id', m.event_id, 'claim_token', case m.n
		when 3 then 'other' else m.claim_token end,
		'outcome', jsonb_build_object('http_status', case m.n when 2 then 500 else 204 end)) order by m.n)
			from m))) with ordinality a (v, n)
$$;
select is(test.settle(), '{delivered,pending,stale,delivered,delivered,delivered}');
select is((test.hook('sent')).failing_since, null, 'who took any of them is not failing');
select is(test.settle(), '{stale,stale,stale,stale,stale,stale}', 'each once');
select is(autopost.commit_webhook_batch('w', '[]'), '[]');

select * from finish();
rollback;
