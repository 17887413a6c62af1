create or replace function autopost.month_begin(p_at timestamptz) returns timestamptz
language sql stable
as $$
-- The beginning of the month in which an instant lies: budgets are of months in UTC.
select date_trunc('month', p_at at time zone 'UTC') at time zone 'UTC'
$$;

create or replace function autopost.dollars(p_micros bigint) returns numeric
language sql immutable parallel safe
as $$
-- Millionths of a dollar as dollars.
select trim_scale(p_micros / 1000000.0)
$$;

create or replace function autopost.post_price(p_platform autopost.platforms, p_rendered_text text, p_meta jsonb) returns bigint
language sql immutable parallel safe
as $$
-- What the platform asks for the steps of a delivery that it has not acknowledged, in millionths of a dollar.
select coalesce(sum(case when s.value -> 'text' = 'true' and autopost.mark_links(coalesce(s.value ->> 'body', p_rendered_text)) like '%' || chr(1) || '%'
	then p_platform.link_post_micros else p_platform.post_micros end), 0)::bigint
from jsonb_array_elements(p_meta -> 'steps') s
where (p_meta #> array['series_progress', 'steps', s.value ->> 'step']) is null
$$;

create or replace function autopost.spent_this_month(p_workspace_id text, p_auth_ref text, p_now timestamptz) returns bigint
language plpgsql stable
as $$
-- What has been spent with a credential since the month began, in millionths of a dollar.
-- Reads: charges.
begin
	return (
		select coalesce(sum(h.micros), 0) from autopost.charges h
		where h.workspace_id = p_workspace_id and h.auth_ref = p_auth_ref and h.charged_at >= autopost.month_begin(p_now));
end
$$;

create or replace function autopost.budgets_shown(p_workspace_id text)
returns table (auth_ref text, month_usd numeric, spent_usd numeric, uses jsonb, ends_at timestamptz)
language sql stable
as $$
-- What list_budgets says of each budget. Reads: budgets, charges.
select b.auth_ref, autopost.dollars(b.month_micros), autopost.dollars(coalesce(sum(h.micros), 0)::bigint),
	coalesce(jsonb_object_agg(h.use, autopost.dollars(h.micros)) filter (where h.use is not null), '{}'), m.began + interval '1 month'
from autopost.budgets b
cross join lateral (select autopost.month_begin(autopost.now_ts()) as began) m
left join lateral (
	select c.use, sum(c.micros)::bigint as micros from autopost.charges c
	where c.workspace_id = p_workspace_id and c.auth_ref = b.auth_ref and c.charged_at >= m.began
	group by c.use) h on true
where b.workspace_id = p_workspace_id
group by b.auth_ref, b.month_micros, m.began
$$;

create or replace function autopost.lock_budgets(p_workspace_id text, p_auth_refs text[]) returns void
language plpgsql
as $$
-- Whatever a change of these budgets comes by. Locks: budgets (auth_ref), channel_gates of the channels that use the credentials.
begin
	perform 1 from autopost.budgets b
	where b.workspace_id = p_workspace_id and b.auth_ref = any (p_auth_refs) order by b.auth_ref for no key update of b;
	perform autopost.lock_gates(p_workspace_id, autopost.channels_that_use(p_workspace_id, p_auth_refs));
end
$$;

create or replace function autopost.channels_that_use(p_workspace_id text, p_auth_refs text[]) returns text[]
language plpgsql stable
as $$
-- The channels whose credential is one of these. Reads: channels, channel_auth.
begin
	return array(
		select c.channel_id from autopost.channels c
		where c.workspace_id = p_workspace_id and autopost.current_auth_ref(p_workspace_id, c) = any (p_auth_refs)
		order by c.channel_id);
end
$$;

create or replace function autopost.priced_posts(p_workspace_id text, p_ids uuid[])
returns table (n bigint, delivery_id uuid, attempt int, channel_id text, auth_ref text, price bigint)
language sql stable
as $$
-- Of these deliveries, in their order, the credential if that has a budget, and what the next attempt costs then.
-- Reads: deliveries, channels, channel_auth, platforms, budgets.
select u.n, d.delivery_id, d.attempt, d.channel_id, b.auth_ref, case when b.auth_ref is not null then autopost.post_price(f, d.rendered_text, d.render_meta) end
from unnest(p_ids) with ordinality u (id, n)
cross join lateral (select d.* from autopost.deliveries d where d.workspace_id = p_workspace_id and d.delivery_id = u.id limit 1) d
cross join lateral (select c.platform, autopost.current_auth_ref(p_workspace_id, c) as auth_ref
	from autopost.channels c where c.workspace_id = p_workspace_id and c.channel_id = d.channel_id limit 1) c
join autopost.platforms f on f.platform = c.platform
left join autopost.budgets b on b.workspace_id = p_workspace_id and b.auth_ref = c.auth_ref
order by u.n
$$;

create or replace function autopost.within_budget(
	p_workspace_id text, p_ids uuid[], p_places int[], p_costs int[],
	out ids uuid[], out places int[], out costs int[], out denied text[]
)
language plpgsql
as $$
-- What budgets leave of the rows that a claim has locked, in their order: of each credential as many as there is money for. charge_posts spends it for those
-- that are claimed. p_places and p_costs go with the ids. denied: the channels of the others. A credential that somebody else is spending from has nothing for now.
-- Locks: budgets (skip locked). Reads: deliveries, channels, channel_auth, platforms, charges.
declare
	v_refs text[]; -- of each row, its credential if that has a budget
	v_prices bigint[];
	v_channels text[];
	v_locked text[];
	v_left jsonb;
	v_kept int[]; -- places in p_ids
begin
	ids := p_ids;
	places := p_places;
	costs := p_costs;
	denied := '{}';
	if p_ids = '{}' or not exists (select 1 from autopost.budgets b where b.workspace_id = p_workspace_id) then
		return;
	end if;
	select array_agg(r.auth_ref order by r.n), array_agg(r.price order by r.n), array_agg(r.channel_id order by r.n)
	into v_refs, v_prices, v_channels
	from autopost.priced_posts(p_workspace_id, p_ids) r;
	select coalesce(array_agg(l.auth_ref), '{}') into v_locked
	from (select b.auth_ref from autopost.budgets b
		where b.workspace_id = p_workspace_id and b.auth_ref = any (v_refs)
		order by b.auth_ref
		for no key update of b skip locked) l;
	select coalesce(jsonb_object_agg(b.auth_ref, b.month_micros - autopost.spent_this_month(p_workspace_id, b.auth_ref, autopost.now_ts())), '{}') into v_left
	from autopost.budgets b
	where b.workspace_id = p_workspace_id and b.auth_ref = any (v_locked);
	select coalesce(array_agg(r.n::int order by r.n) filter (where r.fits), '{}'),
		coalesce(array_agg(distinct v_channels[r.n]) filter (where not r.fits and v_refs[r.n] = any (v_locked)), '{}')
	into v_kept, denied
	from (
		select u.n, u.auth_ref is null or coalesce(sum(u.price) over (partition by u.auth_ref order by u.n) <= (v_left ->> u.auth_ref)::bigint, false) as fits
		from unnest(v_refs, v_prices) with ordinality u (auth_ref, price, n)) r;
	places := array(select p_places[k.n] from unnest(v_kept) with ordinality k (n, place) order by k.place);
	costs := array(select p_costs[k.n] from unnest(v_kept) with ordinality k (n, place) order by k.place);
	ids := array(select p_ids[k.n] from unnest(v_kept) with ordinality k (n, place) order by k.place);
end
$$;

create or replace function autopost.charge_posts(p_workspace_id text, p_ids uuid[]) returns void
language plpgsql
as $$
-- What a claim takes is spent from now on, out of budgets that within_budget has locked; what is older than a year goes. Writes: charges, deliveries.
declare
	v_now timestamptz := autopost.now_ts();
	v_paid uuid[];
	v_refs text[];
begin
	if p_ids = '{}' or not exists (select 1 from autopost.budgets b where b.workspace_id = p_workspace_id) then
		return;
	end if;
	with paid as (
		insert into autopost.charges (workspace_id, delivery_id, attempt, auth_ref, charged_at, micros)
		select p_workspace_id, r.delivery_id, r.attempt + 1, r.auth_ref, v_now, r.price
		from autopost.priced_posts(p_workspace_id, p_ids) r
		where r.auth_ref is not null
		returning delivery_id, auth_ref)
	select array_agg(p.delivery_id), array_agg(distinct p.auth_ref) into v_paid, v_refs from paid p;
	update autopost.deliveries d
	set quota_held = true
	where d.workspace_id = p_workspace_id and d.delivery_id = any (v_paid);
	delete from autopost.charges h
	where h.workspace_id = p_workspace_id and h.auth_ref = any (v_refs) and h.charged_at < autopost.month_begin(v_now) - interval '1 year';
end
$$;

create or replace function autopost.leave_to_budget(p_workspace_id text, p_channel_ids text[]) returns void
language plpgsql
as $$
-- The gates of channels whose next row there is no money for, which a claim holds: until the month is over, looked at again after
-- quota_recheck_seconds at most. Writes: channel_gates.
declare
	v_now timestamptz := autopost.now_ts();
begin
	update autopost.channel_gates g
	set ready_at = greatest(g.ready_at, least(v_now + autopost.setting_interval('quota_recheck_seconds'), autopost.month_begin(v_now) + interval '1 month'))
	where g.workspace_id = p_workspace_id and g.channel_id = any (p_channel_ids);
end
$$;

create or replace function autopost.budget_until(p_workspace_id text, p_channel autopost.channels, p_rendered_text text, p_meta jsonb, p_now timestamptz) returns timestamptz
language plpgsql stable
as $$
-- When a delivery for which there is no money now may have some: the next month; null where there is enough, or no budget.
-- Reads: budgets, charges, channel_auth, platforms.
declare
	v_ref text := autopost.current_auth_ref(p_workspace_id, p_channel);
begin
	return (
		select autopost.month_begin(p_now) + interval '1 month'
		from autopost.budgets b
		join autopost.platforms f on f.platform = p_channel.platform
		where b.workspace_id = p_workspace_id and b.auth_ref = v_ref
		and autopost.spent_this_month(p_workspace_id, v_ref, p_now) + autopost.post_price(f, p_rendered_text, p_meta) > b.month_micros);
end
$$;

create or replace function autopost.settle_charge(p_workspace_id text, p_delivery autopost.deliveries, p_status text, p_error jsonb) returns void
language plpgsql
as $$
-- A claim that was paid for is over: what certainly made no post is paid back, unless a part of it stands already.
-- What else it used stays paid. Writes: charges.
begin
	if p_status <> 'sent' and p_error -> 'known' is distinct from 'false'
	and coalesce(p_delivery.render_meta #> '{series_progress,steps}', '{}') = '{}' then
		delete from autopost.charges h
		where h.workspace_id = p_workspace_id and h.delivery_id = p_delivery.delivery_id and h.attempt = p_delivery.attempt and h.use = 'post';
	end if;
end
$$;

create or replace function autopost.charge_uses(
	p_workspace_id text, p_platform text, p_auth_ref text, p_delivery_id uuid, p_attempt int, p_used jsonb
) returns void
language plpgsql
as $$
-- What else of a platform was used is spent as well, whatever came of it, where the credential has a budget. p_used: {use: times}.
-- Reads: budgets, use_prices. Writes: charges.
begin
	insert into autopost.charges as h (workspace_id, delivery_id, attempt, use, auth_ref, charged_at, micros)
	select p_workspace_id, p_delivery_id, p_attempt, r.use, p_auth_ref, autopost.now_ts(), r.micros * least(t.times, 1000000)::bigint
	from autopost.use_prices r
	cross join lateral (select case when jsonb_typeof(p_used -> r.use) = 'number' then (p_used ->> r.use)::numeric end as times) t
	where r.platform = p_platform and t.times > 0
	and exists (select 1 from autopost.budgets b where b.workspace_id = p_workspace_id and b.auth_ref = p_auth_ref)
	on conflict (workspace_id, delivery_id, attempt, use) do update set micros = h.micros + excluded.micros;
end
$$;

create or replace function autopost.keep_budget() returns trigger
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- A budget acts on the next claim: the gates of the channels that use the credential open.
declare
	v_budget autopost.budgets;
	v_channel text;
begin
	if tg_op = 'DELETE' then
		v_budget := old;
	else
		new.updated_at := autopost.now_ts();
		v_budget := new;
	end if;
	foreach v_channel in array autopost.channels_that_use(v_budget.workspace_id, array[v_budget.auth_ref]) loop
		perform autopost.rearm_gate(v_budget.workspace_id, v_channel, 0);
	end loop;
	if tg_op = 'DELETE' then
		return old;
	end if;
	return new;
end
$$;

create or replace trigger keep_budget before insert or update or delete on autopost.budgets
	for each row execute function autopost.keep_budget();
