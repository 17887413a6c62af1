-- Credentials. Each function returns the offending rows.

create or replace function autopost.verify_i50(p_workspace_id text) returns setof jsonb
language plpgsql stable
as $$
-- Purpose: finds violations of I50. A link works for ten minutes and is removed with its use; the
--          retention removes one that was not used. A day later none is kept.
declare
	v_kept timestamptz := autopost.now_ts() - interval '1 day';
begin
	return query
	select jsonb_build_object('auth_ref', l.auth_ref, 'platform', l.platform, 'operator', l.operator,
		'expires_at', l.expires_at)
	from autopost.credential_links l
	where l.workspace_id = p_workspace_id and l.expires_at <= v_kept
	order by l.expires_at;
end
$$;
