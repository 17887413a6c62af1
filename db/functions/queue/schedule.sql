-- The planned time of deliveries: moves, and the next free slot of a channel.

create or replace function autopost.schedule_horizon() returns interval
language sql immutable parallel safe
as $$
-- Purpose: how far ahead a post may be planned.
select interval '100 years'
$$;

create or replace function autopost.slot_horizon_days() returns int
language sql immutable parallel safe
as $$
-- Purpose: how far ahead free slots are searched.
select 731
$$;

create or replace function autopost.planned_at(p_delivery autopost.deliveries) returns timestamptz
language sql immutable parallel safe
as $$
-- Purpose: the time of a delivery without its retries: the one that a person plans and moves.
select greatest(p_delivery.not_before, p_delivery.scheduled_for)
$$;

create or replace function autopost.set_schedule(p_workspace_id text, p_delivery_id uuid, p_at timestamptz,
	p_not_before timestamptz) returns void
language plpgsql
as $$
-- Purpose: the only change of the time of a delivery that waits. due_at follows; the caller opens
--          the gate. p_not_before: of the delivery that it replaces; null keeps its own.
-- Writes:  deliveries.
declare
	v_now timestamptz := autopost.now_ts();
begin
	update autopost.deliveries d
	set scheduled_for = p_at, not_before = coalesce(p_not_before, d.not_before), updated_at = v_now
	where d.workspace_id = p_workspace_id and d.delivery_id = p_delivery_id
		and d.phase in ('active', 'retry') and d.status <> 'sending';
end
$$;

create or replace function autopost.slot_gap(p_channel autopost.channels) returns interval
language sql immutable parallel safe
as $$
-- Purpose: the smallest distance of two slots of a channel: settings.min_gap_seconds, a minute by
--          default, and never less than its rate allows.
select greatest(make_interval(secs => coalesce((p_channel.settings ->> 'min_gap_seconds')::float8, 60)),
	autopost.slot_step(p_channel.rate_rps, 1))
$$;

create or replace function autopost.lock_slots(p_workspace_id text, p_channel_ids text[]) returns void
language plpgsql
as $$
-- Purpose: locks what decides about the free slots of channels: two callers never get the same one.
-- Locks:   quotas (subject, window_seconds), budgets (auth_ref), channels (channel_id), in this
--          order.
declare
	v_subjects text[];
	v_refs text[];
begin
	select array_agg(distinct s.subject), array_agg(distinct autopost.current_auth_ref(p_workspace_id,
		row(c.*)::autopost.channels))
	into v_subjects, v_refs
	from autopost.channels c
	cross join lateral (values ('channel:' || c.channel_id), (autopost.group_subject(c.platform,
		c.rate_group))) s (subject)
	where c.workspace_id = p_workspace_id and c.channel_id = any (p_channel_ids);
	perform 1 from autopost.quotas q
	where q.workspace_id = p_workspace_id and q.subject = any (v_subjects)
	order by q.subject, q.window_seconds
	for no key update of q;
	perform 1 from autopost.budgets b
	where b.workspace_id = p_workspace_id and b.auth_ref = any (v_refs)
	order by b.auth_ref
	for no key update of b;
	perform autopost.lock_channels(p_workspace_id, p_channel_ids);
end
$$;

create or replace function autopost.after_gap(p_channel autopost.channels, p_at timestamptz, p_gap interval,
	p_without uuid[], p_now timestamptz) returns timestamptz
language plpgsql stable set enable_seqscan = off set enable_sort = off set enable_bitmapscan = off
as $$
-- Purpose: the first instant from p_at on that keeps p_gap to every planned delivery of the channel,
--          to one that is due or running, and to the last sent post. The orders name the indexes, as
--          in calendar_posts.
-- Reads:   deliveries.
declare
	v_at timestamptz := p_at;
	v_planned timestamptz;
begin
	if v_at < p_now + p_gap then
		v_at := greatest(v_at, (
			select d.sent_at + p_gap from autopost.deliveries d
			where d.workspace_id = p_channel.workspace_id and d.channel_id = p_channel.channel_id and d.phase = 'sent'
				and autopost.sent_late(d.delivery_id, d.sent_at) and d.sent_at > p_at - p_gap
			order by d.sent_at desc limit 1), (
			select max(d.sent_at) + p_gap from autopost.deliveries d
			where d.workspace_id = p_channel.workspace_id and d.channel_id = p_channel.channel_id
				and d.phase in ('sent', 'deduped', 'failed_permanent', 'dead')
				and d.delivery_id >= autopost.first_id_at(p_at - p_gap - interval '1 hour')
				and not autopost.sent_late(d.delivery_id, d.sent_at) and d.sent_at > p_at - p_gap), (
			select p_now + p_gap from autopost.channel_gates g
			where g.workspace_id = p_channel.workspace_id and g.channel_id = p_channel.channel_id and g.inflight > 0), (
			select p_now + p_gap from autopost.deliveries d
			where d.workspace_id = p_channel.workspace_id and d.channel_id = p_channel.channel_id
				and d.phase in ('active', 'retry') and d.status <> 'sending' and d.due_at <= p_now and d.delivery_id <> all (p_without)
			order by d.due_at
			limit 1));
	end if;
	for v_planned in
		select d.due_at from autopost.deliveries d
		where d.workspace_id = p_channel.workspace_id and d.channel_id = p_channel.channel_id
			and d.phase in ('active', 'retry') and d.status <> 'sending' and d.due_at > greatest(v_at - p_gap, p_now) and d.due_at < 'infinity'
			and d.delivery_id <> all (p_without)
		order by d.due_at
	loop
		exit when v_planned >= v_at + p_gap;
		v_at := greatest(v_at, v_planned + p_gap);
	end loop;
	return v_at;
end
$$;

create or replace function autopost.quota_points(p_quota autopost.quotas, p_from timestamptz, p_until timestamptz,
	p_without uuid[], p_now timestamptz) returns table (at timestamptz, weight bigint)
language plpgsql stable
as $$
-- Purpose: the uses of a quota between two instants: calls that started, open claims, and what is
--          planned in its channels.
-- Reads:   quota_uses, channels, deliveries.
begin
	return query
	select x.at, sum(x.weight)
	from (
		select least(u.used_at, p_now) as at, autopost.quota_weight(p_quota, u.posts) as weight
		from autopost.quota_uses u
		where u.workspace_id = p_quota.workspace_id and u.subject = p_quota.subject and u.used_at > p_from
		union all
		select greatest(d.due_at, p_now), autopost.quota_weight(p_quota, autopost.posts_claimed(d.render_meta))
		from autopost.channels c
		cross join lateral (
			select d.due_at, d.render_meta from autopost.deliveries d
			where d.workspace_id = p_quota.workspace_id and d.channel_id = c.channel_id
				and d.phase in ('active', 'retry') and d.status <> 'sending'
				and d.due_at < p_until and (d.due_at > p_from or p_from < p_now)
				and d.delivery_id <> all (p_without)
			offset 0) d
		where c.workspace_id = p_quota.workspace_id
			and (c.channel_id = p_quota.channel_id or c.platform = p_quota.platform
				and c.rate_group = p_quota.rate_group)) x
	where x.at > p_from and x.at < p_until
	group by x.at;
end
$$;

create or replace function autopost.after_quotas(p_channel autopost.channels, p_at timestamptz, p_posts int,
	p_without uuid[], p_now timestamptz) returns timestamptz
language plpgsql stable
as $$
-- Purpose: p_at if each quota of the channel and of its rate group allows so many posts then, with
--          all that is planned before and after it; else a later instant to ask again for.
-- Reads:   quotas, quota_uses, channels, deliveries.
declare
	v_quota autopost.quotas;
	v_window interval;
	v_weight int;
	v_at timestamptz := p_at;
	v_later timestamptz;
begin
	for v_quota in
		select q.* from autopost.quotas q
		where q.workspace_id = p_channel.workspace_id and q.subject in ('channel:' || p_channel.channel_id,
			autopost.group_subject(p_channel.platform, p_channel.rate_group))
	loop
		v_window := make_interval(secs => v_quota.window_seconds);
		v_weight := autopost.quota_weight(v_quota, p_posts);
		-- A window starts at each use before p_at, and at p_at.
		select max(case when s.at < v_at then s.at + v_window else s.next_at + interval '1 second' end) into v_later
		from (
			select p.at, sum(p.weight) over w as used, min(p.at) filter (where p.weight > 0) over w as next_at
			from (
				select u.at, u.weight from autopost.quota_points(v_quota, v_at - v_window, v_at + v_window, p_without,
					p_now) u
				union all
				select v_at, 0) p
			window w as (order by p.at range between current row and v_window - interval '1 microsecond' following)) s
		where s.at <= v_at and s.used + v_weight > v_quota.max_sends;
		v_at := greatest(v_at, v_later);
	end loop;
	return v_at;
end
$$;

create or replace function autopost.after_budget(p_channel autopost.channels, p_at timestamptz, p_price bigint,
	p_without uuid[], p_now timestamptz) returns timestamptz
language plpgsql stable
as $$
-- Purpose: p_at if the budget of the channel's credential has p_price left in that month, after all
--          that is planned in it; else the start of the next month.
-- Reads:   budgets, charges, channels, channel_auth, deliveries, platforms.
declare
	v_ref text := autopost.current_auth_ref(p_channel.workspace_id, p_channel);
	v_month timestamptz := autopost.month_begin(p_at);
	v_left bigint;
begin
	select b.month_micros - case when v_month <= p_now
		then autopost.spent_this_month(p_channel.workspace_id, v_ref, p_now) else 0 end into v_left
	from autopost.budgets b
	where b.workspace_id = p_channel.workspace_id and b.auth_ref = v_ref;
	if not found then
		return p_at;
	end if;
	select v_left - coalesce(sum(autopost.post_price(row(f.*)::autopost.platforms, d.rendered_text, d.render_meta)),
		0) into v_left
	from autopost.channels c
	join autopost.platforms f on f.platform = c.platform
	cross join lateral (
		select d.rendered_text, d.render_meta from autopost.deliveries d
		where d.workspace_id = p_channel.workspace_id and d.channel_id = c.channel_id
			and d.phase in ('active', 'retry') and d.status <> 'sending'
			and d.due_at < v_month + interval '1 month' and (d.due_at >= v_month or v_month <= p_now)
			and d.delivery_id <> all (p_without)
		offset 0) d
	where c.workspace_id = p_channel.workspace_id and autopost.current_auth_ref(p_channel.workspace_id,
		row(c.*)::autopost.channels) = v_ref;
	return case when v_left >= p_price then p_at else v_month + interval '1 month' end;
end
$$;

create or replace function autopost.free_slot(p_channel autopost.channels, p_after timestamptz, p_posts int,
	p_price bigint, p_without uuid[]) returns timestamptz
language plpgsql stable
as $$
-- Purpose: the first free slot of a channel from p_after on for a delivery with so many posts and
--          this price: after its pause, in its posting window, with slot_gap to all that is planned,
--          within its quotas and budget. Null without one within slot_horizon_days. p_without:
--          deliveries that count as not planned. It reserves nothing: lock_slots keeps others out.
-- Reads:   deliveries, channel_gates, quotas, quota_uses, budgets, charges, channels, platforms.
declare
	v_now timestamptz := autopost.now_ts();
	v_gap interval := autopost.slot_gap(p_channel);
	v_latest timestamptz := v_now + make_interval(days => autopost.slot_horizon_days());
	v_at timestamptz := greatest(p_after, v_now, nullif(p_channel.paused_until, 'infinity'), p_channel.cooldown_until);
	v_asked timestamptz;
begin
	for v_try in 1..10000 loop
		v_asked := v_at;
		v_at := autopost.opens_at(p_channel.window_mode, p_channel.timezone, p_channel.posting_window, v_at);
		if v_at > v_latest then
			return null;
		end if;
		v_at := autopost.after_gap(p_channel, v_at, v_gap, p_without, v_now);
		v_at := autopost.after_quotas(p_channel, v_at, p_posts, p_without, v_now);
		v_at := autopost.after_budget(p_channel, v_at, p_price, p_without, v_now);
		if v_at = v_asked then
			return v_at;
		end if;
	end loop;
	return null;
end
$$;

create or replace function autopost.slot_of(p_delivery autopost.deliveries, p_without uuid[]) returns timestamptz
language plpgsql stable
as $$
-- Purpose: the next free slot of the channel of a delivery that waits, for this delivery, else
--          null. The caller holds lock_slots. p_without: deliveries whose slots come later;
--          the delivery itself never counts.
-- Reads:   channels, platforms; as free_slot.
declare
	v_channel autopost.channels;
begin
	select c.* into v_channel from autopost.channels c
	where c.workspace_id = p_delivery.workspace_id and c.channel_id = p_delivery.channel_id;
	return autopost.free_slot(v_channel, case when p_delivery.status = 'retry' then p_delivery.next_retry_at end,
		autopost.posts_claimed(p_delivery.render_meta), (
			select autopost.post_price(row(f.*)::autopost.platforms, p_delivery.rendered_text, p_delivery.render_meta)
				from autopost.platforms f
			where f.platform = v_channel.platform), p_without || p_delivery.delivery_id);
end
$$;

create or replace function autopost.take_slots(p_workspace_id text, p_first uuid, p_last uuid) returns jsonb
language plpgsql
as $$
-- Purpose: gives new deliveries, by the range of their ids, the next free slots of their channels.
--          The caller holds lock_slots and opens the gates. Without a free slot a delivery keeps its
--          time.
-- Returns: {delivery_id: slot}.
-- Reads:   as slot_of.
-- Writes:  deliveries.
declare
	v_new autopost.deliveries[] := array(
		select row(d.*)::autopost.deliveries from autopost.deliveries d
		where d.workspace_id = p_workspace_id and d.delivery_id between p_first and p_last and d.status = 'queued'
		order by d.delivery_id);
	v_rest uuid[] := array(select n.delivery_id from unnest(v_new) n);
	v_at timestamptz;
	v_slots jsonb := '{}';
begin
	for v_n in 1 .. cardinality(v_new) loop
		v_at := autopost.slot_of(v_new[v_n], v_rest[v_n :]);
		if v_at is not null then
			perform autopost.set_schedule(p_workspace_id, v_rest[v_n], v_at, null);
			v_slots := v_slots || jsonb_build_object(v_rest[v_n], v_at);
		end if;
	end loop;
	return v_slots;
end
$$;
