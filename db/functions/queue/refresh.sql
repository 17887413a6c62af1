create or replace function autopost.shown_sealed(p_row autopost.sealed_secrets) returns jsonb
language sql stable
as $$
-- Purpose: a sealed secret in the form for the engine; null if none.
select case when p_row.version is not null then jsonb_build_object('auth_ref', p_row.auth_ref, 'version', p_row.version,
	'key_id', p_row.key_id,
	'wrapped_key', translate(encode(p_row.wrapped_key, 'base64'), e'\n', ''),
		'sealed', translate(encode(p_row.sealed, 'base64'), e'\n', ''), 'source', p_row.source) end
$$;

create or replace function autopost.sealed_in_force(p_workspace_id text,
	p_auth_ref text) returns autopost.sealed_secrets
language plpgsql stable
as $$
-- Purpose: the current sealed secret of a credential.
-- Reads:   sealed_secrets.
declare
	v_row autopost.sealed_secrets;
begin
	select s.* into v_row from autopost.sealed_secrets s
	where s.workspace_id = p_workspace_id and s.auth_ref = p_auth_ref and s.retired_at is null;
	return v_row;
end
$$;

create or replace function autopost.milliseconds(p_interval interval) returns bigint
language sql immutable parallel safe
as $$
-- Purpose: an interval in milliseconds.
select ceil(extract(epoch from p_interval) * 1000)::bigint
$$;

create or replace function autopost.refreshed(p_workspace_id text, p_auth_ref text,
	p_valid_seconds int) returns timestamptz
language plpgsql
as $$
-- Purpose: records a renewed secret with its expiry and the time of its next renewal.
-- Returns: the expiry.
-- Writes:  credential_health.
declare
	v_now timestamptz := autopost.now_ts();
	v_life interval := make_interval(secs => p_valid_seconds);
begin
	update autopost.credential_health h
	set valid_until = v_now + v_life, refreshed_at = v_now, lease_token = null, lease_until = null,
		-- time for several tries; a short-lived token is used for two thirds of its life
		next_refresh_at = v_now + v_life - least(interval '10 minutes', v_life / 3)
	where h.workspace_id = p_workspace_id and h.auth_ref = p_auth_ref;
	return v_now + v_life;
end
$$;

create or replace function autopost.record_refresh_failure(p_workspace_id text, p_health autopost.credential_health,
	p_error jsonb) returns void
language plpgsql
as $$
-- Purpose: records a failed renewal: ends the lease and sets the next try by the platform's retry
--          policy.
-- Reads:   credential_bindings.
-- Writes:  credential_health.
declare
	v_now timestamptz := autopost.now_ts();
	v_policy autopost.retry_policies;
	v_delay interval;
begin
	v_policy := (select autopost.retry_policy(p_workspace_id, b.platform, p_error ->> 'code')
		from autopost.credential_bindings b
		where b.workspace_id = p_workspace_id and b.auth_ref = p_health.auth_ref);
	v_delay := autopost.retry_delay(v_policy, p_health.failures + 1, (p_error ->> 'retry_after_ms')::numeric,
		random()::numeric);
	update autopost.credential_health h
	set failures = h.failures + 1, error = autopost.normalised_error(p_error), lease_token = null, lease_until = null,
		next_refresh_at = v_now + v_delay
	where h.workspace_id = p_workspace_id and h.auth_ref = p_health.auth_ref;
end
$$;

create or replace function autopost.pause_credential(p_workspace_id text, p_auth_ref text, p_error jsonb) returns text[]
language plpgsql
as $$
-- Purpose: pauses all channels of a refused credential for as long as their deliveries may wait.
-- Returns: the ids of the paused channels.
-- Locks:   channels (channel_id), deliveries with SKIP LOCKED.
-- Writes:  channels, deliveries, events (channel_paused, failed_permanent).
declare
	v_channel autopost.channels;
	v_paused text[];
begin
	v_channel.platform := (select b.platform from autopost.credential_bindings b where b.workspace_id = p_workspace_id
		and b.auth_ref = p_auth_ref);
	perform autopost.lock_channels(p_workspace_id, autopost.channels_of_credential(p_workspace_id, p_auth_ref));
	v_paused := autopost.pause_for_auth(p_workspace_id, v_channel, p_auth_ref, p_error, autopost.auth_hold_until());
	perform autopost.end_held(p_workspace_id, v_paused, 500);
	return v_paused;
end
$$;

create or replace function autopost.auth_hold_until() returns timestamptz
language plpgsql stable
as $$
-- Purpose: the end of a pause that starts now because of a refused credential.
begin
	return autopost.now_ts() + autopost.setting_interval('pause_on_permanent_seconds')
		+ autopost.setting_interval('auth_lost_hold_days');
end
$$;
