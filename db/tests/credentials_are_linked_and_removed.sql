-- A link of an account is taken once, by its person; a credential in use is not removed; chats of a bot are
-- found in its waiting updates.
begin;
\ir fake_clock.sql
\ir world.sql
select plan(24);

create function test.hash(p_text text) returns text language sql as $$
select encode(sha256(p_text::bytea), 'hex') $$;
create function test.link(p_state text, p_by text, p_ref text default 'x-main', p_requeue boolean default true)
	returns jsonb language sql as $$
select autopost.begin_credential_link('w', p_ref, jsonb_build_object('platform', 'x', 'state_hash', test.hash(p_state),
	'redirect', 'https://autopost.example/oauth/callback', 'requeue', p_requeue, 'sealed',
	'{"version": 1, "key_id": "k", "wrapped_key": "AAAA", "sealed": "BBBB"}'::jsonb), p_by, 'a test') $$;
create function test.taken(p_state text, p_by text) returns jsonb language sql as $$
select autopost.take_credential_link(test.hash(p_state), p_by) $$;

-- Links.
select is(test.link('one', 'user:ann') ->> 'applied', 'true');
select is(test.taken('two', 'user:ann'), null, 'an unknown state');
select is(test.taken('one', 'user:bob'), null, 'a link is for the person who began it');
select is(test.taken('one', null), null, 'not for a browser without a session');
select is(test.taken('one', 'user:ann') - '{sealed,redirect}'::text[], '{"workspace_id": "w", "auth_ref": "x-main",
	"platform": "x", "requeue": true, "operator": "user:ann", "reason": "a test"}');
select is(test.taken('one', 'user:ann'), null, 'once');
select test.link('key', 'key:1');
select is(test.taken('key', null) ->> 'operator', 'key:1', 'a key has no browser');
select test.link('late', 'user:ann');
select test.tick('10 minutes');
select is(test.taken('late', 'user:ann'), null, 'ten minutes are over');
select test.link('next', 'user:ann');
select is((select count(*)::int from autopost.credential_links), 1, 'what is older is removed');
select test.bind('tg');
select is(test.link('other', 'user:ann', 'tg') - 'applied', '{"reason": "other_platform", "platform": "telegram"}');
select unalike((select string_agg(a::text, '') from autopost.admin_audit_log a), '%BBBB%',
	'no secret is in the audit log');

select is(autopost.purge_sealed_secrets('w'), '{"purged": 0, "more": false}', 'a link that works stays');
select test.tick('10 minutes');
select is(autopost.purge_sealed_secrets('w') -> 'purged', '1', 'the retention removes a link that was not used');

-- Removal.
create function test.remove(p_ref text, p_dry boolean default false) returns jsonb language sql as $$
select autopost.remove_credential('w', p_ref, 'ann', 'a test', p_dry) $$;
select test.channel('a');
update autopost.channels set auth_ref = 'tg' where channel_id = 'a';
select is(test.remove('nobody') ->> 'reason', 'unknown_auth_ref');
select is(test.remove('tg') -> 'uses', '[{"kind": "channel", "id": "a"}]');
select test.bind('spare');
select is(test.remove('spare', true) -> 'before' ->> 'platform', 'telegram');
select is((select count(*)::int from autopost.credential_bindings where auth_ref = 'spare'), 1,
	'a dry run removes nothing');
select is(test.remove('spare') ->> 'applied', 'true');
select is((select count(*)::int from autopost.credential_bindings b left join autopost.credential_health h
	using (workspace_id, auth_ref) where auth_ref = 'spare'), 0);

-- Chats.
create function test.discover(p_updates jsonb) returns jsonb language sql as $$
select autopost.discover_chats('w', 'tg', p_updates) $$;
create function test.member(p_id int, p_chat bigint, p_status text) returns jsonb language sql as $$
select jsonb_build_object('update_id', p_id, 'my_chat_member', jsonb_build_object('date', 1795000000, 'chat',
	jsonb_build_object('id', p_chat, 'type', 'channel', 'title', 'City'), 'new_chat_member', jsonb_build_object(
	'status', p_status, 'can_post_messages', true))) $$;
select is(test.discover(jsonb_build_array(test.member(1, -5, 'administrator'), test.member(2, -6, 'administrator'),
	'7')), '{"chats": 2}');
select is(test.discover(jsonb_build_array(test.member(1, -5, 'administrator'))), '{"chats": 2}',
	'a repeat changes nothing');
select is((select array_agg(h.may_post) from autopost.discovered_chats h where h.auth_ref = 'tg'), '{t,t}');
select is(test.discover(jsonb_build_array(test.member(3, -6, 'left'))), '{"chats": 1}', 'the bot left');
select is((select jsonb_agg(v) from autopost.verify('w') v where v.violations > 0), null, 'the invariants hold');

select * from finish();
rollback;
