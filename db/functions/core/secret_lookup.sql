create or replace function autopost.keep_secret_lookup() returns trigger
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: keeps secret_lookup in step with enabled endpoints and keys. A second enabled row with
--          the same hash is a unique violation. The argument is the kind; endpoints have their own.
-- Writes:  secret_lookup.
declare
	v_kind text;
	v_subject text;
begin
	if tg_op <> 'INSERT' then
		v_kind := coalesce(tg_argv[0], to_jsonb(old) ->> 'kind');
		v_subject := coalesce(to_jsonb(old) ->> 'endpoint_id', to_jsonb(old) ->> 'key_id');
		delete from autopost.secret_lookup l
		where l.workspace_id = old.workspace_id and l.kind = v_kind and l.subject_id = v_subject;
	end if;
	if tg_op <> 'DELETE' and new.enabled and new.secret_hash is not null then
		v_kind := coalesce(tg_argv[0], to_jsonb(new) ->> 'kind');
		v_subject := coalesce(to_jsonb(new) ->> 'endpoint_id', to_jsonb(new) ->> 'key_id');
		insert into autopost.secret_lookup (kind, secret_hash, workspace_id, subject_id)
		values (v_kind, new.secret_hash, new.workspace_id, v_subject);
	end if;
	return null;
end
$$;

create or replace trigger keep_secret_lookup
	after insert or delete or update of enabled, secret_hash, kind on autopost.workspace_endpoints
	for each row execute function autopost.keep_secret_lookup();
create or replace trigger keep_secret_lookup
	after insert or delete or update of enabled, secret_hash on autopost.api_keys
	for each row execute function autopost.keep_secret_lookup('api_key');
