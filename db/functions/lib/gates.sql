create or replace function autopost.next_due(p_workspace_id text, p_channel_id text) returns timestamptz
language plpgsql stable
as $$
-- When the channel's next waiting delivery is due; infinity when none waits.
-- Reads: deliveries.
begin
	return (
		select coalesce((
			select d.due_at from autopost.deliveries d
			where d.workspace_id = p_workspace_id
			and d.channel_id = p_channel_id
			and d.status in ('queued', 'retry')
			order by d.due_at
			limit 1), 'infinity'));
end
$$;

create or replace function autopost.lock_gates(p_workspace_id text, p_channel_ids text[]) returns void
language plpgsql
as $$
-- Locks: channel_gates (channel_id).
begin
	perform 1 from autopost.channel_gates g
	where g.workspace_id = p_workspace_id and g.channel_id = any (p_channel_ids)
	order by g.channel_id
	for no key update of g;
end
$$;

create or replace function autopost.arm_gates(p_workspace_id text, p_channel_ids text[], p_due timestamptz) returns void
language plpgsql
as $$
-- The last act of whatever makes deliveries due: takes the gates in channel order, whether or not they look armed (a claim that
-- found nothing may be about to close one), opens them by p_due and rings the bell if one was closed.
-- Locks: channel_gates (channel_id). Writes: channel_gates.
declare
	v_closed text[];
begin
	select array_agg(l.channel_id) filter (where l.ready_at > p_due) into v_closed
	from (
		select g.channel_id, g.ready_at from autopost.channel_gates g
		where g.workspace_id = p_workspace_id
		and g.channel_id = any (p_channel_ids)
		order by g.channel_id
		for no key update of g
	) l;
	if v_closed is not null then
		update autopost.channel_gates g
		set ready_at = p_due
		where g.workspace_id = p_workspace_id
		and g.channel_id = any (v_closed);
		perform pg_notify('autopost_wake', 'deliveries');
	end if;
end
$$;

create or replace function autopost.rearm_gate(p_workspace_id text, p_channel_id text, p_returned int) returns void
language plpgsql
as $$
-- Gives back p_returned places in flight and opens the gate for what is due next.
-- Locks: channel_gates. Reads: deliveries. Writes: channel_gates.
declare
	v_gate autopost.channel_gates;
	v_due timestamptz;
begin
	select g.* into v_gate from autopost.channel_gates g
	where g.workspace_id = p_workspace_id
	and g.channel_id = p_channel_id
	for no key update of g;
	v_due := autopost.next_due(p_workspace_id, p_channel_id);
	update autopost.channel_gates g
	set inflight = g.inflight - p_returned,
		ready_at = least(g.ready_at, v_due)
	where g.workspace_id = p_workspace_id
	and g.channel_id = p_channel_id
	and (p_returned <> 0 or g.ready_at > v_due);
	if v_due < v_gate.ready_at then
		perform pg_notify('autopost_wake', 'deliveries');
	end if;
end
$$;

create or replace function autopost.keep_channel_gate() returns trigger
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Keeps a channel's gate true under plain row edits: makes it with the channel, moves it with its rate group, opens it when the
-- channel is enabled, resumed, may do more at once or at other hours. A pause needs nothing: the next claim that comes by moves it.
begin
	if tg_op = 'INSERT' then
		insert into autopost.channel_gates (workspace_id, channel_id, platform, rate_group)
		values (new.workspace_id, new.channel_id, new.platform, new.rate_group);
		return null;
	end if;
	if (new.platform, new.rate_group) is distinct from (old.platform, old.rate_group) then
		update autopost.channel_gates g
		set platform = new.platform, rate_group = new.rate_group
		where g.workspace_id = new.workspace_id
		and g.channel_id = new.channel_id;
	end if;
	if coalesce(new.paused_until, '-infinity') < old.paused_until or (new.enabled, new.max_parallel, new.rate_rps, new.timezone, new.window_mode, new.posting_window)
	is distinct from (old.enabled, old.max_parallel, old.rate_rps, old.timezone, old.window_mode, old.posting_window) then
		perform autopost.rearm_gate(new.workspace_id, new.channel_id, 0);
	end if;
	return null;
end
$$;

create or replace trigger keep_channel_gate
	after insert or update of enabled, paused_until, auth_ref, max_parallel, rate_rps, platform, rate_group, timezone, window_mode, posting_window on autopost.channels
	for each row execute function autopost.keep_channel_gate();

create or replace function autopost.stamp_channel() returns trigger
language plpgsql
as $$
-- updated_at is when the configuration of a channel last changed, by whoever; what claims and commits move does not count.
begin
	new.updated_at := autopost.now_ts();
	return new;
end
$$;

create or replace trigger stamp_channel
	before update of platform, target_id, auth_ref, rate_group, enabled, title, send_mode, rate_rps, max_parallel, paused_until, timezone, window_mode,
		posting_window, dedup_ttl_hours, on_unknown, on_auth_lost, settings, tags, route_filter, template_ref on autopost.channels
	for each row execute function autopost.stamp_channel();

create or replace function autopost.ring_when_lifted() returns trigger
language plpgsql
as $$
-- A workspace made active, or a group's limit or cooldown changed by hand: whoever waits should look again.
begin
	perform pg_notify('autopost_wake', 'deliveries');
	return null;
end
$$;

create or replace trigger ring_when_activated after update of status on autopost.workspaces
	for each row when (new.status = 'active' and old.status <> 'active') execute function autopost.ring_when_lifted();
create or replace trigger ring_when_lifted after update of rate_rps, cooldown_until on autopost.platform_limits
	for each row when (new.cooldown_until is null and old.cooldown_until is not null or new.rate_rps is distinct from old.rate_rps)
	execute function autopost.ring_when_lifted();
