create or replace function autopost.manual_act(p_operator text, p_reason text, p_dry_run boolean) returns jsonb
language plpgsql stable
as $$
-- Purpose: operator, reason and dry run of an operator action, as meta of its events.
-- Raises:  AP001 for a missing argument.
begin
	perform autopost.require_argument('operator', p_operator <> ''),
		autopost.require_argument('reason', p_reason <> ''),
		autopost.require_argument('dry_run', p_dry_run is not null);
	return jsonb_build_object('operator', p_operator, 'reason', p_reason, 'manual', true);
end
$$;

create or replace function autopost.check_pause(p_seconds int) returns void
language plpgsql stable
as $$
-- Purpose: checks the length of a pause.
-- Raises:  AP001.
begin
	if coalesce(p_seconds not between 1 and 31536000, true) then
		perform autopost.raise_argument('seconds', 'must be between 1 and 31536000',
			'pass the seconds of the pause; for a longer one disable the channel');
	end if;
end
$$;

create or replace function autopost.lock_channels(p_workspace_id text, p_channel_ids text[]) returns void
language plpgsql
as $$
-- Purpose: locks channels in the order of their ids. One probe per channel: by any (ids) the
--          planner would read all channels of a small workspace.
-- Locks:   channels (channel_id).
begin
	perform 1 from (select distinct u.id from unnest(p_channel_ids) u (id) order by u.id) u
	cross join lateral (
		select 1 from autopost.channels c
		where c.workspace_id = p_workspace_id and c.channel_id = u.id limit 1
		for no key update of c) c;
end
$$;

create or replace function autopost.group_channels(p_workspace_id text, p_platform text, p_rate_group text,
	p_lock boolean) returns text[]
language plpgsql
as $$
-- Purpose: the channels of a rate group in order, of all platforms if p_platform is null. With
--          p_lock: those that still belong to the group after the lock. A channel that joins
--          meanwhile is not included.
-- Locks:   channels (channel_id) if p_lock.
declare
	v_locked text[];
begin
	if p_lock then
		select array_agg(l.channel_id) into v_locked
		from (
			select c.channel_id from autopost.channels c
			where c.workspace_id = p_workspace_id and c.rate_group = p_rate_group
				and (p_platform is null or c.platform = p_platform)
			order by c.channel_id
			for no key update of c) l;
	end if;
	return array(
		select c.channel_id from autopost.channels c
		where c.workspace_id = p_workspace_id and c.rate_group = p_rate_group
			and (p_platform is null or c.platform = p_platform)
		and (not p_lock or c.channel_id = any (v_locked))
		order by c.channel_id);
end
$$;

create or replace function autopost.queue_of(p_workspace_id text, p_channel_ids text[]) returns jsonb
language plpgsql stable
as $$
-- Purpose: the open deliveries of channels.
-- Returns: {"waiting", "sending"}.
-- Reads:   deliveries.
begin
	return jsonb_build_object(
		'waiting', (select count(*) from autopost.deliveries d
			where d.workspace_id = p_workspace_id and d.channel_id = any (p_channel_ids)
				and d.phase in ('active', 'retry') and d.status <> 'sending'),
		'sending', (select count(*) from autopost.deliveries d
			where d.workspace_id = p_workspace_id and d.channel_id = any (p_channel_ids)
				and d.phase in ('active', 'retry') and d.status = 'sending'));
end
$$;

create or replace function autopost.resumed() returns jsonb
language sql immutable
as $$
-- Purpose: the change that resumes a channel. A cooldown of the platform stays.
select '{"enabled": true, "paused_until": null, "error_streak": 0}'::jsonb
$$;

create or replace function autopost.change_channels(p_workspace_id text, p_channel_ids text[], p_change jsonb,
	p_event text, p_meta jsonb, p_dry_run boolean) returns jsonb
language plpgsql
as $$
-- Purpose: changes enabled, paused_until and error_streak of locked channels in order, with one
--          event each. Triggers update the gates. A dry run only returns the rows.
-- Returns: {"channels": [{"channel_id", "before", "after"}]}.
-- Locks:   channel_gates.
-- Writes:  channels, channel_gates, events (p_event).
declare
	v_before autopost.channels;
	v_after autopost.channels;
	v_changes jsonb := '[]';
begin
	for v_before in
		select c.* from autopost.channels c
		where c.workspace_id = p_workspace_id and c.channel_id = any (p_channel_ids)
		order by c.channel_id
	loop
		v_after := jsonb_populate_record(v_before, p_change);
		v_changes := v_changes || jsonb_build_object('channel_id', v_before.channel_id,
			'before', jsonb_build_object('enabled', v_before.enabled, 'paused_until', v_before.paused_until,
				'error_streak', v_before.error_streak),
			'after', jsonb_build_object('enabled', v_after.enabled, 'paused_until', v_after.paused_until,
				'error_streak', v_after.error_streak));
		continue when p_dry_run;
		update autopost.channels c
		set enabled = v_after.enabled, paused_until = v_after.paused_until, error_streak = v_after.error_streak
		where c.workspace_id = p_workspace_id and c.channel_id = v_before.channel_id;
		perform autopost.emit_note(p_workspace_id, p_event, 'ok', v_before.channel_id, null, null, p_meta);
	end loop;
	return jsonb_build_object('channels', v_changes);
end
$$;

create or replace function autopost.changed(p_changes jsonb, p_key text, p_side text) returns jsonb
language sql immutable
as $$
-- Purpose: one side ("before" or "after") of a list of changes, by row id.
select coalesce(jsonb_object_agg(c.value ->> p_key, c.value -> p_side), '{}') from jsonb_array_elements(p_changes) c
$$;

create or replace function autopost.act_on_channels(p_workspace_id text, p_channel_ids text[], p_change jsonb,
	p_act jsonb) returns jsonb
language plpgsql
as $$
-- Purpose: change_channels with an entry in the audit log. p_act: {"function", "subject", "event",
--          "meta", "dry_run"}.
-- Returns: {"applied": true, "dry_run", "waiting", "sending", "channels"}; for a dry run, the same
--          without effect.
-- Writes:  channels, channel_gates, events, admin_audit_log.
declare
	v_dry_run boolean := (p_act -> 'dry_run')::boolean;
	v_answer jsonb;
begin
	v_answer := autopost.change_channels(p_workspace_id, p_channel_ids, p_change, p_act ->> 'event', p_act -> 'meta',
		v_dry_run);
	if not v_dry_run then
		perform autopost.audit(p_workspace_id, p_act ->> 'function', p_act ->> 'subject', p_act -> 'meta',
			autopost.changed(v_answer -> 'channels', 'channel_id', 'before'),
				autopost.changed(v_answer -> 'channels', 'channel_id', 'after'));
	end if;
	return jsonb_build_object('applied', true, 'dry_run', v_dry_run) || autopost.queue_of(p_workspace_id,
		p_channel_ids) || v_answer;
end
$$;

create or replace function autopost.act_on_group(p_workspace_id text, p_platform text, p_rate_group text,
	p_change jsonb, p_act jsonb) returns jsonb
language plpgsql
as $$
-- Purpose: act_on_channels for all channels of a rate group.
-- Returns: as act_on_channels, or {"applied": false, "reason": "unknown_group"}.
-- Locks:   channels (channel_id), channel_gates.
-- Writes:  channels, channel_gates, events, admin_audit_log.
declare
	v_channels text[] := autopost.group_channels(p_workspace_id, p_platform, p_rate_group,
		not (p_act -> 'dry_run')::boolean);
begin
	if v_channels = '{}' then
		return jsonb_build_object('applied', false, 'dry_run', p_act -> 'dry_run', 'reason', 'unknown_group');
	end if;
	return autopost.act_on_channels(p_workspace_id, v_channels, p_change,
		p_act || jsonb_build_object('subject', 'group:' || coalesce(p_platform, '*') || '/' || p_rate_group,
		'meta', p_act -> 'meta' || jsonb_build_object('rate_group', p_rate_group)));
end
$$;
