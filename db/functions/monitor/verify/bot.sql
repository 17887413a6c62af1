create or replace function autopost.verify_i32(p_workspace_id text) returns setof jsonb
language plpgsql stable
as $$
-- Purpose: finds violations of I32. A processed message has its log, and a log that answers has its reply. A reply has
--          one end, a sent one its call; a second call after an unknown outcome is recorded. A dialog gets its
--          replies in order, one at a time, and each decision starts at the state that the one before left. Rows that
--          retention may have reached are not judged.
begin
	return query
	with kept as (
		select autopost.now_ts() - autopost.setting_interval('bot_log_retention_days') + interval '1 hour' as from_at
	), lines as (
		select l.id, l.ts, l.provider, l.auth_ref, l.chat_id, l.kind, l.state_before, l.state_after, l.meta,
			l.inbound_provider_message_id
		from autopost.bot_logs l, kept k
		where l.workspace_id = p_workspace_id and l.ts > k.from_at
	), ends as (
		select (e.meta ->> 'reply_id')::uuid as reply_id,
			count(*) filter (where e.meta ->> 'status' in ('sent', 'failed_permanent', 'dead')) as ends,
			count(*) filter (where e.meta -> 'unknown' = 'true') as unknowns
		from autopost.events e
		where e.workspace_id = p_workspace_id and e.action = 'bot_replied'
		group by 1
	)
	select jsonb_build_object('what', 'processed without a log', 'chat_id', i.chat_id, 'provider_message_id',
		i.provider_message_id)
	from autopost.bot_inbox i
	left join lines l on l.provider = i.provider and l.auth_ref = i.auth_ref and l.chat_id = i.chat_id
		and l.inbound_provider_message_id = i.provider_message_id and l.kind <> 'edited', kept k
	where i.workspace_id = p_workspace_id and i.status = 'processed' and i.ts > k.from_at and l.id is null
	union all
	select jsonb_build_object('what', 'answered without a reply', 'chat_id', l.chat_id, 'provider_message_id',
		l.inbound_provider_message_id)
	from lines l
	left join autopost.bot_outbox o on o.workspace_id = p_workspace_id and o.provider = l.provider
		and o.auth_ref = l.auth_ref and o.chat_id = l.chat_id
		and o.inbound_provider_message_id = l.inbound_provider_message_id
	where l.kind in ('matched', 'fallback', 'guarded', 'escalated', 'operator', 'handed_back') and o.reply_id is null
	union all
	select jsonb_build_object('what', 'decided twice', 'chat_id', l.chat_id, 'provider_message_id',
		l.inbound_provider_message_id)
	from lines l
	where l.kind <> 'edited'
	group by l.provider, l.auth_ref, l.chat_id, l.inbound_provider_message_id
	having count(*) > 1
	union all
	select jsonb_build_object('what', 'ends of a reply', 'reply_id', o.reply_id, 'status', o.status, 'ends',
		coalesce(e.ends, 0), 'unknown_outcomes', o.unknown_outcomes, 'recorded', coalesce(e.unknowns, 0))
	from autopost.bot_outbox o
	left join ends e on e.reply_id = o.reply_id
	where o.workspace_id = p_workspace_id
		and o.created_at > autopost.now_ts() - autopost.setting_interval('event_retention_days')
	and (coalesce(e.ends, 0) <> (o.finished_at is not null)::int or coalesce(e.unknowns, 0) <> o.unknown_outcomes
		or o.status = 'sent' and o.last_call_at is null)
	union all
	select jsonb_build_object('what', 'two calls in a chat', 'chat_id', o.chat_id, 'replies', jsonb_agg(o.reply_id))
	from autopost.bot_outbox o
	where o.workspace_id = p_workspace_id and o.status = 'sending'
	group by o.provider, o.auth_ref, o.chat_id having count(*) > 1
	union all
	select jsonb_build_object('what', 'out of order', 'chat_id', o.chat_id, 'reply_id', o.reply_id)
	from (
		select x.chat_id, x.reply_id, x.last_call_at, x.created_at, max(x.last_call_at) over earlier as before,
			max(x.created_at) over earlier as created_before
		from autopost.bot_outbox x
		where x.workspace_id = p_workspace_id and x.last_call_at is not null and x.about_chat_id is null
		window earlier as (partition by x.provider, x.auth_ref, x.chat_id order by x.reply_id
			rows between unbounded preceding and 1 preceding)) o
	-- a clock that was put back orders nothing
	where o.last_call_at < o.before and o.created_at >= o.created_before and o.last_call_at >= o.created_at
	union all
	select jsonb_build_object('what', 'a state was lost', 'chat_id', s.chat_id, 'log_id', s.id, 'before',
		s.state_before,
		'left', s.left_state)
	from (
		select l.chat_id, l.id, l.ts, l.state_before, lag(l.state_after) over dialog as left_state,
			(lag(l.meta) over dialog ->> 'expires_at')::timestamptz as expires_at
		from lines l
		where l.kind <> 'edited'
		window dialog as (partition by l.provider, l.auth_ref, l.chat_id order by l.ts, l.id)) s
	where s.state_before <> s.left_state and not (s.state_before = 'default' and s.ts >= s.expires_at);
end
$$;
