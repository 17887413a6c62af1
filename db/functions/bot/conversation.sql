-- Conversations: the state of a chat, the answer to a message, and words between customer and operator.

create or replace function autopost.bot_config(p_workspace_id text, p_auth_ref text) returns jsonb
language plpgsql stable
as $$
-- Purpose: meta.bot of the newest enabled endpoint of a bot; {} without one.
-- Reads:   workspace_endpoints.
begin
	return coalesce((
		select case when jsonb_typeof(e.meta -> 'bot') = 'object' then e.meta -> 'bot' end
		from autopost.workspace_endpoints e
		where e.workspace_id = p_workspace_id and e.kind = 'bot_webhook' and e.enabled
		and e.meta ->> 'auth_ref' = p_auth_ref
		order by e.created_at desc, e.endpoint_id
		limit 1), '{}');
end
$$;

create or replace function autopost.bot_rules_of(p_workspace_id text) returns jsonb
language plpgsql stable
as $$
-- Purpose: the enabled rules, as bot_decide takes them.
-- Reads:   bot_rules.
begin
	return (
		select coalesce(jsonb_agg(jsonb_build_object('rule_id', r.rule_id, 'version', r.version, 'intent', r.intent,
			'state', r.state, 'pattern', r.pattern, 'priority', r.priority, 'max_turns', r.max_turns,
			'response_template', r.response_template, 'buttons', r.buttons, 'next_state', r.next_state)
			order by r.rule_id), '[]')
		from autopost.bot_rules r
		where r.workspace_id = p_workspace_id and r.enabled);
end
$$;

create or replace function autopost.bot_lock_state(p_workspace_id text, p_provider text, p_auth_ref text,
	p_chat_id text, p_wait boolean) returns boolean
language plpgsql
as $$
-- Purpose: makes and locks the state of a chat, so that its messages are processed one by one.
-- Returns: false if another transaction has it and p_wait is false.
-- Locks:   bot_state.
-- Writes:  bot_state.
declare
	v_now timestamptz := autopost.now_ts();
begin
	insert into autopost.bot_state (workspace_id, provider, auth_ref, chat_id, updated_at)
	select p_workspace_id, p_provider, p_auth_ref, p_chat_id, v_now
	where not exists (
		select 1 from autopost.bot_state s
		where s.workspace_id = p_workspace_id and s.provider = p_provider and s.auth_ref = p_auth_ref
		and s.chat_id = p_chat_id)
	on conflict do nothing;
	if p_wait then
		perform 1 from autopost.bot_state s
		where s.workspace_id = p_workspace_id and s.provider = p_provider and s.auth_ref = p_auth_ref
		and s.chat_id = p_chat_id
		for no key update of s;
	else
		perform 1 from autopost.bot_state s
		where s.workspace_id = p_workspace_id and s.provider = p_provider and s.auth_ref = p_auth_ref
		and s.chat_id = p_chat_id
		for no key update of s skip locked;
	end if;
	return found;
end
$$;

create or replace function autopost.bot_enqueue(p_workspace_id text, p_bot jsonb, p_said jsonb, p_reply jsonb)
	returns uuid
language plpgsql
as $$
-- Purpose: adds a message of the bot. p_bot: {"provider", "auth_ref"}. p_said: {"key", "trace_id",
--          "callback_id"} of what it answers. p_reply: {"chat_id", "text", "buttons", "kind",
--          "about_chat_id"}. A long text is cut to the platform's limit.
-- Returns: its id; null if this was answered before.
-- Reads:   platforms.
-- Writes:  bot_outbox.
declare
	v_now timestamptz := autopost.now_ts();
	v_id uuid := autopost.new_id();
	v_platform autopost.platforms;
	v_shown jsonb;
begin
	select p.* into v_platform from autopost.platforms p where p.platform = p_bot ->> 'provider';
	v_shown := autopost.render(jsonb_strip_nulls(jsonb_build_object('type', 'text', 'text', p_reply -> 'text',
		'buttons',
		nullif(p_reply -> 'buttons', '[]'))), v_platform, '{"long_text": "truncate"}', '{}');
	if v_shown ->> 'verdict' <> 'queued' then
		raise exception 'the reply cannot be sent: %', v_shown ->> 'reason';
	end if;
	insert into autopost.bot_outbox (workspace_id, provider, auth_ref, chat_id, inbound_provider_message_id, reply_id,
		kind, about_chat_id, response_hash, rendered_text, render_meta, callback_id, next_at, trace_id, created_at)
	values (p_workspace_id, p_bot ->> 'provider', p_bot ->> 'auth_ref', p_reply ->> 'chat_id', p_said ->> 'key', v_id,
		coalesce(p_reply ->> 'kind', 'reply'), p_reply ->> 'about_chat_id',
		encode(sha256(convert_to(v_shown ->> 'text', 'UTF8')), 'hex'), v_shown ->> 'text', v_shown -> 'meta',
		p_said ->> 'callback_id', v_now, (p_said ->> 'trace_id')::uuid, v_now)
	on conflict do nothing;
	return case when found then v_id end;
end
$$;

create or replace function autopost.bot_note(p_workspace_id text, p_bot jsonb, p_chat_id text, p_said jsonb,
	p_log jsonb) returns void
language plpgsql
as $$
-- Purpose: writes the log of a message, masked. p_log: {"kind", "rule_id", "version", "state_before",
--          "state_after", "response", "meta"}.
-- Writes:  bot_logs.
begin
	insert into autopost.bot_logs (workspace_id, id, ts, provider, auth_ref, chat_id, kind, inbound_provider_message_id,
		message_text, matched_rule_id, rule_version, state_before, state_after, response_preview, meta)
	values (p_workspace_id, autopost.new_id(), autopost.now_ts(), p_bot ->> 'provider', p_bot ->> 'auth_ref', p_chat_id,
		p_log ->> 'kind', p_said ->> 'key', autopost.redact(p_said ->> 'text'), p_log ->> 'rule_id',
		(p_log ->> 'version')::int, p_log ->> 'state_before', p_log ->> 'state_after',
		left(autopost.redact(p_log ->> 'response'), 500), jsonb_strip_nulls(jsonb_build_object('language',
			p_said -> 'language')
			|| coalesce(p_log -> 'meta', '{}') || jsonb_build_object('trace_id', p_said -> 'trace_id')))
	on conflict do nothing;
end
$$;

create or replace function autopost.bot_relay(p_workspace_id text, p_bot jsonb, p_config jsonb, p_chat_id text,
	p_said jsonb, p_language text) returns void
language plpgsql
as $$
-- Purpose: copies the words of a customer to the operator's chat, with a button that hands the customer
--          back. A reply to the copy goes to the customer.
-- Writes:  bot_outbox.
begin
	perform autopost.bot_enqueue(p_workspace_id, p_bot, p_said || jsonb_build_object('key', p_chat_id || '/'
		|| (p_said ->> 'key')),
		jsonb_build_object('chat_id', p_config -> 'operator_chat_id', 'kind', 'relay', 'about_chat_id', p_chat_id,
		'text', format(e'%s (%s): %s\n\n%s', coalesce(p_said ->> 'name', '?'), p_chat_id,
			coalesce(nullif(p_said ->> 'text', ''), autopost.bot_phrase('no_text', p_language)),
			autopost.bot_phrase('how', p_language)),
		'buttons', jsonb_build_array(jsonb_build_array(jsonb_build_object('text',
			autopost.bot_phrase('hand_back', p_language), 'payload', 'b:' || p_chat_id)))));
end
$$;

create or replace function autopost.bot_answer(p_workspace_id text, p_inbox_id uuid, p_config jsonb) returns void
language plpgsql
as $$
-- Purpose: decides about a received message of a locked chat, and stores state, log and reply.
-- Reads:   bot_rules.
-- Writes:  bot_inbox, bot_state, bot_logs, bot_outbox, events (bot_fallback, bot_escalated).
declare
	v_in autopost.bot_inbox;
	v_state autopost.bot_state;
	v_now timestamptz := autopost.now_ts();
	v_said jsonb;
	v_bot jsonb;
	v_done jsonb;
	v_reply uuid;
	v_expires timestamptz;
begin
	select i.* into v_in from autopost.bot_inbox i where i.workspace_id = p_workspace_id and i.inbox_id = p_inbox_id;
	select s.* into v_state from autopost.bot_state s
	where s.workspace_id = p_workspace_id and s.provider = v_in.provider and s.auth_ref = v_in.auth_ref
	and s.chat_id = v_in.chat_id;
	v_bot := jsonb_build_object('provider', v_in.provider, 'auth_ref', v_in.auth_ref);
	v_said := v_in.message || jsonb_build_object('key', v_in.provider_message_id, 'trace_id', v_in.trace_id);
	v_done := autopost.bot_decide(autopost.bot_rules_of(p_workspace_id), p_config, jsonb_build_object(
		'state', v_state.state, 'context', v_state.context, 'expired', v_state.expires_at < v_now), v_said);
	if v_done ->> 'text' is not null then
		v_reply := autopost.bot_enqueue(p_workspace_id, v_bot, v_said, jsonb_build_object('chat_id', v_in.chat_id,
			'text', v_done -> 'text', 'buttons', v_done -> 'buttons'));
	end if;
	perform autopost.bot_relay(p_workspace_id, v_bot, p_config, v_in.chat_id, v_said, v_done ->> 'language')
	where v_done ->> 'state' = 'operator' and nullif(p_config ->> 'operator_chat_id', '') is not null;
	-- a customer who keeps writing does not prolong the wait for an operator
	v_expires := case when v_done ->> 'state' = 'default' then null when v_done ->> 'kind' = 'relayed'
		then v_state.expires_at else v_now + autopost.setting_interval('bot_state_seconds') end;
	update autopost.bot_state s
	set state = v_done ->> 'state', context = v_done -> 'context', updated_at = v_now, expires_at = v_expires
	where s.workspace_id = p_workspace_id and s.provider = v_in.provider and s.auth_ref = v_in.auth_ref
	and s.chat_id = v_in.chat_id;
	perform autopost.bot_note(p_workspace_id, v_bot, v_in.chat_id, v_said, jsonb_build_object('kind', v_done -> 'kind',
		'rule_id', v_done -> 'rule_id', 'version', v_done -> 'version', 'state_before', v_state.state,
		'state_after', v_done -> 'state', 'response', v_done -> 'text',
		'meta', jsonb_build_object('idempotency_key', v_reply, 'inbound_kind', v_in.kind, 'intent', v_done -> 'intent',
			'guard', v_done -> 'guard',
			'expired', nullif(v_state.expires_at < v_now, false), 'context_before', nullif(v_state.context, '{}'),
			'expires_at', v_expires, 'language', v_done -> 'language')));
	perform autopost.emit_note(p_workspace_id, case v_done ->> 'kind' when 'escalated' then 'bot_escalated'
		else 'bot_fallback' end, 'ok', null, null, null, jsonb_build_object('provider', v_in.provider, 'auth_ref',
		v_in.auth_ref, 'chat_id', v_in.chat_id, 'reply_id', v_reply, 'rule_id', v_done -> 'rule_id', 'trace_id',
		v_in.trace_id, 'guard', v_done -> 'guard'))
	where v_done ->> 'kind' in ('fallback', 'guarded', 'escalated');
	update autopost.bot_inbox i
	set status = 'processed', processed_at = v_now, message = null, error = null
	where i.workspace_id = p_workspace_id and i.inbox_id = p_inbox_id;
end
$$;

create or replace function autopost.bot_process(p_workspace_id text, p_provider text, p_auth_ref text, p_chat_id text,
	p_config jsonb) returns int
language plpgsql
as $$
-- Purpose: processes the received messages of a locked chat in their order, at most 20 a minute. A
--          failing one keeps its error and its place; after five tries it is left, and an operator
--          reads its error. Never more than one failure per call.
-- Returns: how many it processed.
-- Writes:  bot_inbox; as bot_answer.
declare
	v_most constant int := 20;
	v_now timestamptz;
	v_in record;
	v_paced timestamptz;
	v_done int := 0;
begin
	loop
		v_now := autopost.now_ts();
		select i.inbox_id, i.next_at, i.tries into v_in from autopost.bot_inbox i
		where i.workspace_id = p_workspace_id and i.provider = p_provider and i.auth_ref = p_auth_ref
		and i.chat_id = p_chat_id and i.status = 'received' and i.tries < 5
		order by i.ts, i.inbox_id
		limit 1;
		exit when not found or v_in.next_at > v_now;
		select p.processed_at into v_paced from autopost.bot_inbox p
		where p.workspace_id = p_workspace_id and p.provider = p_provider and p.auth_ref = p_auth_ref
		and p.chat_id = p_chat_id and p.processed_at > v_now - interval '1 minute'
		order by p.processed_at desc
		offset v_most - 1 limit 1;
		if found then
			update autopost.bot_inbox i set next_at = v_paced + interval '1 minute'
			where i.workspace_id = p_workspace_id and i.inbox_id = v_in.inbox_id;
			exit;
		end if;
		begin
			perform autopost.bot_answer(p_workspace_id, v_in.inbox_id, p_config);
			v_done := v_done + 1;
		exception when others then -- the message stays; bot_recover tries it again
			update autopost.bot_inbox i
			set tries = i.tries + 1, next_at = autopost.later(v_now, interval '1 second' * 2 ^ (i.tries + 1)),
				error = jsonb_build_object('code', sqlstate, 'message', left(autopost.redact(sqlerrm), 500))
			where i.workspace_id = p_workspace_id and i.inbox_id = v_in.inbox_id;
			exit;
		end;
	end loop;
	perform pg_notify('autopost_wake', 'bot') where v_done > 0;
	return v_done;
end
$$;

create or replace function autopost.bot_hear_operator(p_workspace_id text, p_bot jsonb, p_said jsonb)
	returns jsonb
language plpgsql
as $$
-- Purpose: what is said in the operator's chat: a reply to a relayed message goes to its customer, and
--          the button Hand back ends the state operator. Anything else there is not for the bot.
-- Locks:   bot_state.
-- Writes:  bot_state, bot_outbox, bot_logs.
declare
	v_operator text := p_said ->> 'chat_id';
	v_back boolean := p_said ->> 'kind' = 'callback' and p_said ->> 'text' like 'b:%';
	v_customer text;
	v_before text;
	v_reply uuid;
	v_said jsonb := p_said || jsonb_build_object('trace_id', autopost.new_id(), 'key', v_operator || '/'
		|| (p_said ->> 'key'));
	v_language text;
	v_now timestamptz;
	v_expires timestamptz;
begin
	v_customer := (
		select o.about_chat_id from autopost.bot_outbox o
		where o.workspace_id = p_workspace_id and o.provider = p_bot ->> 'provider' and o.auth_ref
			= p_bot ->> 'auth_ref'
		and o.chat_id = v_operator and o.about_chat_id is not null
		and case when v_back then o.about_chat_id = substr(p_said ->> 'text', 3)
			else o.provider_message_id = p_said ->> 'reply_to' end
		limit 1);
	if v_customer is null or not v_back and (p_said ->> 'kind' <> 'message' or coalesce(btrim(p_said ->> 'text',
		E' \n\t'), '') = '') then
		return '{"status": "ignored", "reason": "operator_chat"}';
	end if;
	perform autopost.bot_lock_state(p_workspace_id, p_bot ->> 'provider', p_bot ->> 'auth_ref', v_customer, true);
	select s.state into v_before from autopost.bot_state s
	where s.workspace_id = p_workspace_id and s.provider = p_bot ->> 'provider' and s.auth_ref = p_bot ->> 'auth_ref'
	and s.chat_id = v_customer;
	if v_back and v_before <> 'operator' then
		return '{"status": "ignored", "reason": "handed_back"}';
	end if;
	v_now := autopost.now_ts();
	v_language := (
		select l.meta ->> 'language' from autopost.bot_logs l
		where l.workspace_id = p_workspace_id and l.provider = p_bot ->> 'provider' and l.auth_ref
			= p_bot ->> 'auth_ref'
		and l.chat_id = v_customer
		order by l.ts desc, l.id desc limit 1);
	v_reply := autopost.bot_enqueue(p_workspace_id, p_bot, v_said, jsonb_build_object('chat_id', v_customer, 'kind',
		'relay',
		'text', case when v_back then autopost.bot_phrase('returned', coalesce(v_language, 'en'))
			else p_said ->> 'text' end));
	if v_reply is null then
		return '{"status": "duplicate"}';
	end if;
	v_expires := case when not v_back then v_now + autopost.setting_interval('bot_state_seconds') end;
	update autopost.bot_state s
	set state = case when v_back then 'default' else 'operator' end, context = '{}', updated_at = v_now,
		expires_at = v_expires
	where s.workspace_id = p_workspace_id and s.provider = p_bot ->> 'provider' and s.auth_ref = p_bot ->> 'auth_ref'
	and s.chat_id = v_customer;
	perform autopost.bot_note(p_workspace_id, p_bot, v_customer, case when v_back then v_said - 'text' else v_said end,
		jsonb_build_object('kind', case when v_back then 'handed_back' else 'operator' end, 'state_before', v_before,
		'state_after', case when v_back then 'default' else 'operator' end,
		'meta', jsonb_build_object('idempotency_key', v_reply, 'language', v_language, 'expires_at', v_expires)));
	perform pg_notify('autopost_wake', 'bot');
	return jsonb_build_object('status', case when v_back then 'handed_back' else 'relayed' end, 'reply_id', v_reply);
end
$$;

create or replace function autopost.bot_take(p_workspace_id text, p_provider text, p_auth_ref text, p_update jsonb)
	returns jsonb
language plpgsql
as $$
-- Purpose: bot_receive for a known bot.
-- Locks:   bot_state, bot_inbox.
-- Writes:  as bot_receive.
declare
	v_said jsonb := autopost.bot_said(p_provider, p_update);
	v_bot jsonb := jsonb_build_object('provider', p_provider, 'auth_ref', p_auth_ref);
	v_chat text := v_said ->> 'chat_id';
	v_key text := v_said ->> 'key';
	v_config jsonb;
	v_now timestamptz;
	v_new boolean;
	v_status text;
begin
	if v_said is null then
		return '{"status": "ignored", "reason": "no_message"}';
	end if;
	v_config := autopost.bot_config(p_workspace_id, p_auth_ref);
	if v_config -> 'enabled' = 'false' then
		return '{"status": "ignored", "reason": "disabled"}';
	elsif v_chat = v_config ->> 'operator_chat_id' and not (v_said -> 'is_bot')::boolean then
		return autopost.bot_hear_operator(p_workspace_id, v_bot, v_said);
	elsif v_said -> 'dialog' = 'false' or v_said -> 'is_bot' = 'true' then
		return '{"status": "ignored", "reason": "no_dialog"}';
	elsif not exists (select 1 from autopost.bot_rules r where r.workspace_id = p_workspace_id and r.enabled) then
		return '{"status": "ignored", "reason": "no_rules"}';
	elsif v_said ->> 'kind' = 'edit' then
		perform autopost.bot_note(p_workspace_id, v_bot, v_chat, v_said || jsonb_build_object('trace_id',
			autopost.new_id()),
			'{"kind": "edited"}');
		return '{"status": "logged"}';
	end if;
	perform autopost.bot_lock_state(p_workspace_id, p_provider, p_auth_ref, v_chat, true);
	v_now := autopost.now_ts();
	insert into autopost.bot_inbox (workspace_id, provider, auth_ref, chat_id, provider_message_id, inbox_id, ts, kind,
		message, next_at, trace_id)
	values (p_workspace_id, p_provider, p_auth_ref, v_chat, v_key, autopost.new_id(), v_now, v_said ->> 'kind',
		v_said - '{kind,key,chat_id,dialog,is_bot,reply_to}'::text[], v_now, autopost.new_id())
	on conflict do nothing;
	v_new := found;
	perform autopost.bot_process(p_workspace_id, p_provider, p_auth_ref, v_chat, v_config);
	select i.status into v_status from autopost.bot_inbox i
	where i.workspace_id = p_workspace_id and i.provider = p_provider and i.auth_ref = p_auth_ref
	and i.chat_id = v_chat and i.provider_message_id = v_key;
	return jsonb_build_object('status', case when v_new then v_status else 'duplicate' end);
end
$$;
