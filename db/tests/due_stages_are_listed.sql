-- due_stages lists the stages with work that is due now or soon. Later, running and finished work is not listed.
begin;
\ir fake_clock.sql
\ir world.sql
select plan(36);

create function test.due(p_within_ms int default 0) returns text[]
language sql
as $$
select array(select autopost.due_stages(p_within_ms))
$$;
select test.channel('a');
select is(test.due(), '{}', 'nothing waits');

-- Deliveries.
select test.post(jsonb_build_object('text', 'later', 'scheduled_for', autopost.now_ts() + interval '10 seconds'));
select is(test.due(4000), '{}');
select is(test.due(10000), '{deliveries}', 'until it is asked again');
select test.tick('10 seconds');
select is(test.due(), '{deliveries}');
update autopost.workspaces set status = 'paused' where workspace_id = 'w';
select is(test.due(), '{}', 'it rests');
update autopost.workspaces set status = 'active' where workspace_id = 'w';
select test.round('a', '{"ok": true, "provider_message_id": "7", "raw": {"ids": ["7"], "steps": {"text": ["7"]}}}');
select is(test.due(), '{}', 'sent');

-- Acts.
select autopost.request_acts('w', 'pin', null, array[(test.row('a')).delivery_id], null,
	autopost.now_ts() + interval '1 minute', 'o', 'r', false);
select is(test.due(4000), '{}');
select is(test.due(60000), '{acts}');
select test.tick('1 minute');
select is(test.due(), '{acts}');
update autopost.workspaces set status = 'paused' where workspace_id = 'w';
select is(test.due(), '{}', 'it rests');
update autopost.workspaces set status = 'active' where workspace_id = 'w';
select is((select count(*)::int from autopost.claim_acts('w', 'r', 10)), 1);
select is(test.due(), '{}', 'in flight');
select is(test.due(300000), '{acts}', 'until its lease is over');
delete from autopost.post_acts;

-- Submissions.
select autopost.receive_push('w', 'in',
	'[{"text": "x", "source_ref": "x", "media": [{"type": "image", "url": "https://e.x/1.png"}]}]');
select is(test.due(), '{submissions}');
create temp table s on commit drop as select c.* from autopost.claim_submissions('w', 'r', 1) c;
select is(test.due(4000), '{}', 'in flight');
select is(test.due(120000), '{submissions}', 'until its lease is over');
select autopost.commit_submission('w', s.submission_id, s.claim_token, test.failure('PERMANENT', 'delivery', 'gone'))
	from s;
select is(test.due(3600000), '{}', 'it has failed');

-- A post to very many.
select test.channel('b');
update autopost.settings set value = '1' where key = 'fanout_chunk_channels';
select test.post(jsonb_build_object('text', 'to two', 'scheduled_for', autopost.now_ts() + interval '1 day'));
select is(test.due(), '{fanout}');
select autopost.run_fanout('w', 10), autopost.run_fanout('w', 10), autopost.run_fanout('w', 10);
select is(test.due(4000), '{}', 'all are reached');

-- Sources.
insert into autopost.pull_sources (workspace_id, source_id, kind, config_json)
	values ('w', 'feed', 'rss', '{"url": "https://example.org/feed", "interval_seconds": 60}');
select is(test.due(), '{sources}', 'it was never polled');
select autopost.list_due_sources('w', 1), autopost.set_pull_cursor('w', 'feed', '{}');
select is(test.due(4000), '{}');
select is(test.due(60000), '{sources}');
update autopost.pull_sources set enabled = false;

-- Results.
insert into autopost.credential_bindings (workspace_id, auth_ref, platform, secret_ref)
	values ('w', 'key', 'webhook', 'env:KEY');
select autopost.put_webhook('w', 'crm', '{"url": "https://crm.example.com/r", "signing_ref": "key"}', 'o', 'r', false);
select is(test.due(), '{results}', 'its events were never read');
select autopost.enqueue_webhooks('w'), autopost.claim_webhooks('w', 100);
select is(test.due(), '{}');
select is(test.due(4000), '{results}', 'to be read again');
update autopost.settings set value = '3600000' where key = 'webhook_poll_ms';
select is(test.due(4000), '{}');
select autopost.test_webhook('w', 'crm', 'o', 'r');
select is(test.due(), '{results}', 'a result webhook is due');
select autopost.claim_webhooks('w', 100);
select is(test.due(), '{}', 'in flight');
select is(test.due(60000), '{results}', 'until its lease is over');
update autopost.result_webhooks set enabled = false;
select is(test.due(60000), '{}');

-- Leases.
update autopost.settings set value = default_value where key = 'fanout_chunk_channels';
select autopost.touch_run('run-1');
select test.say('in flight');
select test.claimed();
select test.tick('44 seconds');
select is(test.due() @> '{leases}', false, 'its holder may be at work');
select test.tick('1 second');
select is(test.due() @> '{leases}', true, 'its holder is not heard of any more');
select autopost.touch_run('run-1');
select is(test.due() @> '{leases}', false, 'it was late');
select test.tick('255 seconds'), autopost.touch_run('run-1');
select is(test.due() @> '{leases}', true, 'the lease is over');
update autopost.workspaces set status = 'paused' where workspace_id = 'w';
select is(test.due() @> '{leases}', false, 'it rests');
update autopost.workspaces set status = 'active' where workspace_id = 'w';
select autopost.recover_sending_leases('w');
select is(test.due() @> '{leases}', false, 'recovered');

select * from finish();
rollback;
