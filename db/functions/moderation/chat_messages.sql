-- Messages to the chats of moderators. A message shows one plan of one submission. The database compares
-- what each chat shows with what waits, so every way of a decision changes the chats.

create or replace function autopost.is_of_chat(p_message autopost.moderation_messages,
	p_chat autopost.moderation_chats) returns boolean
language sql immutable parallel safe
as $$
-- Purpose: true if a message is in the present chat of an enabled row, through its present bot.
select p_chat.enabled and p_message.auth_ref = p_chat.auth_ref and p_message.target_id = p_chat.target_id
$$;

create or replace function autopost.is_asked(p_message autopost.moderation_messages, p_enabled boolean) returns boolean
language plpgsql stable
as $$
-- Purpose: true while the submission of a message waits with the plan that it shows, and the chat is
--          enabled.
-- Reads:   submissions.
begin
	return p_enabled and exists (
		select 1 from autopost.submissions s
		where s.workspace_id = p_message.workspace_id and s.submission_id = p_message.submission_id
		and s.status = 'pending' and s.digest = p_message.digest);
end
$$;

create or replace function autopost.oldest_void_message(p_chat autopost.moderation_chats) returns uuid
language plpgsql stable
as $$
-- Purpose: the oldest open message of a chat that can no longer be decided on, else null.
-- Reads:   moderation_messages, submissions.
begin
	return (
		select m.message_id from autopost.moderation_messages m
		join autopost.submissions s on s.workspace_id = p_chat.workspace_id and s.submission_id = m.submission_id
		where m.workspace_id = p_chat.workspace_id and m.chat_id = p_chat.chat_id and m.status = 'open'
		and (not autopost.is_of_chat(row(m.*)::autopost.moderation_messages, p_chat) or s.status <> 'pending'
			or s.digest <> m.digest)
		order by m.created_at, m.message_id
		limit 1);
end
$$;

create or replace function autopost.unasked_submission(p_chat autopost.moderation_chats, p_now timestamptz)
	returns autopost.submissions
language plpgsql stable
as $$
-- Purpose: the oldest submission that waits and that a chat was not asked about, or whose plan has
--          changed since, else null.
-- Reads:   submissions, moderation_messages.
declare
	v_submission autopost.submissions;
begin
	if p_chat.enabled then
		select s.* into v_submission from autopost.submissions s
		where s.workspace_id = p_chat.workspace_id and s.status = 'pending' and s.expires_at > p_now
		and not exists (
			select 1 from autopost.moderation_messages m
			where m.workspace_id = p_chat.workspace_id and m.chat_id = p_chat.chat_id
			and m.submission_id = s.submission_id and m.digest = s.digest and m.status <> 'closed'
			and (m.status = 'pending' or autopost.is_of_chat(row(m.*)::autopost.moderation_messages, p_chat)))
		order by s.submission_id
		limit 1;
	end if;
	return v_submission;
end
$$;

create or replace function autopost.chat_has_work(p_chat autopost.moderation_chats, p_at timestamptz) returns boolean
language plpgsql stable
as $$
-- Purpose: true if a message of the chat must be sent or changed, and no other is in flight.
-- Reads:   moderation_messages, submissions.
begin
	return not exists (
			select 1 from autopost.moderation_messages m
			where m.workspace_id = p_chat.workspace_id and m.chat_id = p_chat.chat_id
			and m.status in ('sending', 'closing') and m.lease_until > p_at)
		and (exists (
				select 1 from autopost.moderation_messages m
				where m.workspace_id = p_chat.workspace_id and m.chat_id = p_chat.chat_id
				and m.status in ('pending', 'sending', 'closing'))
			or autopost.oldest_void_message(p_chat) is not null
			or (autopost.unasked_submission(p_chat, p_at)).submission_id is not null);
end
$$;

create or replace function autopost.asked_in(p_workspace_id text, p_submission_id uuid) returns text
language plpgsql stable
as $$
-- Purpose: ", asked in mods, editors": the chats with buttons for a submission; empty without any.
-- Reads:   moderation_messages.
begin
	return coalesce((
		select ', asked in ' || string_agg(m.chat_id, ', ' order by m.chat_id) from autopost.moderation_messages m
		where m.workspace_id = p_workspace_id and m.submission_id = p_submission_id and m.status = 'open'), '');
end
$$;

create or replace function autopost.button_nonce() returns text
language sql volatile
as $$
-- Purpose: 22 characters that cannot be guessed.
select translate(left(encode(uuid_send(gen_random_uuid()), 'base64'), 22), '+/', '-_')
$$;

create or replace function autopost.readable_text(p_text text, p_platform text) returns text
language plpgsql stable
as $$
-- Purpose: a rendered text without markup. The address of a link follows its words.
-- Reads:   platforms.
begin
	if (select p.dialect = 'plain' from autopost.platforms p where p.platform = p_platform) then
		return p_text;
	end if;
	return autopost.visible_text(regexp_replace(regexp_replace(p_text, '<a href="([^"]*)">\1</a>', '\1', 'g'),
		'<a href="([^"]*)">([^<]*(?:<(?!/a>)[^<]*)*)</a>', '\2 (\1)', 'g'), true);
end
$$;

create or replace function autopost.plan_texts(p_plan jsonb, p_limit int, p_unit text) returns text
language plpgsql stable
as $$
-- Purpose: the texts of a plan within p_limit units, equal ones once, each after a line that names its
--          platforms and how many channels get it. Several texts share the space.
-- Reads:   platforms.
declare
	v_shown constant int := 4;
	v_count int;
	v_share int;
	v_part record;
	v_label text;
	v_texts text := '';
begin
	select count(distinct (autopost.readable_text(r.value ->> 'text', r.value ->> 'platform'), r.value ->> 'reason'))
	into v_count from jsonb_array_elements(p_plan -> 'renderings') r;
	v_share := p_limit / greatest(least(v_count, v_shown), 1) - 4;
	for v_part in
		select string_agg(distinct t.platform, ', ' order by t.platform) as platforms, sum(t.channels) as channels,
			t.said, t.reason
		from (
			select r.value ->> 'platform' as platform, (r.value ->> 'channels')::int as channels, r.ordinality as n,
				autopost.readable_text(r.value ->> 'text', r.value ->> 'platform') as said,
					r.value ->> 'reason' as reason
			from jsonb_array_elements(p_plan -> 'renderings') with ordinality r) t
		group by t.said, t.reason
		order by min(t.n)
		limit v_shown
	loop
		v_label := format(e'%s, %s:\n', v_part.platforms, autopost.counted(v_part.channels, 'channel', 'channels'));
		v_texts := concat_ws(e'\n\n', nullif(v_texts, ''), v_label || autopost.shorten_text(
			coalesce('not sent: ' || v_part.reason, v_part.said, 'no text'), false,
			greatest(v_share - autopost.measure(v_label, p_unit), 1), p_unit));
	end loop;
	return v_texts;
end
$$;

create or replace function autopost.ask_text(p_submission autopost.submissions, p_platform text) returns text
language plpgsql stable
as $$
-- Purpose: the message that asks for a decision, within the text limit of the platform.
-- Reads:   platforms, workspaces, channels.
declare
	v_platform autopost.platforms;
	v_needed int := autopost.approvals_needed(p_submission.workspace_id);
	v_media text := (select string_agg(distinct m.value ->> 'type', ', ') from jsonb_array_elements(
		p_submission.plan -> 'media') m);
	v_head text;
	v_room int;
begin
	select p.* into v_platform from autopost.platforms p where p.platform = p_platform;
	v_head := concat_ws(e'\n', format('A post of workspace %s waits for a decision.', p_submission.workspace_id),
		'Author: ' || left(coalesce(autopost.person_name(p_submission.workspace_id, p_submission.author),
			format('unknown, by endpoint %s', p_submission.endpoint_id)), 200),
		'Edited by: ' || left(autopost.person_name(p_submission.workspace_id, p_submission.edited_by), 200),
		'Channels: ' || left(autopost.plan_channel_names(p_submission.plan), 400),
		'Media: ' || v_media,
		'Expires: ' || autopost.clock_of(p_submission.expires_at, 'UTC'),
		case when v_needed > 1 then format('%s people must approve it.', v_needed) end);
	v_room := v_platform.text_limit - autopost.measure(v_head, v_platform.length_unit) - 2;
	return v_head || e'\n\n' || autopost.plan_texts(p_submission.plan, v_room, v_platform.length_unit);
end
$$;

create or replace function autopost.plan_channel_names(p_plan jsonb) returns text
language sql immutable parallel safe
as $$
-- Purpose: the channels of a plan: the first names, and how many there are.
select case when sum(r.channels) > 0 then string_agg(r.names, ', ' order by r.n)
	|| case when sum(r.channels) > sum(r.named) then format(' … (%s in all)', sum(r.channels)) else '' end
	else 'none' end
from (
	select e.ordinality as n, (e.value ->> 'channels')::int as channels,
		jsonb_array_length(e.value -> 'channel_ids') as named,
		(select string_agg(c.value, ', ' order by c.ordinality)
			from jsonb_array_elements_text(e.value -> 'channel_ids') with ordinality c) as names
	from jsonb_array_elements(p_plan -> 'renderings') with ordinality e) r
$$;

create or replace function autopost.person_name(p_workspace_id text, p_identity text) returns text
language plpgsql stable
as $$
-- Purpose: an identity in words: "Olga (telegram:user:5001)" if the person pressed a button before.
-- Reads:   moderation_presses.
begin
	return coalesce((
		select format('%s (%s)', p.name, p_identity) from autopost.moderation_presses p
		where p.workspace_id = p_workspace_id and p.approver = p_identity and p.name is not null
		order by p.pressed_at desc
		limit 1), p_identity);
end
$$;

create or replace function autopost.decision_text(p_submission autopost.submissions) returns text
language plpgsql stable
as $$
-- Purpose: what was decided about a submission, by whom and when; or why no decision can be taken.
-- Reads:   approvals, moderation_presses.
declare
	v_people text;
	v_at text := autopost.clock_of(coalesce(p_submission.decided_at, p_submission.updated_at), 'UTC');
begin
	if p_submission.decision is null then
		return case p_submission.status when 'expired' then format('Expired on %s without a decision.', v_at)
			else format('It no longer waits for a decision: %s since %s.', p_submission.status, v_at) end;
	end if;
	select string_agg(autopost.person_name(p_submission.workspace_id, a.approver), ' and ' order by a.decided_at)
	into v_people
	from autopost.approvals a
	where a.workspace_id = p_submission.workspace_id and a.subject = 'submission:' || p_submission.submission_id
	and a.decision = p_submission.decision and a.voided_at is null;
	return format('%s by %s on %s (%s).', case p_submission.decision when 'approve' then 'Approved' else 'Rejected' end,
		coalesce(v_people, p_submission.decided_by), v_at, p_submission.decision_source)
		|| case when p_submission.decision = 'reject' and p_submission.decision_source not in ('telegram', 'max')
			then ' Reason: ' || left(p_submission.decision_reason, 300)
		when p_submission.status = 'failed' then ' It could not be queued: '
			|| left(coalesce(p_submission.last_error ->> 'message', p_submission.last_error ->> 'code', 'an error'), 300)
		else '' end;
end
$$;

create or replace function autopost.closing_text(p_message autopost.moderation_messages,
	p_chat autopost.moderation_chats) returns text
language plpgsql stable
as $$
-- Purpose: a message after its end: the decision, then the post, within the text limit.
-- Reads:   submissions, platforms; as decision_text.
declare
	v_here boolean := autopost.is_of_chat(p_message, p_chat);
	v_submission autopost.submissions;
	v_platform autopost.platforms;
	v_head text;
begin
	select s.* into v_submission from autopost.submissions s
	where s.workspace_id = p_message.workspace_id and s.submission_id = p_message.submission_id;
	select p.* into v_platform from autopost.platforms p where p.platform = p_message.platform;
	v_head := case
		when v_submission.status in ('pending', 'fetching') and v_submission.digest is distinct from p_message.digest
			then 'The post has changed since. '
				|| case when v_here then 'A new message asks again.' else 'This chat is no longer asked.' end
		when v_submission.status = 'pending' and not v_here then 'This chat is no longer asked.'
		else autopost.decision_text(v_submission) end;
	v_head := left(v_head, 1000) || e'\n\n';
	return v_head || autopost.shorten_text(p_message.text, false,
		v_platform.text_limit - autopost.measure(v_head, v_platform.length_unit), v_platform.length_unit);
end
$$;
