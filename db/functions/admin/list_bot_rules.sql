create or replace function autopost.list_bot_rules(p_workspace_id text, p_filter jsonb, p_limit int)
	returns table (rule_id text, version int, enabled boolean, intent text, state text, keywords jsonb, priority int,
		max_turns int, response_template text, buttons jsonb, next_state text, created_at timestamptz)
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: lists the rules of the bot by id, the newest version first. p_filter: {"rule_id", "enabled":
--          true for the versions that decide now, "after": a rule_id, "before_version": the list continues
--          behind this version of it}.
-- Raises:  AP001 for an unknown filter or a limit outside 1 to 10000.
-- Reads:   bot_rules.
begin
	perform autopost.enter_workspace(p_workspace_id);
	perform autopost.check_read(p_filter, '{rule_id,enabled,after,before_version}', p_limit);
	return query
	select r.rule_id, r.version, r.enabled, r.intent, r.state, r.pattern -> 'keywords', r.priority, r.max_turns,
		r.response_template, r.buttons, r.next_state, r.created_at
	from autopost.bot_rules r
	where r.workspace_id = p_workspace_id
	and (not p_filter ? 'rule_id' or r.rule_id = p_filter ->> 'rule_id')
	and (not p_filter ? 'enabled' or to_jsonb(r.enabled) = p_filter -> 'enabled')
	and (not p_filter ? 'after' or r.rule_id > p_filter ->> 'after'
		or r.rule_id = p_filter ->> 'after' and r.version < (p_filter ->> 'before_version')::int)
	order by r.rule_id, r.version desc
	limit p_limit;
end
$$;
