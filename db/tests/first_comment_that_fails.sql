-- A post whose first comment fails for good is sent: it is never sent again, and the failure shows.
begin;
\ir fake_clock.sql
\ir world.sql
select plan(47);

select test.channel('a');
select test.channel('b');
create function test.out(p_channel_id text, p_text text) returns void
language sql
as $$
-- A post with a first comment, of which the platform has the post.
select test.tick('1 hour');
select test.post(jsonb_build_object('text', p_text, 'first_comment', 'Read more', 'routing',
	jsonb_build_object('include_channels', jsonb_build_array(p_channel_id))));
select test.claimed();
select test.start(p_channel_id);
select autopost.record_series_progress('w', r.delivery_id, r.claim_token, '{"step": "text", "ids": ["11"]}')
	from test.row(p_channel_id) r
$$;
create function test.error_of(p_channel_id text) returns text
language sql
as $$
-- The reason of the failed comment, in the row and in its event.
select (r.render_meta #>> '{comment_failed,code}') || ' ' || (r.last_error ->> 'code') || ' ' || (
	select e.error ->> 'code' from autopost.events e
	where e.workspace_id = 'w' and e.delivery_id = r.delivery_id and e.action = 'comment_failed')
from test.row(p_channel_id) r
$$;

-- A permanent failure of whatever scope.
select test.out('a', 'one');
select is(test.commit('a', test.failure('PERMANENT', 'delivery', 'tg_reply_missing',
	'{"message": "message to be replied not found"}')) ->> 'status', 'sent');
select is((test.row('a')).status, 'sent');
select is((test.row('a')).provider_message_id, '11', 'as the message that went');
select is((test.row('a')).sent_at, autopost.now_ts());
select is(test.actions('a'), '{send_attempt,comment_failed,sent}');
select is(test.error_of('a'), 'tg_reply_missing tg_reply_missing tg_reply_missing');
select is((test.row('a')).render_meta #> '{comment_failed,message}', '"message to be replied not found"');
select is((test.row('a')).render_meta -> 'steps', '[{"step": "text", "text": true}]',
	'a change of the post leaves it out');
select is(autopost.why('w', (test.row('a')).delivery_id) #>> '{now,sentence}', format(
	'sent at %s as 11, without its first comment: tg_reply_missing: message to be replied not found',
	autopost.instant_text(autopost.now_ts())));
select is((select c.value ->> 'sentence' from jsonb_array_elements(autopost.why('w',
	(test.row('a')).delivery_id) -> 'chain') c
	where c.value ->> 'action' = 'comment_failed'),
	'the first comment is given up, and the post stays: tg_reply_missing: message to be replied not found');
select is(test.post('{"text": "one", "first_comment": "Read more", "routing": {"include_channels": ["a"]}}') ->> 'deduped', '1',
	'the content is in the dedup window');
select is(autopost.manual_requeue('w', array[(test.row('a')).delivery_id], 'ann', 'again') #>> '{results,0,applied}',
	'false',
	'and is not requeued');
select is((test.gate('a')).inflight, 0);
select is((test.gate('a')).last_provider_message_id, '11');

select test.out('a', 'two');
select is(test.commit('a', test.failure('PERMANENT', 'channel', 'tg_no_rights')) ->> 'status', 'sent');
select is((test.channel_row('a')).paused_until, null, 'the next post shows the state of the channel');
select is((test.channel_row('a')).error_streak, 0);

-- A passing failure is tried again, and only the comment goes.
select test.out('a', 'three');
select is(test.commit('a', test.failure('TRANSIENT', 'delivery', 'tg_500')) ->> 'status', 'retry');
select test.tick('1 hour');
select is((select c.render_meta #> '{series_progress,steps}' from test.claim() c), '{"text": ["11"]}');
select test.start('a');
select is(test.commit('a', test.sent('11') || '{"raw": {"steps": {"comment": ["12"]}}}') ->> 'status', 'sent');
select is((test.row('a')).render_meta #> '{series_progress,provider_message_ids}', '["11", "12"]');
select is((test.row('a')).render_meta -> 'comment_failed', null);
-- Without an attempt left the post is sent.
select test.out('a', 'four');
update autopost.deliveries d set attempt = 5 where d.delivery_id = (test.row('a')).delivery_id;
update autopost.events e set attempt = 5 where e.delivery_id = (test.row('a')).delivery_id;
select is(test.commit('a', test.failure('TRANSIENT', 'delivery', 'tg_500')) ->> 'status', 'sent');
select is(test.error_of('a'), 'tg_500 tg_500 tg_500');

-- An unknown outcome is settled as for any message: asked, sent once more, or held.
select test.out('a', 'five');
select is(test.commit('a', test.failure('TRANSIENT', 'delivery', 'timeout', '{"known": false}')) ->> 'status', 'retry');
select test.tick('1 hour');
select test.claimed();
select test.start('a');
select is(test.commit('a', test.failure('TRANSIENT', 'delivery', 'timeout', '{"known": false}')) ->> 'status', 'sent');
select is(test.error_of('a'), 'unknown_outcome unknown_outcome unknown_outcome');
update autopost.channels c set on_unknown = 'hold' where c.channel_id = 'a';
select test.out('a', 'six');
select is(test.commit('a', test.failure('TRANSIENT', 'delivery', 'timeout', '{"known": false}')) ->> 'status', 'retry');
select is((test.row('a')).next_retry_at, 'infinity');
select is(autopost.resolve_unknown('w', (test.row('a')).delivery_id, 'found', '13', 'olga', 'seen'),
	'{"applied": true, "status": "sent"}');
select is((test.row('a')).render_meta #> '{series_progress,provider_message_ids}', '["11", "13"]');
select is((test.row('a')).provider_message_id, '11');
-- A person settles one part of a thread, and the rest goes.
select test.tick('1 hour');
select test.post('{"text": "seven", "thread": [{"text": "Two"}, {"text": "Three"}], "routing": {"include_channels": ["a"]}}');
select test.round('a', test.failure('TRANSIENT', 'delivery', 'timeout', '{"known": false}'));
select is(autopost.resolve_unknown('w', (test.row('a')).delivery_id, 'found', '21', 'olga', 'seen'),
	'{"applied": true, "status": "retry"}');
select is((select c.render_meta #> '{series_progress,steps}' from test.claim() c), '{"text": ["21"]}');
select test.start('a');
select is(test.commit('a', test.sent('21')
	|| '{"raw": {"steps": {"part-2.text": ["22"], "part-3.text": ["23"]}}}') ->> 'status', 'sent');

-- More than the comment is missing: the delivery fails as a whole, and goes on with its tail.
select test.tick('1 hour');
select test.post('{"text": "eight", "thread": [{"text": "Two"}], "first_comment": "Three", "routing": {"include_channels": ["b"]}}');
select test.claimed();
select test.start('b');
select autopost.record_series_progress('w', r.delivery_id, r.claim_token, '{"step": "text", "ids": ["31"]}')
	from test.row('b') r;
select is(test.commit('b', test.failure('PERMANENT', 'delivery', 'tg_no')) ->> 'status', 'failed_permanent');
select is((test.row('b')).render_meta -> 'comment_failed', null);
select is(autopost.why('w', (test.row('b')).delivery_id) #>> '{now,sentence}', 'ended with 1 of 3 messages sent: tg_no');
select autopost.manual_requeue('w', array[(test.row('b')).delivery_id], 'ann', 'again');
select is(autopost.why('w', (test.row('b')).delivery_id) #>> '{now,sentence}',
	'waits: credential missing; 1 of 3 messages are sent');
select is((select c.render_meta #> '{series_progress,steps}' from test.claim() c), '{"text": ["31"]}', 'only the tail goes');
select test.start('b');
select is(test.commit('b', test.failure('PERMANENT', 'delivery', 'tg_no')) ->> 'status', 'failed_permanent');

-- A refused comment is not a post of the quota; the result webhook names it; the lease of a dead daemon too.
select autopost.put_quota('w', 'channel:b', 3600, '{"max_sends": 10}', 'ann', 'test', false);
select test.out('b', 'nine');
select test.commit('b', test.failure('PERMANENT', 'delivery', 'tg_no'));
select is((select u.posts from autopost.quota_uses u where u.delivery_id = (test.row('b')).delivery_id), 1);
select is((select autopost.result_type(e) from autopost.events e where e.delivery_id = (test.row('b')).delivery_id
	and e.action = 'comment_failed'), 'delivery.comment_failed');
select is((select autopost.result_data(e, 'delivery.comment_failed', test.channel_row('b')) #> '{error,code}'
	from autopost.events e
	where e.delivery_id = (test.row('b')).delivery_id and e.action = 'comment_failed'), '"tg_no"');
select test.out('b', 'ten');
update autopost.deliveries d set unknown_allowance = 0 where d.delivery_id = (test.row('b')).delivery_id;
select test.tick('1 hour');
select is(autopost.recover_sending_leases('w') ->> 'recovered', '1');
select is((test.row('b')).status, 'sent');
select is(test.error_of('b'), 'unknown_outcome unknown_outcome unknown_outcome');

select * from finish();
rollback;
