-- A database that was restored into another cluster sends nothing until an operator confirms it. Then
-- what may have been sent since the backup has an unknown outcome.
begin;
\ir fake_clock.sql
\ir world.sql
select plan(30);
select is(autopost.this_cluster(), (select c.system_identifier::text from pg_control_system() c));
select is(current_setting('autopost.cluster'), autopost.this_cluster(), 'a connection reads it once');
create or replace function autopost.this_cluster() returns text
language sql stable
as $$
select current_setting('test.cluster')
$$;
create function test.statuses(p_channel_id text) returns text[]
language sql
as $$
select array_agg(concat_ws(' ', d.status, d.unknown_outcomes, d.last_error ->> 'cause',
	case when d.next_retry_at = 'infinity' then 'held' end) order by d.delivery_id)
from autopost.deliveries d where d.channel_id = p_channel_id
$$;
delete from autopost.cluster_identity;
select set_config('test.cluster', 'one', true);
select is(autopost.is_restored(), false, 'an unknown cluster is a new one');
select is(autopost.note_cluster(), '{"restored": false}');
select is(autopost.note_cluster(), '{"restored": false}');
select is(autopost.confirm_restore('ann', 'why', false) ->> 'reason', 'not_restored');

select test.channel(c) from unnest('{a,asks,held,off,resends}'::text[]) c;
select test.bind();
update autopost.channels set on_unknown = 'hold' where channel_id = 'held';
update autopost.channels set on_unknown = 'resend' where channel_id = 'resends';
update autopost.channels set enabled = false where channel_id = 'off';
select test.posts('before', 2, '{"exclude_channels": []}');
select test.post('{"text": "later", "scheduled_for": "2026-06-02T12:00:00Z", "routing": {"include_channels": ["a"]}}');
insert into autopost.workspaces (workspace_id) values ('empty');
select is((select array_agg(c order by c) from unnest(test.claimed()) c), '{a,asks,held,resends}');
select autopost.start_call('w', d.delivery_id, d.claim_token) from autopost.deliveries d
	where d.channel_id = 'asks' and d.status = 'sending';
select autopost.release_claims('w', array(select claim_token from autopost.deliveries
	where channel_id in ('held', 'resends') and status = 'sending'));
select autopost.put_alert_target('w', 'ops', '{"kind": "telegram", "address": "-1", "auth_ref": "bot"}', 'ann', 'test', false);
select autopost.raise_alert('w', 'orphans', 'x', null, '{}');

-- One of the waiting posts may have been sent before the dump, an hour before its next attempt.
update autopost.deliveries d set unknown_outcomes = 1, last_call_at = autopost.now_ts() - interval '1 hour',
	outcome_unknown_at = autopost.now_ts() - interval '1 hour'
where d.delivery_id = (select max(x.delivery_id::text)::uuid from autopost.deliveries x where x.channel_id = 'held');

-- The dump is restored.
select set_config('test.cluster', 'two', true);
select test.tick('1 minute');
select is(autopost.is_restored(), true);
select is(autopost.note_cluster(), '{"restored": true}');
select test.tick('1 minute');
select is(autopost.note_cluster(), '{"restored": true}');
select is((select noticed_at from autopost.cluster_identity), autopost.now_ts() - interval '1 minute');
select test.post('{"text": "after", "routing": {"include_channels": ["resends"]}}');
select test.tick('1 second');
select is(test.claimed(), '{}', 'no post');
select is((select count(*)::int from autopost.claim_acts('w', 'run', 10)), 0, 'no change of a post');
select is(autopost.claim_webhooks('w', 10), '[]', 'no result webhook');
select is((select count(*)::int from autopost.claim_notices('w', 10)), 0, 'no alert');
select is(autopost.list_due_subscriptions('w', 10), '[]');
select throws_ok($$select autopost.confirm_restore('ann', '', false)$$, 'AP001');
select is(autopost.confirm_restore('ann', 'the original is gone', true),
	'{"applied": true, "dry_run": true, "unknown": 8, "more": false}');
select is(autopost.is_restored(), true, 'a dry run changes nothing');
select is(autopost.confirm_restore('ann', 'the original is gone', false),
	'{"applied": true, "dry_run": false, "unknown": 8, "more": false}');
select is(autopost.is_restored(), false);
select is(test.statuses('asks'), '{"retry 1 restored","retry 1 restored"}', 'begun or not, it may have been sent');
update autopost.deliveries d set unknown_outcomes = 1 where d.unknown_outcomes = 2; -- the earlier call has no events
select is(test.statuses('held'), '{"retry 1 restored held","retry 1 restored held"}');
select is((select count(*)::int from autopost.deliveries d
	where d.channel_id = 'held' and d.last_call_at = greatest(d.not_before, d.scheduled_for)), 1,
	'the original may have sent it since it was due');
select is((select count(*)::int from autopost.deliveries d
	where d.channel_id = 'held' and d.last_call_at < greatest(d.not_before, d.scheduled_for)), 1,
	'or since its earlier call');
select is(test.statuses('resends'), '{"retry 1 restored","retry 1 restored","queued 0"}', 'a later post is new');
select is(test.statuses('a'), '{"retry 1 restored","retry 1 restored","queued 0"}', 'as is one that was not due');
select test.tick('1 hour');
select is((select array_agg(distinct c.channel_id order by c.channel_id) from test.claim() c), '{a,asks,resends}',
	'the copy sends');
select autopost.release_claims('w', array(select claim_token from autopost.deliveries where status = 'sending'));
select is((select after ->> 'unknown' from autopost.admin_audit_log where action = 'confirm_restore'), '8');
select is((select jsonb_agg(v) from autopost.verify('w') v where v.violations > 0), null, 'the invariants hold');
select * from finish();
rollback;
