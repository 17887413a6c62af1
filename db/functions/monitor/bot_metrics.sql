create or replace function autopost.bot_gauges(p_workspace_id text, p_since timestamptz)
	returns table (line text, messages bigint)
language plpgsql stable
as $$
-- Purpose: the rows of bot_metrics of one workspace.
-- Reads:   bot_logs, bot_inbox.
begin
	return query
	select case when autopost.bot_unmatched(l.kind, l.matched_rule_id, l.meta) then 'unmatched' else l.kind end,
		count(*)
	from (
		select x.kind, x.matched_rule_id, x.meta from autopost.bot_logs x
		where x.workspace_id = p_workspace_id and x.ts > p_since
			and x.kind in ('matched', 'fallback', 'guarded', 'escalated', 'relayed')
		order by x.ts desc limit 10000) l
	group by 1;
	return query
	select case when i.tries = 5 then 'given_up' when i.error is not null then 'failing' else 'waiting' end, count(*)
	from (
		(select x.tries, x.error from autopost.bot_inbox x
		where x.workspace_id = p_workspace_id and x.status = 'received' and x.tries < 5 limit 10000)
		union all
		(select x.tries, x.error from autopost.bot_inbox x
		where x.workspace_id = p_workspace_id and x.status = 'received' and x.tries = 5 limit 10000)) i
	group by 1;
end
$$;

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
	v_mine text[];
	v_id text;
	v_counted jsonb[] := '{}';
begin
	perform autopost.enter_all_workspaces();
	v_mine := autopost.own_workspaces();
	for v_id in
		select w.workspace_id from autopost.workspaces w where v_mine is null or w.workspace_id = any (v_mine)
	loop
		v_counted := v_counted || array(select jsonb_build_object('workspace_id', v_id, 'line', g.line, 'messages',
			g.messages)
			from autopost.bot_gauges(v_id, v_since) g);
	end loop;
	return query
	with counted as materialized (
		select c.workspace_id, c.line, c.messages
		from unnest(v_counted) u (row)
		cross join lateral jsonb_to_record(u.row) c (workspace_id text, line text, messages bigint)
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
