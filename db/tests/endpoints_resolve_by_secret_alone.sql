begin;
\ir fake_clock.sql
\ir world.sql
select plan(16);

select is(autopost.resolve_endpoint('webhook_push', repeat('a', 64)),
	'{"workspace_id": "w", "endpoint_id": "in", "max_payload_bytes": 262144}');
select is(autopost.resolve_endpoint('webhook_push', repeat('b', 64)), null, 'an unknown secret');
select is(autopost.resolve_endpoint('bot_webhook', repeat('a', 64)), null, 'a secret of another kind');
select is(autopost.resolve_endpoint('webhook_push', null), null);
update autopost.workspaces set status = 'disabled';
select is(autopost.resolve_endpoint('webhook_push', repeat('a', 64)), null, 'a disabled workspace');
update autopost.workspaces set status = 'paused';
select isnt(autopost.resolve_endpoint('webhook_push', repeat('a', 64)), null, 'a paused one takes posts');

-- Rotation: a new row, then the old one is disabled and stays as history.
insert into autopost.workspace_endpoints (workspace_id, endpoint_id, kind, secret_hash)
	values ('w', 'in-2', 'webhook_push', repeat('b', 64));
select is(autopost.resolve_endpoint('webhook_push', repeat('b', 64)) ->> 'endpoint_id', 'in-2');
select is(autopost.resolve_endpoint('webhook_push', repeat('a', 64)) ->> 'endpoint_id', 'in',
	'both live during the rotation');
update autopost.workspace_endpoints set enabled = false where endpoint_id = 'in';
select is(autopost.resolve_endpoint('webhook_push', repeat('a', 64)), null);
select throws_ok($$insert into autopost.workspace_endpoints (workspace_id, endpoint_id, kind, secret_hash)
	values ('w', 'x', 'webhook_push', repeat('b', 64))$$,
	'23505', null, 'one enabled endpoint a secret');
insert into autopost.workspaces (workspace_id) values ('v');
select throws_ok($$insert into autopost.workspace_endpoints (workspace_id, endpoint_id, kind, secret_hash)
	values ('v', 'x', 'webhook_push', repeat('b', 64))$$,
	'23505', null, 'across workspaces, too');
select lives_ok($$insert into autopost.workspace_endpoints (workspace_id, endpoint_id, kind, secret_hash, enabled)
	values ('v', 'old', 'webhook_push', repeat('b', 64), false)$$,
	'disabled history is free');
update autopost.workspace_endpoints set secret_hash = repeat('c', 64) where endpoint_id = 'in-2';
select is(autopost.resolve_endpoint('webhook_push', repeat('b', 64)), null, 'a changed secret acts at once');
select is(autopost.resolve_endpoint('webhook_push', repeat('c', 64)) ->> 'endpoint_id', 'in-2');
select throws_ok($$insert into autopost.workspace_endpoints (workspace_id, endpoint_id, kind)
	values ('w', 'y', 'webhook_push')$$, '23514', null, 'a webhook has a secret');
select throws_ok($$insert into autopost.workspace_endpoints (workspace_id, endpoint_id, kind, secret_hash)
	values ('w', 'z', 'webhook_push', 'plain text')$$, '23514', null, 'kept as its hash');

select * from finish();
rollback;
