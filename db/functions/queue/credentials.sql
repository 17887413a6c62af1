create or replace function autopost.keep_credential_health() returns trigger
language plpgsql
as $$
-- Purpose: keeps one row of credential_health per binding. Another secret_ref retires sealed
--          secrets and resets the state.
begin
	if tg_op = 'INSERT' then
		insert into autopost.credential_health (workspace_id, auth_ref) values (new.workspace_id, new.auth_ref);
	elsif (new.secret_ref, new.platform) is distinct from (old.secret_ref, old.platform) then
		perform autopost.reset_credential(new.workspace_id, new.auth_ref);
	end if;
	return null;
end
$$;

create or replace trigger keep_credential_health after insert
	or update of secret_ref, platform on autopost.credential_bindings
	for each row execute function autopost.keep_credential_health();

create or replace function autopost.reset_credential(p_workspace_id text, p_auth_ref text) returns void
language plpgsql
as $$
-- Purpose: replaces all sealed secrets by another secret. The version number continues, so a
--          running renewal comes too late.
-- Locks:   credential_health.
-- Writes:  credential_health, sealed_secrets, alerts.
declare
	v_now timestamptz;
begin
	update autopost.credential_health h
	set last_version = h.last_version + 1, valid_until = null, refreshed_at = null, next_refresh_at = null,
		failures = 0, lease_token = null, lease_until = null,
		checked_at = null, account = null, rights = '[]', error = null, lost_at = null, lost_version = null,
			lost_source = null, warned_until = null
	where h.workspace_id = p_workspace_id and h.auth_ref = p_auth_ref;
	v_now := autopost.now_ts();
	update autopost.sealed_secrets s set retired_at = v_now
	where s.workspace_id = p_workspace_id and s.auth_ref = p_auth_ref and s.retired_at is null;
	perform autopost.end_alert(p_workspace_id, 'auth_lost', 'credential:' || p_auth_ref);
end
$$;

create or replace function autopost.lock_credential(p_workspace_id text,
	p_auth_ref text) returns autopost.credential_health
language plpgsql
as $$
-- Purpose: locks and returns the state of a credential; null if it is not bound.
-- Locks:   credential_health.
declare
	v_health autopost.credential_health;
begin
	perform autopost.require_argument('auth_ref', p_auth_ref <> '');
	select h.* into v_health from autopost.credential_health h
	where h.workspace_id = p_workspace_id and h.auth_ref = p_auth_ref
	for no key update of h;
	return v_health;
end
$$;

create or replace function autopost.sealed_of(p_sealed jsonb) returns autopost.sealed_secrets
language plpgsql stable
as $$
-- Purpose: a sealed secret from {"version", "key_id", "wrapped_key", "sealed": base64, "source"}.
-- Raises:  AP001 if it is invalid.
declare
	v_row autopost.sealed_secrets;
begin
	v_row.version := (p_sealed ->> 'version')::int;
	v_row.key_id := p_sealed ->> 'key_id';
	v_row.wrapped_key := decode(p_sealed ->> 'wrapped_key', 'base64');
	v_row.sealed := decode(p_sealed ->> 'sealed', 'base64');
	v_row.source := coalesce(p_sealed ->> 'source', '');
	perform autopost.require_argument('sealed', v_row.version > 0 and v_row.key_id <> '' and v_row.wrapped_key <> ''
		and v_row.sealed <> '');
	return v_row;
exception when invalid_text_representation or invalid_parameter_value then
	perform autopost.raise_argument('sealed', 'must be a sealed secret',
		'pass version, key_id, and in base64 wrapped_key and sealed');
	raise;
end
$$;

create or replace function autopost.put_in_force(p_workspace_id text, p_auth_ref text,
	p_sealed autopost.sealed_secrets) returns void
language plpgsql
as $$
-- Purpose: makes a sealed secret the current one. The old one is kept for a day. The state of the
--          credential is locked.
-- Writes:  sealed_secrets, credential_health.
declare
	v_now timestamptz := autopost.now_ts();
begin
	update autopost.sealed_secrets s set retired_at = v_now
	where s.workspace_id = p_workspace_id and s.auth_ref = p_auth_ref and s.retired_at is null;
	insert into autopost.sealed_secrets (workspace_id, auth_ref, version, key_id, wrapped_key, sealed, source,
		created_at)
	values (p_workspace_id, p_auth_ref, p_sealed.version, p_sealed.key_id, p_sealed.wrapped_key, p_sealed.sealed,
		p_sealed.source, v_now);
	update autopost.credential_health h set last_version = p_sealed.version
	where h.workspace_id = p_workspace_id and h.auth_ref = p_auth_ref;
end
$$;

create or replace function autopost.note_auth_lost(p_workspace_id text, p_health autopost.credential_health,
	p_error jsonb) returns boolean
language plpgsql
as $$
-- Purpose: records that the platform refuses a credential, with one event and one alert the first
--          time. Its state is locked.
-- Returns: true the first time.
-- Writes:  credential_health, events (auth_lost), alerts.
declare
	v_meta jsonb := jsonb_build_object('auth_ref', p_health.auth_ref);
	v_now timestamptz;
begin
	if p_health.auth_ref is null or p_health.lost_at is not null then
		return false;
	end if;
	v_now := autopost.now_ts();
	update autopost.credential_health h set lost_at = v_now, error = autopost.normalised_error(p_error)
	where h.workspace_id = p_workspace_id and h.auth_ref = p_health.auth_ref;
	perform autopost.emit_note(p_workspace_id, 'auth_lost', 'error', null, null, p_error, v_meta);
	perform autopost.raise_alert(p_workspace_id, 'auth_lost', 'credential:' || p_health.auth_ref, p_error, v_meta);
	return true;
end
$$;

create or replace function autopost.forgive_credential(p_workspace_id text, p_auth_ref text) returns void
language plpgsql
as $$
-- Purpose: clears the refusal of a credential that works again or gets another try.
-- Locks:   credential_health.
-- Writes:  credential_health, alerts.
declare
	v_now timestamptz := autopost.now_ts();
begin
	update autopost.credential_health h
	set lost_at = null, lost_version = null, lost_source = null, failures = 0, error = null,
		next_refresh_at = case when h.failures > 0
			then least(h.next_refresh_at, v_now) else h.next_refresh_at end
	where h.workspace_id = p_workspace_id and h.auth_ref = p_auth_ref and (h.lost_at is not null or h.failures > 0);
	perform autopost.end_alert(p_workspace_id, 'auth_lost', 'credential:' || p_auth_ref);
end
$$;

create or replace function autopost.channels_of_credential(p_workspace_id text, p_auth_ref text) returns text[]
language plpgsql stable
as $$
-- Purpose: the channels that use a credential, in order.
-- Reads:   channels, channel_auth.
begin
	return array(
		select c.channel_id from autopost.channels c
		where c.workspace_id = p_workspace_id and autopost.current_auth_ref(p_workspace_id,
			row(c.*)::autopost.channels) = p_auth_ref
		order by c.channel_id);
end
$$;

create or replace function autopost.resume_for_auth(p_workspace_id text, p_auth_ref text, p_meta jsonb) returns jsonb
language plpgsql
as $$
-- Purpose: resumes the channels that wait for this credential. Channels without rights keep waiting
--          for those. Only requeue_auth_lost requeues failed deliveries.
-- Returns: {"resumed", "auth_lost": deliveries that requeue_auth_lost may requeue, at most 1000}.
-- Locks:   channels (channel_id), channel_gates.
-- Writes:  channels, channel_gates, events (channel_enabled).
declare
	v_ids text[] := autopost.channels_of_credential(p_workspace_id, p_auth_ref);
	v_held text[];
begin
	perform autopost.lock_channels(p_workspace_id, v_ids);
	update autopost.channels c set auth_held = false, paused_before = null
	where c.workspace_id = p_workspace_id and c.channel_id = any (v_ids) and c.auth_held and c.rights_held is not null;
	v_held := autopost.held_channels(p_workspace_id, v_ids);
	perform autopost.change_channels(p_workspace_id, v_held, autopost.resumed(), 'channel_enabled', p_meta, false);
	return jsonb_build_object('resumed', cardinality(v_held),
		'auth_lost', cardinality(autopost.auth_lost_ids(p_workspace_id, v_ids)));
end
$$;

create or replace function autopost.held_channels(p_workspace_id text, p_channel_ids text[]) returns text[]
language plpgsql stable
as $$
-- Purpose: the channels of these that wait for a refused credential, in order.
-- Reads:   channels.
begin
	return array(
		select c.channel_id from autopost.channels c
		where c.workspace_id = p_workspace_id and c.channel_id = any (p_channel_ids) and c.auth_held
			and c.paused_until > autopost.now_ts()
		order by c.channel_id);
end
$$;

create or replace function autopost.credential_of(p_workspace_id text, p_auth_ref text) returns jsonb
language plpgsql stable
as $$
-- Purpose: the answer of get_credential.
-- Reads:   credential_bindings, credential_health, sealed_secrets.
begin
	return (select jsonb_strip_nulls(jsonb_build_object('platform', b.platform, 'secret_ref', b.secret_ref, 'hosts',
		b.hosts,
		'last_version', h.last_version, 'stale', coalesce(h.valid_until <= autopost.now_ts(), false), 'sealed',
			autopost.shown_sealed(row(s.*)::autopost.sealed_secrets)))
	from autopost.credential_bindings b
	join autopost.credential_health h on h.workspace_id = p_workspace_id and h.auth_ref = b.auth_ref
	left join autopost.sealed_secrets s on s.workspace_id = p_workspace_id and s.auth_ref = b.auth_ref
		and s.retired_at is null
	where b.workspace_id = p_workspace_id and b.auth_ref = p_auth_ref);
end
$$;
