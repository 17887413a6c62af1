create or replace function autopost.edit_sent(p_workspace_id text, p_message_id uuid, p_changes jsonb, p_at timestamptz,
	p_meta jsonb) returns jsonb
language plpgsql
as $$
-- Purpose: requests the edit of the sent posts of a message.
-- Returns: [result]: see replace_post.
-- Writes:  as request_acts.
declare
	v_ids uuid[] := array(
		select d.delivery_id from autopost.deliveries d
		where d.workspace_id = p_workspace_id and d.message_id = p_message_id and d.status = 'sent'
		order by d.channel_id, d.delivery_id);
	v_changes jsonb := (
		select coalesce(jsonb_object_agg(f.key, f.value), '{}') from jsonb_each(p_changes) f
		where f.key = any (autopost.editable_fields()));
begin
	if v_ids = '{}' then
		return '[]';
	elsif v_changes = '{}' then
		return (
			select jsonb_agg(jsonb_build_object('delivery_id', d.delivery_id, 'channel_id', d.channel_id, 'applied',
				false,
				'change', 'refused', 'reason', 'sent', 'message', format('only %s of a sent post can be edited',
				array_to_string(autopost.editable_fields(), ', '))) order by d.channel_id, d.delivery_id)
			from autopost.deliveries d
			where d.workspace_id = p_workspace_id and d.delivery_id = any (v_ids));
	end if;
	return (
		select coalesce(jsonb_agg(r.value || jsonb_build_object('change', case when r.value -> 'applied' = 'true'
			then 'edited'
			else 'refused' end) order by r.ordinality), '[]')
		from jsonb_array_elements(autopost.request_acts(p_workspace_id, 'edit', null, v_ids, v_changes, p_at,
			p_meta ->> 'operator', p_meta ->> 'reason', false) -> 'results') with ordinality r);
end
$$;

create or replace function autopost.replace_obstacle(p_workspace_id text, p_message_id uuid) returns text
language plpgsql stable
as $$
-- Purpose: why no delivery of a post can be replaced or edited now; null if some may.
-- Reads:   messages, fanout_jobs, deliveries, submissions.
begin
	return case
		when not exists (select 1 from autopost.messages m where m.workspace_id = p_workspace_id
			and m.message_id = p_message_id) then 'unknown_message'
		when exists (select 1 from autopost.fanout_jobs j where j.workspace_id = p_workspace_id
			and j.message_id = p_message_id and j.status = 'running') then 'fanout_running'
		when (select count(*) from autopost.deliveries d where d.workspace_id = p_workspace_id
			and d.message_id = p_message_id
			and d.phase in ('active', 'claimed', 'retry')) > autopost.setting('fanout_chunk_channels')
			then 'too_many_channels'
		when not exists (select 1 from autopost.deliveries d where d.workspace_id = p_workspace_id
			and d.message_id = p_message_id and d.status in ('queued', 'retry', 'claimed', 'sending', 'sent'))
			and not exists (select 1 from autopost.submissions s where s.workspace_id = p_workspace_id
				and s.message_id = p_message_id and s.status = 'pending') then 'nothing_waits' end;
end
$$;

create or replace function autopost.replace_content(p_workspace_id text, p_message_id uuid, p_raw jsonb,
	p_changes jsonb,
	p_at timestamptz, p_meta jsonb) returns jsonb
language plpgsql
as $$
-- Purpose: replaces the content of a post. p_raw is the whole new content, p_changes are its fields
--          that differ, for sent posts, at p_at.
-- Returns: as replace_post without "dry_run".
-- Locks:   as replace_waiting.
-- Writes:  admin_audit_log; as replace_waiting and edit_sent.
declare
	v_none constant jsonb := '{"applied": false, "requested": 0, "replaced": 0, "pending": 0, "refused": 0, "results": []}';
	v_message autopost.messages;
	v_reason text := autopost.replace_obstacle(p_workspace_id, p_message_id);
	v_post jsonb;
	v_results jsonb;
	v_done jsonb;
begin
	if v_reason is not null then
		return v_none || jsonb_build_object('reason', v_reason);
	end if;
	select m.* into v_message from autopost.messages m
	where m.workspace_id = p_workspace_id and m.message_id = p_message_id;
	v_post := autopost.prepare_post(p_workspace_id, jsonb_build_object('raw', jsonb_strip_nulls(jsonb_build_object(
		'source_ref', v_message.source_ref)) || p_raw, 'trace_id', autopost.new_id()));
	if v_post ? 'errors' then
		return v_none || jsonb_build_object('reason', 'invalid', 'errors', v_post -> 'errors');
	end if;
	v_results := autopost.replace_waiting(p_workspace_id, v_message, v_post, p_meta)
		|| autopost.edit_sent(p_workspace_id, p_message_id, p_changes, p_at, p_meta);
	v_done := jsonb_path_query_array(v_results, '$[*] ? (@.applied == true)');
	if v_done <> '[]' then
		perform autopost.audit(p_workspace_id, 'replace_post', 'message:' || p_message_id, p_meta,
			autopost.fields_that_differ(v_message.payload, v_post -> 'payload'),
			autopost.fields_that_differ(v_post -> 'payload', v_message.payload) || jsonb_strip_nulls(jsonb_build_object(
				'message_id', jsonb_path_query_first(v_done, '$[*].message_id'), 'deliveries',
				jsonb_path_query_array(v_done, '$[*].delivery_id'))));
	end if;
	return jsonb_strip_nulls(jsonb_build_object('applied', v_done <> '[]', 'reason', case when v_results = '[]'
		then 'nothing_waits' end, 'message_id', jsonb_path_query_first(v_done,
		'$[*].message_id'), 'results', jsonb_path_query_array(v_results, '$[0 to 999]')) || (
		select jsonb_build_object('requested', count(*) filter (where r.value ->> 'change' = 'edited'), 'replaced',
			count(*) filter (where r.value ->> 'change' = 'replaced'), 'pending', count(*) filter (
			where r.value ->> 'change' = 'pending'), 'refused',
				count(*) filter (where r.value ->> 'change' = 'refused'))
		from jsonb_array_elements(v_results) r));
end
$$;

create or replace function autopost.replace_or_plan(p_workspace_id text, p_message_id uuid, p_raw jsonb,
	p_changes jsonb,
	p_at timestamptz, p_meta jsonb, p_dry_run boolean) returns jsonb
language plpgsql
as $$
-- Purpose: replace_content; a dry run does the same and rolls back.
-- Raises:  AP001 for a wrong argument.
declare
	v_answer jsonb;
	v_field text;
begin
	perform autopost.require_argument('message_id', p_message_id is not null);
	perform autopost.require_argument('raw_payload', jsonb_typeof(p_raw) = 'object');
	select k.key into v_field from jsonb_object_keys(p_raw) k (key)
	where k.key in ('scheduled_for', 'slot', 'routing') order by k.key limit 1;
	if v_field is not null then
		perform autopost.raise_argument(v_field,
			'must not be given: the new content takes times and channels of the old',
			case v_field when 'routing' then 'leave it out' else 'leave it out, and move the post: reschedule' end);
	end if;
	if not p_dry_run then
		return autopost.replace_content(p_workspace_id, p_message_id, p_raw, p_changes, p_at, p_meta)
			|| '{"dry_run": false}';
	end if;
	begin
		v_answer := autopost.replace_content(p_workspace_id, p_message_id, p_raw, p_changes, p_at, p_meta);
		raise exception 'planned' using errcode = 'AP900';
	exception when sqlstate 'AP900' then
		null; -- the writes are rolled back, the variables stay
	end;
	-- ids of rows that were rolled back
	return v_answer || '{"dry_run": true}' || jsonb_build_object('message_id', null, 'results', (
		select jsonb_agg(r.value - '{new_delivery_id,message_id,new_submission_id,act_id}'::text[] - case
			when r.value ? 'delivery_id' then 'submission_id' else '' end order by r.ordinality)
		from jsonb_array_elements(v_answer -> 'results') with ordinality r));
end
$$;

create or replace function autopost.replace_post(p_workspace_id text, p_message_id uuid, p_raw_payload jsonb,
	p_operator text, p_reason text, p_dry_run boolean) returns jsonb
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: replaces the content of a post in one transaction. Where the post waits, its deliveries end
--          as by skip_deliveries, and the new content takes their channels and times; it waits for a
--          decision where the channel or the endpoint of the post is moderated. What was sent is
--          edited by request_acts. p_raw_payload is the whole new content, without scheduled_for, slot
--          and routing; its media are stored already. A channel that cannot take it keeps the old one.
-- Returns: {"applied", "dry_run", "message_id": of the new content, "replaced", "pending",
--          "requested": edits of sent posts, "refused", "results": [the first 1,000: {"delivery_id",
--          "channel_id", "applied", "change": replaced | pending | edited | refused, and
--          "new_delivery_id", "message_id"; "submission_id"; "act_id"; or "reason", "message"}; for a
--          part that waited for a decision {"submission_id", "channels", "change": "pending",
--          "new_submission_id"}]}. {"applied": false, "reason"}: unknown_message, fanout_running,
--          too_many_channels, nothing_waits, or invalid with "errors". A dry run has the same answer
--          without new ids.
-- Raises:  AP001 for a wrong argument.
-- Locks:   submissions, media_origin (shared), channels, messages, deliveries, channel_gates,
--          audit_heads, in this order.
-- Reads:   messages, fanout_jobs, workspace_endpoints, channels, platforms, templates.
-- Writes:  messages, deliveries, submissions, post_acts, ingest_runs, channel_gates, events
--          (manual_skip, enqueue, submission_pending, submission_skipped, act_requested),
--          admin_audit_log.
declare
	v_meta jsonb;
	v_old jsonb;
begin
	perform autopost.enter_workspace(p_workspace_id);
	v_meta := autopost.manual_act(p_operator, p_reason, p_dry_run);
	v_old := (select m.payload from autopost.messages m where m.workspace_id = p_workspace_id
		and m.message_id = p_message_id);
	return autopost.replace_or_plan(p_workspace_id, p_message_id, p_raw_payload, (
		select coalesce(jsonb_object_agg(f.key, coalesce(p_raw_payload -> f.key, 'null')), '{}')
		from unnest(autopost.editable_fields()) f (key)
		where p_raw_payload -> f.key is distinct from v_old -> f.key), null, v_meta, p_dry_run);
end
$$;
