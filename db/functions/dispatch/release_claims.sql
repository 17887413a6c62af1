create or replace function autopost.release_claims(p_workspace_id text, p_claim_tokens text[]) returns jsonb
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: releases claims without a started call and grants their attempts again. A delivery with
--          a started call is not released.
-- Returns: {"applied": true, "released": n}.
-- Locks:   channels, deliveries, channel_gates.
-- Writes:  deliveries, channel_gates, events (released).
begin
	perform autopost.enter_workspace(p_workspace_id);
	perform autopost.require_argument('claim_tokens', p_claim_tokens is not null);
	return autopost.release_unstarted(p_workspace_id, p_claim_tokens, 'released');
end
$$;
