create or replace function autopost.is_auth_lost(p_error jsonb) returns boolean
language sql immutable parallel safe
as $$
-- Purpose: true if the platform refuses the credential itself. By code: auth_lost; a code that ends
--          in 401, unauthorized, token_revoked or invalid_grant; Telegram's answers to an unknown
--          token and for a frozen account.
select coalesce(p_error ->> 'category' = 'PERMANENT' and p_error ->> 'scope' = 'channel'
	and p_error ->> 'code' ~
		'^([a-z0-9]+[._])?(auth_lost|401|unauthorized|token_revoked|invalid_grant)$|^tg_(bad_token_or_method|frozen)$',
		false)
$$;

create or replace function autopost.auth_lost_error(p_code text, p_message text) returns jsonb
language sql immutable parallel safe
as $$
-- Purpose: the error of a delivery that was not called because its credential was refused or is
--          missing (p_code).
select jsonb_build_object('category', 'PERMANENT', 'scope', 'channel', 'code', p_code, 'known', true,
	'message', p_message)
$$;

create or replace function autopost.current_auth_ref(p_workspace_id text, p_channel autopost.channels) returns text
language plpgsql stable
as $$
-- Purpose: the current credential of a channel.
-- Reads:   channel_auth.
begin
	return coalesce((
		select a.auth_ref from autopost.channel_auth a
		where a.workspace_id = p_workspace_id and a.channel_id = p_channel.channel_id), p_channel.auth_ref);
end
$$;

create or replace function autopost.lock_credentials_of(p_workspace_id text, p_delivery_ids uuid[]) returns void
language plpgsql
as $$
-- Purpose: locks the credentials of the channels of these deliveries, before all locks that come
--          later in the order.
-- Reads:   deliveries, channels, channel_auth.
-- Locks:   credential_health (auth_ref).
begin
	perform 1 from autopost.credential_health h
	where h.workspace_id = p_workspace_id and h.auth_ref in (
		select autopost.current_auth_ref(p_workspace_id, row(c.*)::autopost.channels) from autopost.channels c
		where c.workspace_id = p_workspace_id
			and c.channel_id = any (autopost.delivery_channels(p_workspace_id, p_delivery_ids)))
	order by h.auth_ref
	for no key update of h;
end
$$;

create or replace function autopost.lose_auth(p_workspace_id text, p_channel autopost.channels, p_error jsonb,
	p_until timestamptz) returns void
language plpgsql
as $$
-- Purpose: records a refused credential. All other channels that use it pause; where on_auth_lost
--          says so, waiting deliveries fail. Locked channels are skipped: their next call finds the
--          same. lock_credentials_of locked the credential unless the channel changed it meanwhile.
-- Locks:   credential_health, channels, deliveries, all with SKIP LOCKED.
-- Writes:  channels, deliveries, credential_health, alerts, events (auth_lost, channel_paused,
--          failed_permanent).
declare
	v_auth_ref text := autopost.current_auth_ref(p_workspace_id, p_channel);
	v_health autopost.credential_health;
	v_ids text[];
begin
	select h.* into v_health from autopost.credential_health h
	where h.workspace_id = p_workspace_id and h.auth_ref = v_auth_ref
	for no key update of h skip locked;
	perform autopost.note_auth_lost(p_workspace_id, v_health, p_error);
	v_ids := autopost.pause_for_auth(p_workspace_id, p_channel, v_auth_ref, p_error, p_until);
	perform autopost.end_held(p_workspace_id, p_channel.channel_id || v_ids, 500);
end
$$;

create or replace function autopost.pause_for_auth(
	p_workspace_id text, p_channel autopost.channels, p_auth_ref text, p_error jsonb, p_until timestamptz
) returns text[]
language plpgsql
as $$
-- Purpose: pauses the channels of a platform that use a refused credential, except p_channel, whose
--          call was refused (its id may be null). At most 2000. Claims move the gates.
-- Returns: the ids of the paused channels in order.
-- Locks:   channels with SKIP LOCKED.
-- Writes:  channels, events (channel_paused).
declare
	v_now timestamptz := autopost.now_ts();
	v_ids text[];
begin
	select array_agg(l.channel_id order by l.channel_id) into v_ids
	from (
		select c.channel_id from autopost.channels c
		where c.workspace_id = p_workspace_id and c.platform = p_channel.platform and c.channel_id is distinct
			from p_channel.channel_id
		and not (c.auth_held and c.paused_until > v_now)
		and autopost.current_auth_ref(p_workspace_id, row(c.*)::autopost.channels) = p_auth_ref
		limit 2000
		for no key update of c skip locked) l;
	update autopost.channels c
	set paused_until = greatest(c.paused_until, p_until), auth_held = true, auth_lost_at = v_now
	where c.workspace_id = p_workspace_id and c.channel_id = any (v_ids);
	perform autopost.emit_note(p_workspace_id, 'channel_paused', 'error', u.id, null, p_error,
		jsonb_build_object('until', p_until, 'auth_ref', p_auth_ref, 'refused_on', p_channel.channel_id))
	from unnest(v_ids) u (id);
	return v_ids;
end
$$;

create or replace function autopost.end_held(p_workspace_id text, p_channel_ids text[], p_limit int) returns jsonb
language plpgsql
as $$
-- Purpose: ends waiting deliveries of locked channels whose credential is refused or missing. They
--          are dead after auth_lost_hold_days of waiting; for a refused credential they fail at once
--          if on_auth_lost says so. Later schedules and deliveries that wait for a person stay.
-- Returns: {"failed", "dead"}, together at most p_limit.
-- Locks:   deliveries with SKIP LOCKED.
-- Writes:  deliveries, events (failed_permanent, dead_letter).
declare
	v_now timestamptz := autopost.now_ts();
	v_since timestamptz := v_now - autopost.setting_interval('auth_lost_hold_days');
	v_row record;
	v_error jsonb;
	v_counts int[] := '{0, 0}';
begin
	for v_row in
		select l.delivery, h.fails, h.refused
		from autopost.channels c
		cross join lateral (select r.refused, r.refused and c.on_auth_lost = 'fail' as fails,
			case when r.refused then c.auth_lost_at else c.credential_missing_at end as since
			from (select c.auth_held and coalesce(c.paused_until > v_now, false) as refused) r) h
		cross join lateral (
			select row(d.*)::autopost.deliveries as delivery from autopost.deliveries d
			where d.workspace_id = p_workspace_id and d.channel_id = c.channel_id
				and d.phase in ('active', 'retry') and d.status <> 'sending'
			and d.due_at < 'infinity'
			and case when h.fails then coalesce(greatest(d.not_before, d.scheduled_for), v_now) <= v_now
				else greatest(d.due_at, h.since) <= v_since end
			order by d.due_at, d.delivery_id
			limit p_limit
			for no key update of d skip locked) l
		where c.workspace_id = p_workspace_id and c.channel_id = any (p_channel_ids)
			and (h.refused or c.credential_until > v_now)
		order by c.channel_id
		limit p_limit
	loop
		v_error := autopost.auth_lost_error(case when v_row.refused then 'auth_lost' else 'credential_missing' end,
			format('the credential %s', case when v_row.fails then 'is refused' when v_row.refused
				then 'was refused for too long' else 'was missing for too long' end));
		update autopost.deliveries d
		set status = case when v_row.fails then 'failed_permanent' else 'dead' end, next_retry_at = null,
			last_error = v_error,
			finished_at = v_now, updated_at = v_now
		where d.workspace_id = p_workspace_id and d.delivery_id = (v_row.delivery).delivery_id;
		perform autopost.emit_event(p_workspace_id, case when v_row.fails
			then 'failed_permanent' else 'dead_letter' end, 'error', v_row.delivery, v_error, null);
		v_counts := array[v_counts[1] + v_row.fails::int, v_counts[2] + (not v_row.fails)::int];
	end loop;
	return jsonb_build_object('failed', v_counts[1], 'dead', v_counts[2]);
end
$$;

create or replace function autopost.lift_auth_hold() returns trigger
language plpgsql
as $$
-- Purpose: ends the wait for a credential when the channel gets another one, and when its pause
--          ends or is shortened. A pause that waited for rights does not matter.
begin
	if new.auth_held and new.auth_lost_at is not distinct from old.auth_lost_at
		and (old.rights_held is null or new.rights_held is not null) and (
		new.auth_ref <> old.auth_ref or coalesce(new.paused_until, '-infinity') < old.paused_until
			or old.paused_until <= autopost.now_ts())
	then
		new.auth_held := false;
		if new.auth_ref <> old.auth_ref then
			new.paused_until := null;
		end if;
	end if;
	return new;
end
$$;

create or replace trigger lift_auth_hold before update of paused_until, auth_ref on autopost.channels
	for each row when (old.auth_held) execute function autopost.lift_auth_hold();

create or replace function autopost.auth_lost_ids(p_workspace_id text, p_channel_ids text[]) returns uuid[]
language plpgsql stable
as $$
-- Purpose: deliveries that failed since the last refusal of these channels' credential; the oldest
--          1000.
-- Reads:   channels, deliveries.
begin
	return array(
		select d.delivery_id from autopost.deliveries d
		cross join lateral (
			select c.auth_lost_at from autopost.channels c
			where c.workspace_id = p_workspace_id and c.channel_id = d.channel_id limit 1) c
		where d.workspace_id = p_workspace_id and d.channel_id = any (p_channel_ids)
		and d.phase in ('dead', 'failed_permanent') and d.finished_at >= c.auth_lost_at
		and autopost.is_auth_lost(d.last_error)
		order by d.finished_at, d.delivery_id
		limit 1000);
end
$$;
