create or replace function autopost.record_upload(
	p_workspace_id text, p_platform text, p_auth_ref text, p_blob_ref text, p_kind text, p_used jsonb, p_operator text,
		p_reason text
) returns jsonb
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: records the upload of a medium without a post, with operator and reason, and charges its
--          use. Also for a medium that the platform had already. p_kind is the platform's; p_used:
--          {use: times}. Only the engine may call it: the id allows any holder of the credential to
--          post the medium.
-- Returns: {"applied": true, "file_id", "kind", "expires_at"}; or {"applied": false, "reason":
--          "unknown_upload"} if the platform's id is not stored or has expired.
-- Raises:  AP001 for a wrong argument.
-- Reads:   media_blobs, use_prices, budgets.
-- Writes:  charges, admin_audit_log.
declare
	v_act jsonb;
	v_blob jsonb;
begin
	perform autopost.enter_workspace(p_workspace_id);
	v_act := autopost.manual_act(p_operator, p_reason, false);
	perform autopost.require_argument(r.name, r.value <> '')
	from (values ('platform', p_platform), ('auth_ref', p_auth_ref), ('blob_ref', p_blob_ref), ('kind', p_kind)) r (
		name, value);
	select jsonb_build_object('file_id', b.file_id, 'kind', b.kind, 'expires_at', b.expires_at) into v_blob
		from autopost.media_blobs b
	where b.workspace_id = p_workspace_id and b.blob_ref = p_blob_ref and b.provider = p_platform
		and b.auth_ref = p_auth_ref and b.kind = p_kind
	and b.file_id is not null and coalesce(b.expires_at, 'infinity') > autopost.now_ts();
	if v_blob is null then
		return '{"applied": false, "reason": "unknown_upload"}';
	end if;
	perform autopost.charge_uses(p_workspace_id, p_platform, p_auth_ref, autopost.new_id(), 0, p_used);
	perform autopost.audit(p_workspace_id, 'record_upload', 'media:' || p_blob_ref, v_act, '{}',
		v_blob - 'file_id' || jsonb_build_object('platform', p_platform, 'auth_ref', p_auth_ref));
	return '{"applied": true}' || v_blob;
end
$$;
