create or replace function autopost.bot_report(p_workspace_id text, p_filter jsonb, p_limit int) returns jsonb
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: reports how well the rules answer: the newest 10,000 messages of a period by kind, the share
--          without a rule, and the texts without a rule, grouped by their words, the most frequent first.
--          Texts are masked. p_filter: {"since" (default: 7 days ago), "until"}; p_limit bounds the groups.
-- Returns: {"since", "messages", "kinds": {kind: count}, "fallback_rate": 0 to 1, "unmatched": [{"words",
--          "count", "example", "last_at"}]}.
-- Raises:  AP001 for a wrong argument; AP002, AP003, AP005 as enter_workspace.
-- Reads:   bot_logs.
declare
	v_since timestamptz;
	v_until timestamptz;
begin
	perform autopost.enter_workspace(p_workspace_id);
	perform autopost.check_read(p_filter, '{since,until}', p_limit);
	v_since := coalesce(autopost.instant_in(p_filter, 'since'), autopost.now_ts() - interval '7 days');
	v_until := coalesce(autopost.instant_in(p_filter, 'until'), 'infinity');
	return (
		with said as materialized (
			select l.ts, l.id, l.kind, l.message_text,
				autopost.bot_unmatched(l.kind, l.matched_rule_id, l.meta) as unmatched
			from autopost.bot_logs l
			where l.workspace_id = p_workspace_id and l.ts >= v_since and l.ts < v_until
			and l.kind in ('matched', 'fallback', 'guarded', 'escalated', 'relayed')
			order by l.ts desc, l.id desc
			limit 10000),
		unmatched as (
			select w.words, count(*) as n, max(s.ts) as last_at,
				(array_agg(s.message_text order by s.ts desc, s.id desc))[1] as example
			from said s
			cross join lateral (select autopost.bot_words(s.message_text) as words) w
			where s.unmatched and s.message_text <> ''
			group by w.words
			order by count(*) desc, max(s.ts) desc
			limit p_limit)
		select jsonb_build_object('since', v_since, 'messages', (select count(*) from said),
			'kinds', (select coalesce(jsonb_object_agg(k.kind, k.n), '{}')
				from (select s.kind, count(*) as n from said s group by s.kind) k),
			'fallback_rate', (select coalesce(round(avg(s.unmatched::int), 4), 0) from said s
				where s.kind <> 'relayed'),
			'unmatched', (select coalesce(jsonb_agg(jsonb_build_object('words', to_jsonb(u.words), 'count', u.n,
				'example', u.example, 'last_at', u.last_at) order by u.n desc, u.last_at desc), '[]') from unmatched u)));
end
$$;
