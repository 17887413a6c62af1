create or replace function autopost.rotate_auth(
	p_workspace_id text, p_channel_id text, p_new_auth_ref text, p_new_rate_group text, p_operator text, p_reason text,
		p_dry_run boolean
) returns jsonb
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: gives a channel another credential, and another rate group unless p_new_rate_group is
--          null. With calls in flight it instead pauses the channel for two minutes (a longer pause
--          stays), so that a repeated call succeeds. The gate is locked before the count: a running
--          claim ends first and no new one starts. Ends a pause that a refused old credential
--          caused.
-- Returns: {"applied": true, "dry_run", "before", "after", "auth_lost": number of deliveries for
--          requeue_auth_lost, if any}; or {"applied": false, "dry_run", "reason": "unknown_channel"
--          | "sending" with "sending": n | "invalid" with "errors" if the credential is not bound
--          for this platform}. A dry run changes nothing and does not pause.
-- Raises:  AP001 without operator or reason.
-- Locks:   channels, channel_gates.
-- Reads:   credential_bindings.
-- Writes:  channels, channel_auth, channel_gates, events(auth_rotated | channel_paused),
--          admin_audit_log.
declare
	v_meta jsonb;
	v_channel autopost.channels;
	v_before jsonb;
	v_after jsonb;
	v_until timestamptz;
	v_sending jsonb;
	v_errors jsonb;
begin
	perform autopost.enter_workspace(p_workspace_id);
	v_meta := autopost.manual_act(p_operator, p_reason, p_dry_run);
	perform autopost.require_argument('channel_id', p_channel_id is not null),
		autopost.require_argument('new_auth_ref', p_new_auth_ref <> '');
	if p_new_rate_group = '' then
		perform autopost.raise_argument('new_rate_group', 'must not be empty', 'pass null to keep the group');
	end if;
	if not p_dry_run then
		perform autopost.lock_channels(p_workspace_id, array[p_channel_id]);
		perform 1 from autopost.channel_gates g where g.workspace_id = p_workspace_id
			and g.channel_id = p_channel_id for no key update of g;
	end if;
	select c.* into v_channel from autopost.channels c where c.workspace_id = p_workspace_id
		and c.channel_id = p_channel_id;
	if v_channel.channel_id is null then
		return jsonb_build_object('applied', false, 'dry_run', p_dry_run, 'reason', 'unknown_channel');
	end if;
	v_errors := autopost.rotation_errors(p_workspace_id, p_new_auth_ref, v_channel.platform);
	if v_errors <> '[]' then
		return jsonb_build_object('applied', false, 'dry_run', p_dry_run, 'reason', 'invalid', 'errors', v_errors);
	end if;
	v_sending := autopost.queue_of(p_workspace_id, array[p_channel_id]) -> 'sending';
	if v_sending <> '0' then
		v_until := greatest(v_channel.paused_until, autopost.now_ts() + interval '2 minutes');
		perform autopost.act_on_channels(p_workspace_id, array[p_channel_id],
			jsonb_build_object('paused_until', v_until),
			jsonb_build_object('function', 'rotate_auth', 'subject', 'channel:' || p_channel_id, 'event',
				'channel_paused',
				'meta', v_meta || jsonb_build_object('until', v_until), 'dry_run', p_dry_run));
		return jsonb_build_object('applied', false, 'dry_run', p_dry_run, 'reason', 'sending', 'sending', v_sending);
	end if;
	v_before := jsonb_build_object('rate_group', v_channel.rate_group, 'auth_ref',
		autopost.current_auth_ref(p_workspace_id, v_channel));
	v_after := jsonb_build_object('rate_group', coalesce(p_new_rate_group, v_channel.rate_group), 'auth_ref',
		p_new_auth_ref);
	if not p_dry_run then
		perform autopost.give_auth(p_workspace_id, v_channel, p_new_auth_ref, v_after ->> 'rate_group', v_meta);
		perform autopost.audit(p_workspace_id, 'rotate_auth', 'channel:' || p_channel_id, v_meta, v_before, v_after);
	end if;
	return jsonb_strip_nulls(jsonb_build_object('applied', true, 'dry_run', p_dry_run, 'before', v_before, 'after',
		v_after, 'auth_lost', nullif(cardinality(autopost.auth_lost_ids(p_workspace_id, array[p_channel_id])), 0)));
end
$$;
