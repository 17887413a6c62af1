create or replace function autopost.month_begin(p_at timestamptz) returns timestamptz
language sql stable
as $$
-- Purpose: the start of the month (UTC) of an instant.
select date_trunc('month', p_at at time zone 'UTC') at time zone 'UTC'
$$;

create or replace function autopost.dollars(p_micros bigint) returns numeric
language sql immutable parallel safe
as $$
-- Purpose: millionths of a dollar as dollars.
select trim_scale(p_micros / 1000000.0)
$$;

create or replace function autopost.post_price(p_platform autopost.platforms, p_rendered_text text,
	p_meta jsonb) returns bigint
language sql immutable parallel safe
as $$
-- Purpose: the price of the unacknowledged steps of a delivery in millionths of a dollar.
select coalesce(sum(case when s.value -> 'text' = 'true'
	and autopost.mark_links(coalesce(s.value ->> 'body', p_rendered_text)) like '%' || chr(1) || '%'
	then p_platform.link_post_micros else p_platform.post_micros end), 0)::bigint
from jsonb_array_elements(p_meta -> 'steps') s
where (p_meta #> array['series_progress', 'steps', s.value ->> 'step']) is null
$$;

create or replace function autopost.spent_this_month(p_workspace_id text, p_auth_ref text,
	p_now timestamptz) returns bigint
language plpgsql stable
as $$
-- Purpose: the charges of a credential in this month, in millionths of a dollar.
-- Reads:   charges.
begin
	return (
		select coalesce(sum(h.micros), 0) from autopost.charges h
		where h.workspace_id = p_workspace_id and h.auth_ref = p_auth_ref
			and h.charged_at >= autopost.month_begin(p_now));
end
$$;

create or replace function autopost.budgets_shown(p_workspace_id text)
returns table (auth_ref text, month_usd numeric, spent_usd numeric, uses jsonb, ends_at timestamptz)
language plpgsql stable
as $$
-- Purpose: the rows of list_budgets.
-- Reads:   budgets, charges.
begin
	return query
	select b.auth_ref, autopost.dollars(b.month_micros), autopost.dollars(coalesce(sum(h.micros), 0)::bigint),
		coalesce(jsonb_object_agg(h.use, autopost.dollars(h.micros)) filter (where h.use is not null), '{}'),
			m.began + interval '1 month'
	from autopost.budgets b
	cross join lateral (select autopost.month_begin(autopost.now_ts()) as began) m
	left join lateral (
		select c.use, sum(c.micros)::bigint as micros from autopost.charges c
		where c.workspace_id = p_workspace_id and c.auth_ref = b.auth_ref and c.charged_at >= m.began
		group by c.use) h on true
	where b.workspace_id = p_workspace_id
	group by b.auth_ref, b.month_micros, m.began;
end
$$;

create or replace function autopost.lock_budgets(p_workspace_id text, p_auth_refs text[]) returns void
language plpgsql
as $$
-- Purpose: locks everything that a change of these budgets affects.
-- Locks:   budgets (auth_ref), channel_gates of the channels that use the credentials.
begin
	perform 1 from autopost.budgets b
	where b.workspace_id = p_workspace_id and b.auth_ref = any (p_auth_refs) order by b.auth_ref for no key update of b;
	perform autopost.lock_gates(p_workspace_id, autopost.channels_that_use(p_workspace_id, p_auth_refs));
end
$$;

create or replace function autopost.channels_that_use(p_workspace_id text, p_auth_refs text[]) returns text[]
language plpgsql stable
as $$
-- Purpose: the channels whose current credential is one of these.
-- Reads:   channels, channel_auth.
begin
	return array(
		select c.channel_id from autopost.channels c
		where c.workspace_id = p_workspace_id and autopost.current_auth_ref(p_workspace_id,
			row(c.*)::autopost.channels) = any (p_auth_refs)
		order by c.channel_id);
end
$$;

create or replace function autopost.priced_posts(p_workspace_id text, p_ids uuid[])
returns table (n bigint, delivery_id uuid, attempt int, channel_id text, auth_ref text, price bigint)
language plpgsql stable
as $$
-- Purpose: for these deliveries, in order: the credential if it has a budget, and the price of the
--          next attempt.
-- Reads:   deliveries, channels, channel_auth, platforms, budgets.
begin
	return query
	select u.n, d.delivery_id, d.attempt, d.channel_id, b.auth_ref, case when b.auth_ref is not null
		then autopost.post_price(row(f.*)::autopost.platforms, d.rendered_text, d.render_meta) end
	from unnest(p_ids) with ordinality u (id, n)
	cross join lateral (select d.* from autopost.deliveries d where d.workspace_id = p_workspace_id
		and d.delivery_id = u.id limit 1) d
	cross join lateral (select c.platform, autopost.current_auth_ref(p_workspace_id,
		row(c.*)::autopost.channels) as auth_ref
		from autopost.channels c where c.workspace_id = p_workspace_id and c.channel_id = d.channel_id limit 1) c
	join autopost.platforms f on f.platform = c.platform
	left join autopost.budgets b on b.workspace_id = p_workspace_id and b.auth_ref = c.auth_ref
	order by u.n;
end
$$;

create or replace function autopost.within_budget(
	p_workspace_id text, p_ids uuid[], p_places int[], p_costs int[],
	out ids uuid[], out places int[], out costs int[], out denied text[]
)
language plpgsql
as $$
-- Purpose: the part of the locked rows of a claim that budgets allow, in order, with p_places and
--          p_costs. charge_posts spends the money. denied: the channels of the other rows. A
--          credential whose budget is locked by another claim has no money now.
-- Locks:   budgets with SKIP LOCKED.
-- Reads:   deliveries, channels, channel_auth, platforms, charges.
declare
	v_refs text[]; -- for each row, its credential if that has a budget
	v_prices bigint[];
	v_channels text[];
	v_locked text[];
	v_left jsonb;
	v_kept int[]; -- indexes in p_ids
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
	select coalesce(jsonb_object_agg(b.auth_ref, b.month_micros - autopost.spent_this_month(p_workspace_id, b.auth_ref,
		autopost.now_ts())), '{}') into v_left
	from autopost.budgets b
	where b.workspace_id = p_workspace_id and b.auth_ref = any (v_locked);
	select coalesce(array_agg(r.n::int order by r.n) filter (where r.fits), '{}'),
		coalesce(array_agg(distinct v_channels[r.n]) filter (where not r.fits and v_refs[r.n] = any (v_locked)), '{}')
	into v_kept, denied
	from (
		select u.n, u.auth_ref is null or coalesce(sum(u.price) over (partition by u.auth_ref
			order by u.n) <= (v_left ->> u.auth_ref)::bigint, false) as fits
		from unnest(v_refs, v_prices) with ordinality u (auth_ref, price, n)) r;
	places := array(select p_places[k.n] from unnest(v_kept) with ordinality k (n, place) order by k.place);
	costs := array(select p_costs[k.n] from unnest(v_kept) with ordinality k (n, place) order by k.place);
	ids := array(select p_ids[k.n] from unnest(v_kept) with ordinality k (n, place) order by k.place);
end
$$;

create or replace function autopost.charge_posts(p_workspace_id text, p_ids uuid[]) returns void
language plpgsql
as $$
-- Purpose: charges the claimed deliveries against the budgets that within_budget locked, and
--          removes charges older than a year.
-- Writes:  charges, deliveries.
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
	where h.workspace_id = p_workspace_id and h.auth_ref = any (v_refs)
		and h.charged_at < autopost.month_begin(v_now) - interval '1 year';
end
$$;

create or replace function autopost.leave_to_budget(p_workspace_id text, p_channel_ids text[]) returns void
language plpgsql
as $$
-- Purpose: closes the gates of channels whose next delivery has no money, until the end of the
--          month, but at most for quota_recheck. The claim holds the gates.
-- Writes:  channel_gates.
declare
	v_now timestamptz := autopost.now_ts();
begin
	update autopost.channel_gates g
	set ready_at = greatest(g.ready_at, least(v_now + autopost.quota_recheck(),
		autopost.month_begin(v_now) + interval '1 month'))
	where g.workspace_id = p_workspace_id and g.channel_id = any (p_channel_ids);
end
$$;

create or replace function autopost.budget_until(p_workspace_id text, p_channel autopost.channels, p_rendered_text text,
	p_meta jsonb, p_now timestamptz) returns timestamptz
language plpgsql stable
as $$
-- Purpose: when a delivery without money may have some: the next month; null if there is enough or
--          no budget.
-- Reads:   budgets, charges, channel_auth, platforms.
declare
	v_ref text := autopost.current_auth_ref(p_workspace_id, p_channel);
begin
	return (
		select autopost.month_begin(p_now) + interval '1 month'
		from autopost.budgets b
		join autopost.platforms f on f.platform = p_channel.platform
		where b.workspace_id = p_workspace_id and b.auth_ref = v_ref
		and autopost.spent_this_month(p_workspace_id, v_ref, p_now) + autopost.post_price(row(f.*)::autopost.platforms,
			p_rendered_text,
			p_meta) > b.month_micros);
end
$$;

create or replace function autopost.settle_charge(p_workspace_id text, p_delivery autopost.deliveries, p_status text,
	p_error jsonb) returns void
language plpgsql
as $$
-- Purpose: pays a charge back if the call certainly made no post and no part of the post exists.
--          Other uses stay charged.
-- Writes:  charges.
begin
	if p_status <> 'sent' and p_error -> 'known' is distinct from 'false'
	and coalesce(p_delivery.render_meta #> '{series_progress,steps}', '{}') = '{}' then
		delete from autopost.charges h
		where h.workspace_id = p_workspace_id and h.delivery_id = p_delivery.delivery_id
			and h.attempt = p_delivery.attempt and h.use = 'post';
	end if;
end
$$;

create or replace function autopost.charge_uses(
	p_workspace_id text, p_platform text, p_auth_ref text, p_delivery_id uuid, p_attempt int, p_used jsonb
) returns void
language plpgsql
as $$
-- Purpose: charges other paid uses of a platform, whatever the outcome, if the credential has a
--          budget. p_used: {use: times}.
-- Reads:   budgets, use_prices.
-- Writes:  charges.
begin
	insert into autopost.charges as h (workspace_id, delivery_id, attempt, use, auth_ref, charged_at, micros)
	select p_workspace_id, p_delivery_id, p_attempt, r.use, p_auth_ref, autopost.now_ts(),
		r.micros * least(t.times, 1000000)::bigint
	from autopost.use_prices r
	cross join lateral (select case when jsonb_typeof(p_used -> r.use) = 'number'
		then (p_used ->> r.use)::numeric end as times) t
	where r.platform = p_platform and t.times > 0
	and exists (select 1 from autopost.budgets b where b.workspace_id = p_workspace_id and b.auth_ref = p_auth_ref)
	on conflict (workspace_id, delivery_id, attempt, use) do update set micros = h.micros + excluded.micros;
end
$$;

create or replace function autopost.keep_budget() returns trigger
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: applies a changed budget to the next claim: opens the gates of the channels that use the
--          credential.
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
