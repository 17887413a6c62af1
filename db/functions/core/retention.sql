create or replace function autopost.kept_from(p_key text) returns timestamptz
language plpgsql volatile
as $$
-- Purpose: the instant before which rows are past the retention of a setting. One extra day covers
--          readers of whole days and running reads.
begin
	return autopost.now_ts() - autopost.setting_interval(p_key) - interval '1 day';
end
$$;

create or replace function autopost.longest_dedup_ttl() returns interval
language plpgsql stable
as $$
-- Purpose: the longest dedup window of all visible channels.
-- Reads:   channels.
begin
	return (select coalesce(max(make_interval(hours => coalesce(c.dedup_ttl_hours, 168))), '0')
		from autopost.channels c);
end
$$;

create or replace function autopost.dedup_ttl_error(p_hours int) returns text
language plpgsql stable
as $$
-- Purpose: why a dedup window is invalid, else null. It must not be longer than deliveries are
--          kept: a purged delivery would be sent again.
begin
	return case when make_interval(hours => coalesce(p_hours, 168))
		> autopost.setting_interval('delivery_retention_days')
		then format('%s is longer than deliveries are kept', coalesce(p_hours, 168)) end;
end
$$;

create or replace function autopost.guard_dedup_ttl() returns trigger
language plpgsql
as $$
-- Purpose: refuses a dedup window by dedup_ttl_error.
-- Raises:  AP001.
-- Locks:   settings (the row of the retention, shared), so that the retention cannot shrink
--          meanwhile.
declare
	v_error text;
begin
	perform 1 from autopost.settings s where s.key = 'delivery_retention_days' for share;
	v_error := autopost.dedup_ttl_error(new.dedup_ttl_hours);
	if v_error is not null then
		perform autopost.raise_argument('dedup_ttl_hours', v_error,
			'shorten it, or raise the setting delivery_retention_days first');
	end if;
	return new;
end
$$;

create or replace trigger guard_dedup_ttl before insert or update of dedup_ttl_hours on autopost.channels
	for each row execute function autopost.guard_dedup_ttl();

create or replace function autopost.check_retention(p_key text) returns void
language plpgsql stable
as $$
-- Purpose: checks a changed retention, whose row is still locked, against the other retentions and
--          the dedup windows.
-- Raises:  AP001.
-- Reads:   settings, channels.
declare
	v_ttl interval;
begin
	if p_key in ('delivery_retention_days', 'message_retention_days') then
		v_ttl := autopost.longest_dedup_ttl();
		if autopost.setting_interval(p_key) < v_ttl then
			perform autopost.raise_argument('value',
				format('%s must be at least the longest dedup window, %s hours', p_key,
				extract(epoch from v_ttl) / 3600),
				'shorten channels.dedup_ttl_hours first');
		end if;
	end if;
	if autopost.setting('raw_retention_days') >= autopost.setting('delivery_retention_days') then
		perform autopost.raise_argument('value', 'raw_retention_days must be less than delivery_retention_days',
			'raise delivery_retention_days first, or choose a smaller value');
	end if;
	if autopost.setting('event_retention_days') > autopost.setting('delivery_retention_days') then
		perform autopost.raise_argument('value', 'event_retention_days must not exceed delivery_retention_days',
			'raise delivery_retention_days first, or choose a smaller value');
	end if;
end
$$;

create or replace function autopost.oldest_receipt(p_workspace_id text) returns timestamptz
language plpgsql stable
as $$
-- Purpose: time of the oldest receipt that refers to a message or a submission; 'infinity' if none.
--          A receipt is older than the rows it refers to.
-- Reads:   ingress_receipts.
begin
	return coalesce((
		select r.received_at from autopost.ingress_receipts r
		where r.workspace_id = p_workspace_id
		order by r.receipt_id
		limit 1), 'infinity');
end
$$;

create or replace function autopost.oldest_submission(p_workspace_id text) returns timestamptz
language plpgsql stable
as $$
-- Purpose: time when the oldest kept submission ended; 'infinity' if none.
-- Reads:   submissions.
begin
	return coalesce((
		select s.updated_at from autopost.submissions s
		where s.workspace_id = p_workspace_id and s.status in ('skipped', 'enqueued', 'rejected', 'expired', 'failed')
		order by s.updated_at
		limit 1), 'infinity');
end
$$;

create or replace function autopost.events_are_strict() returns boolean
language sql stable
as $$
-- Purpose: true if the foreign keys of events exist (set_event_strictness).
select exists (
	select 1 from pg_catalog.pg_constraint k
	where k.conrelid = 'autopost.events'::regclass and k.conname = 'events_delivery_fkey')
$$;
