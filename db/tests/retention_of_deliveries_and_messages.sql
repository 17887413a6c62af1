-- Finished rows are deleted after 90 days, unless a dedup window, an event, a receipt or a live delivery needs them.
begin;
\ir fake_clock.sql
\ir world.sql
select plan(36);

select test.channel('a', p_max_parallel => 100);
select test.channel('b', p_max_parallel => 100);
create function test.purge() returns jsonb
language sql
as $$
-- How many deliveries and messages went.
select jsonb_build_array(autopost.purge_deliveries('w', null) -> 'purged',
	autopost.purge_messages('w', null) -> 'purged')
$$;
create function test.forget_events(p_before timestamptz default autopost.now_ts() - interval '31 days') returns void
language sql
as $$
-- Same effect as dropping day partitions.
delete from autopost.events e where e.ts < date_trunc('day', p_before, 'UTC')
$$;
create function test.broken() returns text[]
language sql
as $$
select array_agg(v.invariant) from autopost.verify('w') v where v.violations > 0
$$;
create function test.only(p_channel_id text, p_text text, p_more jsonb default '{}') returns jsonb
language sql
as $$
select test.post(jsonb_build_object('text', p_text, 'routing',
	jsonb_build_object('include_channels', jsonb_build_array(p_channel_id))) || p_more)
$$;

-- One of each: sent, failed, invalid, dead by hand, and one that waits for long.
select test.only('a', 'sent');
select test.round('a', test.sent('1'));
select test.tick('1 second');
select test.only('a', 'failed');
select test.round('a', test.failure('PERMANENT', 'delivery', 'http_400'));
select test.tick('1 second');
select test.only('a', repeat('too long ', 1000));
select test.tick('1 second');
select test.only('b', 'skipped');
select autopost.skip_deliveries('w', array[(test.row('b')).delivery_id], 'o', 'r', false);
select test.tick('1 second');
select test.only('b', 'later', jsonb_build_object('scheduled_for', autopost.now_ts() + interval '5000 days'));
select is((select array_agg(d.status order by d.status) from autopost.deliveries d),
	'{dead,failed_permanent,failed_permanent,queued,sent}');
create temp table ids on commit drop as select d.delivery_id, d.status from autopost.deliveries d;

select test.tick('90 days');
select test.forget_events();
select is(test.purge(), '[0, 0]', 'the ninetieth day is not over');
select test.tick('1 day 1 minute');
select is((select count(*)::int from autopost.events), 0);
select is(test.purge(), '[4, 4]', 'what is done goes, and its content');
select is((select array_agg(d.status) from autopost.deliveries d), '{queued}', 'what waits stays, however old');
select is((select count(*)::int from autopost.messages), 1);
select is(test.broken(), null, 'and verify finds nothing amiss');
select is(test.purge(), '[0, 0]', 'repeated, it does nothing');
select is(test.only('a', 'sent') ->> 'enqueued', '1', 'the same content is a new one');
select test.round('a', test.sent('9'));
select is(test.broken(), null);

-- A repeat that was dropped needs what it repeats.
select test.tick('1 day');
update autopost.channels set dedup_ttl_hours = 2160 where channel_id = 'b';
select test.only('b', 'evergreen');
select test.round('b', test.sent('2'));
select test.tick('89 days');
select is(test.only('b', 'evergreen') ->> 'deduped', '1');
select test.tick('3 days');
select test.forget_events();
select ok((test.row('b')).finished_at < autopost.kept_from('delivery_retention_days'));
select test.purge();
select is((test.row('b')).provider_message_id, '2', 'its event still exists');
select is(test.broken(), null);
select test.tick('30 days');
select test.forget_events();
select is(test.purge() -> 0, '1', 'it goes when the event has gone');
select is((select count(*)::int from autopost.messages m where m.payload ->> 'text' = 'evergreen'), 1,
	'its content was seen later than that');
select is(test.broken(), null);

-- A late event of the delivery itself keeps it, too.
select test.only('b', 'stale');
select test.claimed();
create temp table claim on commit drop as select r.delivery_id, r.claim_token from test.row('b') r;
select test.start('b');
select test.commit('b', test.sent('3'));
select test.tick('80 days');
select is((select autopost.commit_outcome('w', c.delivery_id, 'another', test.sent('4')) ->> 'reason' from claim c),
	'stale');
select test.tick('12 days');
select test.forget_events();
select is((test.purge() -> 0), '0', 'a commit that came late left an event');
select is(test.broken(), null);

-- Content that is seen again and again stays.
select test.only('a', 'often');
select test.round('a', test.sent('5'));
select test.tick('60 days');
select test.only('a', 'often');
select test.round('a', test.sent('6'));
select test.tick('60 days');
select test.forget_events();
select test.purge();
select is((select count(*)::int from autopost.deliveries d join autopost.messages m using (workspace_id, message_id)
	where m.payload ->> 'text' = 'often'), 1, 'the older delivery goes, the younger stays');
select is(test.broken(), null);

-- A requeued one is not done.
select test.tick('100 days');
select test.forget_events();
select test.purge();
select test.tick('1 second');
select test.only('a', 'again');
select test.round('a', test.failure('PERMANENT', 'delivery', 'http_400'));
select test.tick('100 days');
select autopost.manual_requeue('w', array[(test.row('a')).delivery_id], 'o', 'r');
select test.forget_events();
select is(test.purge(), '[0, 0]');
select is((test.row('a')).status, 'retry');
select is(test.broken(), null);

-- Sweeping goes on where it left off, however much stays.
insert into autopost.deliveries (workspace_id, delivery_id, message_id, channel_id, hash_version, content_hash, status,
	provider_message_id, sent_at, finished_at, created_at)
select 'w', autopost.uuid_v7_of(autopost.now_ts() - interval '200 days', n::text), (test.row('a')).message_id, 'a', 1,
	'of old ' || n, 'sent', '1', t.at, t.at, t.at
from generate_series(1, 1500) n cross join (select autopost.now_ts() - interval '200 days' as at) t;
create temp table first on commit drop as select autopost.purge_deliveries('w', null) as answer;
select is((select answer -> 'purged' from first), '1000', 'a thousand at a time');
select is((select answer ->> 'after' from first) is not null, true);
select is(autopost.purge_deliveries('w', (select (answer ->> 'after')::uuid from first)),
	'{"purged": 500, "after": null}');
select is((select count(*)::int from autopost.deliveries where content_hash like 'of old %'), 0);

-- A message stays as long as a receipt answers for it.
update autopost.settings set value = '4800' where key = 'receipt_ttl_hours';
create temp table pushed on commit drop as
	select autopost.receive_push('w', 'in',
	'[{"source_ref": "r", "text": "pushed", "routing": {"include_channels": ["a"]}}]') -> 'results' -> 0 as answer;
update autopost.settings set value = '72' where key = 'receipt_ttl_hours';
select test.tick('1 second');
select autopost.skip_deliveries('w', array(select d.delivery_id from autopost.deliveries d
	where d.status in ('queued', 'retry')), 'o', 'r', false);
select test.tick('100 days');
select test.forget_events();
select autopost.purge_receipts('w');
select ok((test.purge() -> 0)::int > 0);
select is((select count(*)::int from autopost.messages m, pushed where m.message_id = (answer ->> 'message_id')::uuid),
	1);
select is(test.broken(), null);
select test.tick('101 days');
select is(autopost.purge_receipts('w') -> 'purged', '1');
select test.forget_events();
select is((test.purge() -> 1)::int > 0, true);
select is((select count(*)::int from autopost.messages), 0, 'in the end nothing is left');
select is((select count(*)::int from autopost.deliveries), 0);

select * from finish();
rollback;
