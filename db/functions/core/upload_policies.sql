-- The upload policy of a platform is shown and changed as the setting upload_policy_PLATFORM. It is kept in platforms.
create or replace function autopost.all_settings() returns setof autopost.settings
language plpgsql stable
as $$
-- Purpose: the settings and the upload policies of the platforms.
-- Reads:   settings, platforms.
begin
	return query
	select s.* from autopost.settings s;
	return query
	select 'upload_policy_' || p.platform, p.upload_policy, format(
		'whether %s gets media by upload_required or, for images of max, url_allowed: the platform fetches the source URL',
		p.platform), null::timestamptz, d.policy, null::bigint, null::bigint, false
	from autopost.platforms p
	cross join (select jsonb_object_agg(t.type, 'upload_required') as policy
		from unnest('{image,video,file,audio,other}'::text[]) t (type)) d;
end
$$;

create or replace function autopost.set_upload_policy(p_key text, p_value jsonb) returns jsonb
language plpgsql
as $$
-- Purpose: changes the upload policy of a platform. p_key: upload_policy_PLATFORM. p_value: {type:
--          policy}; missing types are upload_required.
-- Returns: {"key", "before", "after"}; null if nothing changes.
-- Raises:  AP001 for an unknown type or policy, and for url_allowed where the adapter sends no URLs.
-- Locks:   platforms.
-- Writes:  platforms.
declare
	v_platform text := substr(p_key, length('upload_policy_') + 1);
	v_before jsonb;
	v_after jsonb;
	v_bad text;
begin
	select a.value, a.default_value || case jsonb_typeof(p_value) when 'object' then p_value else '{}' end
	into v_before, v_after
	from autopost.all_settings() a where a.key = p_key;
	v_bad := case when jsonb_typeof(p_value) <> 'object' then p_value::text else (
		select format('%s: %s', e.key, e.value) from jsonb_each(v_after) e
		where e.key not in ('image', 'video', 'file', 'audio', 'other')
			or e.value <> '"upload_required"' and (e.value <> '"url_allowed"' or e.key <> 'image' or v_platform <> 'max')
		order by e.key limit 1) end;
	if v_bad is not null then
		perform autopost.raise_argument('value', format('%s must be an object of image, video, file, audio and other with '
			'upload_required, or url_allowed for images of max, got %s', p_key, left(v_bad, 100)),
			'write {"image": "url_allowed"} for max, or {} for the default');
	end if;
	if v_after = v_before then
		return null;
	end if;
	update autopost.platforms p set upload_policy = v_after where p.platform = v_platform;
	return jsonb_build_object('key', p_key, 'before', v_before, 'after', v_after);
end
$$;
