create or replace function autopost.bot_metrics()
returns table (workspace_id text, line text, messages bigint)
language plpgsql stable security definer set search_path = autopost, pg_temp
as $$
-- Purpose: the messages to bots as gauges. Of the last ten minutes, the newest 10,000 of a workspace by
--          their answer: matched, unmatched (no rule), guarded, escalated (by a rule or the turn guard),
--          relayed. And those that are not processed: waiting, failing, given_up. All but the fifty
--          workspaces with most messages are summed up as _other. Works across workspaces.
-- Reads:   workspaces, bot_logs, bot_inbox.
declare
	v_since timestamptz := autopost.now_ts() - interval '10 minutes';
	v_all boolean;
begin
	perform autopost.enter_all_workspaces();
	v_all := autopost.may_access('*');
	return query
	with counted as materialized (
		select w.workspace_id, m.line, m.messages
		from autopost.workspaces w
		cross join lateral (
			select case when autopost.bot_unmatched(l.kind, l.matched_rule_id, l.meta) then 'unmatched' else l.kind end
				as line, count(*) as messages
			from (
				select x.kind, x.matched_rule_id, x.meta from autopost.bot_logs x
				where x.workspace_id = w.workspace_id and x.ts > v_since
					and x.kind in ('matched', 'fallback', 'guarded', 'escalated', 'relayed')
				order by x.ts desc limit 10000) l
			group by 1
			union all
			select case when i.tries = 5 then 'given_up' when i.error is not null then 'failing' else 'waiting' end,
				count(*)
			from (
				(select x.tries, x.error from autopost.bot_inbox x
				where x.workspace_id = w.workspace_id and x.status = 'received' and x.tries < 5 limit 10000)
				union all
				(select x.tries, x.error from autopost.bot_inbox x
				where x.workspace_id = w.workspace_id and x.status = 'received' and x.tries = 5 limit 10000)) i
			group by 1) m
		where v_all or autopost.may_access(w.workspace_id)
	), placed as (
		select c.workspace_id, row_number() over (order by sum(c.messages) desc, c.workspace_id) as place
		from counted c group by c.workspace_id
	)
	select n.name, n.line, sum(n.messages)::bigint
	from (
		select case when p.place <= 50 then c.workspace_id else '_other' end as name, c.line, c.messages
		from counted c
		join placed p on p.workspace_id = c.workspace_id) n
	group by n.name, n.line;
end
$$;
