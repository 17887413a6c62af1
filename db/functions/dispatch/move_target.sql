create or replace function autopost.move_target(p_workspace_id text, p_delivery autopost.deliveries, p_platform text,
	p_error jsonb) returns jsonb
language plpgsql
as $$
-- Purpose: handles a chat with a new id ("moved": {"from", "to"} of the error): all channels of the
--          workspace with the old target, or its threads, get the new one. The caller has locked
--          the channels with lock_for_settling.
-- Returns: the error. It is permanent if another channel already has the new target. It has no
--          "moved" if the channel no longer uses the old target, because an immediate retry would
--          not help.
-- Reads:   platforms.
-- Writes:  channels, events (channel_moved), admin_audit_log.
declare
	v_from text := p_error #>> '{moved,from}';
	v_channel record;
	v_act constant jsonb := '{"operator": "autopost", "reason": "the platform moved the chat"}';
begin
	for v_channel in
		select c.channel_id, c.target_id, n.target, o.channel_id as holder
		from autopost.channels c
		join autopost.platforms f on f.platform = c.platform
		cross join lateral (select (p_error #>> '{moved,to}') || substr(c.target_id, length(v_from) + 1) as target) n
		left join autopost.channels o on o.workspace_id = p_workspace_id and o.platform = c.platform
			and o.target_id = n.target
		where c.workspace_id = p_workspace_id and c.platform = p_platform and split_part(c.target_id, ':', 1) = v_from
			and n.target ~ f.target_form
		order by c.channel_id
	loop
		if v_channel.holder is null then
			update autopost.channels c
			set target_id = v_channel.target
			where c.workspace_id = p_workspace_id and c.channel_id = v_channel.channel_id;
			perform autopost.emit_note(p_workspace_id, 'channel_moved', 'ok', v_channel.channel_id, null, null,
				jsonb_build_object('from', v_channel.target_id, 'to', v_channel.target, 'delivery_id',
					p_delivery.delivery_id));
			perform autopost.audit(p_workspace_id, 'move_target', 'channel:' || v_channel.channel_id, v_act,
				jsonb_build_object('target_id', v_channel.target_id),
					jsonb_build_object('target_id', v_channel.target));
		elsif v_channel.channel_id = p_delivery.channel_id then
			p_error := p_error || jsonb_build_object('category', 'PERMANENT',
				'message',
					format('the chat is %s now, which is the target of channel %s already: disable one of the two',
					v_channel.target, v_channel.holder));
		end if;
	end loop;
	return case when exists (
		select 1 from autopost.channels c
		where c.workspace_id = p_workspace_id and c.channel_id = p_delivery.channel_id
			and split_part(c.target_id, ':', 1) = p_error #>> '{moved,to}')
		then p_error else p_error - 'moved' end;
end
$$;
