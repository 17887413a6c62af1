-- Rules of single rows. Each function returns the offending rows.

create or replace function autopost.policies_changed_at(p_workspace_id text) returns timestamptz
language plpgsql stable
as $$
-- Purpose: when an operator last changed a retry policy of the workspace; '-infinity' if never.
begin
	return (select coalesce(max(l.ts), '-infinity') from autopost.admin_audit_log l
	where l.workspace_id = p_workspace_id and l.action = 'put_retry_policy');
end
$$;

create or replace function autopost.verify_i03(p_workspace_id text) returns setof jsonb
language plpgsql stable
as $$
-- Purpose: finds violations of I3. A claim cannot know the next error, so the largest number of any
--          policy of the platform counts. Deliveries before the last change of the setting or of a
--          policy may have had more.
begin
	return query
	with policies as materialized (
		select r.platform, r.max_attempts from autopost.policies_of(p_workspace_id) r where r.costs_attempt)
	select jsonb_build_object('delivery_id', d.delivery_id, 'attempt', d.attempt, 'granted_attempts',
		d.granted_attempts,
		'max_attempts', m.most)
	from autopost.channels c
	cross join lateral (
		select greatest(autopost.setting('max_attempts'), max(r.max_attempts)) as most
		from policies r where r.platform in (c.platform, '*')) m
	join autopost.deliveries d on d.workspace_id = p_workspace_id and d.channel_id = c.channel_id
	where c.workspace_id = p_workspace_id
	and d.attempt > m.most + d.granted_attempts
	and d.created_at >= (select s.updated_at from autopost.settings s where s.key = 'max_attempts')
	and d.created_at >= (select autopost.policies_changed_at(p_workspace_id));
end
$$;

create or replace function autopost.verify_i04(p_workspace_id text) returns setof jsonb
language plpgsql stable
as $$
begin
	return query
	select jsonb_build_object('channel_id', d.channel_id, 'content_hash', d.content_hash, 'delivery_ids',
		jsonb_agg(d.delivery_id order by d.delivery_id))
	from autopost.deliveries d
	where d.workspace_id = p_workspace_id and d.phase in ('active', 'claimed', 'retry')
	group by d.channel_id, d.hash_version, d.content_hash
	having count(*) > 1;
end
$$;

create or replace function autopost.verify_i06(p_workspace_id text) returns setof jsonb
language plpgsql stable
as $$
begin
	return query
	select jsonb_build_object('delivery_id', d.delivery_id, 'status', d.status, 'sent_at', d.sent_at,
		'provider_message_id',
		d.provider_message_id)
	from autopost.deliveries d
	where d.workspace_id = p_workspace_id
	and ((d.status = 'sent') <> (d.sent_at is not null) or (d.status = 'sent' and d.provider_message_id is null));
end
$$;

create or replace function autopost.verify_i07(p_workspace_id text) returns setof jsonb
language plpgsql stable
as $$
-- Purpose: finds violations of I7. The finding has no token: a reader could commit with it.
begin
	return query
	select jsonb_build_object('delivery_id', d.delivery_id, 'status', d.status, 'has_token', d.claim_token is not null,
		'lease_until', d.sending_lease_until)
	from autopost.deliveries d
	where d.workspace_id = p_workspace_id
	and ((d.status in ('claimed', 'sending')) <> (d.claim_token is not null)
		or (d.status = 'sending') <> (d.sending_lease_until is not null));
end
$$;

create or replace function autopost.verify_i08(p_workspace_id text) returns setof jsonb
language plpgsql stable
as $$
-- Purpose: finds violations of I8. Compares open claims and the last settled claim of each
--          delivery; older ones are not stored.
begin
	return query
	select jsonb_build_object('delivery_ids', jsonb_agg(t.delivery_id order by t.delivery_id))
	from (
		select d.delivery_id, d.claim_token as token from autopost.deliveries d
		where d.workspace_id = p_workspace_id and d.status in ('claimed', 'sending') and d.claim_token is not null
		union all
		select d.delivery_id, d.settled ->> 'token' from autopost.deliveries d
		where d.workspace_id = p_workspace_id and d.settled is not null
	) t
	group by t.token
	having count(*) > 1;
end
$$;

create or replace function autopost.verify_i46(p_workspace_id text) returns setof jsonb
language plpgsql stable
as $$
begin
	return query
	select jsonb_build_object('delivery_id', h.delivery_id, 'paid_attempt', h.attempt, 'attempt', d.attempt)
	from autopost.charges h
	join autopost.deliveries d on d.workspace_id = p_workspace_id and d.delivery_id = h.delivery_id
	where h.workspace_id = p_workspace_id and h.attempt > d.attempt;
end
$$;
