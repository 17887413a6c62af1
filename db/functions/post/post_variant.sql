create or replace function autopost.post_fields() returns text[]
language sql immutable parallel safe
as $$
-- Purpose: the extra fields of a variant on platforms whose post_fields name them.
select '{made_with_ai,paid_partnership,reply_settings}'::text[]
$$;

create or replace function autopost.post_variant_errors(p_variant jsonb, p_at text) returns jsonb
language plpgsql immutable parallel safe
as $$
-- Purpose: the errors in the form of these fields, as {field, reason, remedy}.
begin
	return (
		select coalesce(jsonb_agg(autopost.field_error(p_at || '.' || f.key, f.reason, f.remedy) -> 0 order by f.key), '[]')
		from (
			select f.key, case when f.key <> 'reply_settings' and jsonb_typeof(f.value) <> 'boolean' then 'must be a boolean'
					when f.key = 'reply_settings' and f.value not in ('"everyone"', '"following"', '"mentionedUsers"',
						'"subscribers"', '"verified"') then 'is unknown' end as reason,
				case f.key when 'reply_settings' then 'use everyone, following, mentionedUsers, subscribers or verified'
					else 'write true or false' end as remedy
			from jsonb_each(p_variant) f
			where f.key = any (autopost.post_fields())) f
		where f.reason is not null);
end
$$;

create or replace function autopost.post_variant(p_variant jsonb, p_fields text[]) returns jsonb
language plpgsql immutable parallel safe
as $$
-- Purpose: the given fields of a variant; null if it has none of them.
begin
	return (
		select jsonb_object_agg(f.key, f.value) from jsonb_each(p_variant) f where f.key = any (p_fields));
end
$$;
