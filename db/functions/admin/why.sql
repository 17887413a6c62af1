create or replace function autopost.why_now(p_status text, p_channel autopost.channels, p_delivery autopost.deliveries)
	returns jsonb
language plpgsql stable
as $$
-- Purpose: the wait reasons of a waiting delivery; without one, the closed gate of its channel if
--          it is closed.
-- Reads:   platform_limits, channel_gates, deliveries.
declare
	v_limit autopost.platform_limits;
	v_gate autopost.channel_gates;
	v_now timestamptz := autopost.now_ts();
	v_key_at timestamptz := greatest(p_delivery.not_before, p_delivery.scheduled_for);
	v_held jsonb;
begin
	select l.* into v_limit from autopost.platform_limits l
	where l.workspace_id = p_channel.workspace_id and l.platform = p_channel.platform
		and l.rate_group = p_channel.rate_group;
	select g.* into v_gate from autopost.channel_gates g
	where g.workspace_id = p_channel.workspace_id and g.channel_id = p_channel.channel_id;
	v_held := autopost.wait_reasons(p_status, p_channel, v_limit, jsonb_build_object(
		'not_before', p_delivery.not_before, 'scheduled_for', p_delivery.scheduled_for,
		'next_retry_at', case when p_delivery.status = 'retry' then p_delivery.next_retry_at end,
		'ahead', case when isfinite(p_delivery.due_at)
			then autopost.queue_ahead(p_channel.workspace_id, array[p_channel.channel_id], p_delivery.due_at, v_key_at,
				p_delivery.delivery_id, autopost.slot_step(p_channel.rate_rps, 1)) else '{"all": 0, "same": 0}' end,
		'group_ahead', case when isfinite(p_delivery.due_at)
			then autopost.group_ahead(p_channel.workspace_id, v_limit, p_delivery.due_at, v_key_at,
				p_delivery.delivery_id) end,
		'quota_until', autopost.channel_quota_until(p_channel.workspace_id, p_channel.channel_id,
			autopost.posts_claimed(p_delivery.render_meta), v_now),
		'budget_until', autopost.budget_until(p_channel.workspace_id, p_channel, p_delivery.rendered_text,
			p_delivery.render_meta, v_now),
		'credential', autopost.credential_gap(p_channel, v_now),
		'inflight', v_gate.inflight,
		'in_flight', (select jsonb_agg(f.delivery_id) from (
			select d.delivery_id from autopost.deliveries d
			where d.workspace_id = p_channel.workspace_id and d.channel_id = p_channel.channel_id
				and d.phase in ('active', 'claimed', 'retry') and d.status in ('claimed', 'sending')
			order by d.due_at limit 100) f)), v_now);
	if v_held -> 'held_by' = '[]' and v_gate.ready_at > v_now then
		v_held := jsonb_set(v_held, '{held_by}',
			jsonb_build_array(autopost.hold('gate', v_gate.ready_at,
			'rearm_gates: the channel''s gate is closed without a reason')));
	end if;
	return v_held || jsonb_build_object('sentence', case
		when v_held -> 'held_by' = '[]' then 'due: it goes with the next claim'
		else 'waits: ' || (select string_agg(replace(h.value ->> 'gate', '_', ' ')
			|| coalesce(' until ' || autopost.instant_text((h.value ->> 'until')::timestamptz), ''), ', '
				order by h.ordinality)
			from jsonb_array_elements(v_held -> 'held_by') with ordinality h) end
		|| coalesce('; ' || autopost.messages_made(p_delivery.render_meta) || ' are sent', ''));
end
$$;

create or replace function autopost.why_over(p_delivery autopost.deliveries, p_channel autopost.channels) returns jsonb
language plpgsql stable
as $$
-- Purpose: describes a delivery that does not wait: in flight or ended, with a possible remedy.
begin
	return jsonb_build_object('held_by', '[]'::jsonb, 'send_at', null) || case p_delivery.status
		when 'claimed' then jsonb_build_object('sentence', format('claimed by run %s', p_delivery.claimed_by))
		when 'sending' then jsonb_build_object('sentence', case when autopost.call_started_at(p_delivery) is null
				then format('claimed by run %s, its call has not begun', p_delivery.claimed_by)
					else format('being sent by run %s', p_delivery.claimed_by) end
				|| ', lease until ' || autopost.instant_text(p_delivery.sending_lease_until),
			'send_at', p_delivery.send_at, 'lifts', 'the outcome of the call, or the end of its lease')
		when 'sent' then jsonb_build_object('sentence',
			format('sent at %s as %s', autopost.instant_text(p_delivery.sent_at), p_delivery.provider_message_id)
			|| case when p_delivery.render_meta ? 'comment_failed' then ', without its first comment: '
				|| autopost.failure_text(p_delivery.render_meta -> 'comment_failed') else '' end
			|| coalesce((select ', taken down at ' || autopost.instant_text(a.finished_at) from autopost.post_acts a
				where a.workspace_id = p_delivery.workspace_id and a.delivery_id = p_delivery.delivery_id
					and a.kind = 'delete' and a.status = 'done' limit 1), ''))
		when 'deduped' then jsonb_build_object('sentence', 'not sent: the channel had this content already')
		else jsonb_build_object('sentence', coalesce('ended with ' || autopost.messages_made(p_delivery.render_meta)
				|| ' sent: ', 'ended without being sent: ') || autopost.failure_text(p_delivery.last_error),
			'lifts', case when not p_channel.enabled or p_channel.paused_until > autopost.now_ts()
				then 'resume_channel, then manual_requeue' else 'manual_requeue' end)
		end;
end
$$;

create or replace function autopost.why_no_delivery(p_workspace_id text, p_id uuid) returns jsonb
language plpgsql stable
as $$
-- Purpose: the reason why a post has no deliveries yet: its media are fetched first (p_id: a
--          submission), or its fan-out is in progress (p_id: a message or a run); or the result of a
--          run or of a fan-out that is over. Null for other ids.
-- Reads:   submissions; as why_fanout, why_run and why_message.
declare
	v_submission autopost.submissions;
begin
	select s.* into v_submission from autopost.submissions s
		where s.workspace_id = p_workspace_id and s.submission_id = p_id;
	if v_submission.submission_id is not null then
		return jsonb_build_object('status', 'submission', 'now',
			jsonb_build_object('held_by', '[]'::jsonb, 'send_at', null) || case
			when v_submission.status = 'enqueued' then jsonb_build_object('sentence',
				format('enqueued as message %s', v_submission.message_id), 'lifts',
				'ask for one of its deliveries: autopost deliveries list')
			when v_submission.status in ('new', 'fetching')
				then jsonb_build_object('sentence', 'waits: its media are fetched first'
					|| case when v_submission.last_error is null then ''
						else ', the last try failed: ' || autopost.failure_text(v_submission.last_error) end,
				'held_by',
					jsonb_build_array(autopost.hold('media', case
					when v_submission.claim_token is null then v_submission.next_attempt_at end,
					case when v_submission.claim_token is null then 'the next try to fetch them'
						else 'the end of the running fetch' end, jsonb_build_object('attempt', v_submission.attempt))))
			when v_submission.status = 'pending'
				then jsonb_build_object('sentence', 'waits for a decision until '
					|| to_char(v_submission.expires_at at time zone 'UTC', 'YYYY-MM-DD HH24:MI "UTC"')
					|| autopost.asked_in(p_workspace_id, p_id),
				'held_by', jsonb_build_array(autopost.hold('decision', v_submission.expires_at,
					'autopost moderation approve ' || p_id)))
			else jsonb_build_object('sentence', 'ended without being enqueued: ' || v_submission.status || case
				when v_submission.last_error is null then ''
				else ': ' || autopost.failure_text(v_submission.last_error) end,
				'lifts', case when v_submission.status = 'failed'
					then 'when its media can be fetched: autopost submissions retry ' || p_id || ' --reason fixed'
					else 'post it again' end) end);
	end if;
	return coalesce(autopost.why_fanout(p_workspace_id, p_id), autopost.why_run(p_workspace_id, p_id),
		autopost.why_message(p_workspace_id, p_id));
end
$$;

create or replace function autopost.why(p_workspace_id text, p_delivery_id uuid) returns jsonb
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: explains a delivery: its content, origin, history and wait reasons.
-- Returns: {"status": "found", "delivery", "message", "source", "acts": its post changes, "chain":
--          [{"ts", "action", "attempt", "result", "sentence", "error"}], "now": {"sentence",
--          "send_at": the estimated time, "held_by": [{"gate", "until", "lifts"}], "lifts":
--          possible remedy for an ended one}}. For a submission, or a message or run with a
--          running fan-out: {"status": "submission" | "fanout", "now"}, the reason why deliveries are
--          missing. For another ingest run or message {"status":
--          "run" | "message", "now"}. Else {"status": "unknown_delivery"}.
-- Reads:   submissions, fanout_jobs, publish_jobs, deliveries, messages, channels, ingest_runs, post_acts,
--          events, channel_gates, platform_limits, dispatch_runs.
declare
	v_status text := autopost.enter_workspace(p_workspace_id);
	v_delivery autopost.deliveries;
	v_channel autopost.channels;
	v_message autopost.messages;
	v_run autopost.ingest_runs;
	v_seen_at timestamptz := (select max(r.seen_at) from autopost.dispatch_runs r);
begin
	perform autopost.require_argument('delivery_id', p_delivery_id is not null);
	select d.* into v_delivery from autopost.deliveries d
		where d.workspace_id = p_workspace_id and d.delivery_id = p_delivery_id;
	if v_delivery.delivery_id is null then
		return coalesce(autopost.why_no_delivery(p_workspace_id, p_delivery_id), '{"status": "unknown_delivery"}');
	end if;
	select c.* into v_channel from autopost.channels c where c.workspace_id = p_workspace_id
		and c.channel_id = v_delivery.channel_id;
	select m.* into v_message from autopost.messages m where m.workspace_id = p_workspace_id
		and m.message_id = v_delivery.message_id;
	select r.* into v_run from autopost.ingest_runs r where r.workspace_id = p_workspace_id
		and r.run_id = v_delivery.ingest_run_id;
	return jsonb_build_object('status', 'found',
		'delivery', jsonb_build_object('delivery_id', v_delivery.delivery_id, 'status', v_delivery.status,
			'channel_id', v_channel.channel_id, 'platform', v_channel.platform, 'target_id', v_channel.target_id,
				'rate_group', v_channel.rate_group,
			'attempt', v_delivery.attempt, 'max_attempts',
				autopost.max_attempts(autopost.retry_policy(p_workspace_id, v_channel.platform,
				coalesce(autopost.policy_code(v_delivery.last_error), '*')), v_delivery),
			'created_at', v_delivery.created_at, 'due_at', case
				when isfinite(v_delivery.due_at) then v_delivery.due_at end, 'scheduled_for', v_delivery.scheduled_for,
			'sent_at', v_delivery.sent_at, 'provider_message_id', v_delivery.provider_message_id, 'finished_at',
				v_delivery.finished_at,
			'last_error', v_delivery.last_error, 'unknown_outcomes', v_delivery.unknown_outcomes, 'on_unknown',
				v_channel.on_unknown,
			'text', v_delivery.rendered_text, 'meta', v_delivery.render_meta, 'template_version',
				v_delivery.template_version),
		'message', jsonb_build_object('message_id', v_message.message_id, 'content_hash', v_message.content_hash,
			'tags', v_message.tags,
			'first_seen_at', v_message.created_at, 'last_seen_at', v_message.last_seen_at, 'seen_count',
				v_message.seen_count),
		'source', jsonb_build_object('run_id', v_delivery.ingest_run_id, 'trace_id', v_delivery.trace_id, 'kind',
			v_run.kind, 'endpoint_id', v_run.endpoint_id,
			'source_id', v_run.source_id, 'source_ref', v_message.source_ref, 'started_at', v_run.started_at,
			'submission_id', (select s.submission_id from autopost.submissions s
				where s.workspace_id = p_workspace_id and s.run_id = v_delivery.ingest_run_id
					and s.message_id = v_delivery.message_id limit 1))
			|| coalesce((select jsonb_build_object('job', jsonb_build_object('job_id', j.job_id, 'platform', j.platform,
				'status', j.status)) from autopost.publish_jobs j
				where j.workspace_id = p_workspace_id and j.delivery_id = p_delivery_id), '{}'),
		'acts', (select coalesce(jsonb_agg(to_jsonb(a) - '{workspace_id,delivery_id,message_id,channel_id}'::text[]
			order by a.act_id), '[]') from autopost.list_acts_rows a
			where a.workspace_id = p_workspace_id and a.delivery_id = p_delivery_id),
		'chain', autopost.delivery_history(p_workspace_id, v_delivery),
		'now', case when v_delivery.status in ('queued', 'retry') then autopost.why_now(v_status, v_channel, v_delivery)
			else autopost.why_over(v_delivery, v_channel) end
			|| jsonb_build_object('daemon_seen_at', v_seen_at));
end
$$;
