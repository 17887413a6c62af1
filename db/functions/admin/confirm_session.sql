create or replace function autopost.confirm_session(p_token_hash text) returns jsonb
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: records that the person of a session proved the password again. See step_up_minutes.
-- Returns: {"applied": true}; {"applied": false} without such a session.
-- Writes:  sessions (confirmed_at).
declare
	v_now timestamptz := autopost.now_ts();
begin
	update autopost.sessions s set confirmed_at = v_now
	where s.token_hash = p_token_hash and s.expires_at > v_now;
	return jsonb_build_object('applied', found);
end
$$;
