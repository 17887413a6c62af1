create or replace function autopost.link_media() returns trigger
language plpgsql
as $$
-- Purpose: records the media of a new message. They stay as long as the message does.
-- Writes:  message_media.
begin
	insert into autopost.message_media (workspace_id, message_id, blob_ref)
	select distinct new.workspace_id, new.message_id, b.value ->> 'blob_ref'
	from jsonb_array_elements(new.payload -> 'media') b
	where b.value ? 'blob_ref';
	return null;
end
$$;

create or replace trigger link_media after insert on autopost.messages
	for each row when (new.payload ? 'media') execute function autopost.link_media();

create or replace function autopost.count_references(p_workspace_id text, p_message_ids uuid[], p_change int) returns
	void
language plpgsql
as $$
-- Purpose: changes media_origin.ref_count by p_change for each medium of these messages. Only the
--          row of a run is locked after it, so that enqueues with the same media cannot deadlock.
-- Locks:   media_origin (blob_ref).
-- Writes:  media_origin.
declare
	v_refs text[];
	v_counts bigint[];
begin
	select array_agg(x.blob_ref order by x.blob_ref), array_agg(x.n order by x.blob_ref) into v_refs, v_counts
	from (
		select m.blob_ref, count(*) as n from autopost.message_media m
		where m.workspace_id = p_workspace_id and m.message_id = any (p_message_ids)
		group by m.blob_ref) x;
	if v_refs is null then
		return;
	end if;
	perform 1 from autopost.media_origin o
	where o.workspace_id = p_workspace_id and o.blob_ref = any (v_refs)
	order by o.blob_ref
	for no key update of o;
	update autopost.media_origin o set ref_count = o.ref_count + p_change * u.n
	from unnest(v_refs, v_counts) u (blob_ref, n)
	where o.workspace_id = p_workspace_id and o.blob_ref = u.blob_ref;
end
$$;

create or replace function autopost.hold_origins(p_workspace_id text, p_items jsonb) returns void
language plpgsql
as $$
-- Purpose: protects the media of posts from removal until the posts are messages. p_items:
--          [{"raw"}].
-- Locks:   media_origin (blob_ref), shared. A removal holds only that one row and waits for nothing
--          else.
declare
	v_refs text[] := array(select distinct r #>> '{}'
		from jsonb_path_query(p_items, 'lax $[*].raw.media[*].blob_ref') r);
begin
	if v_refs <> '{}' then
		perform 1 from autopost.media_origin o
		where o.workspace_id = p_workspace_id and o.blob_ref = any (v_refs)
		order by o.blob_ref
		for key share of o;
	end if;
end
$$;

create or replace function autopost.origin_in_use(p_workspace_id text, p_blob_ref text) returns boolean
language plpgsql
as $$
-- Purpose: true if a message, an open submission, a draft, a post that repeats or a file job that is
--          not published uses a medium.
-- Reads:   message_media, submissions, drafts, recurrences, publish_jobs.
begin
	return exists (
		select 1 from autopost.message_media m
		where m.workspace_id = p_workspace_id and m.blob_ref = p_blob_ref)
	or exists (
		select 1 from autopost.submissions s
		where s.workspace_id = p_workspace_id and s.status in ('new', 'fetching', 'pending')
		and s.raw_payload -> 'media' @> jsonb_build_array(jsonb_build_object('blob_ref', p_blob_ref)))
	or exists (
		select 1 from autopost.drafts d
		where d.workspace_id = p_workspace_id and d.submitted_at is null
		and d.payload -> 'media' @> jsonb_build_array(jsonb_build_object('blob_ref', p_blob_ref)))
	or exists (
		select 1 from autopost.recurrences r
		where r.workspace_id = p_workspace_id
		and r.payloads @? format('$[*].media[*] ? (@.blob_ref == "%s")', p_blob_ref)::jsonpath)
	or exists (
		select 1 from autopost.publish_jobs j
		where j.workspace_id = p_workspace_id and j.status not in ('published', 'rejected')
		and j.artifacts @? format('$.* ? (@.blob_ref == "%s")', p_blob_ref)::jsonpath);
end
$$;

create or replace function autopost.origin_kept_from(p_origin autopost.media_origin) returns timestamptz
language plpgsql
as $$
-- Purpose: a medium is kept if it was last used after this instant. Large videos go earlier.
begin
	return autopost.now_ts() - autopost.setting_interval(case
		when (p_origin.kind = 'video' or p_origin.content_type like 'video/%')
			and p_origin.size_bytes >= autopost.setting('large_video_bytes_threshold')
		then 'origin_retention_large_video_days' else 'origin_retention_days' end);
end
$$;
