create or replace function autopost.group_subject(p_platform text, p_rate_group text) returns text
language sql immutable parallel safe
as $$
-- Purpose: the quota subject of a rate group.
select 'group:' || p_platform || '/' || p_rate_group
$$;

create or replace function autopost.posts_left(p_render_meta jsonb) returns int
language sql immutable parallel safe
as $$
-- Purpose: the posts that a delivery still makes: its unacknowledged steps.
select case when jsonb_array_length(p_render_meta -> 'steps') > 0 then (
	select count(*)::int from jsonb_array_elements(p_render_meta -> 'steps') s
	where not coalesce(p_render_meta -> 'series_progress' -> 'steps' ? (s.value ->> 'step'), false)) else 1 end
$$;

create or replace function autopost.posts_claimed(p_render_meta jsonb) returns int
language sql immutable parallel safe
as $$
-- Purpose: the posts that a claim of a delivery reserves; at least one.
select greatest(1, autopost.posts_left(p_render_meta))
$$;

create or replace function autopost.quota_weight(p_quota autopost.quotas, p_posts int) returns int
language sql immutable parallel safe
as $$
-- Purpose: how much of a quota a use of so many posts takes. A series that is longer than the quota
--          takes all of it; otherwise it could never go.
select case p_quota.counts when 'posts' then least(p_posts, p_quota.max_sends) else 1 end
$$;

create or replace function autopost.quota_left(p_quota autopost.quotas, p_now timestamptz) returns int
language plpgsql stable
as $$
-- Purpose: the free posts or calls of a quota. It is below zero after the quota was lowered.
-- Reads:   quota_uses.
begin
	return p_quota.max_sends - (
		select coalesce(sum(autopost.quota_weight(p_quota, u.posts)), 0) from autopost.quota_uses u
		where u.workspace_id = p_quota.workspace_id and u.subject = p_quota.subject
			and u.used_at > p_now - make_interval(secs => p_quota.window_seconds));
end
$$;

create or replace function autopost.within_quota(
	p_workspace_id text, p_platform text, p_rate_group text, p_channel_ids text[], p_capacity int[], p_limit int,
	out subjects text[], out rooms int[], out room int
)
language plpgsql
as $$
-- Purpose: the deliveries that quotas allow if each makes one post: of the capacity of the
--          channels of a claim, and of its limit. posts_within_quota checks the rows. subjects: the quota subjects that it locked, null for a channel without one. A subject
--          that another claim locked has no room now. Each statement has its own snapshot: uses are
--          counted after the lock.
-- Locks:   quotas with SKIP LOCKED.
-- Reads:   quotas, quota_uses.
declare
	v_subjects text[]; -- subjects with a quota
	v_locked text[]; -- one entry per locked row
	v_left jsonb; -- what is free of the subjects whose rows are all locked
	v_now timestamptz;
begin
	rooms := p_capacity;
	room := p_limit;
	if p_channel_ids is null or not exists (select 1 from autopost.quotas q where q.workspace_id = p_workspace_id) then
		return;
	end if;
	select array_agg(distinct q.subject) into v_subjects from autopost.quotas q
	where q.workspace_id = p_workspace_id
	and q.subject = any (autopost.group_subject(p_platform, p_rate_group) || array(select 'channel:' || c.id
		from unnest(p_channel_ids) c (id)));
	if v_subjects is null then
		return;
	end if;
	select array_agg(l.subject) into v_locked
	from (
		select q.subject from autopost.quotas q
		where q.workspace_id = p_workspace_id and q.subject = any (v_subjects)
		for no key update of q skip locked) l;
	v_now := autopost.now_ts();
	select coalesce(jsonb_object_agg(s.subject, s.n), '{}') into v_left
	from (
		select q.subject, greatest(0, min(autopost.quota_left(row(q.*)::autopost.quotas, v_now))) as n
		from autopost.quotas q
		where q.workspace_id = p_workspace_id and q.subject = any (v_subjects)
		group by q.subject
		having count(*) = (select count(*) from unnest(v_locked) l (subject) where l.subject = q.subject)) s;
	select array_agg(k.subject) into subjects from jsonb_object_keys(v_left) k (subject);
	rooms := array(
		select case when 'channel:' || c.id = any (v_subjects)
			then least(c.room, coalesce((v_left ->> ('channel:' || c.id))::int, 0)) else c.room end
		from unnest(p_channel_ids, p_capacity) with ordinality c (id, room, n)
		order by c.n);
	if autopost.group_subject(p_platform, p_rate_group) = any (v_subjects) then
		room := least(room, coalesce((v_left ->> autopost.group_subject(p_platform, p_rate_group))::int, 0));
	end if;
end
$$;

create or replace function autopost.posts_within_quota(
	p_workspace_id text, p_platform text, p_rate_group text, p_subjects text[], p_ids uuid[], p_places int[],
		p_costs int[],
	out ids uuid[], out places int[], out costs int[], out denied int
)
language plpgsql
as $$
-- Purpose: the part of the locked rows of a claim whose posts quotas allow, in order, with p_places
--          and p_costs. A row that does not fit keeps its place before the later ones of its
--          subject. denied: the posts of the first row that does not fit the quota of the group.
--          The quotas of p_subjects are locked.
-- Reads:   quotas, quota_uses, deliveries.
declare
	v_now timestamptz := autopost.now_ts();
	v_group text := autopost.group_subject(p_platform, p_rate_group);
	v_kept int[]; -- indexes in p_ids
begin
	ids := p_ids;
	places := p_places;
	costs := p_costs;
	if p_subjects is null or p_ids = '{}' then
		return;
	end if;
	with free as materialized (
		select row(q.*)::autopost.quotas as quota, q.subject, q.window_seconds,
			autopost.quota_left(row(q.*)::autopost.quotas, v_now) as n
		from autopost.quotas q
		where q.workspace_id = p_workspace_id and q.subject = any (p_subjects) and q.counts = 'posts'
	), claimed as materialized (
		select u.n, d.channel_id, autopost.posts_claimed(d.render_meta) as posts
		from unnest(p_ids) with ordinality u (id, n)
		cross join lateral (select d.* from autopost.deliveries d
			where d.workspace_id = p_workspace_id and d.delivery_id = u.id limit 1) d
	), asked as materialized (
		select c.n, c.posts, f.subject, sum(autopost.quota_weight(f.quota, c.posts))
			over (partition by f.subject, f.window_seconds order by c.n) <= f.n as fits
		from claimed c
		join free f on f.subject in ('channel:' || c.channel_id, v_group)
	)
	select array(select u.n from generate_subscripts(p_ids, 1) u (n)
			where not exists (select 1 from asked a where a.n = u.n and not a.fits) order by u.n),
		(select a.posts from asked a where not a.fits and a.subject = v_group order by a.n limit 1)
	into v_kept, denied;
	places := array(select p_places[k.n] from unnest(v_kept) with ordinality k (n, place) order by k.place);
	costs := array(select p_costs[k.n] from unnest(v_kept) with ordinality k (n, place) order by k.place);
	ids := array(select p_ids[k.n] from unnest(v_kept) with ordinality k (n, place) order by k.place);
end
$$;

create or replace function autopost.quota_free_at(p_workspace_id text, p_subject text, p_posts int,
	p_now timestamptz) returns timestamptz
language plpgsql stable
as $$
-- Purpose: when the quotas of a subject next allow a call with so many posts; null if they do now.
--          An open claim counts as a call that starts now, which is the earliest possible.
-- Reads:   quotas, quota_uses.
begin
	return (
		select max(least(u.used_at, p_now) + make_interval(secs => q.window_seconds))
		from autopost.quotas q
		cross join lateral (
			select s.used_at
			from (
				select u.used_at, sum(autopost.quota_weight(row(q.*)::autopost.quotas, u.posts))
					over (order by u.used_at desc rows unbounded preceding) as n
				from autopost.quota_uses u
				where u.workspace_id = p_workspace_id and u.subject = p_subject
					and u.used_at > p_now - make_interval(secs => q.window_seconds)) s
			where s.n > q.max_sends - autopost.quota_weight(row(q.*)::autopost.quotas, p_posts)
			order by s.used_at desc
			limit 1) u
		where q.workspace_id = p_workspace_id and q.subject = p_subject);
end
$$;

create or replace function autopost.channel_quota_until(p_workspace_id text, p_channel_id text, p_posts int,
	p_now timestamptz) returns timestamptz
language plpgsql stable
as $$
-- Purpose: when the quotas of a channel next allow its first waiting delivery and a call with so many
--          posts; null if they do now.
-- Reads:   quotas, quota_uses, deliveries.
declare
	v_subject text := 'channel:' || p_channel_id;
	v_posts int;
begin
	if not exists (select 1 from autopost.quotas q
		where q.workspace_id = p_workspace_id and q.subject = v_subject) then
		return null;
	end if;
	select autopost.posts_claimed(f.render_meta) into v_posts
	from (
		(select d.due_at > p_now as later, d.due_at as key_at, d.delivery_id, d.render_meta from autopost.deliveries d
		where d.workspace_id = p_workspace_id and d.channel_id = p_channel_id
			and d.phase in ('active', 'retry') and d.status <> 'sending'
		order by d.due_at, d.delivery_id
		limit 1)
		union all
		(select false, greatest(d.not_before, d.scheduled_for), d.delivery_id, d.render_meta from autopost.deliveries d
		where d.workspace_id = p_workspace_id and d.channel_id = p_channel_id and d.phase = 'retry'
			and d.due_at <= p_now
		order by greatest(d.not_before, d.scheduled_for), d.delivery_id
		limit 1)) f
	order by f.later, f.key_at, f.delivery_id
	limit 1;
	return autopost.quota_free_at(p_workspace_id, v_subject, greatest(p_posts, v_posts), p_now);
end
$$;

create or replace function autopost.quotas_shown(p_workspace_id text)
returns table (subject text, window_seconds int, max_sends int, counts text, used int, free_at timestamptz)
language plpgsql stable
as $$
-- Purpose: the rows of list_quotas.
-- Reads:   quotas, quota_uses.
begin
	return query
	select q.subject, q.window_seconds, q.max_sends, q.counts,
		q.max_sends - autopost.quota_left(row(q.*)::autopost.quotas, n.at),
		autopost.quota_free_at(p_workspace_id, q.subject, 1, n.at)
	from autopost.quotas q
	cross join (select autopost.now_ts() as at) n
	where q.workspace_id = p_workspace_id;
end
$$;

create or replace function autopost.spend_quota(
	p_workspace_id text, p_platform text, p_rate_group text, p_subjects text[], p_visited text[], p_ids uuid[],
		p_denied int
) returns void
language plpgsql
as $$
-- Purpose: the last act of a claim under locked quotas: records its uses, removes uses outside all
--          windows, and closes the gates of used-up subjects until they are free, at most for
--          quota_recheck. p_denied: as denied of posts_within_quota. A locked group row is skipped;
--          the next claim tries again.
-- Locks:   platform_limits with SKIP LOCKED.
-- Reads:   quotas.
-- Writes:  quota_uses, deliveries, channel_gates, platform_limits.
declare
	v_now timestamptz := autopost.now_ts();
	v_latest timestamptz := v_now + autopost.quota_recheck();
	v_group text := autopost.group_subject(p_platform, p_rate_group);
	v_until timestamptz;
	v_held uuid[];
	v_limited text[];
	v_instants timestamptz[];
begin
	with used as (
		insert into autopost.quota_uses (workspace_id, delivery_id, attempt, subject, used_at, posts)
		select p_workspace_id, d.delivery_id, d.attempt, s.subject, 'infinity', autopost.posts_claimed(d.render_meta)
		from autopost.deliveries d
		cross join lateral (values ('channel:' || d.channel_id), (v_group)) s (subject)
		where d.workspace_id = p_workspace_id and d.delivery_id = any (p_ids) and s.subject = any (p_subjects)
		returning delivery_id)
	select array_agg(distinct u.delivery_id) into v_held from used u;
	update autopost.deliveries d
	set quota_held = true
	where d.workspace_id = p_workspace_id and d.delivery_id = any (v_held);
	select array_agg(w.subject), array_agg(v_now - make_interval(secs => w.seconds)) into v_limited, v_instants
	from (select q.subject, max(q.window_seconds) as seconds from autopost.quotas q
		where q.workspace_id = p_workspace_id and q.subject = any (p_subjects)
		group by q.subject) w;
	delete from autopost.quota_uses u
	using unnest(v_limited, v_instants) w (subject, since)
	where u.workspace_id = p_workspace_id and u.subject = w.subject and u.used_at <= w.since;
	select array_agg(c.channel_id), array_agg(least(v_latest, c.until)) into v_limited, v_instants
	from (select v.channel_id, autopost.channel_quota_until(p_workspace_id, v.channel_id, 1, v_now) as until
		from unnest(p_visited) v (channel_id)
		where 'channel:' || v.channel_id = any (p_subjects)) c
	where c.until is not null;
	update autopost.channel_gates g
	set ready_at = greatest(g.ready_at, c.until)
	from unnest(v_limited, v_instants) c (channel_id, until)
	where g.workspace_id = p_workspace_id and g.channel_id = c.channel_id;
	v_until := autopost.quota_free_at(p_workspace_id, v_group, coalesce(p_denied, 1), v_now);
	if v_until is not null then
		perform autopost.hold_group(p_workspace_id, p_platform, p_rate_group, least(v_latest, v_until));
	end if;
end
$$;

create or replace function autopost.hold_group(p_workspace_id text, p_platform text, p_rate_group text,
	p_until timestamptz) returns void
language plpgsql
as $$
-- Purpose: sets until when the quota of a rate group is used up; null: it is not. Never waits for
--          the row.
-- Locks:   platform_limits with SKIP LOCKED.
-- Writes:  platform_limits.
begin
	perform 1 from autopost.platform_limits l
	where l.workspace_id = p_workspace_id and l.platform = p_platform and l.rate_group = p_rate_group
	for no key update of l skip locked;
	if found then
		update autopost.platform_limits l
		set quota_until = p_until
		where l.workspace_id = p_workspace_id and l.platform = p_platform and l.rate_group = p_rate_group;
	end if;
end
$$;

create or replace function autopost.settle_quota(p_workspace_id text, p_delivery autopost.deliveries, p_status text,
	p_error jsonb) returns void
language plpgsql
as $$
-- Purpose: ends the use of a claim: a call counts from its start; an unstarted claim is not a use.
--          After a definite failure only the acknowledged posts count, and after an unknown outcome also
--          the first other one: the next step starts only after it.
-- Locks:   platform_limits with SKIP LOCKED.
-- Writes:  quota_uses, platform_limits.
declare
	v_began_at timestamptz := autopost.call_started_at(p_delivery);
	-- the platform took the post or may have it
	v_made boolean := p_status = 'sent' or coalesce(p_error -> 'known' = 'false', false);
begin
	if v_began_at is not null then
		update autopost.quota_uses u
		set used_at = greatest(v_began_at, p_delivery.send_at), posts = case when p_status = 'sent' then u.posts
			else greatest(0, u.posts - autopost.posts_left(p_delivery.render_meta) + v_made::int) end
		where u.workspace_id = p_workspace_id and u.delivery_id = p_delivery.delivery_id
			and u.attempt = p_delivery.attempt;
		if v_made then
			return;
		end if;
	else
		delete from autopost.quota_uses u
		where u.workspace_id = p_workspace_id and u.delivery_id = p_delivery.delivery_id
			and u.attempt = p_delivery.attempt;
	end if;
	perform autopost.hold_group(p_workspace_id, c.platform, c.rate_group, null) from autopost.channels c
	where c.workspace_id = p_workspace_id and c.channel_id = p_delivery.channel_id;
end
$$;

create or replace function autopost.keep_quota() returns trigger
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: applies a changed quota to the next claim: opens the gates that the old one closed, and
--          adds the row of the group. Uses of a subject without a quota are removed: a new quota
--          starts to count with its first claim.
declare
	v_quota autopost.quotas;
begin
	if tg_op = 'DELETE' then
		v_quota := old;
		delete from autopost.quota_uses u
		where u.workspace_id = old.workspace_id and u.subject = old.subject
		and not exists (
			select 1 from autopost.quotas q
			where q.workspace_id = old.workspace_id and q.subject = old.subject
				and q.window_seconds <> old.window_seconds);
	else
		new.updated_at := autopost.now_ts();
		v_quota := new;
	end if;
	if v_quota.channel_id is not null then
		perform autopost.rearm_gate(v_quota.workspace_id, v_quota.channel_id, 0);
	else
		insert into autopost.platform_limits (workspace_id, platform, rate_group, rate_rps)
		values (v_quota.workspace_id, v_quota.platform, v_quota.rate_group,
			autopost.platform_rate(v_quota.platform))
		on conflict (workspace_id, platform, rate_group) do update set quota_until = null;
		perform pg_notify('autopost_wake', 'deliveries');
	end if;
	if tg_op = 'DELETE' then
		return old;
	end if;
	return new;
end
$$;

create or replace trigger keep_quota before insert or update or delete on autopost.quotas
	for each row execute function autopost.keep_quota();
