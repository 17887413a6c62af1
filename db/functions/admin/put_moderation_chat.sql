create or replace function autopost.moderation_chat_rules() returns jsonb
language sql immutable parallel safe
as $$
-- Purpose: the fields of a moderators' chat, for put_row.
select '{
	"auth_ref": {"is": "text", "required": true},
	"target_id": {"is": "text", "required": true},
	"users": {"is": "list", "required": true, "default": []},
	"enabled": {"is": "boolean", "required": true, "default": true}
}'::jsonb
$$;

create or replace function autopost.moderation_chat_errors(p_workspace_id text, p_chat_id text, p_fields jsonb)
	returns jsonb
language plpgsql stable
as $$
-- Purpose: checks a moderators' chat beyond the form of its fields.
-- Returns: an array of {field, reason, remedy}.
-- Reads:   credential_bindings, platforms, moderation_chats.
declare
	v_platform autopost.platforms;
	v_bad text := (select u.value from jsonb_array_elements_text(p_fields -> 'users') u
		where u.value !~ '^[0-9]{1,19}$' order by 1 limit 1);
begin
	select p.* into v_platform
	from autopost.credential_bindings b
	join autopost.platforms p on p.platform = b.platform
	where b.workspace_id = p_workspace_id and b.auth_ref = p_fields ->> 'auth_ref' and b.platform in ('telegram',
		'max');
	return case
		when v_platform.platform is null then autopost.field_error('auth_ref',
			format('must be a credential of telegram or max, got %s', p_fields -> 'auth_ref'),
			'bind or set the credential first: autopost credential list')
		when p_fields ->> 'target_id' !~ v_platform.target_form then autopost.field_error('target_id',
			format('must be a target of %s, got %s', v_platform.platform, p_fields -> 'target_id'),
			'write one such as ' || v_platform.target_example)
		when exists (select 1 from autopost.moderation_chats c
			where c.workspace_id = p_workspace_id and c.auth_ref = p_fields ->> 'auth_ref'
			and c.target_id = p_fields ->> 'target_id' and c.chat_id <> p_chat_id)
			then autopost.field_error('target_id', 'must not be the chat of another row', 'change the other row')
		else '[]' end
	|| case when v_bad is not null then autopost.field_error('users',
		format('must hold numeric ids of people, got %s', to_jsonb(v_bad)),
		'write ["5001"]: autopost audit list names the id of a person whose press was refused') else '[]' end;
end
$$;

create or replace function autopost.moderation_chat_note(p_workspace_id text, p_fields jsonb) returns jsonb
language sql stable
as $$
-- Purpose: {"note"} if presses in a chat cannot arrive; {} if they can, as far as the database knows.
-- Reads:   workspace_endpoints, credential_bindings.
select case when p_fields -> 'enabled' = 'true' and autopost.missing_bot_endpoint(p_workspace_id,
	p_fields ->> 'auth_ref') is not null
	then jsonb_build_object('note', 'no press can arrive: ' || autopost.missing_bot_endpoint(p_workspace_id,
		p_fields ->> 'auth_ref')) else '{}' end
$$;

create or replace function autopost.missing_bot_endpoint(p_workspace_id text, p_auth_ref text) returns text
language plpgsql stable
as $$
-- Purpose: what is missing for updates of a bot, with the command; null if an endpoint gets them.
-- Reads:   workspace_endpoints, credential_bindings.
begin
	return (select format('no endpoint gets the updates of %s: autopost endpoint add NAME --kind %s --auth-ref %1$s --workspace %s --reason moderation',
		b.auth_ref, b.platform, p_workspace_id)
	from autopost.credential_bindings b
	where b.workspace_id = p_workspace_id and b.auth_ref = p_auth_ref and not exists (
		select 1 from autopost.workspace_endpoints e
		where e.workspace_id = p_workspace_id and e.kind = 'bot_webhook' and (e.enabled or e.awaits_secret)
		and e.meta ->> 'auth_ref' = p_auth_ref));
end
$$;

create or replace function autopost.put_moderation_chat(
	p_workspace_id text, p_chat_id text, p_fields jsonb, p_operator text, p_reason text, p_dry_run boolean
) returns jsonb
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: adds or changes a chat whose members decide about posts. p_fields has changed fields (see
--          moderation_chat_rules); null restores the default. The chat is asked about every post
--          that waits. A disabled chat loses its buttons.
-- Returns: {"applied": true, "dry_run", "created", "before", "after", "note": if presses cannot
--          arrive}, or {"applied": false, "dry_run"} with reason unchanged, or invalid and "errors":
--          [{"field", "reason", "remedy"}].
-- Raises:  AP001 for a wrong argument.
-- Locks:   workspaces, moderation_chats, audit_heads.
-- Reads:   platforms, credential_bindings, workspace_endpoints.
-- Writes:  moderation_chats, alerts, admin_audit_log.
declare
	v_act jsonb;
	v_rules jsonb := autopost.moderation_chat_rules();
	v_before jsonb;
	v_put jsonb;
	v_answer jsonb;
	v_new autopost.moderation_chats;
	v_now timestamptz;
begin
	perform autopost.enter_workspace(p_workspace_id);
	v_act := autopost.manual_act(p_operator, p_reason, p_dry_run);
	perform autopost.require_argument('chat_id', p_chat_id <> '');
	perform autopost.lock_configuration(p_workspace_id) where not p_dry_run;
	v_before := (select autopost.row_fields(to_jsonb(c), v_rules) from autopost.moderation_chats c
		where c.workspace_id = p_workspace_id and c.chat_id = p_chat_id);
	perform autopost.check_new_id('chat_id', p_chat_id) where v_before is null;
	v_put := autopost.put_row(p_fields, v_rules, v_before);
	v_answer := autopost.put_answer(v_put, case when v_put -> 'errors' = '[]'
		then autopost.moderation_chat_errors(p_workspace_id, p_chat_id, v_put -> 'after') end, p_dry_run);
	if v_answer -> 'applied' = 'true' then
		v_answer := v_answer || autopost.moderation_chat_note(p_workspace_id, v_put -> 'after');
	end if;
	if v_answer -> 'applied' = 'true' and not p_dry_run then
		v_new := jsonb_populate_record(null::autopost.moderation_chats, v_put -> 'after');
		v_now := autopost.now_ts();
		insert into autopost.moderation_chats as c (workspace_id, chat_id, auth_ref, target_id, users, enabled, next_at,
			created_at, updated_at)
		values (p_workspace_id, p_chat_id, v_new.auth_ref, v_new.target_id, v_new.users, v_new.enabled, v_now, v_now,
			v_now)
		on conflict (workspace_id, chat_id) do update
		set auth_ref = excluded.auth_ref, target_id = excluded.target_id, users = excluded.users,
			enabled = excluded.enabled, next_at = case when c.failures > 0 then excluded.next_at else c.next_at end,
			failures = 0, updated_at = excluded.updated_at;
		perform autopost.end_alert(p_workspace_id, 'moderation_chat_failing', 'moderation_chat:' || p_chat_id);
		perform autopost.audit(p_workspace_id, 'put_moderation_chat', 'moderation_chat:' || p_chat_id, v_act,
			v_answer -> 'before', v_answer -> 'after');
		perform pg_notify('autopost_wake', 'moderation');
	end if;
	return v_answer;
end
$$;
