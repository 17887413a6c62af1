create or replace function autopost.lock_content(p_blob_ref text) returns void
language plpgsql
as $$
-- Purpose: serializes registration and removal of the same content across workspaces.
begin
	perform pg_advisory_xact_lock(hashtextextended('autopost.media_origin/' || p_blob_ref, 0));
end
$$;

create or replace function autopost.begin_removal(p_blob_ref text) returns jsonb
language plpgsql
as $$
-- Purpose: starts the removal of an object from the media store unless a workspace uses it. The
--          caller locked the content and sees all workspaces.
-- Returns: {"applied": true, "token"}, or {"applied": false, "reason": "held" | "busy"}.
-- Reads:   media_origin.
-- Writes:  media_removals.
declare
	v_now timestamptz := autopost.now_ts();
	v_token text := gen_random_uuid()::text;
	v_stale timestamptz := v_now - autopost.media_removal_time();
begin
	if exists (
		select 1 from autopost.workspaces w
		cross join lateral (
			select 1 from autopost.media_origin o
			where o.workspace_id = w.workspace_id and o.blob_ref = p_blob_ref and o.deleted_at is null limit 1) held)
	then
		return '{"applied": false, "reason": "held"}';
	end if;
	insert into autopost.media_removals as r (blob_ref, token, begun_at) values (p_blob_ref, v_token, v_now)
	on conflict (blob_ref) do update set token = excluded.token, begun_at = excluded.begun_at
	where r.begun_at <= v_stale;
	return case when found then jsonb_build_object('applied', true, 'token', v_token)
		else '{"applied": false, "reason": "busy"}' end;
end
$$;
