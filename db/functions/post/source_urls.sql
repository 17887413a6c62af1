create or replace function autopost.upload_policy(p_platform autopost.platforms, p_type text) returns text
language sql immutable parallel safe
as $$
-- Purpose: upload_required or url_allowed, for a type of medium.
select p_platform.upload_policy ->> case p_type when 'animation' then 'other' else p_type end
$$;

create or replace function autopost.source_urls(p_raw jsonb) returns jsonb
language plpgsql stable
as $$
-- Purpose: the source URLs of the media of a post that platforms may fetch: {"urls": {blob_ref:
--          url}}; {} if the upload policy of every platform requires uploads.
-- Reads:   platforms.
begin
	return case when p_raw -> 'media' @? '$[*] ? (exists (@.url) && exists (@.blob_ref))'
		and exists (select 1 from autopost.platforms p where p.upload_policy @? '$.* ? (@ == "url_allowed")')
		then (
			select coalesce(jsonb_build_object('urls', jsonb_object_agg(m.value ->> 'blob_ref', m.value -> 'url')),
				'{}')
			from jsonb_array_elements(p_raw -> 'media') m
			where m.value ?& '{url,blob_ref}' and length(m.value ->> 'url') <= 2048)
		else '{}' end;
end
$$;

create or replace function autopost.record_source_urls(p_workspace_id text, p_post jsonb, p_ids text[]) returns void
language plpgsql
as $$
-- Purpose: keeps the source URLs of a frozen post for source_url_time, for the credentials of its
--          channels p_ids whose platform may fetch them. A valid id of the platform stays.
-- Reads:   channels, channel_auth, platforms.
-- Writes:  media_blobs.
declare
	v_now timestamptz := autopost.now_ts();
	v_expires_at timestamptz := v_now + autopost.source_url_time();
	v_refs text[];
	v_platforms text[];
	v_accounts text[];
	v_kinds text[];
begin
	if not p_post ? 'urls' then
		return;
	end if;
	select array_agg(x.blob_ref), array_agg(x.platform), array_agg(x.auth_ref), array_agg(x.kind)
	into v_refs, v_platforms, v_accounts, v_kinds
	from (
		select distinct m.value ->> 'blob_ref' as blob_ref, c.platform, coalesce(a.auth_ref, c.auth_ref) as auth_ref,
			m.value ->> 'type' as kind
		from jsonb_array_elements(p_post -> 'payload' -> 'media') m
		join autopost.platforms p on autopost.upload_policy(row(p.*)::autopost.platforms,
			m.value ->> 'type') = 'url_allowed'
		join autopost.channels c on c.workspace_id = p_workspace_id and c.platform = p.platform
			and c.channel_id = any (p_ids)
		left join autopost.channel_auth a on a.workspace_id = p_workspace_id and a.channel_id = c.channel_id
		where p_post -> 'urls' ? (m.value ->> 'blob_ref')
		order by 1, 2, 3, 4) x;
	insert into autopost.media_blobs as b (workspace_id, blob_ref, provider, auth_ref, kind, url, expires_at, created_at,
		updated_at)
	select p_workspace_id, u.blob_ref, u.platform, u.auth_ref, u.kind, p_post -> 'urls' ->> u.blob_ref, v_expires_at,
		v_now, v_now
	from unnest(v_refs, v_platforms, v_accounts, v_kinds) u (blob_ref, platform, auth_ref, kind)
	on conflict (workspace_id, blob_ref, provider, auth_ref, kind) do update
	set url = excluded.url, file_id = null, expires_at = excluded.expires_at, updated_at = excluded.updated_at
	where b.file_id is null or b.expires_at <= excluded.updated_at;
end
$$;

create or replace function autopost.clear_source_urls(p_workspace_id text, p_now timestamptz, p_limit int) returns int
language plpgsql
as $$
-- Purpose: deletes expired source URLs. Returns their number.
-- Locks:   media_blobs (skip locked).
-- Writes:  media_blobs.
declare
	v_count int;
begin
	delete from autopost.media_blobs b
	using (
		select x.blob_ref, x.provider, x.auth_ref, x.kind from autopost.media_blobs x
		where x.workspace_id = p_workspace_id and x.url is not null and x.expires_at <= p_now
		limit p_limit
		for update skip locked) e
	where b.workspace_id = p_workspace_id and b.blob_ref = e.blob_ref and b.provider = e.provider
		and b.auth_ref = e.auth_ref and b.kind = e.kind;
	get diagnostics v_count = row_count;
	return v_count;
end
$$;
