create or replace function autopost.resolve_endpoint(p_kind text, p_secret_hash text) returns jsonb
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: finds the enabled endpoint of a kind by the SHA-256 (hexadecimal) of its secret, in any
--          workspace of the role that is not disabled.
-- Returns: {"workspace_id", "endpoint_id", "max_payload_bytes", "platform": of the bot, for kind
--          bot_webhook only}; null without a reason if not found, also for a bot_webhook
--          without a bot.
-- Reads:   secret_lookup, workspace_endpoints, workspaces, credential_bindings.
declare
	v_of record;
	v_answer jsonb;
begin
	perform autopost.enter_all_workspaces();
	select l.workspace_id, l.subject_id into v_of from autopost.secret_lookup l
	where l.kind = p_kind and l.secret_hash = p_secret_hash;
	if not found or not autopost.may_access(v_of.workspace_id) then
		return null;
	end if;
	select jsonb_build_object('workspace_id', e.workspace_id, 'endpoint_id', e.endpoint_id, 'max_payload_bytes',
		e.max_payload_bytes)
		|| case when p_kind = 'bot_webhook' then jsonb_build_object('platform', b.platform) else '{}' end
	into v_answer
	from autopost.workspace_endpoints e
	join autopost.workspaces w on w.workspace_id = v_of.workspace_id
	left join autopost.credential_bindings b on b.workspace_id = v_of.workspace_id
		and b.auth_ref = e.meta ->> 'auth_ref'
		and b.platform in ('telegram', 'max')
	where e.workspace_id = v_of.workspace_id and e.endpoint_id = v_of.subject_id
	and e.enabled and w.status <> 'disabled' and (p_kind <> 'bot_webhook' or b.platform is not null);
	return v_answer;
end
$$;
