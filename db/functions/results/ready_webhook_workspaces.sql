create or replace function autopost.ready_webhook_workspaces(p_limit int) returns setof text
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Workspaces with an enabled result webhook for which a call is due, or whose events are to be read again. Looks across workspaces.
-- Reads: what webhook_workspaces reads.
begin
	perform autopost.enter_all_workspaces();
	perform autopost.require('limit', p_limit > 0);
	return query select r from autopost.webhook_workspaces(autopost.now_ts(), p_limit) r;
end
$$;
