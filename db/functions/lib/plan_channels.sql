create or replace function autopost.planning() returns boolean
language sql stable
as $$
-- Whether this enqueue is a dry run, whose rows will be gone: it must show all of them, however many there are, and not put any off.
select coalesce(current_setting('autopost.planning', true), '') = 'on'
$$;

create or replace function autopost.route_refusal(p_channel autopost.channels, p_routing jsonb, p_tags text[]) returns text
language sql immutable parallel safe
as $$
-- Why a post with these tags and hints is not for a channel, in words; null where it is.
select case
	when p_routing ? 'include_channels' and not p_routing -> 'include_channels' ? p_channel.channel_id then 'routing.include_channels does not name it'
	when coalesce(p_routing -> 'exclude_channels' ? p_channel.channel_id, false) then 'routing.exclude_channels names it'
	when autopost.route_matches(p_channel.route_filter, p_tags) then null
	when p_channel.route_filter -> 'exclude' ?| p_tags then format('route_filter.exclude has the post''s tag %s',
		(select string_agg(t.tag, ', ' order by t.tag) from unnest(p_tags) t (tag) where p_channel.route_filter -> 'exclude' ? t.tag))
	when not coalesce(p_channel.route_filter -> 'include_all', '[]') <@ to_jsonb(p_tags) then format('route_filter.include_all wants %s, which the post has not',
		(select string_agg(t.tag, ', ' order by t.tag) from jsonb_array_elements_text(p_channel.route_filter -> 'include_all') t (tag) where t.tag <> all (p_tags)))
	else format('route_filter.include_any wants one of %s; the post has %s',
		(select string_agg(t.tag, ', ' order by t.tag) from jsonb_array_elements_text(p_channel.route_filter -> 'include_any') t (tag)),
		case when p_tags = '{}' then 'no tags' else array_to_string(p_tags, ', ') end)
	end
$$;

create or replace function autopost.twin_of(p_workspace_id text, p_channel autopost.channels, p_content_hash text) returns jsonb
language plpgsql stable
as $$
-- The delivery by which a channel has this content already: in flight there, else sent last. {"reason", "twin": {…}}.
-- Reads: deliveries.
declare
	v_twin record;
	v_again timestamptz;
begin
	select d.delivery_id, d.status, d.sent_at, d.created_at into v_twin
	from autopost.deliveries d
	where d.workspace_id = p_workspace_id and d.content_hash = p_content_hash and d.channel_id = p_channel.channel_id
	and d.hash_version = autopost.hash_version()
	and d.status in ('queued', 'claimed', 'sending', 'retry')
	limit 1;
	if not found then
		select d.delivery_id, d.status, d.sent_at, d.created_at into v_twin
		from autopost.deliveries d
		where d.workspace_id = p_workspace_id and d.content_hash = p_content_hash and d.channel_id = p_channel.channel_id
		and d.hash_version = autopost.hash_version()
		and d.status = 'sent'
		order by d.sent_at desc limit 1;
	end if;
	if v_twin.delivery_id is null then
		return '{"reason": "the channel has this content already"}';
	end if;
	v_again := v_twin.sent_at + make_interval(hours => coalesce(p_channel.dedup_ttl_hours, 168));
	return jsonb_build_object(
		'reason', case when v_twin.sent_at is null then format('in flight there as delivery %s, %s', v_twin.delivery_id, v_twin.status)
			else format('sent there at %s as delivery %s; again from %s on', autopost.instant_text(v_twin.sent_at), v_twin.delivery_id, autopost.instant_text(v_again)) end,
		'twin', jsonb_build_object('delivery_id', v_twin.delivery_id, 'status', v_twin.status, 'sent_at', v_twin.sent_at, 'again_at', v_again));
end
$$;

create or replace function autopost.planned_rows(p_workspace_id text, p_message_id uuid, p_trace_id uuid)
returns table (channel autopost.channels, delivery autopost.deliveries, inflight int)
language plpgsql stable set enable_nestloop = off
as $$
-- Every channel of the workspace in its order, with the delivery that the enqueue of this trace made for it, if it made one. Joined as
-- whole sets: looked up one by one, a message that just got thousands of deliveries would be read as many times.
-- Reads: channels, channel_gates, deliveries.
begin
	return query
	select c, d, g.inflight
	from autopost.channels c
	join autopost.channel_gates g on g.workspace_id = p_workspace_id and g.channel_id = c.channel_id
	left join autopost.deliveries d on d.workspace_id = p_workspace_id and d.channel_id = c.channel_id
		and d.message_id = p_message_id and d.trace_id = p_trace_id
	where c.workspace_id = p_workspace_id
	order by c.channel_id;
end
$$;

create or replace function autopost.plan_channels(p_workspace_id text, p_status text, p_raw jsonb, p_answer jsonb, p_now timestamptz) returns jsonb
language plpgsql
as $$
-- What the enqueue that has just been done inside a dry run would mean: one entry a channel (the first 1,000 are listed), the counts of all, first
-- and last instant. p_answer: the enqueue's. Must run while its rows are there.
-- Reads: channels, channel_gates, deliveries, messages, platform_limits.
declare
	v_tags text[] := autopost.tags_of(p_raw, autopost.normalize_payload(p_raw));
	v_hash text := autopost.content_hash(autopost.normalize_payload(p_raw));
	v_named jsonb; -- what the enqueue says of channels that got no delivery
	v_limits jsonb := '{}'; -- by group
	v_ahead jsonb := '{}'; -- by group, who goes before the next of its channels
	v_row record;
	v_group text;
	v_entry jsonb;
	v_hold jsonb;
	v_listed jsonb[] := '{}';
	v_counts int[] := '{0, 0, 0}'; -- all, not routed, disabled
	v_first timestamptz;
	v_last timestamptz;
begin
	select coalesce(jsonb_object_agg(a.value ->> 'channel_id', a.value), '{}') into v_named
	from jsonb_array_elements(p_answer -> 'deliveries') a where a.value ->> 'status' in ('skipped', 'deduped');
	select coalesce(jsonb_object_agg(l.platform || '/' || l.rate_group, to_jsonb(l)), '{}') into v_limits
	from autopost.platform_limits l where l.workspace_id = p_workspace_id;
	select coalesce(jsonb_object_agg(a.platform || '/' || a.rate_group, a.ahead), '{}') into v_ahead
	from (
		select c.platform, c.rate_group, sum(autopost.rows_ahead(p_workspace_id, c.channel_id, greatest(p_now, autopost.timestamp_of(p_raw ->> 'scheduled_for')),
			'00000000-0000-0000-0000-000000000000')) as ahead
		from autopost.channels c
		where c.workspace_id = p_workspace_id and c.enabled and v_limits ? (c.platform || '/' || c.rate_group)
		group by c.platform, c.rate_group) a;

	for v_row in select r.channel, r.delivery, r.inflight from autopost.planned_rows(p_workspace_id, (p_answer ->> 'message_id')::uuid, (p_answer ->> 'trace_id')::uuid) r loop
		v_counts[1] := v_counts[1] + 1;
		v_group := (v_row.channel).platform || '/' || (v_row.channel).rate_group;
		v_entry := jsonb_build_object('channel_id', (v_row.channel).channel_id, 'platform', (v_row.channel).platform);
		if (v_row.delivery).status = 'queued' then
			v_hold := autopost.holds(p_status, v_row.channel, jsonb_populate_record(null::autopost.platform_limits, v_limits -> v_group),
				jsonb_build_object('not_before', (v_row.delivery).not_before, 'scheduled_for', (v_row.delivery).scheduled_for, 'inflight', v_row.inflight,
					'ahead', autopost.rows_ahead(p_workspace_id, (v_row.channel).channel_id, (v_row.delivery).due_at, (v_row.delivery).delivery_id),
					'group_ahead', v_ahead -> v_group), p_now);
			if v_limits ? v_group then
				v_ahead := v_ahead || jsonb_build_object(v_group, (v_ahead ->> v_group)::int + autopost.step_cost((v_row.delivery).render_meta));
			end if;
			v_first := least(v_first, (v_hold ->> 'send_at')::timestamptz);
			v_last := greatest(v_last, (v_hold ->> 'send_at')::timestamptz);
			v_entry := v_entry || jsonb_build_object('verdict', 'queued', 'text', (v_row.delivery).rendered_text, 'meta', (v_row.delivery).render_meta) || v_hold;
		elsif (v_row.delivery).status = 'failed_permanent' then
			v_entry := v_entry || jsonb_build_object('verdict', 'invalid', 'reason', (v_row.delivery).last_error ->> 'message');
		elsif not (v_row.channel).enabled then
			v_counts[3] := v_counts[3] + 1;
			v_entry := v_entry || '{"verdict": "disabled", "reason": "the channel is disabled"}';
		elsif autopost.route_refusal(v_row.channel, p_raw -> 'routing', v_tags) is not null then
			v_counts[2] := v_counts[2] + 1;
			v_entry := v_entry || jsonb_build_object('verdict', 'not_routed', 'reason', autopost.route_refusal(v_row.channel, p_raw -> 'routing', v_tags));
		elsif cardinality(v_listed) < 1000 then
			v_entry := v_entry || jsonb_build_object('verdict', v_named -> (v_row.channel).channel_id ->> 'status', 'reason', v_named -> (v_row.channel).channel_id ->> 'reason')
				|| case when v_named -> (v_row.channel).channel_id ->> 'status' = 'deduped' then autopost.twin_of(p_workspace_id, v_row.channel, v_hash) else '{}' end;
		end if;
		if cardinality(v_listed) < 1000 then
			v_listed := array_append(v_listed, v_entry);
		end if;
	end loop;
	return jsonb_build_object('status', 'planned',
		'counts', jsonb_build_object('channels', v_counts[1], 'queued', p_answer -> 'enqueued', 'deduped', p_answer -> 'deduped', 'invalid', p_answer -> 'invalid',
			'skipped', p_answer -> 'skipped', 'not_routed', v_counts[2], 'disabled', v_counts[3]),
		'first_at', v_first, 'last_at', v_last, 'channels', to_jsonb(v_listed));
end
$$;
