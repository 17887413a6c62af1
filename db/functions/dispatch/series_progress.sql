create or replace function autopost.with_progress(p_render_meta jsonb, p_steps jsonb) returns jsonb
language plpgsql immutable parallel safe
as $$
-- Purpose: the render_meta of a delivery after acknowledged steps. p_steps: step -> the platform's
--          ids. A recorded step does not change. sent_items and provider_message_ids follow from
--          the plan of steps, in its order. An aside makes no message.
begin
	return (
		select p_render_meta || jsonb_build_object('series_progress', jsonb_build_object(
			'steps', coalesce(jsonb_object_agg(d.step, d.ids), '{}'),
			'sent_items', coalesce((select jsonb_agg(i.value order by s.ordinality, i.ordinality)
				from jsonb_array_elements(p_render_meta -> 'steps') with ordinality s,
					jsonb_array_elements(coalesce(s.value -> 'items', '[]')) with ordinality i
				where (p_steps || coalesce(p_render_meta -> 'series_progress' -> 'steps', '{}')) ? (s.value ->> 'step')), '[]'),
			'provider_message_ids', coalesce((select jsonb_agg(i.value order by s.ordinality, i.ordinality)
				from jsonb_array_elements(p_render_meta -> 'steps') with ordinality s,
					jsonb_array_elements((p_steps || coalesce(p_render_meta -> 'series_progress' -> 'steps', '{}')) -> (
						s.value ->> 'step')) with ordinality i
				where coalesce(s.value -> 'aside', 'false') = 'false'), '[]')))
		from (
			select e.key as step, e.value as ids
				from jsonb_each(p_steps || coalesce(p_render_meta -> 'series_progress' -> 'steps', '{}')) e
			where jsonb_typeof(e.value) = 'array'
		) d);
end
$$;

create or replace function autopost.shares_slot(p_render_meta jsonb, p_step text) returns boolean
language sql immutable parallel safe
as $$
-- Purpose: true if the next step uses the slot of this acknowledged one: one of the two makes no
--          message, or the step is not planned.
select not exists (
	select 1 from jsonb_array_elements(p_render_meta -> 'steps') s
	where s.value ->> 'step' = p_step and coalesce(s.value -> 'aside', 'false') = 'false')
or coalesce((
	select s.value -> 'aside' = 'true' from jsonb_array_elements(p_render_meta -> 'steps') with ordinality s
	where s.value ->> 'step' <> p_step
		and not coalesce(p_render_meta -> 'series_progress' -> 'steps' ? (s.value ->> 'step'), false)
	order by s.ordinality
	limit 1), false)
$$;

create or replace function autopost.steps_missing(p_render_meta jsonb, p_outcome jsonb) returns jsonb
language sql immutable parallel safe
as $$
-- Purpose: the steps that still must be acknowledged before a delivery is sent, in their order;
--          null if all are. A success acknowledges the last one and those of its "raw": {"steps":
--          {step: ids}}.
select case when p_outcome -> 'ok' = 'true' and jsonb_array_length(p_render_meta -> 'steps') > 1 then (
	select jsonb_agg(s.value -> 'step' order by s.ordinality)
	from jsonb_array_elements(p_render_meta -> 'steps') with ordinality s
	where s.ordinality < jsonb_array_length(p_render_meta -> 'steps')
	and not coalesce(p_render_meta -> 'series_progress' -> 'steps' ? (s.value ->> 'step'), false)
	and not coalesce(jsonb_typeof(p_outcome -> 'raw' -> 'steps' -> (s.value ->> 'step')) = 'array', false)) end
$$;

create or replace function autopost.messages_made(p_render_meta jsonb) returns text
language sql stable
as $$
-- Purpose: how far a delivery of several messages is, as "2 of 5 messages"; null if the platform has none.
select format('%s of %s messages', c.made, c.planned)
from (
	select count(*) as planned,
		count(*) filter (where p_render_meta -> 'series_progress' -> 'steps' ? (s.value ->> 'step')) as made
	from jsonb_array_elements(p_render_meta -> 'steps') s
	where coalesce(s.value -> 'aside', 'false') = 'false') c
where c.made > 0
$$;

create or replace function autopost.parts_missing(p_render_meta jsonb) returns jsonb
language sql immutable parallel safe
as $$
-- Purpose: the unacknowledged steps of a thread or of a post with a first comment, in their order; empty for
--          other posts.
select coalesce(jsonb_agg(s.value -> 'step' order by s.ordinality), '[]')
from jsonb_array_elements(p_render_meta -> 'steps') with ordinality s
where p_render_meta @? '$.steps[*] ? (exists (@.part) || exists (@.comment))'
and not coalesce(p_render_meta -> 'series_progress' -> 'steps' ? (s.value ->> 'step'), false)
$$;
