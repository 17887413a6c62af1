-- Functions create, change, rotate and disable endpoints. Each change is recorded without secrets.
begin;
\ir fake_clock.sql
\ir world.sql
select plan(94);

insert into autopost.pull_sources (workspace_id, source_id, kind) values ('w', 'feed', 'rss');
insert into autopost.workspaces (workspace_id) values ('v');
insert into autopost.workspace_endpoints (workspace_id, endpoint_id, kind, secret_hash)
	values ('v', 'theirs', 'webhook_push', repeat('9', 64));
create function test.put(p_id text, p_fields jsonb, p_dry_run boolean default false) returns jsonb
language sql
as $$
select autopost.put_endpoint('w', p_id, p_fields, 'olga', 'a test', p_dry_run)
$$;
create function test.with_secret(p_digit text, p_more jsonb default '{}') returns jsonb
language sql
as $$
select jsonb_build_object('kind', 'webhook_push', 'secret_hash', repeat(p_digit, 64)) || p_more
$$;
create function test.rows() returns int
language sql
as $$
select count(*)::int from autopost.workspace_endpoints where workspace_id = 'w'
$$;

-- Made.
create temp table made on commit drop as
	select test.put('site', test.with_secret('1', '{"ingress_rps": 2.5, "meta": {"owner": "cms"}}'), true) as planned;
select is(test.rows(), 1, 'a dry run makes none');
alter table made add answer jsonb;
update made set answer = test.put('site', test.with_secret('1', '{"ingress_rps": 2.5, "meta": {"owner": "cms"}}'));
select is((select answer - 'dry_run' from made), (select planned - 'dry_run' from made), 'and says what the act says');
select is((select answer -> 'after' from made), '{"endpoint_id": "site", "kind": "webhook_push", "source_id": null, "signing_ref": null, "old_signing_ref": null, "old_signing_until": null, "rotated_from": null,
	"enabled": true, "ingress_rps": 2.5, "max_payload_bytes": 262144, "hash_drop_window_sec": 10, "moderated": false, "meta": {"owner": "cms"}, "has_secret": true, "awaits_secret": false}', 'with the defaults of the table');
select is((select answer -> 'created' from made), 'true');
select is(autopost.resolve_endpoint('webhook_push', repeat('1', 64)) ->> 'endpoint_id', 'site', 'it works at once');
select is((select max_payload_bytes || ' ' || hash_drop_window_sec || ' ' || moderated || ' ' || enabled
	from autopost.workspace_endpoints where endpoint_id = 'in'),
	'262144 10 false true', 'which are those of a plain row');

-- Changed, field by field.
select is(test.put('site', '{"ingress_rps": 2.5}') - 'dry_run', '{"applied": false, "reason": "unchanged"}');
select is(test.put('site', test.with_secret('1')) ->> 'reason', 'unchanged', 'said again as it is');
select is(test.put('site', '{"hash_drop_window_sec": 60}', true) -> 'applied', 'true');
select is((select hash_drop_window_sec from autopost.workspace_endpoints where endpoint_id = 'site'), 10,
	'a dry run changes nothing');
select is(test.put('site', '{"hash_drop_window_sec": 60}') #> '{after,hash_drop_window_sec}', '60');
select is((select ingress_rps from autopost.workspace_endpoints where endpoint_id = 'site'), 2.5, 'the rest stays');
select is(test.put('site', '{"signing_ref": "key"}') -> 'bound', 'false', 'a key may come to a secret');
select is(test.put('site', '{"signing_ref": null}') -> 'applied', 'true', 'and go again');
select is(test.put('feed', '{"kind": "pull_source", "source_id": "feed"}') -> 'applied', 'true');
select is(test.put('feed-2', '{"kind": "pull_source", "source_id": "feed"}') ->> 'reason', 'source_in_use',
	'one enabled endpoint a source');
select is(test.put('feed-2', '{"kind": "pull_source", "source_id": "feed", "enabled": false}') -> 'applied', 'true',
	'disabled history is free');
select is(test.put('bot', jsonb_build_object('kind', 'bot_webhook', 'secret_hash', repeat('1', 64), 'meta',
	'{"auth_ref": "bot"}'::jsonb)) -> 'applied', 'true', 'a secret of another kind is another');

-- A secret belongs to one endpoint.
select is(test.put('again', test.with_secret('1')) - 'dry_run', '{"applied": false, "reason": "secret_in_use"}');
select is(test.put('again', test.with_secret('9')) ->> 'reason', 'secret_in_use', 'of another workspace, too');
select is(test.put('again', test.with_secret('9'), true) ->> 'reason', 'secret_in_use', 'a dry run knows it');
select is(test.rows(), 5);

-- Rotated: a new row beside the old one, then the old one is disabled and stays.
create function test.rotate(p_id text, p_fields jsonb, p_dry_run boolean default false) returns jsonb
language sql
as $$
select autopost.rotate_endpoint('w', p_id, p_fields, 'olga', 'a test', p_dry_run)
$$;
select is(test.rotate('site', jsonb_build_object('secret_hash', repeat('2', 64)), true) ->> 'endpoint_id', 'site-2');
select is(test.rows(), 5);
select is(test.rotate('site', jsonb_build_object('secret_hash', repeat('2', 64))) #>> '{after,rotated_from}', 'site');
select is(autopost.resolve_endpoint('webhook_push', repeat('1', 64)) ->> 'endpoint_id', 'site', 'the old one is good');
select is(autopost.resolve_endpoint('webhook_push', repeat('2', 64)) ->> 'endpoint_id', 'site-2',
	'and so is the new one');
select is((select (e.ingress_rps, e.hash_drop_window_sec, e.meta)::text from autopost.workspace_endpoints e
	where e.endpoint_id = 'site-2'),
	'(2.5,60,"{""owner"": ""cms""}")', 'which is the old one but for its secret');
select autopost.receive_push('w', 'site', '[{"text": "x", "source_ref": "1"}]');
select is(autopost.receive_push('w', 'site-2',
	'[{"text": "tried again", "source_ref": "1"}, {"text": "y", "source_ref": "2"}]') #>> '{results,0,status}',
	'duplicate',
	'what came by the old secret is known when it comes again by the new one');
select is((select count(*)::int from autopost.messages), 2);
select is(autopost.disable_endpoint('w', 'site', 'olga', 'a test', true) -> 'applied', 'true');
select isnt(autopost.resolve_endpoint('webhook_push', repeat('1', 64)), null, 'a dry run disables none');
select is(autopost.disable_endpoint('w', 'site', 'olga', 'a test', false) #> '{after,enabled}', 'false');
select is(autopost.resolve_endpoint('webhook_push', repeat('1', 64)), null, 'then the old one is over');
select is(autopost.disable_endpoint('w', 'site', 'olga', 'a test', false) ->> 'reason', 'unchanged');
select is(autopost.disable_endpoint('w', 'nowhere', 'olga', 'a test', false) ->> 'reason', 'unknown_endpoint');
select is(test.rotate('nowhere', jsonb_build_object('secret_hash', repeat('3', 64))) ->> 'reason', 'unknown_endpoint');
select is(test.rotate('site-2', jsonb_build_object('secret_hash', repeat('3', 64), 'new_endpoint_id',
	'site')) ->> 'reason', 'id_in_use');
select is(test.rotate('site-2', jsonb_build_object('secret_hash', repeat('2', 64))) ->> 'reason', 'secret_in_use',
	'a rotation needs another secret');
select is(test.rotate('site-2', jsonb_build_object('secret_hash', repeat('3', 64))) ->> 'endpoint_id', 'site-3');
select is(test.rotate('site-3', jsonb_build_object('secret_hash', repeat('4', 64), 'new_endpoint_id',
	'shop')) ->> 'endpoint_id', 'shop');
select is(test.put('other', test.with_secret('1')) -> 'applied', 'true', 'the secret of a disabled one is free');
select is(test.put('site', '{"enabled": true}') ->> 'reason', 'secret_in_use', 'so that it cannot come back with it');

-- Null is the default; what is wrong is said by field.
select is(test.put('shop', '{"ingress_rps": null, "hash_drop_window_sec": null, "meta": null, "enabled": null, "source_id": null, "signing_ref": null}') #> '{after,ingress_rps}', '5');
select is((select (e.ingress_rps, e.hash_drop_window_sec, e.meta, e.enabled)::text from autopost.workspace_endpoints e
	where e.endpoint_id = 'shop'), '(5,10,{},t)');
select is(test.put(id, f, true) -> 'errors' -> 0 ->> 'field', e, f::text) from (values
	('in', '{"kind": "x"}'::jsonb, 'kind'), ('in', '{"kind": null}', 'kind'), ('in', '{"kind": "bot_webhook"}', 'kind'),
		('in', '{"source_id": "feed"}', 'source_id'), ('in', '{"source_id": 1}', 'source_id'),
	('in', '{"secret_hash": "plain"}', 'secret_hash'), ('in', '{"secret_hash": null}', 'secret_hash'), ('in',
		jsonb_build_object('secret_hash', repeat('d', 64)), 'secret_hash'),
	('in', '{"signing_ref": ""}', 'signing_ref'), ('in', '{"enabled": 1}', 'enabled'), ('in', '{"ingress_rps": 0}',
		'ingress_rps'), ('in', '{"ingress_rps": "5"}', 'ingress_rps'),
	('in', '{"max_payload_bytes": 0}', 'max_payload_bytes'), ('in', '{"max_payload_bytes": 1.5}', 'max_payload_bytes'),
		('in', '{"max_payload_bytes": 16777217}', 'max_payload_bytes'),
	('in', '{"hash_drop_window_sec": -1}', 'hash_drop_window_sec'), ('in', '{"moderated": "yes"}', 'moderated'), ('new', '{"kind": "bot_webhook", "moderated": true}', 'moderated'), ('in',
		'{"meta": []}', 'meta'), ('new', '{}', 'kind'),
	('new', jsonb_build_object('kind', 'bot_webhook', 'secret_hash', repeat('d', 64), 'signing_ref', 'k'),
		'signing_ref'), ('new', '{"kind": "pull_source"}', 'source_id'),
	('new', '{"kind": "pull_source", "source_id": "none"}', 'source_id'), ('new',
		jsonb_build_object('kind', 'pull_source', 'source_id', 'feed', 'secret_hash', repeat('d', 64)), 'secret_hash'),
	('new', '{"kind": "pull_source", "source_id": "feed", "signing_ref": "k"}', 'signing_ref')) x (id, f, e);

-- Posts of an endpoint can wait for a decision.
select is(test.put('in', '{"moderated": true}') -> 'applied', 'true');
select is((select e.moderated from autopost.workspace_endpoints e where e.endpoint_id = 'in'), true);
select is(test.put('in', '{"hash_drop_window_sec": 11}', true) -> 'applied', 'true');
select is(test.put('in', '{"moderated": false}') #> '{after,moderated}', 'false');

-- Without a secret it is disabled until it has one, and keeps its id then.
select is(test.put('later', '{"kind": "webhook_push"}') - 'before' - 'after', '{"applied": true, "dry_run": false, "endpoint_id": "later", "created": true,
	"note": "it has no secret, and is disabled until it has: autopost endpoint rotate later makes one"}');
select is((select row(l.enabled, l.has_secret, l.awaits_secret)::text from autopost.list_endpoints('w', 100) l
	where l.endpoint_id = 'later'), '(f,f,t)');
select is(test.put('later', '{"enabled": true}'), '{"applied": false, "dry_run": false, "reason": "unchanged",
	"note": "it has no secret, and is disabled until it has: autopost endpoint rotate later makes one"}');
select throws_ok($$select test.rotate('later', jsonb_build_object('secret_hash', repeat('5', 64), 'new_endpoint_id',
	'other-id'))$$, 'AP001');
select is(test.rotate('later', jsonb_build_object('secret_hash', repeat('5', 64)), true) -> 'after' -> 'enabled',
	'true');
select is(autopost.resolve_endpoint('webhook_push', repeat('5', 64)), null, 'a dry run gives none');
select is(test.rotate('later', jsonb_build_object('secret_hash', repeat('5', 64))) - 'before' - 'after',
	'{"applied": true, "dry_run": false, "endpoint_id": "later", "created": false}');
select is(autopost.resolve_endpoint('webhook_push', repeat('5', 64)) ->> 'endpoint_id', 'later');
select is(test.put('signed', '{"kind": "webhook_push"}') -> 'after' -> 'awaits_secret', 'true');
select is(test.put('signed', '{"signing_ref": "key"}') -> 'after' -> 'enabled', 'true', 'a signing key is one, too');
select test.put('off', '{"kind": "bot_webhook"}');
select throws_ok($$select test.rotate('off', '{"signing_ref": "key"}')$$, 'AP001');
select is(autopost.disable_endpoint('w', 'off', 'olga', 'a test', false) #> '{after,awaits_secret}', 'false');
select is(test.rotate('off', jsonb_build_object('secret_hash', repeat('6', 64))) ->> 'reason', 'disabled',
	'one that nobody wants gets none');
select is(test.put('off', jsonb_build_object('secret_hash', repeat('6', 64))) #> '{after,enabled}', 'false');
select throws_ok($$update autopost.workspace_endpoints set secret_hash = null
	where endpoint_id = 'later'$$, '23514', null, 'none is enabled without');
select throws_ok($$update autopost.workspace_endpoints set awaits_secret = true where endpoint_id = 'later'$$, '23514');

-- Listed and shown, without hashes.
select is((select array_agg(l.endpoint_id || ' ' || l.enabled) from autopost.list_endpoints('w', 4) l),
	'{"bot true","feed true","feed-2 false","in true"}');
select is(autopost.get_endpoint('w', 'nowhere'), null);
select is((select array_agg(a.action || ' ' || a.subject order by a.seq) from autopost.admin_audit_log a
	where a.seq between 6 and 9),
	'{"put_endpoint endpoint:feed-2","put_endpoint endpoint:bot","rotate_endpoint endpoint:site-2","disable_endpoint endpoint:site"}', 'each act is recorded');
select ok((select bool_and(t.text !~ '[0-9]{64}') from (
	select (a.before || a.after)::text as text from autopost.admin_audit_log a
	union all select to_jsonb(l)::text from autopost.list_endpoints('w', 100) l
	union all select autopost.get_endpoint('w', 'site')::text) t), 'and no hash of a secret with it');

select * from finish();
rollback;
