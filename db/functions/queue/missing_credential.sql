create or replace function autopost.credential_fault(p_workspace_id text, p_auth_ref text, p_platform text) returns text
language plpgsql stable
as $$
-- Purpose: why a channel of this platform cannot use a credential: not bound, bound for another
--          platform, or without a stored secret; null otherwise. The database cannot see the
--          secrets of env: and file: references.
-- Reads:   credential_bindings, sealed_secrets.
declare
	v_bound autopost.credential_bindings;
begin
	select b.* into v_bound from autopost.credential_bindings b
	where b.workspace_id = p_workspace_id and b.auth_ref = p_auth_ref;
	return case
		when v_bound.auth_ref is null then format('the credential %s does not exist', p_auth_ref)
		when v_bound.platform <> p_platform
			then format('the credential %s is for %s, not for %s', p_auth_ref, v_bound.platform, p_platform)
		when v_bound.secret_ref like 'sealed:%' and not exists (
			select 1 from autopost.sealed_secrets s
			where s.workspace_id = p_workspace_id and s.auth_ref = p_auth_ref and s.retired_at is null)
			then format('the credential %s has no secret', p_auth_ref) end;
end
$$;

create or replace function autopost.credential_command(p_workspace_id text, p_auth_ref text,
	p_platform text) returns text
language sql immutable parallel safe
as $$
-- Purpose: the command that stores the secret of a credential.
select case when p_platform in ('x', 'youtube')
	then format('autopost credential link %s --platform %s --workspace %s --reason new (or autopost credential set %1$s …)',
		p_auth_ref, p_platform, p_workspace_id)
	else format('autopost credential set %s --platform %s --from-file FILE --workspace %s --reason new', p_auth_ref,
		p_platform, p_workspace_id) end
$$;

create or replace function autopost.credential_gap(p_channel autopost.channels, p_now timestamptz) returns jsonb
language plpgsql stable
as $$
-- Purpose: the missing credential of a channel: {"auth_ref", "why", "command"}; null if it has one
--          as far as the database and the last claim know.
-- Reads:   channel_auth, credential_bindings, sealed_secrets.
declare
	v_auth_ref text := autopost.current_auth_ref(p_channel.workspace_id, p_channel);
	v_fault text := autopost.credential_fault(p_channel.workspace_id, v_auth_ref, p_channel.platform);
begin
	if v_fault is null and p_channel.credential_until > p_now then
		v_fault := format('the secret of credential %s was not found', v_auth_ref);
	end if;
	if v_fault is null then
		return null;
	end if;
	return jsonb_build_object('auth_ref', v_auth_ref, 'why', v_fault, 'command',
		autopost.credential_command(p_channel.workspace_id, v_auth_ref, p_channel.platform));
end
$$;

create or replace function autopost.settle_missing_credential(p_workspace_id text, p_delivery autopost.deliveries,
	p_channel autopost.channels, p_error jsonb) returns jsonb
language plpgsql
as $$
-- Purpose: returns a delivery whose channel has no secret to the queue and lets the channel wait
--          (hold_for_credential). That costs no attempt. A call that started is retried by the
--          policy of the code.
-- Writes:  channels, deliveries, channel_gates, events (released, retry_scheduled).
begin
	perform autopost.hold_for_credential(p_workspace_id, p_channel);
	if autopost.call_started_at(p_delivery) is not null then
		return autopost.settle_transient(p_workspace_id, p_delivery, p_channel, p_error, null);
	end if;
	return autopost.release_claim(p_workspace_id, p_delivery, 'credential_missing', p_error);
end
$$;

create or replace function autopost.hold_for_credential(p_workspace_id text, p_channel autopost.channels) returns void
language plpgsql
as $$
-- Purpose: lets a locked channel wait for its missing secret. A claim looks for it again after a
--          minute, later after as long as it has been missing, at most a quarter of an hour.
--          Setting the credential ends the wait at once.
-- Writes:  channels.
declare
	v_now timestamptz := autopost.now_ts();
begin
	update autopost.channels c
	set credential_missing_at = coalesce(c.credential_missing_at, v_now),
		credential_until = autopost.later(v_now, least(interval '15 minutes', greatest(interval '1 minute',
			v_now - c.credential_missing_at)))
	where c.workspace_id = p_workspace_id and c.channel_id = p_channel.channel_id;
end
$$;

create or replace function autopost.waiting_for_credentials(p_workspace_id text, p_auth_refs text[]) returns text[]
language plpgsql stable
as $$
-- Purpose: the channels, in order, that wait for one of these missing credentials.
-- Reads:   channels, channel_auth.
begin
	return array(
		select c.channel_id from autopost.channels c
		where c.workspace_id = p_workspace_id and c.credential_missing_at is not null
		and autopost.current_auth_ref(p_workspace_id, row(c.*)::autopost.channels) = any (p_auth_refs)
		order by c.channel_id);
end
$$;

create or replace function autopost.end_credential_wait() returns trigger
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: ends the wait of the channels of a credential that is bound to a secret.
-- Locks:   channels (channel_id), channel_gates.
-- Writes:  channels, channel_gates.
declare
	v_ids text[] := autopost.waiting_for_credentials(new.workspace_id, array[new.auth_ref]);
begin
	perform autopost.lock_channels(new.workspace_id, v_ids) where v_ids <> '{}';
	update autopost.channels c set credential_missing_at = null, credential_until = null
	where c.workspace_id = new.workspace_id and c.channel_id = any (v_ids);
	perform autopost.rearm_gate(new.workspace_id, u.id, 0)
	from (select unnest(v_ids) as id order by 1) u;
	return null;
end
$$;

-- After keep_credential_health, which locks the state of the credential: triggers run by name.
create or replace trigger end_credential_wait after insert
	or update of secret_ref, platform on autopost.credential_bindings
	for each row execute function autopost.end_credential_wait();
