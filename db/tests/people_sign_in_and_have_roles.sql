-- People: the first link, invitations, roles, sessions and their ends. Each change is in the audit log.
begin;
\ir fake_clock.sql
\ir world.sql
select plan(65);

create function test.hash(p_word text) returns text
language sql
as $$
select encode(sha256(convert_to(p_word, 'UTF8')), 'hex')
$$;
create function test.argon() returns text
language sql
as $$
select '$argon2id$v=19$m=19456,t=2,p=1$c2FsdA$aGFzaA'
$$;
create function test.user_of(p_email text) returns uuid
language sql
as $$
select u.user_id from autopost.users u where u.email = p_email
$$;
create function test.session_of(p_token text) returns text
language sql
as $$
select s ->> 'name' || ' ' || (s ->> 'confirmed') || ' ' || jsonb_path_query_array(s, '$.workspaces[*].role')
from autopost.resolve_session(test.hash(p_token)) s
$$;
create function test.owner(p_link text, p_workspace text) returns jsonb
language sql
as $$
select autopost.create_owner(p_workspace, test.hash(p_link),
	jsonb_build_object('email', ' Ann@Example.org', 'name', 'Ann', 'password_hash', test.argon()))
$$;

-- The first link.
select is(autopost.begin_first_link(test.hash('first')) ->> 'applied', 'true');
select is(autopost.get_invitation(test.hash('first')), '{"kind": "first"}');
select is(autopost.get_invitation(test.hash('other')), null);
select is(test.owner('other', 'w') ->> 'reason', 'unknown_link');
select test.tick('7 days');
select is(test.owner('first', 'w') ->> 'reason', 'unknown_link', 'a link ends');
select is(autopost.begin_first_link(test.hash('second')) ->> 'applied', 'true');
select is(test.owner('second', 'news') - 'user_id', '{"applied": true, "created": true}');
select is((select array[u.email, u.name, u.installation_owner::text, m.workspace_id, m.role]
	from autopost.users u join autopost.memberships m on m.user_id = u.user_id),
	'{ann@example.org,Ann,true,news,owner}');
select is(test.owner('second', 'w') ->> 'reason', 'users_exist', 'it works once');
select is(autopost.begin_first_link(test.hash('third')) ->> 'reason', 'users_exist');
select is(autopost.get_invitation(test.hash('second')), null);
select is((select a.operator from autopost.list_audit('news', '{"action": "create_owner"}', 10) a),
	'user:' || test.user_of('ann@example.org'));

-- Sessions.
select is(autopost.get_login('ANN@example.org ') ->> 'password_hash', test.argon());
select is(autopost.get_login('bob@example.org'), null);
select is(autopost.begin_session(test.user_of('ann@example.org'), test.hash('t1')) ->> 'applied', 'true');
select is(test.session_of('t1'), 'Ann true ["owner"]');
select is(test.session_of('t2'), null);
select test.tick('15 minutes');
select is(test.session_of('t1'), 'Ann false ["owner"]', 'the check of the password is good for step_up_minutes');
select is(autopost.confirm_session(test.hash('t1')), '{"applied": true}');
select is(test.session_of('t1'), 'Ann true ["owner"]');
select is(autopost.confirm_session(test.hash('t2')), '{"applied": false}');
select test.tick('59 minutes');
select is(test.session_of('t1'), 'Ann false ["owner"]', 'use extends a session');
select test.tick('60 minutes');
select is(test.session_of('t1'), null, 'an idle session ends');
select autopost.begin_session(test.user_of('ann@example.org'), test.hash('t3'));
do $$
begin
	for i in 1 .. 167 loop
		perform test.tick('59 minutes'), autopost.resolve_session(test.hash('t3'));
	end loop;
end
$$;
select is(test.session_of('t3'), 'Ann false ["owner"]', 'a used session lives');
select test.tick('5 hours');
select is(test.session_of('t3'), null, 'until session_max_hours');
select autopost.begin_session(test.user_of('ann@example.org'), test.hash('t4'));
select is((select count(*)::int from autopost.sessions), 1, 'ended sessions are removed');
select is(autopost.end_session(test.hash('t4')), '{"applied": true}');
select is(autopost.end_session(test.hash('t4')), '{"applied": false}');
select is(test.session_of('t4'), null);
select autopost.begin_session(test.user_of('ann@example.org'), test.hash('t' || i)) from generate_series(5, 7) i;
select is(autopost.end_sessions(test.user_of('ann@example.org'), 'o', 'lost laptop'),
	'{"applied": true, "ended": 3}');
select is(autopost.end_sessions(gen_random_uuid(), 'o', 'r') ->> 'reason', 'unknown_user');

-- Invitations.
select is(autopost.invite_user('w', '{"email": "Bob@example.org", "role": "editor"}', test.hash('old'), 'user:ann',
	'new') ->> 'email', 'bob@example.org');
select autopost.invite_user('w', '{"email": "bob@example.org", "role": "approver"}', test.hash('link'), 'user:ann',
	'more');
select is((select array_agg(i ->> 'role') from autopost.list_invitations('w', '{}', 10) i), '{approver}',
	'a new link replaces the old one');
select is(autopost.get_invitation(test.hash('old')), null);
select is(autopost.get_invitation(test.hash('link')) - '{user_id,password_hash}'::text[],
	'{"kind": "invitation", "workspace_id": "w", "workspace": "w", "email": "bob@example.org", "role": "approver"}');
select is(autopost.accept_invitation(test.hash('link'), test.user_of('ann@example.org'), '{}') ->> 'reason',
	'other_user');
select is(autopost.accept_invitation(test.hash('link'), null,
	jsonb_build_object('name', 'Bob', 'password_hash', test.argon())) ->> 'workspace_id', 'w');
select is(autopost.accept_invitation(test.hash('link'), null, '{}') ->> 'reason', 'unknown_link', 'once');
select is(autopost.invite_user('w', '{"email": "bob@example.org", "role": "owner"}', test.hash('again'), 'o', 'r')
	->> 'reason', 'already_member');
select is((select array[m ->> 'name', m ->> 'role'] from autopost.list_members('w', '{}', 10) m), '{Bob,approver}');
select autopost.invite_user('w', '{"email": "ann@example.org", "role": "viewer"}', test.hash('late'), 'o', 'r');
select is(autopost.accept_invitation(test.hash('late'), test.user_of('ann@example.org'), '{}') ->> 'applied', 'true',
	'a person who exists joins');

-- An identity provider vouches for an address.
select is(autopost.admit_person('eve@example.org', 'Eve'), '{"applied": false, "reason": "unknown_person"}');
select is((autopost.admit_person('BOB@example.org', 'Robert') ->> 'user_id')::uuid, test.user_of('bob@example.org'));
select autopost.invite_user('w', '{"email": "eve@example.org", "role": "viewer"}', test.hash('eve'), 'o', 'r');
select is(autopost.admit_person('eve@example.org', E'Eve\nE.') ->> 'applied', 'true');
select is((select array[m ->> 'name', m ->> 'role'] from autopost.list_members('w', '{}', 10) m
	where m ->> 'email' = 'eve@example.org'), '{EveE.,viewer}');
select is(array[autopost.get_login('eve@example.org')::text, autopost.get_invitation(test.hash('eve'))::text],
	array[null, null]::text[], 'without a password, and the invitation is used');
select autopost.begin_session(test.user_of('eve@example.org'), test.hash('e'));
create function test.ended(p_email text) returns jsonb language sql as $$
select autopost.end_own_session(test.user_of(p_email), s.session_id) from autopost.sessions s
where s.token_hash = test.hash('e') $$;
select is(test.ended('ann@example.org') ->> 'reason', 'unknown_session', 'a session of another person');
select is(test.ended('eve@example.org'), '{"applied": true}');

-- Only an owner of the installation creates workspaces.
select is(autopost.create_workspace('third', 'Third', test.user_of('eve@example.org'), 'o', 'r', false) ->> 'reason',
	'not_installation_owner');
select is(autopost.create_workspace('w', 'Third', test.user_of('ann@example.org'), 'o', 'r', false) ->> 'reason',
	'workspace_exists');
select is(autopost.create_workspace('third', 'Third', test.user_of('ann@example.org'), 'o', 'r', true) ->> 'applied',
	'true');
select is((select count(*)::int from autopost.workspaces where workspace_id = 'third'), 0, 'a dry run creates nothing');
select is(autopost.create_workspace('third', ' Third ', test.user_of('ann@example.org'), 'o', 'r', false)
	->> 'workspace_id', 'third');
select is((select array[m ->> 'email', m ->> 'role'] from autopost.list_members('third', '{}', 10) m),
	'{ann@example.org,owner}');
-- Roles and changes.
select is(autopost.put_membership('news', test.user_of('ann@example.org'), 'editor', 'o', 'r', false) ->> 'reason',
	'last_owner');
select is(autopost.put_membership('w', test.user_of('bob@example.org'), 'owner', 'o', 'r', false) -> 'before',
	'{"role": "approver"}');
select is(autopost.put_membership('w', test.user_of('ann@example.org'), null, 'o', 'r', false) -> 'after',
	'{"role": null}');
select is(autopost.put_user(test.user_of('ann@example.org'), '{"enabled": false}', 'o', 'r', false) ->> 'reason',
	'last_installation_owner');
select is(autopost.put_user(null, '{"email": "bob@example.org"}', 'o', 'r', false) ->> 'reason', 'email_taken');
select autopost.begin_session(test.user_of('bob@example.org'), test.hash('b'));
select is(autopost.put_user(test.user_of('bob@example.org'), '{"enabled": false}', 'o', 'left', false) ->> 'applied',
	'true');
select is(array[test.session_of('b'), autopost.get_login('bob@example.org')::text], array[null, null]::text[],
	'a disabled person has no session and cannot sign in');
select is(autopost.admit_person('bob@example.org', 'Bob') ->> 'reason', 'disabled');
select unalike((select string_agg(a::text, '') from autopost.admin_audit_log a), '%argon2id%',
	'no hash is in the audit log');
select is((select array_agg(distinct a.action order by a.action) from autopost.admin_audit_log a),
	'{accept_invitation,begin_session,create_owner,create_workspace,end_session,end_sessions,invite_user,put_membership,put_user}');
select is((select jsonb_agg(v) from autopost.verify('w') v where v.violations > 0), null, 'the invariants hold');

select * from finish();
rollback;
