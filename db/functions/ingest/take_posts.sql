create or replace function autopost.unfetched_media(p_raw jsonb) returns boolean
language plpgsql immutable parallel safe
as $$
-- Purpose: true if media must be fetched into the media store before the post is enqueued.
begin
	return (
		select exists (
			select 1 from jsonb_path_query(p_raw, 'lax $.media[*] ? (@.url != null)') m
			where not m ?| '{blob_ref,file_id,attachment_token}'));
end
$$;

create or replace function autopost.submit(
	p_workspace_id text, p_endpoint_id text, p_kind text, p_item jsonb, p_run_id uuid, p_now timestamptz
) returns jsonb
language plpgsql
as $$
-- Purpose: keeps a post until its media are fetched and, if it is moderated, until a person decides.
--          p_item: {"raw", "trace_id", "route_tags", "moderated", "author"}.
-- Returns: the answer for the post.
-- Writes:  submissions, events (submission_pending).
declare
	v_id uuid := autopost.new_id();
	v_moderated boolean := coalesce((p_item -> 'moderated')::boolean, false);
	v_tags text[] := array(select jsonb_array_elements_text(coalesce(p_item -> 'route_tags', '[]')));
	v_submission autopost.submissions;
begin
	insert into autopost.submissions (workspace_id, submission_id, endpoint_id, kind, status, raw_payload, route_tags,
		source_ref, run_id, trace_id, next_attempt_at, created_at, updated_at, moderated, author)
	values (p_workspace_id, v_id, p_endpoint_id, p_kind, 'fetching', p_item -> 'raw', v_tags,
		p_item -> 'raw' ->> 'source_ref', p_run_id,
		(p_item ->> 'trace_id')::uuid, p_now, p_now, p_now, v_moderated, p_item ->> 'author')
	returning * into v_submission;
	if v_moderated and autopost.unfetched_media(p_item -> 'raw') then
		perform autopost.store_plan(v_submission, autopost.submission_plan(v_submission));
	elsif v_moderated then
		perform autopost.await_decision(p_workspace_id, v_id, p_item -> 'raw');
	end if;
	perform pg_notify('autopost_wake', 'submissions');
	return jsonb_build_object('status', 'accepted', 'run_id', p_run_id, 'trace_id', p_item -> 'trace_id', 'message_id',
		null, 'submission_id', v_id,
		'enqueued', 0, 'deduped', 0, 'invalid', 0, 'skipped', 0);
end
$$;

create or replace function autopost.take_posts(p_workspace_id text, p_endpoint_id text, p_kind text, p_items jsonb,
	p_run_id uuid, p_now timestamptz) returns jsonb
language plpgsql
as $$
-- Purpose: makes submissions (media to fetch, or a decision to wait for) or deliveries of posts with
--          receipts. p_items: [{"raw", "trace_id", "route_tags"}].
-- Returns: the answers in order.
-- Locks:   messages, channel_gates.
-- Writes:  submissions; as enqueue_posts.
declare
	v_item record;
	v_answers jsonb[] := array_fill(null::jsonb, array[jsonb_array_length(p_items)]);
	v_ready jsonb := '[]';
	v_places int[] := '{}';
	v_done jsonb;
	v_moderated boolean := (select e.moderated from autopost.workspace_endpoints e
		where e.workspace_id = p_workspace_id and e.endpoint_id = p_endpoint_id);
begin
	for v_item in select i.value, i.ordinality::int as n from jsonb_array_elements(p_items) with ordinality i loop
		if autopost.post_errors(p_workspace_id, v_item.value -> 'raw') = '[]'
			and (autopost.unfetched_media(v_item.value -> 'raw')
				or (v_moderated and autopost.origin_errors(p_workspace_id, v_item.value -> 'raw' -> 'media') = '[]')) then
			v_answers[v_item.n] := autopost.submit(p_workspace_id, p_endpoint_id, p_kind,
				v_item.value || jsonb_build_object('moderated', v_moderated), p_run_id, p_now);
		else
			v_ready := v_ready || v_item.value;
			v_places := v_places || v_item.n;
		end if;
	end loop;
	v_done := autopost.enqueue_posts(p_workspace_id, v_ready, p_run_id, p_now);
	for v_item in select i.value, v_places[i.ordinality] as n from jsonb_array_elements(v_done) with ordinality i loop
		v_answers[v_item.n] := v_item.value;
	end loop;
	return to_jsonb(v_answers);
end
$$;
