create or replace function autopost.next_free_slots(p_workspace_id text, p_channel_id text, p_after timestamptz,
	p_limit int) returns jsonb
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: the next free slots of a channel from p_after on (null: now), as a post with one message
--          and the lowest price of its platform would take them. It reserves nothing: "slot":
--          "next_free" in a post, and reschedule without a time, take a slot.
-- Returns: {"items": [{"at"}]}, at most p_limit (1 to 100); fewer if there are no more.
-- Raises:  AP001 for a wrong argument.
-- Reads:   channels, platforms; as free_slot.
declare
	v_channel autopost.channels;
	v_price bigint;
	v_after timestamptz := coalesce(p_after, autopost.now_ts());
	v_items jsonb := '[]';
begin
	perform autopost.enter_workspace(p_workspace_id);
	perform autopost.require_argument('channel_id', p_channel_id <> ''), autopost.require_argument('limit',
		p_limit is not null);
	if p_limit not between 1 and 100 then
		perform autopost.raise_argument('limit', format('must be 1 to 100, got %s', p_limit), 'pass a smaller number');
	elsif v_after > autopost.now_ts() + make_interval(days => autopost.slot_horizon_days()) or not isfinite(v_after) then
		perform autopost.raise_argument('after', format('must be within %s days, got %s', autopost.slot_horizon_days(),
			coalesce(autopost.instant_text(v_after), v_after::text)), 'pass an earlier time');
	end if;
	select c.* into v_channel from autopost.channels c where c.workspace_id = p_workspace_id
		and c.channel_id = p_channel_id;
	if v_channel.channel_id is null then
		perform autopost.raise_argument('channel_id', format('must be a channel of the workspace, got %s',
			p_channel_id),
			'run autopost channel list');
	end if;
	v_price := (select coalesce(p.post_micros, 0) from autopost.platforms p where p.platform = v_channel.platform);
	for v_n in 1 .. p_limit loop
		v_after := autopost.free_slot(v_channel, v_after, 1, v_price, '{}');
		exit when v_after is null;
		v_items := v_items || jsonb_build_object('at', v_after);
		v_after := v_after + autopost.slot_gap(v_channel);
	end loop;
	return jsonb_build_object('items', v_items);
end
$$;
