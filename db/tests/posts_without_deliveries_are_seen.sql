-- A post that fails before it has deliveries, and work without progress, are in lists, alerts, health
-- and verify; a failed one can be tried again.
begin;
\ir fake_clock.sql
\ir world.sql
select plan(32);

select test.channel('a');
select autopost.receive_push('w', 'in', '[{"text": "Look", "source_ref": "r1", "media": [{"type": "image", "url": "https://e.x/1.png"}]}]');
create function test.id() returns uuid
language sql
as $$
select submission_id from autopost.submissions
$$;
create function test.fail() returns jsonb
language sql
as $$
select autopost.commit_submission('w', c.submission_id, c.claim_token,
	test.failure('PERMANENT', 'delivery', 'media_too_large', '{"message": "the picture has 90 MB"}'))
from autopost.claim_submissions('w', 'r', 1) c
$$;
create function test.alert(p_kind text, p_subject text) returns autopost.alerts
language sql
as $$
select autopost.check_alerts('w');
select a from autopost.alerts a where a.kind = p_kind and a.subject = p_subject and a.ended_at is null
$$;
create function test.retry(p_dry_run boolean default false) returns jsonb
language sql
as $$
select autopost.retry_submission('w', test.id(), 'olga', 'the picture is smaller', p_dry_run)
$$;

-- It waits for its picture.
select is((select row(l.status, l.excerpt, l.media, l.source_ref, l.attempt)::text
	from autopost.list_submissions('w', '{}', 10) l), '(fetching,Look,1,r1,0)');
select is(autopost.health_snapshot('w') -> 'submissions', '{"fetching": 1}');
select is((test.alert('oldest_due', 'submissions')).alert_id, null, 'it is not late');
select test.tick('40 minutes');
select matches((test.alert('oldest_due', 'submissions')).what, 'made no progress for 40 minutes', 'without progress');

-- It fails.
select is(test.fail() ->> 'status', 'failed');
select test.alert('oldest_due', 'submissions');
select test.tick('3 minutes');
select is((test.alert('oldest_due', 'submissions')).alert_id, null, 'the alert ended');
select is((select l.last_error ->> 'code' from autopost.list_submissions('w', '{"status": "failed"}', 10) l),
	'media_too_large');
select is((select count(*)::int from autopost.list_submissions('w', '{"status": "fetching"}', 10)), 0);
select is((select count(*)::int from autopost.list_submissions('w', '{"decided": true}', 10)), 0, 'nobody decided');
select is((select count(*)::int from autopost.list_submissions('w', jsonb_build_object('before_id', test.id()), 10)), 0);
select is(autopost.health_snapshot('w') -> 'submissions', '{"failed": 1}');
select matches((test.alert('submission_failed', 'submissions')).what, '1 post failed .*media_too_large');
select matches((test.alert('submission_failed', 'submissions')).remedy, 'autopost submissions retry ID');
select matches(autopost.why('w', test.id()) #>> '{now,lifts}', 'autopost submissions retry');
select is(autopost.get_submission('w', test.id()) #>> '{payload,text}', 'Look');
select is(autopost.get_submission('w', gen_random_uuid()), null);
select is(autopost.acknowledge_alert('w', (test.alert('submission_failed', 'submissions')).alert_id, 'olga', 'seen',
	false) ->> 'applied', 'true');
select test.tick('3 minutes');
select test.alert('submission_failed', 'submissions');
select test.tick('3 minutes');
select is((test.alert('submission_failed', 'submissions')).alert_id, null, 'acknowledged failures do not count');

-- It is tried again.
select is(autopost.retry_submission('w', gen_random_uuid(), 'olga', 'r', false) ->> 'reason', 'unknown_submission');
select is(test.retry(true) - 'dry_run', test.retry(true) - 'dry_run', 'a dry run changes nothing');
select is((select status from autopost.submissions), 'failed');
select is(test.retry() -> 'after', '{"status": "fetching", "attempt": 0}');
select is((select row(operator, reason, subject)::text from autopost.admin_audit_log
	where action = 'retry_submission'), format('(olga,"the picture is smaller",submission:%s)', test.id()));
select is((select count(*)::int from autopost.claim_submissions('w', 'r', 1)), 1, 'it is fetched again');
select is(test.retry() ->> 'reason', 'not_failed', 'not while it is fetched');

-- A fetch whose daemon is gone, and that nobody takes over.
select is((select violations::int from autopost.verify('w') where invariant = 'I18'), 0);
select test.tick('2 hours');
select is((select violations::int from autopost.verify('w') where invariant = 'I18'), 0, 'no daemon runs');
select autopost.touch_run('run-1');
select is((select sample #>> '{0,submission_id}' from autopost.verify('w') where invariant = 'I18'), test.id()::text);

-- A source, a fan-out job or a call of a result webhook that no stage takes.
insert into autopost.pull_sources (workspace_id, source_id, kind) values ('w', 'feed', 'rss');
insert into autopost.pull_cursors (workspace_id, source_id, next_poll_at) values ('w', 'feed', autopost.now_ts());
select test.tick('40 minutes');
select is((test.alert('oldest_due', 'other_work')).alert_id, null, 'sources are polled in turn');
select test.tick('5 hours');
select is((test.alert('oldest_due', 'other_work')).what, 'source without progress for 340 minutes: feed');
update autopost.pull_sources set enabled = false;
select test.alert('oldest_due', 'other_work') from test.tick('3 minutes');
select test.alert('oldest_due', 'other_work') from test.tick('3 minutes');
select is((test.alert('oldest_due', 'other_work')).alert_id, null, 'a disabled source is not late');

-- Errors are a list of their own.
select is((select array_agg(l.action) from autopost.list_events('w', '{"result": "error"}', 10) l), '{submission_failed}');
select * from finish();
rollback;
