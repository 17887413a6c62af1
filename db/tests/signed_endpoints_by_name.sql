-- A named endpoint resolves to the locations of its signing keys. Two keys are valid during a
-- rotation.
begin;
\ir fake_clock.sql
\ir world.sql
select plan(29);

insert into autopost.credential_bindings (workspace_id, auth_ref, platform, secret_ref) values
	('w', 'key-1', 'webhook', 'env:ONE'), ('w', 'key-2', 'webhook', 'env:TWO'), ('w', 'key-3', 'webhook', 'env:THREE'),
		('w', 'bot', 'telegram', 'env:BOT');
create function test.resolve(p_endpoint_id text, p_at interval default '0') returns jsonb
language sql
as $$
select autopost.resolve_signed_endpoint(autopost.now_ts() + p_at, 'w', p_endpoint_id)
$$;
create function test.keys() returns jsonb
language sql
as $$
select test.resolve('signed') -> 'auth_refs'
$$;
create function test.rotate(p_fields jsonb) returns jsonb
language sql
as $$
select autopost.rotate_endpoint('w', 'signed', p_fields, 'olga', 'a test', false)
$$;

select is(autopost.put_endpoint('w', 'signed', '{"kind": "webhook_push", "signing_ref": "key-1"}', 'olga', 'a test',
	false) - 'after',
	'{"applied": true, "dry_run": false, "endpoint_id": "signed", "created": true, "before": {}, "bound": true}');
select is(test.resolve('signed') - 'bound', '{"workspace_id": "w", "endpoint_id": "signed", "max_payload_bytes": 262144, "skew_seconds": 0, "tolerance_seconds": 300, "fresh": true, "auth_refs": ["key-1"]}');
select is(test.resolve('in'), null, 'an endpoint that takes no signatures');
select is(test.resolve('nowhere'), null);
select is(autopost.resolve_signed_endpoint(autopost.now_ts(), 'nowhere', 'signed'), null,
	'an unknown workspace is answered as an unknown endpoint');

-- The clock that counts is the database's.
select is(test.resolve('signed', '-5 minutes') -> 'fresh', 'true');
select is(test.resolve('signed',
	'-5 minutes -1 second') - '{workspace_id,endpoint_id,max_payload_bytes,auth_refs,bound}'::text[],
	'{"skew_seconds": 301, "tolerance_seconds": 300, "fresh": false}');
select is(test.resolve('signed', '5 minutes') -> 'fresh', 'true');
select is(test.resolve('signed', '5 minutes 1 second') -> 'fresh', 'false');
select is(test.resolve('signed', '5 minutes 1 second') -> 'skew_seconds', '-301');

-- Rotation: the previous key is good for a time.
select is(test.rotate('{"signing_ref": "key-2", "keep_seconds": 3600}') - '{before,after}'::text[],
	'{"applied": true, "dry_run": false, "endpoint_id": "signed", "created": false, "bound": true}');
select is(test.keys(), '["key-2", "key-1"]', 'two keys live, the new one first');
select is(test.resolve('signed') -> 'bound', jsonb_build_array(autopost.get_credential('w', 'key-2'),
	autopost.get_credential('w', 'key-1')), 'with what the engine needs to open them');
select is(test.rotate('{"signing_ref": "key-3"}') - 'until',
	'{"applied": false, "dry_run": false, "reason": "rotating"}', 'a third must wait');
select test.tick('1 hour');
select is(test.keys(), '["key-2"]', 'the previous one is over');
select is(test.rotate('{"signing_ref": "key-3"}') -> 'applied', 'true');
select test.tick('23 hours 59 minutes');
select is(test.keys(), '["key-3", "key-2"]', 'a day, unless it is said');
select is(test.rotate('{"signing_ref": "key-1", "keep_seconds": 0}') -> 'applied', 'true',
	'a key that leaked is ended at once');
select is(test.keys(), '["key-1"]');
select is(test.rotate('{"signing_ref": "key-1"}') ->> 'reason', 'unchanged');
select is(test.rotate('{"signing_ref": "bot"}') -> 'bound', 'false', 'a credential of another platform is not bound');
select is(test.keys(), '["key-1"]', 'the one before is still good');
select is(autopost.get_endpoint('w', 'signed') -> 'bound', 'false');

select is(autopost.put_endpoint('w', 'signed', '{"signing_ref": null}', 'olga', 'a test', false) #>> '{errors,0,field}',
	'signing_ref', 'its only secret stays');
select is(autopost.put_endpoint('w', 'signed', '{"signing_ref": "key-2"}', 'olga', 'a test',
	false) #>> '{errors,0,remedy}', 'use rotate_endpoint, which leaves no gap');
update autopost.workspaces set status = 'disabled';
select is(test.resolve('signed'), null, 'a disabled workspace');
update autopost.workspaces set status = 'paused';
select isnt(test.resolve('signed'), null, 'a paused one takes posts');
select autopost.disable_endpoint('w', 'signed', 'olga', 'a test', false);
select is(test.resolve('signed'), null, 'a disabled endpoint');
select is(test.rotate('{"signing_ref": "key-2"}') ->> 'reason', 'disabled');

select * from finish();
rollback;
