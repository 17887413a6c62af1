begin;
\ir fake_clock.sql
\ir world.sql
select plan(86);

create function test.sealed(p_version int, p_text text default 'c2VjcmV0', p_source text default '') returns jsonb
language sql
as $$
select jsonb_build_object('version', p_version, 'key_id', 'k1', 'wrapped_key', 'a2V5', 'sealed', p_text, 'source',
	p_source)
$$;
create function test.health(p_auth_ref text) returns autopost.credential_health
language sql
as $$
select h from autopost.credential_health h where h.workspace_id = 'w' and h.auth_ref = p_auth_ref
$$;
create function test.put(p_version int, p_text text default 'c2VjcmV0', p_made_by text default 'set',
	p_seconds int default null, p_dry_run boolean default false) returns jsonb
language sql
as $$
select autopost.put_sealed_secret('w', 'x', 'x', test.sealed(p_version, p_text), p_made_by, p_seconds, 'ann', 'test',
	p_dry_run)
$$;
create function test.held() returns text[]
language sql
as $$
select coalesce(array_agg(c.channel_id order by c.channel_id), '{}') from autopost.channels c
	where c.auth_held and c.paused_until > autopost.now_ts()
$$;
create function test.in_force() returns int
language sql
as $$
select s.version from autopost.sealed_secrets s where s.auth_ref = 'x' and s.retired_at is null
$$;

-- A person gives a secret.
select is(autopost.get_credential('w', 'x'), null, 'nothing is bound');
select is(test.put(1, p_dry_run := true), '{"applied": true, "dry_run": true, "created": true, "version": 1}');
select is(autopost.get_credential('w', 'x'), null, 'a dry run leaves nothing');
select is(test.put(2) ->> 'reason', 'newer', 'the first one is number 1');
select is(test.put(1),
	'{"applied": true, "dry_run": false, "created": true, "version": 1, "resumed": 0, "auth_lost": 0}');
select is(autopost.get_credential('w', 'x'), '{"platform": "x", "secret_ref": "sealed:x", "last_version": 1, "stale": false,
	"sealed": {"auth_ref": "x", "version": 1, "key_id": "k1", "wrapped_key": "a2V5", "sealed": "c2VjcmV0", "source": ""}}');
select is(test.put(1) ->> 'reason', 'newer', 'two concurrent changes: the second is refused');
select is(autopost.put_sealed_secret('w', 'x', 'youtube', test.sealed(2), 'set', null, 'ann', 'test', false),
	'{"applied": false, "dry_run": false, "reason": "other_platform", "platform": "x"}');
select is((test.put(2, 'bmV3') -> 'created')::boolean, false);
select is((select array_agg(s.version order by s.version) from autopost.sealed_secrets s where s.retired_at is null),
	'{2}', 'one is in force');
select is(test.count_events('auth_rotated'), 2);
select is((select array_agg(l.action || ' ' || l.subject) from autopost.admin_audit_log l),
	'{put_sealed_secret credential:x,put_sealed_secret credential:x}');
select throws_ok($$update autopost.sealed_secrets set retired_at = null$$, '23505', null, 'two in force are refused');

-- A secret of platform http keeps its hosts until others are given.
create function test.put_http(p_version int, p_hosts text[], p_ref text default 'shop', p_platform text default 'http')
	returns jsonb
language sql
as $$
select autopost.put_sealed_secret('w', p_ref, p_platform, test.sealed(p_version), 'set', null, 'ann', 'test', false, p_hosts)
$$;
select throws_ok($$select test.put_http(1, null)$$, 'AP001', null, 'it needs hosts');
select throws_ok($$select test.put_http(1, '{a.example}', 'bot', 'telegram')$$, 'AP001', null, 'others have none');
select is(test.put_http(1, '{a.example}') -> 'applied', 'true');
select is(test.put_http(2, null) -> 'applied', 'true');
select is((select b.hosts from autopost.credential_bindings b where b.auth_ref = 'shop'), '{a.example}');
select is((select l.after ->> 'hosts' from autopost.admin_audit_log l where l.subject = 'credential:shop'
	order by l.id desc limit 1), '["a.example"]');
delete from autopost.credential_bindings where auth_ref = 'shop';

-- One renews it at a time.
select is(autopost.begin_refresh('w', 'none', 0, '', null), '{"granted": false, "reason": "unknown"}');
select is(autopost.begin_refresh('w', 'x', 1, '', null) ->> 'reason', 'newer', 'who holds an old one reads again');
select is(autopost.begin_refresh('w', 'x', 2, '',
	'{"category": "PERMANENT", "scope": "channel", "code": "x_suspended"}') ->> 'reason', 'other',
	'a new secret mends no other failure');
select is(autopost.begin_refresh('w', 'x', 2, '',
	'{"category": "PERMANENT", "scope": "channel", "code": "x_unauthorized"}') - 'token',
	'{"granted": true, "version": 3, "wait_ms": 60000}');
select is(autopost.begin_refresh('w', 'x', 2, '', null), '{"granted": false, "reason": "leased", "wait_ms": 60000}');
select is(autopost.finish_refresh('w', 'none', test.sealed(3), 7200), '{"applied": false, "reason": "unknown"}');
select is((autopost.finish_refresh('w', 'x', test.sealed(3, 'cmVuZXdlZA=='), 7200) ->> 'valid_until')::timestamptz,
	autopost.now_ts() + interval '2 hours');
select is(test.in_force(), 3);
select is((autopost.finish_refresh('w', 'x', test.sealed(3, 'cmVuZXdlZA=='), 7200) -> 'applied')::boolean, true,
	'repeated, it gives the same answer');
select is(autopost.finish_refresh('w', 'x', test.sealed(3, 'b3RoZXI='), 7200), '{"applied": false, "reason": "newer"}',
	'another one of that number is refused');
select is(autopost.begin_refresh('w', 'x', 2, '', null) ->> 'reason', 'newer', 'the others find it');
select is(test.count_events('auth_refreshed'), 1);
select is((test.health('x')).next_refresh_at, autopost.now_ts() + interval '110 minutes');
select is((select array_agg(d) from autopost.list_due_refreshes('w', 10) d), null);
select test.tick('110 minutes');
select is((select array_agg(d) from autopost.list_due_refreshes('w', 10) d), '{x}', 'renewed before it expires');
select is(autopost.get_credential('w', 'x') -> 'stale', 'false');
select test.tick('10 minutes');
select is(autopost.get_credential('w', 'x') -> 'stale', 'true');
select autopost.begin_refresh('w', 'x', 3, '', null);
select is((select array_agg(d) from autopost.list_due_refreshes('w', 10) d), null, 'somebody is at it');
-- Late, but still the answer of the platform.
select test.tick('61 seconds');
select is((autopost.begin_refresh('w', 'x', 3, '', null) ->> 'version')::int, 4, 'a lease that is over is given again');
select is((autopost.finish_refresh('w', 'x', test.sealed(4), 60) -> 'applied')::boolean, true,
	'the answer counts without the lease');
select is((test.health('x')).next_refresh_at, autopost.now_ts() + interval '40 seconds',
	'a short life is lived for two thirds');
select is((select array_agg(s.version order by s.version) from autopost.sealed_secrets s), '{1,2,3,4}',
	'what was replaced is kept');
select is(autopost.purge_sealed_secrets('w'), '{"purged": 0, "more": false}');
select test.tick('1 day');
select is(autopost.purge_sealed_secrets('w') -> 'purged', '3');
select is(test.in_force(), 4, 'and what is in force stays');

-- A failure of the way waits, and nobody pauses.
select test.channel('a', p_platform := 'x', p_rate_group := 'x'),
	test.channel('b', p_platform := 'x', p_rate_group := 'x');
select test.channel('separate', p_platform := 'x', p_rate_group := 'y'), test.channel('elsewhere', p_rate_group := 'x');
create temp table lease on commit drop as select autopost.begin_refresh('w', 'x', 4, '', null) ->> 'token' as token;
select is(autopost.fail_refresh('w', 'none', 't', 4, '', '{}'), '{"applied": false, "reason": "unknown"}');
select is(autopost.fail_refresh('w', 'x', 'other', 4, '', '{}'), '{"applied": false, "reason": "stale"}');
select is((select autopost.fail_refresh('w', 'x', l.token, 4, '',
	'{"category": "TRANSIENT", "scope": "platform", "code": "x_5xx", "message": "no", "retry_after_ms": 10000}')
	from lease l),
	'{"applied": true, "lost": false, "paused": 0}');
select is(autopost.begin_refresh('w', 'x', 4, '', null) ->> 'reason', 'waiting');
select ok((autopost.begin_refresh('w', 'x', 4, '', null) ->> 'wait_ms')::int between 10000 and 13000,
	'for as long as the platform asked');
select is(autopost.begin_refresh('w', 'x', 4, '', null) -> 'error' ->> 'code', 'x_5xx');
select is(test.held(), '{}');

-- Refused: the channels of the credential pause, with one event and one alert.
select test.tick('1 minute');
update lease set token = autopost.begin_refresh('w', 'x', 4, '', null) ->> 'token';
select is((select autopost.fail_refresh('w', 'x', l.token, 4, '',
	'{"category": "PERMANENT", "scope": "channel", "code": "x_token_revoked", "message": "revoked"}') from lease l),
	'{"applied": true, "lost": true, "paused": 2}');
select is(test.held(), '{a,b}', 'those of this credential and platform');
select is(test.count_events('auth_lost'), 1);
select is((select array_agg(array[a.kind, a.subject, a.error ->> 'code'] ) from autopost.list_alerts('w', 10) a
	where a.ended_at is null), array[array['auth_lost', 'credential:x', 'x_token_revoked']]);
select is((select array[c.lost_at::text, c.channels::text, c.kept, c.error ->> 'code']
	from autopost.list_credentials('w', 10) c),
	array[autopost.now_ts()::text, '2', 'sealed', 'x_token_revoked']);
select is(autopost.begin_refresh('w', 'x', 4, '', null) ->> 'reason', 'lost', 'nobody asks for it again');
select is(autopost.begin_refresh('w', 'x', 4, '', null) -> 'error' ->> 'code', 'x_token_revoked');
select is((select array_agg(d) from autopost.list_due_refreshes('w', 10) d), null);
select is((select autopost.fail_refresh('w', 'x', l.token, 4, '', '{}') from lease l) ->> 'reason', 'stale',
	'a lease ends once');

-- Linked again, the channels go on in their order.
select is(test.put(5, 'bmV3ZXI=', 'link', 7200) - 'version',
	'{"applied": true, "dry_run": false, "created": false, "resumed": 2, "auth_lost": 0}');
select is(test.held(), '{}');
select is((select array_agg(e.channel_id order by e.cmin::text::int, e.ctid) from autopost.events e
	where e.action = 'channel_enabled'), '{a,b}');
select ok((select a.ended_at is not null from autopost.list_alerts('w', 10) a), 'the alert is over');
select is((select array[c.lost_at::text, c.error::text, c.failures::text] from autopost.list_credentials('w', 10) c),
	array[null, null, '0']);
select is((test.health('x')).next_refresh_at, autopost.now_ts() + interval '110 minutes',
	'what was linked is renewed in time');

-- A call with a refused secret reports the same, once for the credential.
select test.post('{"text": "hello", "routing": {"include_channels": ["a", "b"]}}');
select test.claimed();
select test.start('a'), test.start('b');
select test.commit('a', test.failure('PERMANENT', 'channel', 'x_unauthorized')),
	test.commit('b', test.failure('PERMANENT', 'channel', 'x_unauthorized'));
select is(test.count_events('auth_lost'), 2);
select is((select count(*)::int from autopost.alerts a where a.ended_at is null), 1);
select autopost.requeue_auth_lost('w', 'x', 'ann', 'it works again', false);
select is((select count(*)::int from autopost.alerts a where a.ended_at is null), 0, 'the requeue ends it');
select is((test.health('x')).lost_at, null);

-- The first secret is elsewhere: what was renewed from it wins, until it is another one, or is kept elsewhere.
insert into autopost.credential_bindings (workspace_id, auth_ref, platform, secret_ref)
	values ('w', 'f', 'youtube', 'file:/run/secret');
select is(autopost.get_credential('w', 'f'),
	'{"platform": "youtube", "secret_ref": "file:/run/secret", "last_version": 0, "stale": false}');
select autopost.begin_refresh('w', 'f', 0, 'd1', null),
	autopost.finish_refresh('w', 'f', test.sealed(1, 'Zmlyc3Q=', 'd1'), 3600);
select is(autopost.begin_refresh('w', 'f', 0, 'd1', null) ->> 'reason', 'newer');
select is((autopost.begin_refresh('w', 'f', 0, 'd2', null) ->> 'version')::int, 2, 'another file is another secret');
update autopost.credential_bindings set secret_ref = 'env:OTHER' where auth_ref = 'f';
select is(autopost.get_credential('w', 'f'),
	'{"platform": "youtube", "secret_ref": "env:OTHER", "last_version": 2, "stale": false}');
select is(autopost.finish_refresh('w', 'f', test.sealed(2), 60) ->> 'reason', 'newer',
	'a renewal of what was there before comes too late');

-- A credential without renewal raises an alert in time, once.
select test.put(6, 'dG9rZW4=', 'set', 691200);
select is(autopost.warn_expiring('w'), '{"warned": 0}');
select test.tick('1 day');
select is(autopost.warn_expiring('w'), '{"warned": 1}');
select is(autopost.warn_expiring('w'), '{"warned": 0}');

-- The result of a credential check.
select is(autopost.record_credential_check('w', 'none', '{}'), '{"applied": false, "reason": "unknown"}');
select autopost.record_credential_check('w', 'x',
	'{"account": "@shop", "rights": [{"target": "1", "may_post": true}]}');
select autopost.record_credential_check('w', 'x', '{"error": {"code": "x_5xx", "message": "no"}}');
select is((select array[c.account, c.rights ->> 0, c.error ->> 'code'] from autopost.list_credentials('w', 10) c
	where c.auth_ref = 'x'),
	array['@shop', '{"target": "1", "may_post": true}', 'x_5xx'], 'a failure hides nothing that is known');

-- Another master key.
select is(autopost.list_master_keys(), (select jsonb_build_object('k1', count(*)) from autopost.sealed_secrets));
select is((autopost.list_sealed_secrets('w', 'k2', 1) -> 0) - 'wrapped_key' - 'sealed' - 'source',
	'{"auth_ref": "f", "version": 1, "key_id": "k1"}');
select is(array[autopost.rewrap_secret('w', 'f', 1, 'k1', 'k2', 'bmV3'),
	autopost.rewrap_secret('w', 'f', 1, 'k1', 'k2', 'bmV3')],
	array['{"applied": true}', '{"applied": false}']::jsonb[]);
select is(autopost.list_master_keys() ->> 'k2', '1');
select is((select count(*)::int from jsonb_array_elements(autopost.list_sealed_secrets('w', 'k2', 100)) e
	where e ->> 'auth_ref' = 'f'), 0);

select is((select jsonb_agg(v) from autopost.verify('w') v where v.violations > 0), null, 'the invariants hold');
select * from finish();
rollback;
