create or replace function autopost.kept_from(p_key text) returns timestamptz
language plpgsql volatile
as $$
-- What is older is past the retention that a setting names. A day is given on top: whoever reckons in whole days, or began to look before
-- this instant, still finds what the setting promises.
begin
	return autopost.now_ts() - autopost.setting_interval(p_key) - interval '1 day';
end
$$;

create or replace function autopost.longest_dedup_ttl() returns interval
language plpgsql stable
as $$
-- The longest dedup window of any channel in sight.
-- Reads: channels.
begin
	return (select coalesce(max(make_interval(hours => coalesce(c.dedup_ttl_hours, 168))), '0') from autopost.channels c);
end
$$;

create or replace function autopost.dedup_ttl_error(p_hours int) returns text
language plpgsql stable
as $$
-- What is wrong with a dedup window: longer than deliveries are kept, so that what was purged could not be found any more, and would be sent
-- again. Null when nothing is.
begin
	return case when make_interval(hours => coalesce(p_hours, 168)) > autopost.setting_interval('delivery_retention_days')
		then format('%s is longer than deliveries are kept', coalesce(p_hours, 168)) end;
end
$$;

create or replace function autopost.guard_dedup_ttl() returns trigger
language plpgsql
as $$
-- Refuses (AP001) a dedup window that dedup_ttl_error does.
-- Locks: settings (the retention's row, shared), so that it cannot be shortened meanwhile.
declare
	v_error text;
begin
	perform 1 from autopost.settings s where s.key = 'delivery_retention_days' for share;
	v_error := autopost.dedup_ttl_error(new.dedup_ttl_hours);
	if v_error is not null then
		perform autopost.refuse('dedup_ttl_hours', v_error, 'shorten it, or raise the setting delivery_retention_days first');
	end if;
	return new;
end
$$;

create or replace trigger guard_dedup_ttl before insert or update of dedup_ttl_hours on autopost.channels
	for each row execute function autopost.guard_dedup_ttl();

create or replace function autopost.check_retention(p_key text) returns void
language plpgsql stable
as $$
-- Raises AP001 where the setting that was just changed, its row still locked, breaks a promise that others rely on.
-- Reads: settings, channels.
declare
	v_ttl interval;
begin
	if p_key in ('delivery_retention_days', 'message_retention_days') then
		v_ttl := autopost.longest_dedup_ttl();
		if autopost.setting_interval(p_key) < v_ttl then
			perform autopost.refuse('value', format('%s is shorter than the longest dedup window, %s hours', p_key, extract(epoch from v_ttl) / 3600),
				'shorten channels.dedup_ttl_hours first');
		end if;
	end if;
	if autopost.setting('event_retention_days') > autopost.setting('delivery_retention_days') then
		perform autopost.refuse('value', 'event_retention_days would be longer than delivery_retention_days', 'events may not outlive the deliveries that they tell of');
	end if;
end
$$;

create or replace function autopost.oldest_receipt(p_workspace_id text) returns timestamptz
language plpgsql stable
as $$
-- When the oldest receipt was taken that still answers for a message or a submission; 'infinity' where there is none. A receipt is taken
-- before what it answers for is stored or seen again.
-- Reads: ingress_receipts.
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
-- When the oldest submission that is kept came to its end, perhaps as a message; 'infinity' where there is none.
-- Reads: submissions.
begin
	return coalesce((
		select s.updated_at from autopost.submissions s
		where s.workspace_id = p_workspace_id and s.status in ('skipped', 'enqueued', 'rejected', 'expired', 'failed')
		order by s.updated_at
		limit 1), 'infinity');
end
$$;
