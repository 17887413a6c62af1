-- Faults of a set of rules that each rule alone does not show. bot_lint plays the order of bot_match.

create or replace function autopost.bot_lint_words(p_rules jsonb)
	returns table (rule_id text, rule_state text, next_state text, template text, keyword text, at_state text,
		decided_by text)
language plpgsql immutable parallel safe
as $$
-- Purpose: each keyword of each rule in each state in which the rule applies, and the rule that decides
--          about every text with this keyword instead; decided_by is null if the keyword may decide.
--          A rule without keywords has one row per state, with keyword ''. Order and folding are those
--          of bot_match: a keyword inside another one takes all its texts.
begin
	return query
	with ordered as materialized (
		select r.value ->> 'rule_id' as id, r.value ->> 'state' as state, r.value ->> 'next_state' as leads_to,
			r.value ->> 'response_template' as body,
			coalesce(nullif(r.value #> '{pattern,keywords}', '[]'), '[""]') as keywords,
			row_number() over (order by coalesce((r.value ->> 'priority')::int, 0) desc,
				r.value ->> 'state' is null, r.value ->> 'rule_id' collate "C") as n
		from jsonb_array_elements(p_rules) r),
	words as materialized (
		select o.id, o.state, o.leads_to, o.body, o.n, k.value as word, k.ordinality as place,
			autopost.bot_fold(k.value) as folded
		from ordered o cross join lateral jsonb_array_elements_text(o.keywords) with ordinality k),
	states as materialized (
		select 'default' as name union select o.state from ordered o where o.state is not null
		union select o.leads_to from ordered o where o.leads_to <> 'operator'),
	earlier as materialized (
		select w.n, w.place, q.n as by_n, q.state as by_state, q.id as by_id
		from words w
		join words q on strpos(w.folded, q.folded) > 0 and (q.n < w.n or q.n = w.n
			and (length(q.folded) < length(w.folded) or q.folded = w.folded and q.place < w.place)))
	select w.id, w.state, w.leads_to, w.body, w.word, s.name, (
		select e.by_id from earlier e
		where e.n = w.n and e.place = w.place and coalesce(e.by_state, s.name) = s.name
		order by e.by_n limit 1)
	from words w
	join states s on coalesce(w.state, s.name) = s.name;
end
$$;

create or replace function autopost.bot_lint_variables(p_template text) returns setof text
language sql immutable parallel safe
as $$
-- Purpose: the names in a template that a conversation must fill; see bot_fill.
select distinct m[1] from regexp_matches(p_template, '\{([\w-]{1,64})\}', 'g') m
where m[1] not in ('name', 'text', 'turns')
$$;

create or replace function autopost.bot_lint(p_rules jsonb) returns jsonb
language plpgsql immutable parallel safe
as $$
-- Purpose: the faults of rules, as bot_decide takes them: a state to which no rule leads; a keyword
--          that never decides, because a shorter one goes first; a variable that a conversation may
--          reach without its text; a state from which no rule leads to default or operator, so that
--          only the turn guard or its time ends it. A rule whose state is unreachable has no other
--          finding.
-- Returns: [{"kind": unreachable_state | shadowed_keyword | missing_variable | endless_loop,
--          "rule_id", "field", "reason", "remedy"}] by rule and field.
begin
	return (
		with recursive words as materialized (
			select w.* from autopost.bot_lint_words(p_rules) w),
		edges as materialized (
			select distinct w.rule_id, w.at_state, coalesce(w.next_state, w.at_state) as leads_to,
				w.rule_state is not null as keeps
			from words w where w.decided_by is null),
		reached (state) as (
			select 'default' union select e.leads_to from reached r
			join edges e on e.at_state = r.state and e.leads_to <> 'operator'),
		ending (state) as (
			select e.at_state from edges e where e.leads_to in ('default', 'operator')
			union select e.at_state from ending x join edges e on e.leads_to = x.state),
		unfilled (variable, state) as (
			select distinct v.name, 'default' from words w
			cross join lateral autopost.bot_lint_variables(w.template) v (name)
			union select u.variable, e.leads_to from unfilled u
			join edges e on e.at_state = u.state and e.leads_to <> 'operator'
				and not (e.keeps and e.at_state = u.variable)),
		found as (
			select 'unreachable_state' as kind, w.rule_id, 'state' as field,
				format('is %s, to which no rule leads', w.rule_state) as reason,
				format('set next_state of another rule to %s, or correct state', w.rule_state) as remedy
			from words w where w.rule_state is not null and w.rule_state not in (select r.state from reached r)
			union
			select 'shadowed_keyword', w.rule_id, 'keywords', case when w.keyword = ''
				then format('never decide: rule %s takes every text first', min(w.decided_by))
				else format('must not contain "%s": rule %s takes all its texts first', w.keyword,
					min(w.decided_by)) end,
				'remove it, or change the priority of a rule'
			from words w where w.at_state in (select r.state from reached r)
			group by w.rule_id, w.keyword having count(*) = count(w.decided_by)
			union
			select 'missing_variable', w.rule_id, 'response_template',
				format('may show {%s} without a text, in state %s', v.name, min(w.at_state)),
				'write {name}, {text} or a state that the conversation has passed, in the spelling of the rule'
			from words w
			cross join lateral autopost.bot_lint_variables(w.template) v (name)
			join unfilled u on u.variable = v.name and u.state = w.at_state
			where w.decided_by is null and not (w.rule_state is not null and w.at_state = v.name)
			group by w.rule_id, v.name
			union
			select 'endless_loop', min(e.rule_id), 'next_state',
				format('is %s, from which no rule leads to default or operator', e.leads_to),
				format('add a rule of state %s with next_state default, or correct next_state', e.leads_to)
			from edges e
			where e.at_state in (select r.state from reached r) and e.leads_to <> e.at_state
				and e.leads_to not in (select x.state from ending x) and e.leads_to <> 'operator'
			group by e.leads_to)
		select coalesce(jsonb_agg(jsonb_build_object('kind', f.kind, 'rule_id', f.rule_id, 'field', f.field,
			'reason', f.reason, 'remedy', f.remedy)
			order by f.rule_id collate "C", f.field, f.reason collate "C"), '[]')
		from found f);
end
$$;
