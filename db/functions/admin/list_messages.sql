create or replace function autopost.messages_like(p_workspace_id text, p_text text, p_before_id uuid, p_from uuid,
	p_until uuid) returns uuid[]
language plpgsql stable set enable_bitmapscan = on set enable_sort = on
as $$
-- Purpose: the newest 1,000 messages of a range that have all words of a text, or words that begin with them, in
--          their text, tags or source_ref; newest first. The index is asked for one period after the other, so
--          that a word of each message costs no more than a rare one. The settings undo those of the
--          caller, and the order is outside: else all messages are read by their ids, newest first.
-- Reads:   messages, message_words.
declare
	v_words text[] := autopost.search_terms(p_text);
	v_newest uuid;
	v_oldest uuid;
	v_query tsquery;
	v_ids uuid[] := '{}';
begin
	select m.message_id into v_newest from autopost.messages m where m.workspace_id = p_workspace_id
		order by m.message_id desc limit 1;
	select m.message_id into v_oldest from autopost.messages m where m.workspace_id = p_workspace_id
		order by m.message_id limit 1;
	if v_words = '{}' or v_newest is null then
		return v_ids;
	end if;
	for v_period in reverse autopost.search_period(least(v_newest, p_before_id, p_until))
		.. autopost.search_period(greatest(v_oldest, p_from)) loop
		v_query := autopost.search_query(autopost.search_key(p_workspace_id, v_period), v_words);
		v_ids := v_ids || array(
			select x.message_id
			from (
				select w.message_id from autopost.message_words w
				where w.workspace_id = p_workspace_id and w.words @@ v_query
				and (p_before_id is null or w.message_id < p_before_id)
				and (p_from is null or w.message_id >= p_from)
				and (p_until is null or w.message_id < p_until) offset 0) x
			order by x.message_id desc
			limit 1000 - cardinality(v_ids));
		exit when cardinality(v_ids) >= 1000;
	end loop;
	return v_ids;
end
$$;

create or replace function autopost.is_for_platform(p_workspace_id text, p_message_id uuid, p_filter jsonb)
	returns boolean
language plpgsql stable
as $$
-- Purpose: true if a message has a delivery on the platform of the filter, in its status and for its
--          channel if it has them.
-- Reads:   deliveries, channels.
begin
	return exists (
		select 1 from autopost.deliveries d
		join autopost.channels c on c.workspace_id = p_workspace_id and c.channel_id = d.channel_id
		where d.workspace_id = p_workspace_id and d.message_id = p_message_id and c.platform = p_filter ->> 'platform'
		and (not p_filter ? 'status' or d.status = p_filter ->> 'status')
		and (not p_filter ? 'channel_id' or d.channel_id = p_filter ->> 'channel_id'));
end
$$;

create or replace function autopost.list_messages(p_workspace_id text, p_filter jsonb, p_limit int)
	returns setof autopost.list_messages
language plpgsql security definer set search_path = autopost, pg_temp set plan_cache_mode = force_custom_plan
	set enable_sort = off set enable_seqscan = off set enable_bitmapscan = off
as $$
-- Purpose: lists messages, newest first by the first sight of their content. All keys of p_filter
--          are optional: status, channel_id and platform (of one delivery), text (see messages_like),
--          since (inclusive) and until (exclusive) of the first sight, before_id (older than this id:
--          the next page). If no other key names few messages, a platform is looked for in the next
--          10,000. The plan is made per call, so that a missing key does not disable an index.
-- Raises:  AP001 for an unknown key or status, a malformed id or instant, or a limit outside 1 to
--          10000.
-- Reads:   list_messages (view), deliveries, channels.
declare
	v_most constant int := 10000;
	v_ids uuid[];
	v_found uuid[];
	v_id uuid;
	v_before_id uuid := autopost.uuid_in(p_filter, 'before_id');
	v_from uuid := autopost.first_id_at(autopost.instant_in(p_filter, 'since'));
	v_until uuid := autopost.first_id_at(autopost.instant_in(p_filter, 'until'));
begin
	perform autopost.enter_workspace(p_workspace_id);
	perform autopost.check_read(p_filter, '{status,channel_id,platform,text,since,until,before_id}', p_limit);
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
	if p_filter ? 'platform' and v_ids is not null then
		v_ids := array(select u.id from unnest(v_ids) u (id)
			where autopost.is_for_platform(p_workspace_id, u.id, p_filter));
	elsif p_filter ? 'platform' then
		v_from := greatest(v_from, (select m.message_id from autopost.messages m
			where m.workspace_id = p_workspace_id and (v_before_id is null or m.message_id < v_before_id)
			and (v_until is null or m.message_id < v_until)
			order by m.message_id desc offset v_most limit 1));
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
	and (not p_filter ? 'platform' or autopost.is_for_platform(p_workspace_id, v.message_id, p_filter))
	and (v_before_id is null or v.message_id < v_before_id)
	and (v_from is null or v.message_id >= v_from)
	and (v_until is null or v.message_id < v_until)
	order by v.message_id desc
	limit p_limit;
end
$$;
