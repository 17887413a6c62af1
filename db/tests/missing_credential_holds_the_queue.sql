-- A channel without a secret for its credential waits, and goes on when the credential is set.
begin;
\ir fake_clock.sql
\ir world.sql
select plan(36);

create function test.missing(p_channel_id text) returns text
language sql
as $$
-- Commits "no credential" for the channel's oldest delivery in flight and returns the status.
select autopost.commit_outcome('w', d.delivery_id, d.claim_token,
	test.failure('PERMANENT', 'channel', 'credential_missing')) ->> 'status' from (
	select d.* from autopost.deliveries d where d.channel_id = p_channel_id and d.status = 'sending'
		order by d.delivery_id limit 1) d
$$;
create function test.findings() returns jsonb
language sql
as $$
select jsonb_agg(f - 'meta' order by f ->> 'subject')
from autopost.look_at_connections('w', autopost.alert_levels(), autopost.now_ts()) f
where f ->> 'kind' = 'credential_missing'
$$;

insert into autopost.credential_bindings (workspace_id, auth_ref, platform, secret_ref)
values ('w', 'other', 'telegram', 'env:OTHER'), ('w', 'key', 'webhook', 'env:KEY'), ('w', 'empty', 'telegram', 'sealed:empty');

-- The database knows this before any call.
select is(autopost.credential_fault('w', 'other', 'telegram'), null, 'the database cannot see a variable');
select is(autopost.credential_fault('w', 'bot', 'telegram'), 'the credential bot does not exist');
select is(autopost.credential_fault('w', 'key', 'telegram'), 'the credential key is for webhook, not for telegram');
select is(autopost.credential_fault('w', 'empty', 'telegram'), 'the credential empty has no secret');
select is(autopost.put_channel('w', 'new', '{"platform": "telegram", "target_id": "@new", "auth_ref": "bot"}', 'ann',
	'new', false) ->> 'note', 'the credential bot does not exist, so the posts of this channel wait (credential_missing): autopost credential set bot --platform telegram --from-file FILE --workspace w --reason new',
	'a new channel is stored, with a warning');
select is(autopost.put_channel('w', 'new', '{"title": "New"}', 'ann', 'title', false) -> 'note', null);
select is(autopost.put_channel('w', 'new', '{"auth_ref": "other"}', 'ann', 'other', true) -> 'note', null);
select like(autopost.put_channel('w', 'new', '{"auth_ref": "gone", "settings": {"nonsense": 1}}', 'ann', 'gone',
	true) ->> 'note', 'platform telegram reads no settings.nonsense; the credential gone does not exist, %');
select like(autopost.apply_config('w', '[{"kind": "channel", "id": "x", "fields": {"platform": "x", "target_id": "1", "auth_ref": "x-main"}}]',
	'ann', 'x', true) #>> '{items,0,note}', '%: autopost credential link x-main --platform x %');
select is(autopost.apply_config('w', '[{"kind": "credential", "id": "now", "fields": {"platform": "telegram", "secret_ref": "env:NOW"}},
	{"kind": "channel", "id": "n", "fields": {"platform": "telegram", "target_id": "@n", "auth_ref": "now"}}]',
	'ann', 'n', true) #> '{items,1,note}', null, 'the file has the credential');
select autopost.put_channel('w', 'new', '{"enabled": false}', 'ann', 'off', false);

-- plan and why name it.
select test.channel('a'), test.channel('b'), test.channel('c', p_rate_group => 'other');
select is((select jsonb_agg((c #> '{held_by,0}') - 'lifts') from jsonb_array_elements(
	autopost.plan('w', '{"text": "planned"}', null) -> 'channels') c where c ->> 'channel_id' = 'a'),
	'[{"gate": "credential_missing", "until": null, "auth_ref": "bot"}]');
select test.posts('post', 2);
select is(autopost.why('w', (test.row('a')).delivery_id) #>> '{now,held_by,0,lifts}',
	'the credential bot does not exist: autopost credential set bot --platform telegram --from-file FILE --workspace w --reason new');
select is(autopost.why('w', (test.row('c')).delivery_id) #> '{now,held_by,0,gate}', '"queue"');

-- The claim is released without cost, and the channel waits.
select is((select array_agg(c order by c) from unnest(test.claimed()) c), '{a,b,c}');
select is(test.missing('a'), 'retry', 'the delivery waits');
select is(test.missing('b'), 'retry');
select is((select array_agg(array[attempt::text, granted_attempts::text, last_error ->> 'code', status])
	from autopost.deliveries where channel_id = 'a' and attempt > 0), array[array['1', '1', 'credential_missing', 'retry']]);
select is((select array_agg(distinct array[enabled::text, paused_until::text, error_streak::text]) from autopost.channels
	where channel_id in ('a', 'b')), array[array['true', null, '0']], 'the channel stays enabled');
select is((select array_agg(distinct array[action, meta ->> 'reason', error ->> 'code']) from autopost.events
	where action in ('released', 'failed_permanent', 'channel_paused', 'send_attempt')),
	array[array['released', 'credential_missing', 'credential_missing']], 'no call has started');
select is(test.claimed(), '{}', 'nothing of it is claimed');
select is((select array_agg(v.channel_id order by 1) from autopost.list_channels('w', 10) v
	where v.credential_missing_at is not null), '{a,b}');
select is(test.findings(), '[{"kind": "credential_missing", "what": "the credential bot does not exist: the posts of 2 channels wait (credential_missing)",
	"amount": 2, "raised": true, "subject": "credential:bot"}]');
select autopost.check_alerts('w');
select like((select remedy from autopost.alerts where kind = 'credential_missing'),
	'%autopost credential set bot --from-file FILE --workspace w%');
select is(autopost.drain_of('active', test.channel_row('a'), null, autopost.queue_rows('w', 'a'), autopost.now_ts()) ->> 'limited_by',
	'credential_missing');

-- The next claim looks again, at growing intervals.
select test.tick('1 minute');
select is((select array_agg(distinct c order by c) from unnest(test.claimed()) c), '{a,b}');
select test.missing('a'), test.missing('b');
select test.tick('1 minute'), test.claimed();
select test.missing('a'), test.missing('b');
select is((test.channel_row('a')).credential_until, autopost.now_ts() + interval '2 minutes');
select is((select max(attempt - granted_attempts) from autopost.deliveries where channel_id in ('a', 'b')), 0);

-- Setting the credential ends the wait, at once, by the commands and by plain SQL.
insert into autopost.credential_bindings (workspace_id, auth_ref, platform, secret_ref)
values ('w', 'bot', 'telegram', 'env:BOT');
select is((select array_agg(distinct array[credential_missing_at, credential_until]) from autopost.channels), array[array[null, null]::timestamptz[]]);
select is(test.claimed(), '{a,b}', 'the queue goes on');
select is(test.missing('a'), 'retry', 'a variable that is not set');
select is(test.findings() #>> '{0,what}', 'the secret of credential bot was not found: the posts of 1 channels wait (credential_missing)');
select is((select d ->> 'why' from autopost.credential_gap(test.channel_row('a'), autopost.now_ts()) d),
	'the secret of credential bot was not found');
select autopost.rotate_auth('w', 'a', 'other', null, 'ann', 'other bot', false);
select is(test.claimed(), '{a}', 'another credential ends the wait too');
select is(test.missing('a'), 'retry');
select test.tick('1 minute'), test.claimed();
select autopost.commit_outcome('w', d.delivery_id, d.claim_token, test.sent('7')) from autopost.deliveries d
	where d.channel_id = 'a' and d.status = 'sending';
select is((test.channel_row('a')).credential_missing_at, null, 'a post that was sent ends it');
select test.tick('8 days');

-- A secret that is missing for too long ends the deliveries that wait for it.
select test.channel('late', p_rate_group => 'nobody');
update autopost.channels set on_auth_lost = 'fail' where channel_id = 'late';
select test.post('{"text": "late", "routing": {"include_channels": ["late"]}}'), test.claimed();
select test.missing('late');
select is(autopost.expire_auth_lost('w') -> 'ended', '0', 'on_auth_lost is for a refusal');
select test.tick('8 days'), test.claimed();
select test.missing('late');
select is(autopost.expire_auth_lost('w') -> 'dead', '1');
select is((test.row('late')).last_error ->> 'message', 'the credential was missing for too long');
select autopost.release_claims('w', array(select claim_token from autopost.deliveries where status = 'sending'));
select is((select jsonb_agg(v) from autopost.verify('w') v where v.violations > 0), null, 'the invariants hold');
select * from finish();
rollback;
