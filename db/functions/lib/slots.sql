create or replace function autopost.step_cost(p_render_meta jsonb) returns int
language sql immutable parallel safe
as $$
-- Rate slots that the next unacknowledged step costs: its items, at least one.
select coalesce((
	select greatest(1, coalesce(jsonb_array_length(s.value -> 'items'), 0))
	from jsonb_array_elements(p_render_meta -> 'steps') with ordinality s
	where not coalesce(p_render_meta -> 'series_progress' -> 'steps' ? (s.value ->> 'step'), false)
	order by s.ordinality
	limit 1), 1)
$$;

create or replace function autopost.slot_step(p_rate_rps numeric, p_cost int) returns interval
language sql immutable parallel safe
as $$
-- How far a call of this cost moves a gate of this rate; null for a gate that does not limit.
select case when p_rate_rps > 0 then make_interval(secs => (p_cost / p_rate_rps)::float8) end
$$;

create or replace function autopost.take_slot(
	p_workspace_id text, p_channel_id text, p_cost int, p_latest timestamptz
) returns timestamptz
language plpgsql
as $$
-- Reserves the next slot of a channel and of its rate group and returns it; null where neither limits. Where the next one is after
-- p_latest, nothing is reserved and the answer is infinity: a time that was not taken must not look like a slot.
-- Locks, in this order: platform_limits, channels. Writes: both.
declare
	v_channel autopost.channels;
	v_limit autopost.platform_limits;
	v_now timestamptz;
	v_slot timestamptz;
begin
	select c.* into v_channel from autopost.channels c
	where c.workspace_id = p_workspace_id and c.channel_id = p_channel_id;
	select l.* into v_limit from autopost.platform_limits l
	where l.workspace_id = p_workspace_id and l.platform = v_channel.platform and l.rate_group = v_channel.rate_group
	for no key update of l;
	select c.* into v_channel from autopost.channels c
	where c.workspace_id = p_workspace_id and c.channel_id = p_channel_id
	for no key update of c;
	v_now := autopost.now_ts();
	if coalesce(v_channel.rate_rps, 0) = 0 and coalesce(v_limit.rate_rps, 0) = 0 then
		return null;
	end if;
	v_slot := greatest(v_now,
		case when v_channel.rate_rps > 0 then v_channel.next_allowed_at end,
		case when v_limit.rate_rps > 0 then v_limit.next_allowed_at end);
	if v_slot > p_latest then
		return 'infinity';
	end if;
	update autopost.channels c
	set next_allowed_at = v_slot + autopost.slot_step(v_channel.rate_rps, p_cost)
	where c.workspace_id = p_workspace_id and c.channel_id = p_channel_id and v_channel.rate_rps > 0;
	update autopost.platform_limits l
	set next_allowed_at = v_slot + autopost.slot_step(v_limit.rate_rps, p_cost)
	where l.workspace_id = p_workspace_id and l.platform = v_channel.platform and l.rate_group = v_channel.rate_group and v_limit.rate_rps > 0;
	return v_slot;
end
$$;
