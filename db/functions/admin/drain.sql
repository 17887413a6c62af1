create or replace function autopost.queue_rows(p_workspace_id text, p_channel_id text) returns jsonb
language plpgsql stable
as $$
-- Purpose: the queue of a channel: {"waiting", "held": deliveries that wait for a person,
--          "first_due_at", "last_due_at", and of the first hundred "cost": average rate slots, and
--          "posts": average posts}. 10,000 means that many or more.
-- Reads:   deliveries.
begin
	return (
		select jsonb_build_object('waiting', count(*), 'held', count(*) filter (where q.due_at = 'infinity'),
			'first_due_at', nullif(min(q.due_at), 'infinity'),
			'last_due_at', max(q.due_at) filter (where isfinite(q.due_at))) || (
				select jsonb_build_object('cost', coalesce(avg(autopost.step_cost(f.render_meta)), 1),
					'posts', coalesce(avg(autopost.posts_claimed(f.render_meta)), 1)) from (
					select d.render_meta from autopost.deliveries d
					where d.workspace_id = p_workspace_id and d.channel_id = p_channel_id
						and d.phase in ('active', 'retry') and d.status <> 'sending'
					order by d.due_at limit 100) f)
		from (
			select d.due_at from autopost.deliveries d
			where d.workspace_id = p_workspace_id and d.channel_id = p_channel_id
				and d.phase in ('active', 'retry') and d.status <> 'sending'
			order by d.due_at limit 10000) q);
end
$$;

create or replace function autopost.quota_ends_at(p_workspace_id text, p_subject text, p_sends numeric,
	p_posts numeric, p_from timestamptz) returns timestamptz
language plpgsql stable
as $$
-- Purpose: the latest start of the last of so many calls, each with p_posts on average, under the
--          quotas of a subject, if calls start as early as possible from p_from; null without a
--          quota. Earlier calls leave the window during the first one.
-- Reads:   quotas, quota_uses.
begin
	return (
		select max(p_from + make_interval(secs => q.window_seconds) * greatest(0,
			ceil((p_sends * case q.counts when 'posts' then least(p_posts, q.max_sends) else 1 end
				- greatest(0, autopost.quota_left(row(q.*)::autopost.quotas, p_from))) / q.max_sends))::int)
		from autopost.quotas q
		where q.workspace_id = p_workspace_id and q.subject = p_subject);
end
$$;

create or replace function autopost.drain_of(
	p_status text, p_channel autopost.channels, p_limit autopost.platform_limits, p_row jsonb, p_now timestamptz
) returns jsonb
language plpgsql stable
as $$
-- Purpose: estimates when the last waiting delivery of a channel goes, without new or failing
--          deliveries. Limits are the rate over the open time of the posting window, the group's
--          rate over its channels in turn, the quotas over their windows, and the last scheduled
--          time. The duration of calls is ignored. p_row: queue_rows, and "group_slots": the
--          group's slots until this channel has had all of its own.
-- Returns: {"starts_at", "drains_at": null if time alone is not enough, "limited_by"}.
declare
	v_sends int := (p_row ->> 'waiting')::int - (p_row ->> 'held')::int;
	v_cost numeric := (p_row ->> 'cost')::numeric;
	v_stuck text := case
		when p_status <> 'active' then 'workspace' when p_channel.auth_held then 'auth_lost'
			when p_channel.credential_until > p_now then 'credential_missing'
			when not p_channel.enabled then 'channel_disabled'
		when v_sends = 0 then 'unknown_outcome' when p_channel.paused_until = 'infinity' then 'channel_paused' end;
	v_from timestamptz;
	v_spans tstzmultirange;
	v_until timestamptz;
	v_end record;
begin
	if v_stuck is not null then
		return jsonb_build_object('starts_at', null, 'drains_at', null, 'limited_by', v_stuck);
	end if;
	v_from := greatest(p_now, (p_row ->> 'first_due_at')::timestamptz, p_channel.paused_until, p_channel.cooldown_until,
		p_limit.cooldown_until, p_limit.quota_until,
		case when p_limit.breaker_opened_at is not null then p_limit.probe_at end,
			autopost.channel_quota_until(p_channel.workspace_id, p_channel.channel_id, 1, p_now));
	v_spans := case when p_channel.window_mode = 'windowed'
		then autopost.posting_spans(coalesce(p_channel.timezone, 'UTC'), p_channel.posting_window, v_from, 92)
		else tstzmultirange(tstzrange(v_from, null)) end;
	v_from := lower(v_spans);
	select e.name, o.at, bool_or(o.at is null and e.counts) over () as beyond into v_end
	from (values
		(1, 'nothing', v_from, true),
		(2, 'channel_rate', autopost.after_open_time(v_spans,
			greatest(coalesce(p_channel.next_allowed_at, v_from) - v_from,
				interval '0') + (v_sends * v_cost - v_cost) * autopost.slot_step(p_channel.effective_rps, 1)),
				p_channel.effective_rps > 0),
		(3, 'group_rate', autopost.after_open_time(v_spans,
			greatest(coalesce(p_limit.next_allowed_at, v_from) - v_from,
				interval '0') + ((p_row ->> 'group_slots')::numeric - v_cost) * autopost.slot_step(p_limit.rate_rps,
				1)), p_limit.rate_rps > 0),
		(4, 'channel_quota', autopost.quota_ends_at(p_channel.workspace_id, 'channel:' || p_channel.channel_id, v_sends,
			(p_row ->> 'posts')::numeric, v_from), false),
		(5, 'group_quota', autopost.quota_ends_at(p_channel.workspace_id,
			autopost.group_subject(p_channel.platform, p_channel.rate_group),
			(p_row ->> 'group_slots')::numeric / v_cost, (p_row ->> 'posts')::numeric, v_from), false),
		(6, 'scheduled_for', (p_row ->> 'last_due_at')::timestamptz, true)
	) e (n, name, at, counts)
	cross join lateral (select case when e.at > v_from
		then autopost.opens_at(p_channel.window_mode, p_channel.timezone, p_channel.posting_window, e.at)
			else e.at end as at) o
	order by o.at desc nulls last, e.n
	limit 1;
	v_until := case when not v_end.beyond and isfinite(v_end.at) then v_end.at end;
	return jsonb_build_object('starts_at', v_from, 'drains_at', v_until, 'limited_by', case
		when v_until is null then 'window' else v_end.name end);
end
$$;
