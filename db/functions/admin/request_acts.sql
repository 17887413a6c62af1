create or replace function autopost.act_refusals(p_workspace_id text, p_kind text, p_delivery_ids uuid[], p_edits jsonb)
	returns jsonb
language plpgsql stable
as $$
-- Purpose: the deliveries that refuse a post change, {delivery_id: {"reason", "message"}}.
-- Reads:   deliveries, channels, platforms, post_acts.
begin
	return (
		select coalesce(jsonb_object_agg(r.id, jsonb_build_object('reason', r.reason, 'message', case r.reason
			when 'unknown_delivery' then 'the workspace does not have this delivery'
			when 'not_sent'
				then format('the delivery is %s: only what was sent can be changed; skip_deliveries ends what waits',
				r.status)
			when 'platform_cannot' then format('%s takes no %s of a post: it takes %s', r.platform, p_kind,
				coalesce(nullif(array_to_string(r.acts, ', '), ''), 'none'))
			when 'deleted' then 'the post was deleted already'
			when 'ids_unknown'
				then 'the platform''s ids of its messages are not all known: do it by hand at the platform'
			else p_edits -> r.id::text ->> 'refusal' end)), '{}')
		from (
			select u.id, d.status, c.platform, p.acts, case
				when d.delivery_id is null then 'unknown_delivery'
				when d.status <> 'sent' then 'not_sent'
				when p_kind <> all (p.acts) then 'platform_cannot'
				when autopost.was_deleted(p_workspace_id, u.id) then 'deleted'
				when autopost.sent_ids(d.render_meta, d.provider_message_id, row(p.*)::autopost.platforms) is null
					then 'ids_unknown'
				when p_edits -> u.id::text ? 'refusal' then 'validation_failed' end as reason
			from unnest(p_delivery_ids) u (id)
			left join lateral (select d.* from autopost.deliveries d
				where d.workspace_id = p_workspace_id and d.delivery_id = u.id limit 1) d on true
			left join lateral (select c.platform from autopost.channels c
				where c.workspace_id = p_workspace_id and c.channel_id = d.channel_id limit 1) c on true
			left join autopost.platforms p on p.platform = c.platform) r
		where r.reason is not null);
end
$$;

create or replace function autopost.acts_subjects(p_workspace_id text, p_message_id uuid, p_delivery_ids uuid[])
	returns uuid[]
language plpgsql stable
as $$
-- Purpose: the deliveries to change, each once, in order: the sent or waiting ones of a message, or
--          the named ones.
-- Raises:  AP001 if neither or both are given.
-- Reads:   deliveries.
begin
	if (p_message_id is null) = (coalesce(p_delivery_ids, '{}') = '{}') then
		perform autopost.raise_argument('delivery_ids', 'must be given, or a message, but not both',
			'name deliveries, or one message for all its channels');
	elsif p_message_id is null then
		return array(select u.id from unnest(p_delivery_ids) with ordinality u (id, n) group by u.id order by min(u.n));
	end if;
	return array(
		select d.delivery_id from autopost.deliveries d
		where d.workspace_id = p_workspace_id and d.message_id = p_message_id
			and d.status not in ('deduped', 'failed_permanent', 'dead')
		order by d.channel_id, d.delivery_id);
end
$$;

create or replace function autopost.request_acts(
	p_workspace_id text, p_kind text, p_message_id uuid, p_delivery_ids uuid[], p_changes jsonb, p_at timestamptz,
		p_operator text, p_reason text, p_dry_run boolean
) returns jsonb
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: requests a change of sent posts: p_kind edit, delete, pin or unpin; for these
--          deliveries, or for all of a message; at p_at, or now. p_changes of an edit has new
--          values (text, parse_mode, link, buttons, disable_preview, template, variants), which are
--          checked and rendered as in an enqueue. The delivery stays sent, and its dedup window
--          still covers the original content. An edit does not apply to a repeat of the post.
-- Returns: {"applied", "dry_run", "requested", "refused", "results": [{"delivery_id", "channel_id",
--          "applied", "act_id" | "reason", "message"}, the first 1,000], "reason": of a single
--          refused delivery, or "unknown_message"}, ordered by id. A dry run has the same answer.
-- Raises:  AP001 for a wrong argument, and for an edit that no platform supports.
-- Locks:   deliveries (key share).
-- Reads:   deliveries, messages, channels, templates, platforms, media_origin.
-- Writes:  post_acts, events(act_requested), admin_audit_log.
declare
	v_meta jsonb;
	v_ids uuid[];
	v_message record;
	v_edits jsonb := '{}';
	v_refused jsonb;
	v_acts jsonb := '{}';
	v_results jsonb;
	v_requested int;
	v_now timestamptz;
	v_due timestamptz;
begin
	perform autopost.enter_workspace(p_workspace_id);
	v_meta := autopost.manual_act(p_operator, p_reason, p_dry_run);
	if coalesce(p_kind not in ('edit', 'delete', 'pin', 'unpin'), true) then
		perform autopost.raise_argument('kind', 'must be edit, delete, pin or unpin', 'pass one of these kinds');
	elsif p_kind <> 'edit' and p_changes is not null then
		perform autopost.raise_argument('changes', format('must be null for %s', p_kind), 'omit it');
	elsif p_at > autopost.now_ts() + autopost.setting_interval('delivery_retention_days') then
		perform autopost.raise_argument('at', 'must be within the retention of deliveries',
			'choose an earlier time, or raise the setting delivery_retention_days');
	end if;
	v_ids := autopost.acts_subjects(p_workspace_id, p_message_id, p_delivery_ids);
	if not exists (select 1 from autopost.messages m where m.workspace_id = p_workspace_id
		and m.message_id = p_message_id) and p_message_id is not null then
		return jsonb_build_object('applied', false, 'dry_run', p_dry_run, 'requested', 0, 'refused', 0, 'reason',
			'unknown_message', 'results', '[]'::jsonb);
	end if;
	if p_kind = 'edit' then
		perform autopost.require_argument('changes', p_changes is not null);
		for v_message in
			select d.message_id, array_agg(d.delivery_id) as ids from unnest(v_ids) u (id)
			join autopost.deliveries d on d.workspace_id = p_workspace_id and d.delivery_id = u.id and d.status = 'sent'
			group by d.message_id
		loop
			v_edits := v_edits || autopost.render_edit(p_workspace_id, v_message.message_id, v_message.ids, p_changes);
		end loop;
	end if;
	v_refused := autopost.act_refusals(p_workspace_id, p_kind, v_ids, v_edits);
	v_now := autopost.now_ts();
	v_due := coalesce(p_at, v_now);
	if not p_dry_run then
		with made as (
			insert into autopost.post_acts (workspace_id, act_id, delivery_id, message_id, channel_id, lane, kind,
				due_at, next_at, rendered_text, render_meta,
				operator, reason, created_at, updated_at)
			select p_workspace_id, autopost.new_id(), d.delivery_id, d.message_id, d.channel_id,
				c.platform || '/' || c.rate_group, p_kind, v_due, greatest(v_due, v_now),
				v_edits -> d.delivery_id::text ->> 'text', v_edits -> d.delivery_id::text -> 'meta', p_operator,
					p_reason, v_now, v_now
			from unnest(v_ids) with ordinality u (id, n)
			join autopost.deliveries d on d.workspace_id = p_workspace_id and d.delivery_id = u.id
			cross join lateral (select c.platform, c.rate_group from autopost.channels c
				where c.workspace_id = p_workspace_id and c.channel_id = d.channel_id limit 1) c
			where not v_refused ? u.id::text
			order by u.n
			returning act_id, delivery_id, message_id, channel_id
		), logged as (
			insert into autopost.events (workspace_id, id, delivery_id, message_id, channel_id, ts, action, attempt,
				result, meta)
			select p_workspace_id, autopost.new_id(), m.delivery_id, m.message_id, m.channel_id, v_now, 'act_requested',
				d.attempt, 'ok',
				autopost.redact(jsonb_strip_nulls(v_meta || jsonb_build_object('act_id', m.act_id, 'kind', p_kind, 'at',
					p_at)))
			from made m
			join autopost.deliveries d on d.workspace_id = p_workspace_id and d.delivery_id = m.delivery_id
		)
		select coalesce(jsonb_object_agg(m.delivery_id, m.act_id), '{}') into v_acts from made m;
		perform pg_notify('autopost_wake', 'acts') where v_acts <> '{}' and v_due <= v_now;
	end if;
	select coalesce(jsonb_agg(r.result order by r.n) filter (where r.n <= 1000), '[]'),
		count(*) filter (where r.result -> 'applied' = 'true') into v_results, v_requested
	from (
		select u.n, jsonb_strip_nulls(jsonb_build_object('delivery_id', u.id, 'channel_id', d.channel_id, 'applied',
			not v_refused ? u.id::text, 'act_id', v_acts -> u.id::text)
			|| coalesce(v_refused -> u.id::text, '{}')) as result
		from unnest(v_ids) with ordinality u (id, n)
		left join autopost.deliveries d on d.workspace_id = p_workspace_id and d.delivery_id = u.id) r;
	if v_acts <> '{}' then
		perform autopost.audit(p_workspace_id, 'request_acts', case when p_message_id is null then 'deliveries'
			else 'message:' || p_message_id end, v_meta, '{}',
			jsonb_strip_nulls(jsonb_build_object('kind', p_kind, 'at', p_at, 'requested', v_requested, 'changes',
				p_changes,
				'deliveries', jsonb_path_query_array(v_results, '$[*] ? (@.applied == true).delivery_id'))));
	end if;
	return jsonb_strip_nulls(jsonb_build_object('applied', v_requested > 0, 'dry_run', p_dry_run, 'requested',
		v_requested, 'refused', cardinality(v_ids) - v_requested,
		'reason', case when v_requested = 0 and cardinality(v_ids) = 1 then v_results -> 0 -> 'reason' end, 'results',
			v_results));
end
$$;
