create or replace function autopost.webhook_holds(p_status text, p_webhook autopost.result_webhooks,
	p_now timestamptz) returns jsonb
language plpgsql stable
as $$
-- Purpose: the reasons why a result webhook calls nothing now. p_status: of the workspace.
-- Reads:   cluster_identity; as calls_allowed.
begin
	return (
		select coalesce(jsonb_agg(autopost.hold(h.gate, h.until, h.lifts) order by h.n), '[]')
		from (values
			(1, 'workspace', p_status = 'disabled', null::timestamptz, 'a workspace that is not disabled'),
			(2, 'restored', autopost.is_restored(), null, 'autopost restore confirm: this copy was restored'),
			(3, 'webhook_disabled', not p_webhook.enabled, null, 'autopost webhook enable ' || p_webhook.webhook_id),
			(4, 'webhook_rate', p_webhook.enabled and p_webhook.next_send_at >= p_now + interval '1 second',
				p_webhook.next_send_at - interval '1 second', 'its rate: rps'),
			(5, 'webhook_capacity', p_webhook.enabled and p_webhook.next_send_at < p_now + interval '1 second'
				and autopost.calls_allowed(p_webhook, p_now) <= 0, null, case when p_webhook.failing_since is null
					then 'the end of a running call: max_parallel'
					else 'the end of the running call: a failing webhook makes one at a time' end)
		) h (n, gate, holds, until, lifts)
		where h.holds);
end
$$;

create or replace function autopost.webhook_sentence(p_webhook autopost.result_webhooks) returns text
language sql stable
as $$
-- Purpose: the state of a result webhook in words.
select case
	when not p_webhook.enabled and p_webhook.disabled_reason = 'gone'
		then 'is disabled: its address answered 410 Gone'
	when not p_webhook.enabled and p_webhook.disabled_reason is not null
		then 'is disabled: all its calls failed since ' || autopost.instant_text(p_webhook.failing_since)
	when not p_webhook.enabled then 'is disabled by an operator'
	when p_webhook.failing_since is not null
		then 'fails since ' || autopost.instant_text(p_webhook.failing_since)
	else 'works' end
$$;

create or replace function autopost.last_answer(p_send autopost.webhook_sends) returns text
language sql immutable parallel safe
as $$
-- Purpose: the last answer to a call in words; null before the first one.
select case
	when p_send.attempted_at is null or p_send.status = 'sending' and p_send.attempt = 1 then null
	when p_send.http_status between 200 and 299 then 'the answer was ' || p_send.http_status
	when p_send.http_status is not null then 'the last answer was ' || concat_ws(': ', p_send.http_status,
		nullif(p_send.error, 'the answer was ' || p_send.http_status))
	else 'no answer arrived' || coalesce(': ' || p_send.error, '') end
$$;

create or replace function autopost.why_call(p_webhook autopost.result_webhooks, p_send autopost.webhook_sends,
	p_held_by jsonb, p_now timestamptz) returns jsonb
language plpgsql stable
as $$
-- Purpose: explains a call of a result webhook: its last answer, its next try, and why it waits.
--          p_held_by: webhook_holds.
-- Returns: {"sentence", "send_at", "held_by", "lifts"}.
-- Reads:   webhook_sends, retry_policies.
declare
	v_most int := (autopost.retry_policy(p_webhook.workspace_id, 'result_webhook', '*')).max_attempts;
	v_answer text := coalesce(', ' || autopost.last_answer(p_send), '');
	v_ahead bigint;
begin
	if p_send.status = 'delivered' then
		return jsonb_build_object('sentence', format('delivered at %s by call %s%s',
			autopost.instant_text(p_send.finished_at), p_send.attempt, v_answer), 'send_at', null, 'held_by', '[]'::jsonb);
	elsif p_send.status = 'dead' then
		return jsonb_build_object('sentence', format('gave up at %s after %s%s',
			autopost.instant_text(p_send.finished_at), case p_send.attempt when 1 then '1 call' else p_send.attempt || ' calls' end, v_answer), 'send_at', null,
			'held_by', '[]'::jsonb, 'lifts', format('autopost webhook replay %s --event %s --reason fixed',
				p_webhook.webhook_id, p_send.event_id));
	elsif p_send.status = 'sending' and p_send.due_at > p_now then
		return jsonb_build_object('sentence', format('call %s of %s is running, lease until %s%s',
			p_send.attempt, v_most, autopost.instant_text(p_send.due_at), v_answer), 'send_at', null, 'held_by', '[]'::jsonb,
			'lifts', 'the answer of the receiver, or the end of the lease');
	end if;
	v_ahead := (select count(*) from (
		select 1 from autopost.webhook_sends s
		where s.workspace_id = p_webhook.workspace_id and s.webhook_id = p_webhook.webhook_id
		and s.status in ('pending', 'sending') and s.due_at < least(p_send.due_at, p_now)
		limit 10000) x);
	if p_send.due_at > p_now then
		p_held_by := p_held_by || autopost.hold('retry', p_send.due_at, 'the end of the wait after its last call',
			jsonb_build_object('attempt', p_send.attempt, 'max_attempts', v_most));
	elsif v_ahead > 0 then
		p_held_by := p_held_by
			|| autopost.hold('queue', null, 'the calls before it', jsonb_build_object('ahead', v_ahead));
	end if;
	return jsonb_build_object('sentence', case
		when p_send.attempt = 0 then 'waits for its first call'
		else format('waits for call %s of %s%s', p_send.attempt + 1, v_most, v_answer) end
		|| case when p_send.due_at > p_now then ', the next try is at ' || autopost.instant_text(p_send.due_at)
			when p_held_by = '[]' then ': the next free daemon with the stage webhooks makes it' else '' end,
		'send_at', case when not exists (select 1 from jsonb_array_elements(p_held_by) h
			where h.value -> 'until' = 'null') then greatest(p_send.due_at, p_now) end,
		'held_by', p_held_by);
end
$$;

create or replace function autopost.why_webhook(p_workspace_id text, p_webhook_id text, p_event_id uuid default null)
	returns jsonb
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: explains a result webhook: its waiting calls, and why it makes none now. With p_event_id,
--          the webhook-id of a call: that call, its last answer and its next try.
-- Returns: {"status": "webhook", "webhook": {"webhook_id", "enabled", "disabled_reason", "failing_since",
--          "waiting", "running": calls, 10000 means that many or more, "next_call_at"}, "call": null or
--          {"event_id", "type", "status", "attempt", "http_status", "error", "attempted_at"}, "now":
--          {"sentence", "send_at", "held_by": [{"gate", "until", "lifts"}], "lifts",
--          "daemon_seen_at"}}; null if the webhook or the call does not exist.
-- Raises:  AP001 for a wrong argument; AP002, AP003, AP005 as enter_workspace.
-- Reads:   result_webhooks, webhook_sends, retry_policies, dispatch_runs, cluster_identity.
declare
	v_status text := autopost.enter_workspace(p_workspace_id);
	v_webhook autopost.result_webhooks;
	v_send autopost.webhook_sends;
	v_queue record;
	v_now timestamptz := autopost.now_ts();
	v_why jsonb;
begin
	perform autopost.require_argument('webhook_id', p_webhook_id <> '');
	select w.* into v_webhook from autopost.result_webhooks w
	where w.workspace_id = p_workspace_id and w.webhook_id = p_webhook_id;
	if v_webhook.webhook_id is null then
		return null;
	end if;
	select s.* into v_send from autopost.webhook_sends s
	where s.workspace_id = p_workspace_id and s.webhook_id = p_webhook_id and s.event_id = p_event_id;
	if p_event_id is not null and v_send.event_id is null then
		return null;
	end if;
	select count(*) filter (where x.status = 'pending' or x.due_at <= v_now) as waiting,
		count(*) filter (where x.status = 'sending' and x.due_at > v_now) as running,
		min(x.due_at) filter (where x.status = 'pending' or x.due_at <= v_now) as next_at into v_queue
	from (
		select s.status, s.due_at from autopost.webhook_sends s
		where s.workspace_id = p_workspace_id and s.webhook_id = p_webhook_id and s.status in ('pending', 'sending')
		order by s.due_at
		limit 10000) x;
	v_why := autopost.webhook_holds(v_status, v_webhook, v_now);
	v_why := case when p_event_id is not null then autopost.why_call(v_webhook, v_send, v_why, v_now)
		else jsonb_build_object('sentence', autopost.webhook_sentence(v_webhook) || format(', %s',
			case v_queue.waiting when 0 then 'no call waits' when 1 then '1 call waits'
				else v_queue.waiting || ' calls wait' end)
			|| case when v_queue.next_at > v_now
				then ', the next is at ' || autopost.instant_text(v_queue.next_at) else '' end,
			'send_at', v_queue.next_at, 'held_by', v_why) end;
	return jsonb_build_object('status', 'webhook',
		'webhook', jsonb_build_object('webhook_id', p_webhook_id, 'enabled', v_webhook.enabled, 'disabled_reason',
			v_webhook.disabled_reason, 'failing_since', v_webhook.failing_since, 'waiting', v_queue.waiting,
			'running', v_queue.running, 'next_call_at', v_queue.next_at),
		'call', case when p_event_id is not null then jsonb_build_object('event_id', v_send.event_id,
			'type', v_send.event_type, 'status', v_send.status, 'attempt', v_send.attempt, 'http_status',
			v_send.http_status, 'error', v_send.error, 'attempted_at', v_send.attempted_at) end,
		'now', v_why || jsonb_build_object('daemon_seen_at', (select max(r.seen_at) from autopost.dispatch_runs r)));
end
$$;
