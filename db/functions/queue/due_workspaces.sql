-- Each part of a statement over all workspaces names them: a node of a cluster then reads its own shards alone.
-- Workspaces with due work of each kind, in the order of their ids: active ones (for ingest and
-- webhooks all that are not disabled) that the caller may act for. They read across workspaces. Each
-- function asks for the next workspace with open work by an index of open work, so finished work and
-- idle workspaces cost nothing. The planner overestimates row security and would read and sort
-- everything for each step, hence the two settings. For deliveries see armed_workspaces.
create or replace function autopost.is_open(p_workspace_id text, p_only_active boolean) returns boolean
language plpgsql stable
as $$
-- Purpose: true if a workspace is active or, unless p_only_active, paused.
-- Reads:   workspaces.
begin
	return exists (
		select 1 from autopost.workspaces w
		where w.workspace_id = p_workspace_id and (w.status = 'active' or not p_only_active
			and w.status <> 'disabled'));
end
$$;

create or replace function autopost.act_workspaces(p_by timestamptz, p_limit int) returns setof text
language plpgsql stable set enable_bitmapscan = off set enable_sort = off
as $$
-- Purpose: workspaces with due post changes. One probe per lane.
-- Reads:   post_acts, workspaces.
declare
	v_mine text[] := autopost.served_workspaces();
	v_id text := '';
	v_found int := 0;
begin
	loop
		select a.workspace_id into v_id from autopost.post_acts a
		where a.status in ('queued', 'sending', 'retry') and a.workspace_id > v_id
		and (v_mine is null or a.workspace_id = any (v_mine))
		order by a.workspace_id limit 1;
		exit when not found or v_found >= p_limit;
		if exists (select 1 from autopost.act_lanes(v_id) l where l.next_at <= p_by)
			and autopost.is_open(v_id, true) then
			v_found := v_found + 1;
			return next v_id;
		end if;
	end loop;
end
$$;

create or replace function autopost.submission_workspaces(p_by timestamptz, p_limit int) returns setof text
language plpgsql stable set enable_bitmapscan = off set enable_sort = off
as $$
-- Purpose: workspaces with submissions whose media can be fetched: unclaimed ones and those with an
--          ended lease.
-- Reads:   submissions, workspaces.
declare
	v_mine text[] := autopost.served_workspaces();
	v_id text := '';
	v_found int := 0;
begin
	loop
		select s.workspace_id into v_id from autopost.submissions s
		where s.status = 'fetching' and s.workspace_id > v_id
		and (v_mine is null or s.workspace_id = any (v_mine))
		order by s.workspace_id limit 1;
		exit when not found or v_found >= p_limit;
		if exists (
				select 1 from autopost.submissions s
				where s.workspace_id = v_id and s.status = 'fetching' and s.next_attempt_at <= p_by
				and (s.lease_until is null or s.lease_until <= p_by))
			and autopost.is_open(v_id, false) then
			v_found := v_found + 1;
			return next v_id;
		end if;
	end loop;
end
$$;

create or replace function autopost.fanout_workspaces(p_by timestamptz, p_limit int) returns setof text
language plpgsql stable set enable_bitmapscan = off set enable_sort = off
as $$
-- Purpose: workspaces with running fan-out jobs.
-- Reads:   fanout_jobs, workspaces.
declare
	v_mine text[] := autopost.served_workspaces();
	v_id text := '';
	v_found int := 0;
begin
	loop
		select j.workspace_id into v_id from autopost.fanout_jobs j
		where j.status = 'running' and j.workspace_id > v_id
		and (v_mine is null or j.workspace_id = any (v_mine))
		order by j.workspace_id limit 1;
		exit when not found or v_found >= p_limit;
		if exists (
				select 1 from autopost.fanout_jobs j
				where j.workspace_id = v_id and j.status = 'running' and j.next_attempt_at <= p_by)
			and autopost.is_open(v_id, false) then
			v_found := v_found + 1;
			return next v_id;
		end if;
	end loop;
end
$$;

create or replace function autopost.recurrence_workspaces(p_by timestamptz, p_limit int) returns setof text
language plpgsql stable
as $$
-- Purpose: active workspaces with a recurrence that the stage must look at. A recurrence that is not
--          expanded yet is looked at again until it is.
-- Reads:   recurrences, workspaces.
declare
	v_mine text[] := autopost.served_workspaces();
begin
	return query
	select w.workspace_id
	from autopost.workspaces w
	where w.status = 'active' and (v_mine is null or w.workspace_id = any (v_mine))
	and exists (
		select 1 from autopost.recurrences r
		where r.workspace_id = w.workspace_id and r.enabled and r.next_at <= p_by
			and (v_mine is null or r.workspace_id = any (v_mine)))
	limit p_limit;
end
$$;

create or replace function autopost.webhooks_are_due(p_workspace_id text, p_by timestamptz,
	p_read_before timestamptz) returns boolean
language plpgsql stable
as $$
-- Purpose: true if a request of a result webhook is due, or events were not read since p_read_before.
-- Reads:   result_webhooks, webhook_cursors, webhook_sends.
begin
	return not exists (
			select 1 from autopost.webhook_cursors c
			where c.workspace_id = p_workspace_id and c.read_at > p_read_before and c.position_at is null)
		or exists (
			select 1 from autopost.result_webhooks r
			where r.workspace_id = p_workspace_id and r.enabled and r.next_send_at < p_by + interval '1 second'
			and exists (
				select 1 from autopost.webhook_sends s
				where s.workspace_id = p_workspace_id and s.webhook_id = r.webhook_id
					and s.status in ('pending', 'sending') and s.due_at <= p_by offset 0));
end
$$;

create or replace function autopost.webhook_workspaces(p_by timestamptz, p_limit int) returns setof text
language plpgsql stable set enable_bitmapscan = off set enable_sort = off
as $$
-- Purpose: workspaces with a due request of a result webhook or with events to read.
-- Reads:   result_webhooks, webhook_cursors, webhook_sends, workspaces.
declare
	v_mine text[] := autopost.served_workspaces();
	v_id text := '';
	v_found int := 0;
	v_read_before timestamptz := p_by - autopost.setting_interval('webhook_poll_ms');
begin
	loop
		select r.workspace_id into v_id from autopost.result_webhooks r
		where r.enabled and r.workspace_id > v_id
		and (v_mine is null or r.workspace_id = any (v_mine))
		order by r.workspace_id limit 1;
		exit when not found or v_found >= p_limit;
		if autopost.webhooks_are_due(v_id, p_by, v_read_before)
			and autopost.is_open(v_id, false) then
			v_found := v_found + 1;
			return next v_id;
		end if;
	end loop;
end
$$;

create or replace function autopost.moderation_workspaces(p_by timestamptz, p_limit int) returns setof text
language plpgsql stable
as $$
-- Purpose: workspaces with a due call to a moderators' chat, or a due answer to a pressed button. The
--          cost grows with the number of chats.
-- Reads:   moderation_chats, moderation_messages, moderation_presses, submissions, workspaces.
declare
	v_mine text[] := autopost.served_workspaces();
begin
	return query
	select d.workspace_id from (
		select c.workspace_id from autopost.moderation_chats c
		where c.next_at <= p_by and (v_mine is null or c.workspace_id = any (v_mine))
			and autopost.chat_has_work(row(c.*)::autopost.moderation_chats, p_by)
		union
		select p.workspace_id from autopost.moderation_presses p
		where p.status in ('pending', 'sending') and p.due_at <= p_by
			and (v_mine is null or p.workspace_id = any (v_mine))) d
	where exists (
		select 1 from autopost.workspaces w
		where w.workspace_id = d.workspace_id and w.status <> 'disabled'
			and (v_mine is null or w.workspace_id = any (v_mine)))
	limit p_limit;
end
$$;

create or replace function autopost.silent_runs(p_at timestamptz) returns text[]
language plpgsql stable
as $$
-- Purpose: the daemons that were silent at p_at for run_silence. Read them before a statement over
--          tables of a workspace, because each node of a cluster has its own dispatch_runs.
-- Reads:   dispatch_runs.
begin
	return array(select r.run_id from autopost.dispatch_runs r where r.seen_at <= p_at - autopost.run_silence());
end
$$;

create or replace function autopost.silent_leases(p_at timestamptz, p_mine text[])
	returns table (workspace_id text, kind text, id text)
language plpgsql stable
as $$
-- Purpose: leases, except those of deliveries, that go on at p_at although their daemon is silent:
--          of sources, submissions, post changes, renewals of credentials and messages of alerts.
--          p_mine: of these workspaces; null: of all.
-- Reads:   pull_cursors, submissions, post_acts, credential_health, alert_messages, dispatch_runs.
declare
	v_silent text[] := autopost.silent_runs(p_at);
begin
	if v_silent = '{}' then
		return;
	end if;
	return query
	select c.workspace_id, 'source', c.source_id
	from autopost.pull_cursors c
	where c.leased_by = any (v_silent) and c.next_poll_at = c.leased_until and c.next_poll_at > p_at
	and (p_mine is null or c.workspace_id = any (p_mine));
	return query
	select s.workspace_id, 'submission', s.submission_id::text
	from autopost.submissions s
	where s.claimed_by = any (v_silent) and s.claim_token is not null and s.status = 'fetching' and s.lease_until > p_at
	and (p_mine is null or s.workspace_id = any (p_mine));
	return query
	select a.workspace_id, 'act', a.act_id::text
	from autopost.post_acts a
	where a.claimed_by = any (v_silent) and a.status = 'sending' and a.next_at > p_at
	and (p_mine is null or a.workspace_id = any (p_mine));
	return query
	select h.workspace_id, 'credential', h.auth_ref
	from autopost.credential_health h
	where h.leased_by = any (v_silent) and h.lease_token is not null and h.lease_until > p_at
	and (p_mine is null or h.workspace_id = any (p_mine));
	return query
	select m.workspace_id, 'message', m.message_id::text
	from autopost.alert_messages m
	where m.leased_by = any (v_silent) and m.status = 'sending' and m.lease_until > p_at
	and (p_mine is null or m.workspace_id = any (p_mine));
end
$$;

create or replace function autopost.lapsed_workspaces(p_at timestamptz, p_limit int) returns setof text
language plpgsql stable set enable_bitmapscan = off set enable_sort = off
as $$
-- Purpose: workspaces with an ended lease of a delivery, or with leases of a silent daemon. Of each
--          workspace only the deliveries in flight are read.
-- Reads:   channels_in_flight, deliveries, workspaces; as silent_leases and in_flight.
declare
	v_mine text[] := autopost.served_workspaces();
	v_silent text[] := autopost.silent_runs(p_at);
	v_claimed timestamptz := p_at - autopost.setting_interval('claimed_lease_seconds');
	v_before timestamptz := greatest(p_at - autopost.run_silence(), v_claimed,
		p_at - autopost.setting_interval('sending_lease_seconds'));
	v_id text := '';
	v_ids text[];
begin
	v_ids := array(select s.workspace_id from autopost.silent_leases(p_at, v_mine) s)
		|| array(select distinct d.workspace_id from autopost.deliveries d
			where d.phase = 'claimed' and d.claimed_at <= v_claimed
			and (v_mine is null or d.workspace_id = any (v_mine)));
	loop
		select f.workspace_id into v_id from autopost.channels_in_flight f
		where f.workspace_id > v_id and (v_mine is null or f.workspace_id = any (v_mine))
		order by f.workspace_id limit 1;
		exit when not found;
		if exists (
			select 1 from autopost.in_flight(v_id) d
			where d.status = 'sending' and d.claimed_at <= v_before
			and (d.sending_lease_until <= p_at or d.claimed_by = any (v_silent))) then
			v_ids := v_ids || v_id;
		end if;
	end loop;
	return query
	select w.workspace_id from autopost.workspaces w
	where w.workspace_id = any (v_ids) and w.status = 'active' and (v_mine is null or w.workspace_id = any (v_mine))
	limit p_limit;
end
$$;

create or replace function autopost.source_polls() returns table (workspace_id text, due_at timestamptz)
language plpgsql stable
as $$
-- Purpose: the enabled sources, except folders, and the time of their next poll; a new source is due
--          since its creation. The cost grows with the number of sources.
-- Reads:   pull_sources, pull_cursors, workspaces.
declare
	v_mine text[] := autopost.served_workspaces();
begin
	return query
	select s.workspace_id, coalesce(c.next_poll_at, '-infinity')
	from autopost.pull_sources s
	join autopost.workspaces w on w.workspace_id = s.workspace_id and w.status = 'active'
		and (v_mine is null or w.workspace_id = any (v_mine))
	left join autopost.pull_cursors c on c.workspace_id = s.workspace_id and c.source_id = s.source_id
		and (v_mine is null or c.workspace_id = any (v_mine))
	where s.enabled and s.kind <> 'filebus' and (v_mine is null or s.workspace_id = any (v_mine));
end
$$;

create or replace function autopost.job_status_of(p_delivery autopost.deliveries) returns text
language sql immutable
as $$
-- Purpose: the status of a job by that of its delivery.
select case
	when p_delivery.status = 'sent' then 'published'
	when p_delivery.status = 'retry' and p_delivery.next_retry_at = 'infinity' and p_delivery.outcome_unknown_at is
		not null
		then 'unknown'
	when p_delivery.status in ('failed_permanent', 'dead') then case
		when p_delivery.last_error ->> 'code' = 'unknown_outcome' or p_delivery.last_error -> 'known' = 'false'
			then 'unknown' else 'failed' end
	when p_delivery.status = 'deduped' then 'failed'
	else 'publishing' end
$$;

create or replace function autopost.file_source_work()
	returns table (workspace_id text, source_id text, root text, due_at timestamptz)
language plpgsql stable
as $$
-- Purpose: the enabled sources of kind filebus and the time from which they have work: a scan, a job to start or to
--          follow, or files to write.
-- Reads:   pull_sources, pull_cursors, publish_jobs, deliveries, workspaces.
declare
	v_mine text[] := autopost.served_workspaces();
begin
	if not exists (
		select 1 from autopost.pull_sources s
		where s.kind = 'filebus' and s.enabled and (v_mine is null or s.workspace_id = any (v_mine))) then
		return;
	end if;
	return query
	select s.workspace_id, s.source_id, s.config_json ->> 'root', case when exists (
		select 1 from autopost.publish_jobs j
		left join autopost.deliveries d on d.workspace_id = j.workspace_id and d.delivery_id = j.delivery_id
			and (v_mine is null or d.workspace_id = any (v_mine))
		where j.workspace_id = s.workspace_id and j.source_id = s.source_id
			and (v_mine is null or j.workspace_id = any (v_mine))
			and (j.status in ('approved', 'publishing', 'unknown', 'failed') or j.files_at is distinct from j.updated_at
				or j.prepared is not null)
			and (j.files_at is distinct from j.updated_at or j.prepared is not null or j.status = 'approved'
				and j.error is null or d.delivery_id is not null
					and autopost.job_status_of(row(d.*)::autopost.deliveries) <> j.status))
		then '-infinity' else coalesce(c.next_poll_at, '-infinity') end
	from autopost.pull_sources s
	join autopost.workspaces w on w.workspace_id = s.workspace_id and w.status = 'active'
		and (v_mine is null or w.workspace_id = any (v_mine))
	left join autopost.pull_cursors c on c.workspace_id = s.workspace_id and c.source_id = s.source_id
		and (v_mine is null or c.workspace_id = any (v_mine))
	where s.enabled and s.kind = 'filebus' and (v_mine is null or s.workspace_id = any (v_mine));
end
$$;

create or replace function autopost.bot_has_work(p_workspace_id text, p_by timestamptz, p_silent text[]) returns boolean
language plpgsql stable
as $$
-- Purpose: true if a message of a bot is due. An expired lease counts as due, and that of a silent daemon;
--          a message behind an open one of its chat does not.
-- Reads:   bot_outbox.
begin
	return exists (
		select 1 from autopost.bot_outbox m
		where m.workspace_id = p_workspace_id and m.status in ('pending', 'sending', 'retry')
		and (m.next_at <= p_by or m.status = 'sending' and m.claimed_by = any (p_silent))
		and not exists (
			select 1 from autopost.bot_outbox e
			where e.workspace_id = p_workspace_id and e.provider = m.provider and e.auth_ref = m.auth_ref
			and e.chat_id = m.chat_id and e.status in ('pending', 'sending', 'retry') and e.reply_id < m.reply_id));
end
$$;

create or replace function autopost.bot_workspaces(p_by timestamptz, p_limit int) returns setof text
language plpgsql stable set enable_bitmapscan = off set enable_sort = off
as $$
-- Purpose: active workspaces with a due message of a bot, and those that are not disabled with a received
--          message to process.
-- Reads:   bot_outbox, bot_inbox, dispatch_runs, workspaces.
declare
	v_mine text[] := autopost.served_workspaces();
	v_silent text[] := autopost.silent_runs(p_by);
	v_id text := '';
	v_ids text[] := '{}';
begin
	loop
		select o.workspace_id into v_id from autopost.bot_outbox o
		where o.status in ('pending', 'sending', 'retry') and o.workspace_id > v_id
		and (v_mine is null or o.workspace_id = any (v_mine))
		order by o.workspace_id limit 1;
		exit when not found or cardinality(v_ids) >= p_limit;
		if autopost.bot_has_work(v_id, p_by, v_silent) and autopost.is_open(v_id, true) then
			v_ids := v_ids || v_id;
			return next v_id;
		end if;
	end loop;
	v_id := '';
	loop
		select i.workspace_id into v_id from autopost.bot_inbox i
		where i.status = 'received' and i.tries < 5 and i.workspace_id > v_id
		and (v_mine is null or i.workspace_id = any (v_mine))
		order by i.workspace_id limit 1;
		exit when not found or cardinality(v_ids) >= p_limit;
		if v_id <> all (v_ids) and exists (
				select 1 from autopost.bot_inbox m
				where m.workspace_id = v_id and m.status = 'received' and m.tries < 5 and m.next_at <= p_by)
			and autopost.is_open(v_id, false) then
			v_ids := v_ids || v_id;
			return next v_id;
		end if;
	end loop;
end
$$;
