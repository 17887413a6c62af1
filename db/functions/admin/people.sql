create or replace function autopost.roles() returns text[]
language sql immutable parallel safe
as $$
-- Purpose: the roles. Each has the rights of those before it.
select '{viewer,editor,approver,operator,owner}'::text[]
$$;

create or replace function autopost.check_role(p_role text) returns void
language plpgsql stable
as $$
-- Purpose: checks a role.
-- Raises:  AP001 for an unknown role.
begin
	if coalesce(p_role <> all (autopost.roles()), true) then
		perform autopost.raise_argument('role', format('must be viewer, editor, approver, operator or owner, got %s',
			coalesce(p_role, 'null')), 'pass one of these roles');
	end if;
end
$$;

create or replace function autopost.email_of(p_email text) returns text
language plpgsql stable
as $$
-- Purpose: an e-mail address in the stored form: lower case, without outer spaces.
-- Raises:  AP001 for a text that is not an address.
declare
	v_email text := lower(btrim(p_email));
begin
	if coalesce(v_email !~ '^[^@[:space:][:cntrl:]]+@[^@[:space:][:cntrl:]]+$' or length(v_email) > 254, true) then
		perform autopost.raise_argument('email', format('must be an e-mail address, got %s',
			coalesce(left(p_email, 100), 'null')), 'write an address such as ann@example.org');
	end if;
	return v_email;
end
$$;

create or replace function autopost.person_name_of(p_name text) returns text
language plpgsql stable
as $$
-- Purpose: the name of a person without outer spaces.
-- Raises:  AP001 for an empty or long name, and for control characters.
declare
	v_name text := btrim(p_name);
begin
	if coalesce(v_name = '' or length(v_name) > 100 or v_name ~ '[[:cntrl:]]', true) then
		perform autopost.raise_argument('name', 'must have 1 to 100 characters in one line', 'write the name of the person');
	end if;
	return v_name;
end
$$;

create or replace function autopost.check_token_hash(p_hash text) returns void
language plpgsql stable
as $$
-- Purpose: checks the hash of a token.
-- Raises:  AP001.
begin
	if coalesce(p_hash !~ '^[0-9a-f]{64}$', true) then
		perform autopost.raise_argument('token_hash', 'must be a SHA-256', 'pass 64 lower-case hexadecimal digits');
	end if;
end
$$;

create or replace function autopost.check_password_hash(p_hash text) returns void
language plpgsql stable
as $$
-- Purpose: checks the encoded form of a password hash. The password itself never reaches the database.
-- Raises:  AP001.
begin
	if coalesce(p_hash !~ '^\$argon2id\$v=19\$m=[0-9]+,t=[0-9]+,p=[0-9]+\$[A-Za-z0-9+/]+\$[A-Za-z0-9+/]+$', true) then
		perform autopost.raise_argument('password_hash', 'must be an argon2id hash in its encoded form',
			'hash the password first');
	end if;
end
$$;

create or replace function autopost.user_shown(p_user autopost.users) returns jsonb
language sql immutable
as $$
-- Purpose: a person without the password hash.
select jsonb_build_object('user_id', p_user.user_id, 'email', p_user.email, 'name', p_user.name, 'language',
	p_user.language, 'installation_owner', p_user.installation_owner, 'enabled', p_user.enabled, 'has_password',
	p_user.password_hash is not null)
$$;

create or replace function autopost.audit_person(p_action text, p_user_id uuid, p_act jsonb, p_before jsonb,
	p_after jsonb) returns void
language plpgsql
as $$
-- Purpose: records an operator action on a person in the audit log of the operator's workspace, as its last act.
--          Without any workspace there is no log. Call it before a workspace is entered.
-- Locks:   audit_heads.
-- Reads:   workspaces.
-- Writes:  admin_audit_log.
declare
	v_log text := autopost.operator_workspace();
begin
	if v_log is not null then
		perform autopost.audit(v_log, p_action, 'user:' || p_user_id, p_act, p_before, p_after);
	end if;
end
$$;

create or replace function autopost.act_of_user(p_user_id uuid, p_reason text) returns jsonb
language sql immutable
as $$
-- Purpose: operator and reason of what a person does with the own account.
select jsonb_build_object('operator', 'user:' || p_user_id, 'reason', p_reason, 'manual', true)
$$;

create or replace function autopost.add_user(p_email text, p_name text, p_password_hash text, p_owner boolean)
	returns autopost.users
language plpgsql
as $$
-- Purpose: adds a person. The caller holds the turn people.
-- Writes:  users.
declare
	v_user autopost.users;
begin
	insert into autopost.users (user_id, email, name, password_hash, installation_owner, created_at, updated_at)
	values (autopost.new_id(), p_email, p_name, p_password_hash, p_owner, autopost.now_ts(), autopost.now_ts())
	returning * into v_user;
	return v_user;
end
$$;
