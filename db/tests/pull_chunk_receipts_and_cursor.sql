-- One transaction per chunk writes receipts, posts or submissions, and the next cursor.
begin;
\ir fake_clock.sql
\ir world.sql
select plan(55);

select test.channel('a', p_max_parallel => 100);
insert into autopost.pull_sources (workspace_id, source_id, kind, config_json)
	values ('w', 'feed', 'rss', '{"interval_seconds": 60}'), ('w', 'other', 'rss', '{}');
insert into autopost.workspace_endpoints (workspace_id, endpoint_id, kind, source_id)
	values ('w', 'feed-in', 'pull_source', 'feed'), ('w', 'other-in', 'pull_source', 'other');
create function test.pull(p_items jsonb) returns jsonb
language sql
as $$
select autopost.ingest_pull_chunk('w', 'feed', 'feed-in', p_items)
$$;
create function test.item(p_ref text, p_text text) returns jsonb
language sql
as $$
select jsonb_build_object('source_ref', p_ref, 'payload', jsonb_build_object('text', p_text), 'cursor',
	jsonb_build_object('at', p_ref))
$$;

create temp table r on commit drop as select test.pull(jsonb_build_array(
	test.item('old', 'seen at first sight') || '{"skip": true, "skip_reason": "backfill"}', test.item('1', 'one'),
		test.item('2', 'two'), test.item('1', 'one twice'),
	test.item('3', ''), test.item('4', 'picture')
		|| '{"payload": {"text": "picture", "media": [{"type": "image", "url": "https://e.x/1.png"}]}}')) as answer;
select is((select answer - 'results' - 'run_id' from r),
	'{"enqueued": 2, "submitted": 1, "rejected": 1, "duplicate": 1, "skipped": 1, "skipped_by": {"backfill": 1}, "cursor_to": {"at": "4"}}', 'the result of each item');
select is((select array_agg(source_ref order by source_ref) from autopost.pull_receipts), '{1,2,3,4,old}',
	'each item is remembered, also what was refused or skipped');
select is((select count(*)::int from autopost.messages), 2);
select is((select kind || ' ' || source_id || ' ' || endpoint_id from autopost.ingest_runs), 'pull feed feed-in');
select ok((select finished_at is not null from autopost.ingest_runs));
select test.tick('1 second');
select is((select array_agg(rendered_text) from test.claim()), '{one,two}', 'oldest first');

-- The same chunk again, as after a crash before the cursor was kept.
create temp table again on commit drop as
	select test.pull(jsonb_build_array(test.item('1', 'one edited'), test.item('2', 'two'), test.item('5', 'five')))
	as answer;
select is((select answer - 'results' - 'run_id' from again),
	'{"enqueued": 1, "submitted": 0, "rejected": 0, "duplicate": 2, "skipped": 0, "skipped_by": {}, "cursor_to": {"at": "5"}}', 'what was taken is not taken again');
select is((select count(*)::int from autopost.messages), 3);

-- The same content under another reference is suppressed by the channel, not lost silently.
select is((select test.pull(jsonb_build_array(test.item('6', 'five'))) ->> 'duplicate'), '1');
select is(test.count_events('dedup_suppressed'), 1);

-- References are remembered while their source shows them, and for their time after that.
select autopost.set_pull_cursor('w', 'feed', '{}'), autopost.list_due_sources('w', 10);
select test.tick('89 days');
select is(test.pull(jsonb_build_array(test.item('5', 'five again'))) ->> 'duplicate', '1');
select autopost.set_pull_cursor('w', 'feed', '{}');
select test.tick('89 days');
select is(test.pull(jsonb_build_array(test.item('5', 'five again'))) ->> 'duplicate', '1', 'it was shown meanwhile');
select test.tick('90 days');
select is(test.pull(jsonb_build_array(test.item('5', 'five again'))) ->> 'duplicate', '1', 'nobody looked meanwhile');
select test.tick('90 days');
select autopost.set_pull_cursor('w', 'feed', '{}');
select is(test.pull(jsonb_build_array(test.item('5', 'five again'))) ->> 'enqueued', '1', 'ninety days without it');
update autopost.pull_cursors set last_poll_at = null, next_poll_at = autopost.now_ts();
select is(autopost.ingest_pull_chunk('w', 'other', 'other-in',
	jsonb_build_array(test.item('1', 'other one'))) ->> 'enqueued', '1', 'each source has its own');
select is(test.pull('[]') - 'run_id', '{"enqueued": 0, "submitted": 0, "rejected": 0, "duplicate": 0, "skipped": 0, "skipped_by": {}, "results": [], "cursor_to": null}', 'an empty chunk');

select is(autopost.finish_ingest_run('w', '00000000-0000-7000-8000-000000000000', '{}'),
	'{"applied": false, "reason": "unknown_run"}', 'a run that there is not');

-- The raw envelope itself, as a push brings it.
create temp table bare on commit drop as select test.pull('[{"source_ref": "20", "text": "bare", "tags": ["Bare"], "cursor": {"at": "20"}}, {"source_ref": "21", "link": "https://e.x/", "cursor": {"at": "21"}}]') as answer;
select is((select answer -> 'enqueued' from bare), '2');
select is((select answer -> 'cursor_to' from bare), '{"at": "21"}');
select is((select array_agg(m.tags::text || coalesce(m.source_ref, '') order by m.source_ref) from autopost.messages m
	where m.source_ref in ('20', '21')), '{"{bare}20","{}21"}', 'its tags are the post''s');
select is((select array_agg(distinct m.source) from autopost.messages m where m.source_ref in ('20', '21')),
	array['{"kind": "pull", "endpoint_id": "feed-in", "source_id": "feed"}']::jsonb[],
	'its source is stored in the message, its cursor is not');

-- An item without a post leaves no receipt.
select throws_ok(format($$select test.pull('[%s, %s]')$$, '{"source_ref": "30", "text": "fine"}', i), 'AP001',
	'argument items: has item "31" without a payload', i)
from unnest(array['{"source_ref": "31"}', '{"source_ref": "31", "cursor": {}}', '{"source_ref": "31", "payload": null}',
	'{"source_ref": "31", "payload": "text", "text": "x"}', '{"source_ref": "31", "skip": false}']) i;
select is((select count(*)::int from autopost.pull_receipts where source_ref in ('30', '31')), 0);

-- A chunk that raises leaves nothing.
select throws_ok($$select test.pull('[{"source_ref": "9", "payload": {"text": "x"}}, {"payload": {"text": "y"}}]')$$,
	'AP001', null, 'an item without a reference');
select is((select count(*)::int from autopost.pull_receipts where source_ref = '9'), 0);
select throws_ok($$select test.pull('{}')$$, 'AP001');
select throws_ok($$select autopost.ingest_pull_chunk('w', 'feed', 'other-in', '[]')$$, 'AP001', null,
	'an endpoint of another source');
select throws_ok($$select autopost.ingest_pull_chunk('w', 'feed', 'in', '[]')$$, 'AP001', null,
	'an endpoint of another kind');
update autopost.workspace_endpoints set enabled = false where endpoint_id = 'other-in';
select throws_ok($$select autopost.ingest_pull_chunk('w', 'other', 'other-in', '[]')$$, 'AP001', null,
	'a disabled endpoint');

-- Due sources and their leases.
create temp table due on commit drop as select * from autopost.list_due_sources('w', 10);
select is((select array_agg(source_id || ' ' || coalesce(endpoint_id, 'none') order by source_id) from due),
	'{"feed feed-in","other none"}', 'a source without an endpoint is named: it is misconfigured');
select is((select count(*)::int from autopost.list_due_sources('w', 10)), 0, 'one poller leases it');
select test.tick('120 seconds');
select is((select count(*)::int from autopost.list_due_sources('w', 1)), 1, 'for two minutes');
select is((select count(*)::int from autopost.list_due_sources('w', 10)), 1);
select is(autopost.set_pull_cursor('w', 'feed', '{"at": "6"}'), '{"applied": true}');
select test.tick('59 seconds');
select is((select count(*)::int from autopost.list_due_sources('w', 10)), 0);
select test.tick('1 second');
select is((select cursor_json from autopost.list_due_sources('w', 10)), '{"at": "6"}',
	'after its interval, from where it was');

-- A failure keeps the cursor and comes back later each time.
select autopost.fail_poll('w', 'feed', '{"code": "http_500", "message": "no luck with token=abcdefgh12345"}');
select is((select (cursor_json ->> 'at') || ' ' || failures from autopost.pull_cursors where source_id = 'feed'),
	'6 1');
select is((select next_poll_at from autopost.pull_cursors where source_id = 'feed'),
	autopost.now_ts() + interval '60 seconds');
select autopost.fail_poll('w', 'feed', '{"code": "http_500", "message": "again"}');
select is((select next_poll_at from autopost.pull_cursors where source_id = 'feed'),
	autopost.now_ts() + interval '120 seconds');
select is(test.count_events('ingress_config_error'), 1, 'the first of a row is recorded');
select ok((select e.error::text !~ 'abcdefgh' from autopost.events e where e.action = 'ingress_config_error'),
	'without its secrets');
select autopost.fail_poll('w', 'feed', '{"code": "http_404", "message": "gone"}');
select is(test.count_events('ingress_config_error'), 2, 'and every change of it');
update autopost.pull_cursors set failures = 1000;
select autopost.fail_poll('w', 'feed', '{"code": "http_404", "message": "gone"}');
select is((select next_poll_at from autopost.pull_cursors where source_id = 'feed'),
	autopost.now_ts() + interval '1 hour 1 minute', 'at most an hour more');
select autopost.set_pull_cursor('w', 'feed', '{}');
select is((select failures from autopost.pull_cursors where source_id = 'feed'), 0, 'a success ends the row');
update autopost.pull_sources set enabled = false;
select test.tick('1 day');
select is((select count(*)::int from autopost.list_due_sources('w', 10)), 0, 'a disabled source is not polled');
select is(autopost.set_pull_cursor('w', 'nowhere', '{}'), '{"applied": false, "reason": "unknown_source"}');
insert into autopost.pull_sources (workspace_id, source_id, kind) values ('w', 'unseen', 'api');
select is(autopost.set_pull_cursor('w', 'unseen', '{"at": "7"}'), '{"applied": true}',
	'of a source that nobody has asked for yet');
select is((select cursor_json from autopost.list_due_sources('w', 10)), null,
	'which is not due before its interval is over');
select test.tick('1 day');
select is((select count(*)::int from autopost.list_due_sources_of('w', '{rss,db}', 10)), 0,
	'a caller of other kinds leaves it');
select is((select source_id || ' ' || (cursor_json ->> 'at') from autopost.list_due_sources_of('w', '{rss,api}', 10)),
	'unseen 7', 'and a caller of its kind leases it');
select is((select count(*)::int from autopost.list_due_sources('w', 10)), 0);

select * from finish();
rollback;
