create or replace function autopost.release_claims(p_workspace_id text, p_claim_tokens text[]) returns jsonb
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Hands back what was claimed and not started; the attempt is granted again. A delivery whose call began is not released.
-- Returns {"applied": true, "released": n}. Locks: channels, deliveries, channel_gates. Writes: deliveries, channel_gates, events(released).
begin
	perform autopost.enter_workspace(p_workspace_id);
	perform autopost.require('claim_tokens', p_claim_tokens is not null);
	return autopost.hand_back_unbegun(p_workspace_id, p_claim_tokens, 'released');
end
$$;
