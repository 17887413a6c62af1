create or replace function autopost.messages_like(p_workspace_id text, p_text text, p_before_id uuid, p_from uuid,
	p_until uuid) returns uuid[]
language plpgsql stable set enable_sort = off set enable_seqscan = off set enable_bitmapscan = off
as $$
-- Purpose: the messages with this text, source_ref or tag among the newest 5,000 of a range, newest
--          first. The bound keeps the cost the same whatever the size of the workspace.
-- Reads:   messages.
declare
	v_text text := lower(btrim(p_text));
begin
	return array(
		select x.message_id
		from (
			select m.message_id, m.payload ->> 'text' as text, m.source_ref, m.tags from autopost.messages m
			where m.workspace_id = p_workspace_id
			and (p_before_id is null or m.message_id < p_before_id)
			and (p_from is null or m.message_id >= p_from)
			and (p_until is null or m.message_id < p_until)
			order by m.message_id desc
			limit 5000) x
		where position(v_text in lower(x.text)) > 0 or lower(x.source_ref) = v_text or ltrim(v_text, '#') = any (x.tags)
		order by x.message_id desc);
end
$$;

create or replace function autopost.list_messages(p_workspace_id text, p_filter jsonb, p_limit int)
	returns setof autopost.list_messages
language plpgsql security definer set search_path = autopost, pg_temp set plan_cache_mode = force_custom_plan
	set enable_sort = off set enable_seqscan = off set enable_bitmapscan = off
as $$
-- Purpose: lists messages, newest first by the first sight of their content. All keys of p_filter
--          are optional: status and channel_id (of one delivery), text (see messages_like), since
--          (inclusive) and until (exclusive) of the first sight, before_id (older than this id: the
--          next page). The plan is made per call, so that a missing key does not disable an index.
-- Raises:  AP001 for an unknown key or status, a malformed id or instant, or a limit outside 1 to
--          10000.
-- Reads:   list_messages (view), deliveries.
declare
	v_ids uuid[];
	v_found uuid[];
	v_id uuid;
	v_before_id uuid := autopost.uuid_in(p_filter, 'before_id');
	v_from uuid := autopost.first_id_at(autopost.instant_in(p_filter, 'since'));
	v_until uuid := autopost.first_id_at(autopost.instant_in(p_filter, 'until'));
begin
	perform autopost.enter_workspace(p_workspace_id);
	perform autopost.check_read(p_filter, '{status,channel_id,text,since,until,before_id}', p_limit);
	perform autopost.check_status(p_filter, autopost.delivery_statuses());
	if p_filter ?| '{status,channel_id}' then
		v_ids := autopost.messages_with(p_workspace_id, p_filter ->> 'status', p_filter ->> 'channel_id');
	end if;
	if p_filter ? 'text' then
		v_found := autopost.messages_like(p_workspace_id, p_filter ->> 'text', v_before_id, v_from, v_until);
		v_ids := array(select f.id from unnest(v_found) f (id)
			where case when v_ids is not null then f.id = any (v_ids)
				else not p_filter ?| '{status,channel_id}' or exists (
					select 1 from autopost.deliveries d
					where d.workspace_id = p_workspace_id and d.message_id = f.id
					and (not p_filter ? 'status' or d.status = p_filter ->> 'status')
					and (not p_filter ? 'channel_id' or d.channel_id = p_filter ->> 'channel_id')) end);
	end if;
	if v_ids is not null then
		-- One by one: a plan for all would scan the workspace.
		perform set_config('plan_cache_mode', 'auto', true);
		for v_id in
			select u.id from unnest(v_ids) u (id)
			where (v_before_id is null or u.id < v_before_id) and (v_from is null or u.id >= v_from)
				and (v_until is null or u.id < v_until)
			order by u.id desc
			limit p_limit
		loop
			return query select v.* from autopost.list_messages_rows v
				where v.workspace_id = p_workspace_id and v.message_id = v_id;
		end loop;
		return;
	end if;
	return query
	select v.* from autopost.list_messages_rows v
	where v.workspace_id = p_workspace_id
	and (not p_filter ?| '{status,channel_id}' or exists (
		select 1 from autopost.deliveries d
		where d.workspace_id = p_workspace_id and d.message_id = v.message_id
		and (not p_filter ? 'status' or d.status = p_filter ->> 'status')
		and (not p_filter ? 'channel_id' or d.channel_id = p_filter ->> 'channel_id')))
	and (v_before_id is null or v.message_id < v_before_id)
	and (v_from is null or v.message_id >= v_from)
	and (v_until is null or v.message_id < v_until)
	order by v.message_id desc
	limit p_limit;
end
$$;
