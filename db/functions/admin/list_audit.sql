create or replace function autopost.list_audit(p_workspace_id text, p_filter jsonb, p_limit int)
	returns setof autopost.list_audit
language plpgsql security definer set search_path = autopost, pg_temp set plan_cache_mode = force_custom_plan
	set enable_sort = off set enable_seqscan = off set enable_bitmapscan = off
as $$
-- Purpose: lists operator actions, newest first. All keys of p_filter are optional: action,
--          subject, operator, since (inclusive), until (exclusive), before_id (older than this id:
--          the next page). The plan is made per call, so that a missing key does not disable an
--          index.
-- Raises:  AP001 for an unknown key, a malformed id or instant, or a limit outside 1 to 10000.
-- Reads:   list_audit (view).
declare
	v_before_id uuid := autopost.uuid_in(p_filter, 'before_id');
	v_from uuid := autopost.first_id_at(autopost.instant_in(p_filter, 'since'));
	v_until uuid := autopost.first_id_at(autopost.instant_in(p_filter, 'until'));
begin
	perform autopost.enter_workspace(p_workspace_id);
	perform autopost.check_read(p_filter, '{action,subject,operator,since,until,before_id}', p_limit);
	return query
	select v.* from autopost.list_audit_rows v
	where v.workspace_id = p_workspace_id
	and (not p_filter ? 'action' or v.action = p_filter ->> 'action')
	and (not p_filter ? 'subject' or v.subject = p_filter ->> 'subject')
	and (not p_filter ? 'operator' or v.operator = p_filter ->> 'operator')
	and (v_before_id is null or v.id < v_before_id)
	and (v_from is null or v.id >= v_from)
	and (v_until is null or v.id < v_until)
	order by v.id desc
	limit p_limit;
end
$$;
