-- Submissions that wait for a decision: what the decision is about, and how they wait.

create or replace function autopost.submission_item(p_submission autopost.submissions) returns jsonb
language sql stable
as $$
-- Purpose: a submission as an item of enqueue_posts. An approved one carries the approved texts. An
--          event of Global X goes only to its channel. A file job was approved before.
--          One that replaces a post goes to the channels of that post.
-- Reads:   x_post_config, channels.
select jsonb_build_object('raw', p_submission.raw_payload, 'trace_id', p_submission.trace_id, 'route_tags',
		p_submission.route_tags)
	|| case when p_submission.kind = 'file' then '{"decided": true}' else '{}' end::jsonb
	|| case when p_submission.moderated then jsonb_build_object('decided', true, 'approved', (
		select coalesce(jsonb_object_agg(r.value ->> 'key', md5(autopost.shown_texts(r.value ->> 'text',
			r.value -> 'later'))),
			'{}')
		from jsonb_array_elements(p_submission.plan -> 'renderings') r)) else '{}' end
	|| case when p_submission.channels is not null
		then jsonb_build_object('channels', p_submission.channels, 'part_of', p_submission.message_id) else '{}' end
	|| case when p_submission.replaces is not null then '{"fixed": true}' else '{}'::jsonb end
	|| case when p_submission.event_type in ('image', 'video', 'combat') then jsonb_build_object('channels',
		to_jsonb(array_remove(array[autopost.x_channel(p_submission.workspace_id)], null))) else '{}' end
$$;

create or replace function autopost.submission_plan(p_submission autopost.submissions) returns jsonb
language plpgsql stable
as $$
-- Purpose: what a decision is about: each different text with its platform and number of channels,
--          and the media of the post, by URL until they are stored. Shows at most 2,000 channels.
-- Returns: {"renderings": [{"key", "platform", "verdict", "text", "later": [{"step", "text", "items"}],
--          "reason", "channels": their number,
--          "channel_ids": the first 10}], "media"}; null for an invalid post.
-- Reads:   channels, platforms, media_origin, templates.
declare
	v_post jsonb := autopost.prepare_post(p_submission.workspace_id, autopost.submission_item(p_submission)
		|| '{"decided": true, "unfetched": true}');
	v_route record;
	v_shown record;
begin
	if v_post ? 'errors' then
		return null;
	end if;
	v_post := autopost.frozen_post(v_post, p_submission.run_id, autopost.now_ts());
	select r.ids, r.choices, r.renderings into v_route
		from autopost.route_post(p_submission.workspace_id, v_post, '', 2000) r;
	select s.verdicts, s.errors, s.texts, s.metas into v_shown
		from autopost.show_post(p_submission.workspace_id, v_post -> 'payload', v_post -> 'tags', v_route.renderings) s;
	return jsonb_build_object('media', coalesce(v_post -> 'payload' -> 'media', '[]'), 'renderings', (
		select coalesce(jsonb_agg(jsonb_strip_nulls(jsonb_build_object('key', md5(r.value::text),
			'platform', r.value -> 'platform', 'verdict', v_shown.verdicts[r.ordinality],
			'text', v_shown.texts[r.ordinality], 'later', autopost.later_texts(v_shown.metas[r.ordinality]), 'reason',
				v_shown.errors[r.ordinality] -> 'message',
			'channels', (select count(*) from unnest(v_route.choices) c (choice) where c.choice = r.ordinality),
			'channel_ids', (select jsonb_agg(f.id order by f.id) from (
				select c.id from unnest(v_route.ids, v_route.choices) c (id, choice)
				where c.choice = r.ordinality order by c.id limit 10) f)))
			order by r.value ->> 'platform', md5(r.value::text)), '[]')
		from jsonb_array_elements(v_route.renderings) with ordinality r));
end
$$;

create or replace function autopost.plan_digest(p_plan jsonb) returns text
language sql immutable parallel safe
as $$
-- Purpose: the digest of a plan: texts, media and platforms, without the channels.
select encode(sha256(convert_to(jsonb_build_object('media', p_plan -> 'media', 'texts', (
	select coalesce(jsonb_agg(distinct jsonb_build_array(r.value -> 'platform', r.value -> 'verdict',
		r.value ->
		'text')
		|| case when r.value ? 'later' then jsonb_build_array(r.value -> 'later') else '[]' end), '[]')
	from jsonb_array_elements(p_plan -> 'renderings') r))::text, 'UTF8')), 'hex')
$$;

create or replace function autopost.plan_changed(p_old jsonb, p_new jsonb) returns boolean
language sql immutable parallel safe
as $$
-- Purpose: true if a rendering of the old plan now has another text, or the media differ. A new
--          channel changes nothing.
select p_new is null or p_old -> 'media' is distinct from p_new -> 'media' or exists (
	select 1 from jsonb_array_elements(p_old -> 'renderings') o
	join jsonb_array_elements(p_new -> 'renderings') n on n.value ->> 'key' = o.value ->> 'key'
	where (o.value -> 'text', o.value -> 'later', o.value -> 'verdict')
		is distinct from (n.value -> 'text', n.value -> 'later', n.value -> 'verdict'))
$$;

create or replace function autopost.store_plan(p_submission autopost.submissions, p_plan jsonb) returns text
language plpgsql
as $$
-- Purpose: stores a new plan of a locked submission. Approvals of the plan before it become void.
-- Returns: the digest of the plan.
-- Writes:  submissions, approvals.
declare
	v_digest text := autopost.plan_digest(p_plan);
	v_now timestamptz := autopost.now_ts();
begin
	update autopost.submissions s
	set plan = p_plan, digest = v_digest, updated_at = v_now
	where s.workspace_id = p_submission.workspace_id and s.submission_id = p_submission.submission_id;
	v_now := autopost.now_ts();
	update autopost.approvals a
	set voided_at = v_now
	where a.workspace_id = p_submission.workspace_id and a.subject = 'submission:' || p_submission.submission_id
		and a.voided_at is null and a.digest is distinct from v_digest;
	return v_digest;
end
$$;

create or replace function autopost.note_submission(p_submission autopost.submissions, p_action text, p_meta jsonb)
	returns void
language plpgsql
as $$
-- Purpose: writes an event of a submission and wakes the stages.
-- Reads:   moderation_chats.
-- Writes:  events.
begin
	perform autopost.emit_note(p_submission.workspace_id, p_action, 'ok', null, p_submission.message_id, null,
		jsonb_build_object('submission_id', p_submission.submission_id, 'run_id', p_submission.run_id, 'trace_id',
			p_submission.trace_id) || p_meta);
	perform pg_notify('autopost_wake', 'submissions');
	perform pg_notify('autopost_wake', 'moderation')
	where exists (select 1 from autopost.moderation_chats c where c.workspace_id = p_submission.workspace_id);
end
$$;

create or replace function autopost.await_decision(p_workspace_id text, p_submission_id uuid, p_raw jsonb) returns void
language plpgsql
as $$
-- Purpose: a submission with complete media waits for a decision, with its plan.
-- Writes:  submissions, events (submission_pending).
declare
	v_submission autopost.submissions;
	v_plan jsonb;
	v_now timestamptz;
begin
	update autopost.submissions s
	set raw_payload = p_raw
	where s.workspace_id = p_workspace_id and s.submission_id = p_submission_id
	returning s.* into v_submission;
	v_plan := autopost.submission_plan(v_submission);
	v_now := autopost.now_ts();
	update autopost.submissions s
	set status = 'pending', claim_token = null, lease_until = null, last_error = null, plan = v_plan,
		digest = autopost.plan_digest(v_plan), updated_at = v_now,
		expires_at = v_now + autopost.setting_interval('submission_expire_hours')
	where s.workspace_id = p_workspace_id and s.submission_id = p_submission_id
	returning s.* into v_submission;
	perform autopost.note_submission(v_submission, 'submission_pending', jsonb_build_object('digest',
		v_submission.digest));
end
$$;

create or replace function autopost.hold_part(p_workspace_id text, p_post jsonb, p_prepared jsonb) returns jsonb
language plpgsql
as $$
-- Purpose: keeps the moderated channels of a post until a person decides. One submission holds all of
--          them. A channel that waits already in another part of the same message is counted, and not
--          held twice. p_post comes from frozen_post, p_prepared from prepare_post.
-- Returns: {"pending": number of channels, "submission_id"}; {} if no channel is moderated.
-- Reads:   channels, ingest_runs.
-- Writes:  submissions, events (submission_pending).
declare
	v_all text[];
	v_new text[];
	v_id uuid;
begin
	select array_agg(c.channel_id order by c.channel_id) into v_all
	from autopost.channels c
	where c.workspace_id = p_workspace_id and c.moderated
	and autopost.is_routed(row(c.*)::autopost.channels, autopost.texts_of(p_post -> 'tags'),
		autopost.texts_of(p_post -> 'include'),
		autopost.texts_of(p_post -> 'exclude'));
	if v_all is null then
		return '{}';
	end if;
	v_new := array(select u.id from unnest(v_all) u (id) except
		select unnest(s.channels) from autopost.submissions s
		where s.workspace_id = p_workspace_id and s.message_id = (p_post ->> 'message_id')::uuid
			and s.status = 'pending' order by 1);
	if v_new = '{}' then
		select s.submission_id into v_id from autopost.submissions s
		where s.workspace_id = p_workspace_id and s.message_id = (p_post ->> 'message_id')::uuid
			and s.status = 'pending'
		order by s.submission_id limit 1;
	else
		v_id := autopost.new_id();
		insert into autopost.submissions (workspace_id, submission_id, endpoint_id, kind, status, raw_payload,
			route_tags,
			source_ref, run_id, trace_id, message_id, moderated, channels, author, created_at, updated_at)
		select p_workspace_id, v_id, r.endpoint_id, r.kind, 'new', p_prepared -> 'raw',
			array(select jsonb_array_elements_text(coalesce(p_prepared -> 'route_tags', '[]'))),
			p_prepared ->> 'source_ref', r.run_id, autopost.new_id(), (p_post ->> 'message_id')::uuid, true,
			v_new, p_prepared ->> 'author', autopost.now_ts(), autopost.now_ts()
		from autopost.ingest_runs r
		where r.workspace_id = p_workspace_id and r.run_id = (p_post ->> 'run_id')::uuid;
		perform autopost.await_decision(p_workspace_id, v_id, p_prepared -> 'raw');
	end if;
	return jsonb_build_object('pending', cardinality(v_all), 'submission_id', v_id);
end
$$;
