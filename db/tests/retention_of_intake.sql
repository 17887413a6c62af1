-- Receipts are deleted after their time. The settings decide about runs, decided submissions and
-- event partitions. Waiting rows stay.
begin;
\ir fake_clock.sql
\ir world.sql
select plan(36);

select test.channel('a', p_max_parallel => 100);
insert into autopost.pull_sources (workspace_id, source_id, kind) values ('w', 'feed', 'rss');
insert into autopost.workspace_endpoints (workspace_id, endpoint_id, kind, source_id)
	values ('w', 'feed', 'pull_source', 'feed');
create function test.push(p_ref text, p_media boolean) returns jsonb
language sql
as $$
select autopost.receive_push('w', 'in', jsonb_build_array(jsonb_build_object('source_ref', p_ref, 'text', p_ref,
	'media', case when p_media then '[{"type": "image", "url": "https://e.x/1.png"}]'::jsonb
		else '[]' end))) -> 'results' -> 0
$$;
create function test.broken() returns text[]
language sql
as $$
select array_agg(v.invariant) from autopost.verify('w') v where v.violations > 0
$$;

-- Events by whole days.
select test.set_clock('2026-06-01 12:00:00+00');
select autopost.ensure_event_partitions();
select test.push('first', false);
select test.round('a', test.sent('1'));
select is((select count(*)::int from autopost.events_20260601), 3);
select test.tick('30 days 11 hours 59 minutes');
select is(autopost.drop_event_partitions() ->> 'dropped', '0', 'thirty days are not over for the whole day');
select test.tick('2 minutes');
select is(autopost.drop_event_partitions() - 'in_default', '{"dropped": 1, "busy": false, "more": false}');
select is(to_regclass('autopost.events_20260601'), null);
select isnt(to_regclass('autopost.events_20260602'), null);
select is(test.broken(), null, 'nobody misses them');
select test.tick('10 days');
select is(autopost.drop_event_partitions() ->> 'dropped', '3');
select is(autopost.drop_event_partitions() - 'in_default', '{"dropped": 0, "busy": false, "more": false}',
	'repeated, it does nothing');

-- Not more than seven at once; and what fell into the default partition goes, too.
update autopost.settings set value = '20' where key = 'event_partition_days';
select test.set_clock('2026-05-01 12:00:00+00');
select autopost.ensure_event_partitions();
select test.set_clock('2026-07-20 12:00:00+00');
select test.say('late keeper');
select is((select count(*)::int from autopost.events_default), 1);
select is((autopost.ensure_event_partitions() -> 'made')::int, 20,
	'a day that has rows in the default partition is left out, the others are made');
create temp table dropped on commit drop as select autopost.drop_event_partitions() as answer;
select is((select answer - 'busy' from dropped), '{"dropped": 7, "more": true, "in_default": 1}');
select test.set_clock('2026-08-21 12:00:00+00');
select is((select count(*)::int from generate_series(1, 20)
	where (autopost.drop_event_partitions() -> 'dropped')::int > 0), 3);
select is((select count(*)::int from autopost.events_default), 0);
select autopost.skip_deliveries('w', array[(test.row('a')).delivery_id], 'o', 'r', false);

-- Receipts.
select autopost.purge_receipts('w'), autopost.purge_runs('w');
select test.push('fetched', true);
select test.push('waiting', true);
select autopost.ingest_pull_chunk('w', 'feed', 'feed', '[{"source_ref": "1", "payload": {"text": "pulled"}}]');
select is((select count(*)::int from autopost.ingress_receipts), 2);
select test.tick('71 hours');
select is(autopost.purge_receipts('w'), '{"purged": 0, "more": false}', 'their time is not over');
select test.tick('1 hour');
select is(autopost.purge_receipts('w'), '{"purged": 2, "more": false}');
select is((select count(*)::int from autopost.pull_receipts), 1, 'that of a source is kept for longer');
select is(test.push('fetched', true) ->> 'status', 'accepted', 'and then the same source_ref is a new post');
select test.tick('90 days');
select is(autopost.purge_receipts('w') -> 'purged', '1', 'the source was not asked since: it may still show its item');
insert into autopost.pull_cursors (workspace_id, source_id, last_poll_at) values ('w', 'feed', autopost.now_ts());
select is(autopost.purge_receipts('w') -> 'purged', '1');
select is((select count(*)::int from autopost.pull_receipts), 0);

-- Runs and submissions.
select test.set_clock('2027-01-01 12:00:00+00');
select autopost.purge_runs('w');
create temp table gone on commit drop as select r.run_id from autopost.ingest_runs r;
select is((select count(*)::int from gone), 3, 'a run stays while its submission waits');
select is(autopost.purge_submissions('w'), '{"purged": 0, "more": false}', 'what waits stays, however old');
insert into autopost.media_origin (workspace_id, blob_ref, origin_url, size_bytes)
	values ('w', 'sha256:' || repeat('1', 64), 'file:///1', 10);
select autopost.commit_submission('w', c.submission_id, c.claim_token, '{"ok": true, "media": [{"index": 0, "blob_ref": "sha256:1111111111111111111111111111111111111111111111111111111111111111"}]}')
from autopost.claim_submissions('w', 'r', 1) c;
select autopost.commit_submission('w', c.submission_id, c.claim_token,
	test.failure('PERMANENT', 'delivery', 'media_fetch_404'))
from autopost.claim_submissions('w', 'r', 1) c;
select is((select array_agg(status order by status) from autopost.submissions), '{enqueued,failed,fetching}');
select test.tick('31 days 1 minute');
select is((autopost.purge_runs('w') -> 'purged')::int, 2, 'the runs of what is decided go first');
select is(autopost.purge_submissions('w') -> 'purged', '0');
select test.tick('60 days');
select is(autopost.purge_submissions('w') -> 'purged', '2');
select is((select array_agg(status) from autopost.submissions), '{fetching}');
select is((select count(*)::int from autopost.ingest_runs), 1);

-- A submission stays while a receipt answers for it.
update autopost.settings set value = '4800' where key = 'receipt_ttl_hours';
select test.push('long', true);
update autopost.submissions set status = 'failed', updated_at = autopost.now_ts();
select test.tick('100 days');
select is(autopost.purge_submissions('w') -> 'purged', '0');
select is(test.broken(), null);
select test.tick('101 days');
select is(autopost.purge_receipts('w') -> 'purged', '1');
select is(autopost.purge_submissions('w') -> 'purged', '2');
select is((select array_agg(distinct w) from autopost.list_all_workspaces() w), '{w}');
select is((select array_agg(distinct w) from autopost.list_served_workspaces(true) w), '{w}');
update autopost.workspaces set status = 'disabled';
select is((select array_agg(w) from autopost.list_all_workspaces() w), '{w}',
	'a workspace that rests is looked after, too');

select * from finish();
rollback;
