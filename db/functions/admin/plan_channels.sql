create or replace function autopost.route_refusal(p_channel autopost.channels, p_routing jsonb, p_tags text[])
	returns text
language sql immutable parallel safe
as $$
-- Purpose: the reason why a post with these tags and hints is not routed to a channel; null if it
--          is.
select case
	when p_routing ? 'include_channels' and not p_routing -> 'include_channels' ? p_channel.channel_id
		then 'routing.include_channels does not name it'
	when coalesce(p_routing -> 'exclude_channels' ? p_channel.channel_id, false)
		then 'routing.exclude_channels names it'
	when autopost.route_matches(p_channel.route_filter, p_tags) then null
	when p_channel.route_filter -> 'exclude' ?| p_tags then format('route_filter.exclude has the post''s tag %s',
		(select string_agg(t.tag, ', ' order by t.tag) from unnest(p_tags) t (tag)
			where p_channel.route_filter -> 'exclude' ? t.tag))
	when not coalesce(p_channel.route_filter -> 'include_all', '[]') <@ to_jsonb(p_tags)
		then format('route_filter.include_all wants %s, which the post has not',
		(select string_agg(t.tag, ', ' order by t.tag)
			from jsonb_array_elements_text(p_channel.route_filter -> 'include_all') t (tag)
			where t.tag <> all (p_tags)))
	else format('route_filter.include_any wants one of %s; the post has %s',
		(select string_agg(t.tag, ', ' order by t.tag)
			from jsonb_array_elements_text(p_channel.route_filter -> 'include_any') t (tag)),
		case when p_tags = '{}' then 'no tags' else array_to_string(p_tags, ', ') end)
	end
$$;

create or replace function autopost.twin_of(p_workspace_id text, p_channel autopost.channels, p_message_id uuid)
	returns jsonb
language plpgsql stable
as $$
-- Purpose: the delivery by which a channel has this message already: one in flight, else the last
--          sent one.
-- Returns: {"reason", "twin": {…}}.
-- Reads:   deliveries.
declare
	v_twin record;
	v_again timestamptz;
begin
	select d.delivery_id, d.status, d.sent_at, d.created_at into v_twin
	from autopost.deliveries d
	where d.workspace_id = p_workspace_id and d.message_id = p_message_id and d.channel_id = p_channel.channel_id
	and d.phase in ('active', 'claimed', 'retry')
	limit 1;
	if not found then
		select d.delivery_id, d.status, d.sent_at, d.created_at into v_twin
		from autopost.deliveries d
		where d.workspace_id = p_workspace_id and d.message_id = p_message_id and d.channel_id = p_channel.channel_id
		and (d.phase = 'deduped') is false and d.status = 'sent'
		order by d.sent_at desc limit 1;
	end if;
	if v_twin.delivery_id is null then
		return '{"reason": "the channel has this content already"}';
	end if;
	v_again := v_twin.sent_at + make_interval(hours => coalesce(p_channel.dedup_ttl_hours, 168));
	return jsonb_build_object(
		'reason', case when v_twin.sent_at is null then format('in flight there as delivery %s, %s', v_twin.delivery_id,
			v_twin.status)
			else format('sent there at %s as delivery %s; again from %s on', autopost.instant_text(v_twin.sent_at),
				v_twin.delivery_id, autopost.instant_text(v_again)) end,
		'twin', jsonb_build_object('delivery_id', v_twin.delivery_id, 'status', v_twin.status, 'sent_at',
			v_twin.sent_at, 'again_at', v_again));
end
$$;

create or replace function autopost.planned_rows(p_workspace_id text, p_message_id uuid, p_trace_id uuid)
returns table (channel autopost.channels, delivery autopost.deliveries, inflight int)
language plpgsql stable set enable_nestloop = off
as $$
-- Purpose: the first 1,000 channels of the workspace in order, each with the delivery that the
--          enqueue of this trace made. Joins whole sets: single lookups would read a large fan-out
--          once per channel.
-- Reads:   channels, channel_gates, deliveries.
begin
	return query
	select f.channel, row(d.*)::autopost.deliveries, g.inflight
	from (
		select c.channel_id, row(c.*)::autopost.channels as channel from autopost.channels c
		where c.workspace_id = p_workspace_id
		order by c.channel_id limit 1000) f
	join autopost.channel_gates g on g.workspace_id = p_workspace_id and g.channel_id = f.channel_id
	left join autopost.deliveries d on d.workspace_id = p_workspace_id and d.channel_id = f.channel_id
		and d.message_id = p_message_id and d.trace_id = p_trace_id
	order by f.channel_id;
end
$$;

create or replace function autopost.planned_costs(p_workspace_id text, p_message_id uuid, p_trace_id uuid, p_after text)
returns table (platform text, rate_group text, cost bigint)
language plpgsql stable set enable_nestloop = off
as $$
-- Purpose: the slots per limited rate group that the enqueue of this trace takes in the channels
--          after p_after.
-- Reads:   channels, deliveries, platform_limits.
begin
	return query
	select c.platform, c.rate_group, sum(autopost.step_cost(d.render_meta))
	from autopost.deliveries d
	join autopost.channels c on c.workspace_id = p_workspace_id and c.channel_id = d.channel_id
	join autopost.platform_limits l on l.workspace_id = p_workspace_id and l.platform = c.platform
		and l.rate_group = c.rate_group and l.rate_rps > 0
	where d.workspace_id = p_workspace_id and d.message_id = p_message_id and d.trace_id = p_trace_id
	and d.status = 'queued' and d.channel_id > p_after
	group by c.platform, c.rate_group;
end
$$;

create or replace function autopost.limited_groups(p_workspace_id text, p_due_at timestamptz,
	p_delivery_id uuid) returns jsonb
language plpgsql stable
as $$
-- Purpose: the limits of the workspace's rate groups by "platform/group", each with its deliveries
--          due before this due time and id (group_ahead) and "planned": 0.
-- Reads:   platform_limits, channels, deliveries.
begin
	return (
		select coalesce(jsonb_object_agg(l.platform || '/' || l.rate_group,
			to_jsonb(l) || jsonb_build_object('ahead',
				coalesce(autopost.group_ahead(p_workspace_id, row(l.*)::autopost.platform_limits, p_due_at,
				p_due_at, p_delivery_id) || '{"planned": 0}', 'null'))), '{}')
		from autopost.platform_limits l
		where l.workspace_id = p_workspace_id);
end
$$;

create or replace function autopost.plan_channel(
	p_status text, p_channel autopost.channels, p_delivery autopost.deliveries, p_inflight int, p_limit jsonb,
		p_post jsonb, p_now timestamptz
) returns jsonb
language plpgsql stable
as $$
-- Purpose: the result of the enqueue of a dry run for one channel. p_channel, p_delivery (null: not
--          made) and p_inflight come from planned_rows, p_limit from limited_groups, p_post from
--          prepare_post, with "named": the reasons for channels without a delivery.
-- Reads:   deliveries, credential_bindings, sealed_secrets.
declare
	v_workspace_id text := p_channel.workspace_id;
	v_named jsonb := p_post -> 'named' -> p_channel.channel_id;
	v_refusal text;
begin
	if p_delivery.status = 'queued' and p_channel.moderated then
		return jsonb_build_object('verdict', 'pending', 'reason', 'the channel is moderated: a person decides first', 'text',
			p_delivery.rendered_text, 'meta', p_delivery.render_meta);
	elsif p_delivery.status = 'queued' then
		return jsonb_build_object('verdict', 'queued', 'text', p_delivery.rendered_text, 'meta', p_delivery.render_meta)
			|| autopost.wait_reasons(p_status, p_channel,
				jsonb_populate_record(null::autopost.platform_limits, p_limit),
			jsonb_build_object('not_before', p_delivery.not_before, 'scheduled_for', p_delivery.scheduled_for,
				'inflight', p_inflight, 'credential', autopost.credential_gap(p_channel, p_now),
				'quota_until', autopost.channel_quota_until(v_workspace_id, p_channel.channel_id,
					autopost.posts_claimed(p_delivery.render_meta), p_now),
				'budget_until', autopost.budget_until(v_workspace_id, p_channel, p_delivery.rendered_text,
					p_delivery.render_meta, p_now),
				'ahead', autopost.queue_ahead(v_workspace_id, array[p_channel.channel_id], p_delivery.due_at,
					p_delivery.due_at, p_delivery.delivery_id, autopost.slot_step(p_channel.rate_rps, 1)), 'group_ahead',
					p_limit -> 'ahead'), p_now);
	elsif p_delivery.status = 'failed_permanent' then
		return jsonb_build_object('verdict', 'invalid', 'reason', p_delivery.last_error ->> 'message');
	elsif not p_channel.enabled then
		return '{"verdict": "disabled", "reason": "the channel is disabled"}';
	end if;
	v_refusal := autopost.route_refusal(p_channel, p_post -> 'raw' -> 'routing',
		array(select jsonb_array_elements_text(p_post -> 'tags')));
	if v_refusal is not null then
		return jsonb_build_object('verdict', 'not_routed', 'reason', v_refusal);
	elsif v_named ->> 'status' = 'deduped' then
		return '{"verdict": "deduped"}' || autopost.twin_of(v_workspace_id, p_channel,
			autopost.message_with(v_workspace_id, p_post ->> 'content_hash'));
	end if;
	return jsonb_build_object('verdict', v_named -> 'status', 'reason', v_named -> 'reason');
end
$$;

create or replace function autopost.plan_channels(p_workspace_id text, p_status text, p_raw jsonb, p_answer jsonb,
	p_now timestamptz) returns jsonb
language plpgsql
as $$
-- Purpose: the result of the enqueue of a dry run: an entry for each of the first 1,000 channels,
--          counts of all, first and last instant. For unlisted channels only the group's rate is
--          used. p_answer is the answer of the enqueue; its rows must still exist.
-- Reads:   channels, channel_gates, deliveries, platform_limits.
declare
	v_post jsonb := autopost.prepare_post(p_workspace_id, jsonb_build_object('raw', p_raw));
	v_due_at timestamptz := greatest(p_now, autopost.timestamp_of(p_raw ->> 'scheduled_for'));
	v_limits jsonb := autopost.limited_groups(p_workspace_id, v_due_at, (select d.delivery_id
		from autopost.deliveries d
		where d.workspace_id = p_workspace_id and d.message_id = (p_answer ->> 'message_id')::uuid
			and d.trace_id = (p_answer ->> 'trace_id')::uuid order by d.delivery_id limit 1));
	v_row record;
	v_entry jsonb;
	v_listed jsonb[] := '{}';
	v_all int;
	v_pending int;
	v_disabled int;
	v_taken int := (p_answer ->> 'enqueued')::int + (p_answer ->> 'deduped')::int + (p_answer ->> 'invalid')::int + (
		p_answer ->> 'skipped')::int;
	v_step interval;
	v_first timestamptz;
	v_last timestamptz;
begin
	v_post := v_post || jsonb_build_object('named', (
		select coalesce(jsonb_object_agg(a.value ->> 'channel_id', a.value), '{}')
		from jsonb_array_elements(p_answer -> 'deliveries') a where a.value ->> 'status' in ('skipped', 'deduped')));
	select count(*), count(*) filter (where not c.enabled) into v_all, v_disabled from autopost.channels c
		where c.workspace_id = p_workspace_id;
	for v_row in
		select (r.channel).channel_id, (r.channel).platform, (r.channel).platform || '/'
			|| (r.channel).rate_group as rate_group,
			autopost.step_cost((r.delivery).render_meta) as cost, r.channel, r.delivery, r.inflight
		from autopost.planned_rows(p_workspace_id, (p_answer ->> 'message_id')::uuid, (p_answer ->> 'trace_id')::uuid) r
	loop
		v_entry := autopost.plan_channel(p_status, v_row.channel, v_row.delivery, v_row.inflight,
			v_limits -> v_row.rate_group, v_post, p_now);
		if v_entry ? 'held_by' and v_limits #> array[v_row.rate_group, 'ahead', 'planned'] is not null then
			v_limits := jsonb_set(v_limits, array[v_row.rate_group, 'ahead', 'planned'],
				to_jsonb((v_limits #>> array[v_row.rate_group, 'ahead', 'planned'])::int + v_row.cost));
		end if;
		v_first := least(v_first, (v_entry ->> 'send_at')::timestamptz);
		v_last := greatest(v_last, (v_entry ->> 'send_at')::timestamptz);
		v_listed := array_append(v_listed, jsonb_build_object('channel_id', v_row.channel_id, 'platform',
			v_row.platform) || v_entry);
	end loop;
	for v_row in
		select v_limits -> (k.platform || '/' || k.rate_group) as bound, k.cost
		from autopost.planned_costs(p_workspace_id, (p_answer ->> 'message_id')::uuid, (p_answer ->> 'trace_id')::uuid,
			v_listed[cardinality(v_listed)] ->> 'channel_id') k
	loop
		v_step := autopost.slot_step((v_row.bound ->> 'rate_rps')::numeric, 1);
		v_last := greatest(v_last, autopost.turn_after(v_row.bound -> 'ahead', v_step,
			greatest(least(p_now, autopost.now_ts()), (v_row.bound ->> 'cooldown_until')::timestamptz,
				(v_row.bound ->> 'next_allowed_at')::timestamptz), v_due_at) + (v_row.cost - 1)::int * v_step);
	end loop;
	select count(*) into v_pending from autopost.deliveries d
	join autopost.channels c on c.workspace_id = p_workspace_id and c.channel_id = d.channel_id
	where d.workspace_id = p_workspace_id and d.message_id = (p_answer ->> 'message_id')::uuid
		and d.trace_id = (p_answer ->> 'trace_id')::uuid and d.status = 'queued' and c.moderated;
	return jsonb_build_object('status', 'planned',
		'counts', jsonb_build_object('channels', v_all, 'queued', (p_answer ->> 'enqueued')::int - v_pending, 'pending',
			v_pending, 'deduped',
			p_answer -> 'deduped', 'invalid', p_answer -> 'invalid',
			'skipped', p_answer -> 'skipped', 'not_routed', v_all - v_disabled - v_taken, 'disabled', v_disabled),
		'first_at', v_first, 'last_at', v_last, 'channels', to_jsonb(v_listed));
end
$$;
