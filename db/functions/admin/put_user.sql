create or replace function autopost.changed_user(p_user autopost.users, p_fields jsonb) returns autopost.users
language plpgsql stable
as $$
-- Purpose: a person with changed fields.
-- Raises:  AP001 for an unknown or wrong field.
declare
	v_user autopost.users := p_user;
	v_field text;
begin
	if jsonb_typeof(p_fields) is distinct from 'object' then
		perform autopost.raise_argument('fields', 'must be a JSON object', 'pass the fields that change');
	end if;
	select f.key into v_field from jsonb_object_keys(p_fields) f (key)
	where f.key <> all ('{email,name,language,enabled,installation_owner,password_hash}') limit 1;
	if v_field is not null then
		perform autopost.raise_argument('fields', format('has the unknown field %L', v_field),
			'use email, name, language, enabled, installation_owner, password_hash');
	end if;
	select f.key into v_field from jsonb_each(p_fields) f
	where f.key in ('enabled', 'installation_owner') and jsonb_typeof(f.value) <> 'boolean' limit 1;
	if v_field is not null then
		perform autopost.raise_argument(v_field, 'must be true or false', 'pass a boolean');
	elsif coalesce(p_fields ->> 'language', '') not in ('', 'en', 'ru') then
		perform autopost.raise_argument('language', format('must be en, ru or empty, got %s', p_fields ->> 'language'),
			'pass one of these');
	end if;
	if p_user.user_id is null or p_fields ? 'email' then
		v_user.email := autopost.email_of(p_fields ->> 'email');
	end if;
	if p_user.user_id is null or p_fields ? 'name' then
		v_user.name := autopost.person_name_of(coalesce(p_fields ->> 'name', split_part(v_user.email, '@', 1)));
	end if;
	if p_fields ->> 'password_hash' is not null then
		perform autopost.check_password_hash(p_fields ->> 'password_hash');
		v_user.password_hash := p_fields ->> 'password_hash';
	end if;
	v_user.language := coalesce(p_fields ->> 'language', p_user.language, '');
	v_user.enabled := coalesce((p_fields ->> 'enabled')::boolean, p_user.enabled, true);
	v_user.installation_owner := coalesce((p_fields ->> 'installation_owner')::boolean, p_user.installation_owner, false);
	return v_user;
end
$$;

create or replace function autopost.put_user(p_user_id uuid, p_fields jsonb, p_operator text, p_reason text,
	p_dry_run boolean) returns jsonb
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: adds a person (p_user_id null) or changes fields: email, name, language, enabled,
--          installation_owner, password_hash. A new password and the end of enabled end the sessions
--          of the person. Works across workspaces; the audit row is in the operator's workspace.
-- Returns: {"applied": true, "dry_run", "created", "user_id", "before", "after"}; or {"applied":
--          false, "dry_run", "reason": "unknown_user" | "unchanged" | "email_taken" |
--          "last_installation_owner"}.
-- Raises:  AP001 for a wrong argument.
-- Locks:   turns (people), audit_heads.
-- Writes:  users, sessions, admin_audit_log.
declare
	v_act jsonb := autopost.manual_act(p_operator, p_reason, p_dry_run);
	v_old autopost.users;
	v_new autopost.users;
	v_refused text;
	v_before jsonb;
	v_now timestamptz;
begin
	perform autopost.enter_all_workspaces();
	perform autopost.take_turn('people') where not p_dry_run;
	select u.* into v_old from autopost.users u where u.user_id = p_user_id;
	v_before := case when p_user_id is null then '{}'::jsonb else autopost.user_shown(v_old) end;
	if p_user_id is null or v_old.user_id is not null then
		v_new := autopost.changed_user(v_old, p_fields);
	end if;
	v_refused := case
		when p_user_id is not null and v_old.user_id is null then 'unknown_user'
		when v_new is not distinct from v_old then 'unchanged'
		when exists (select 1 from autopost.users u where u.email = v_new.email
			and u.user_id is distinct from p_user_id) then 'email_taken'
		when v_old.installation_owner and v_old.enabled and not (v_new.installation_owner and v_new.enabled)
			and not exists (select 1 from autopost.users u
				where u.installation_owner and u.enabled and u.user_id <> p_user_id) then 'last_installation_owner' end;
	if v_refused is not null then
		return jsonb_build_object('applied', false, 'dry_run', p_dry_run, 'reason', v_refused);
	end if;
	if not p_dry_run and p_user_id is null then
		v_new := autopost.add_user(v_new.email, v_new.name, v_new.password_hash, v_new.installation_owner);
	elsif not p_dry_run then
		v_now := autopost.now_ts();
		update autopost.users u
		set email = v_new.email, name = v_new.name, language = v_new.language, enabled = v_new.enabled,
			installation_owner = v_new.installation_owner, password_hash = v_new.password_hash,
			updated_at = v_now
		where u.user_id = p_user_id;
		delete from autopost.sessions s where s.user_id = p_user_id
			and (not v_new.enabled or v_new.password_hash is distinct from v_old.password_hash);
	end if;
	perform autopost.audit_person('put_user', v_new.user_id, v_act, v_before, autopost.user_shown(v_new)
		|| jsonb_build_object('new_password', v_new.password_hash is distinct from v_old.password_hash))
	where not p_dry_run;
	return jsonb_build_object('applied', true, 'dry_run', p_dry_run, 'created', p_user_id is null, 'user_id',
		v_new.user_id, 'before', v_before, 'after', autopost.user_shown(v_new));
end
$$;
