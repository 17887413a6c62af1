-- These functions are stable because to_jsonb is; otherwise they would not be inlined into the
-- statements that run them once per channel.

create or replace function autopost.route_matches(p_filter jsonb, p_tags text[]) returns boolean
language sql stable parallel safe
as $$
-- Purpose: true if the route_filter of a channel accepts these tags. No filter accepts all.
select p_filter is null or (
	(coalesce(p_filter -> 'include_any', '[]') = '[]' or p_filter -> 'include_any' ?| p_tags)
	and (p_filter -> 'include_all' is null or p_filter -> 'include_all' <@ to_jsonb(p_tags))
	and not coalesce(p_filter -> 'exclude' ?| p_tags, false))
$$;

create or replace function autopost.is_routed(p_channel autopost.channels, p_tags text[], p_include text[],
	p_exclude text[]) returns boolean
language sql stable parallel safe
as $$
-- Purpose: true if a channel gets a post with these tags and routing hints (null: none).
select p_channel.enabled
	and autopost.route_matches(p_channel.route_filter, p_tags)
	and (p_include is null or p_channel.channel_id = any (p_include))
	and (p_exclude is null or p_channel.channel_id <> all (p_exclude))
$$;

create or replace function autopost.variant_of(p_payload jsonb, p_channel autopost.channels) returns jsonb
language sql immutable parallel safe
as $$
-- Purpose: the post's variant for this channel, merged over the one for its platform; null if it
--          has neither.
select case when p_payload ? 'variants' then
	nullif(coalesce(p_payload -> 'variants' -> p_channel.platform,
		'{}') || coalesce(p_payload -> 'variants' -> p_channel.channel_id, '{}'), '{}') end
$$;

create or replace function autopost.rendering_of(p_payload jsonb, p_channel autopost.channels) returns text[]
language sql stable parallel safe
as $$
-- Purpose: everything of a channel that affects the rendering of a payload. Channels with equal
--          values share one rendering.
select array[
	p_channel.platform,
	coalesce(autopost.variant_of(p_payload, p_channel) ->> 'parse_mode', p_payload ->> 'parse_mode',
		p_channel.settings ->> 'parse_mode'),
	p_channel.send_mode,
	(p_channel.settings -> 'disable_preview')::text,
	p_channel.template_ref,
	(p_channel.settings -> 'long_text')::text,
	nullif(p_channel.settings -> 'utm', '{}')::text,
	autopost.variant_of(p_payload, p_channel)::text,
	(p_channel.settings -> p_channel.platform)::text,
	(p_channel.settings -> 'max_weighted_length')::text,
	case when p_payload -> 'media' @? '$[*].auth_ref'
		then autopost.current_auth_ref(p_channel.workspace_id, p_channel) end]
$$;

create or replace function autopost.rendering_choice(p_rendering text[]) returns jsonb
language plpgsql immutable parallel safe
as $$
-- Purpose: the values of rendering_of in the form that render takes.
begin
	return jsonb_strip_nulls(jsonb_build_object(
		'platform', p_rendering[1],
		'parse_mode', p_rendering[2],
		'send_mode', p_rendering[3],
		'disable_preview', p_rendering[4]::jsonb,
		'template_ref', p_rendering[5],
		'long_text', p_rendering[6]::jsonb,
		'utm', p_rendering[7]::jsonb,
		'variant', p_rendering[8]::jsonb,
		'defaults', p_rendering[9]::jsonb,
		'max_weighted_length', p_rendering[10]::jsonb,
		'auth_ref', p_rendering[11]));
end
$$;

create or replace function autopost.route_filter_remedy() returns text
language sql immutable parallel safe
as $$
-- Purpose: an example of a valid route_filter.
select 'write {"include_any": ["…"], "include_all": ["…"], "exclude": ["…"]}, all of them optional, in lower case'
$$;

create or replace function autopost.route_filter_error(p_filter jsonb) returns text
language plpgsql immutable parallel safe
as $$
-- Purpose: why a route_filter is invalid, else null.
declare
	v_condition record;
begin
	if jsonb_typeof(p_filter) <> 'object' then
		return 'must be an object of conditions';
	end if;
	for v_condition in select e.key, e.value from jsonb_each(p_filter) e order by e.key loop
		if v_condition.key not in ('include_any', 'include_all', 'exclude') then
			return format('has %L, which is not a condition', v_condition.key);
		end if;
		if jsonb_typeof(v_condition.value) <> 'array' then
			return format('has no list of tags for %s', v_condition.key);
		end if;
		if exists (select 1 from jsonb_array_elements(v_condition.value) t
			where jsonb_typeof(t.value) <> 'string' or t.value #>> '{}' = ''
				or t.value #>> '{}' <> lower(t.value #>> '{}'))
		then
			return format('must have only tags in lower case for %s', v_condition.key);
		end if;
	end loop;
	return null;
end
$$;

create or replace function autopost.canonical_tags(p_tags text[]) returns text[]
language sql immutable parallel safe
as $$
-- Purpose: tags in the form of messages.tags: folded, without # and outer spaces, sorted, without
--          duplicates.
select coalesce(array_agg(distinct t.tag order by t.tag), '{}')
from (select btrim(autopost.fold(normalize(u.tag, NFC)), ' #') as tag from unnest(p_tags) u (tag)) t
where t.tag <> ''
$$;

create or replace function autopost.check_routing() returns trigger
language plpgsql
as $$
-- Purpose: refuses a route_filter that accepts no post, and makes the tags of a channel canonical.
-- Raises:  AP001 with the name of the column.
declare
	v_error text := case when new.route_filter is distinct from old.route_filter
		then autopost.route_filter_error(new.route_filter) end;
begin
	if v_error is not null then
		perform autopost.raise_argument('route_filter', v_error, autopost.route_filter_remedy());
	end if;
	new.tags := autopost.canonical_tags(new.tags);
	return new;
end
$$;

create or replace trigger check_routing before insert or update of route_filter, tags on autopost.channels
	for each row when (new.route_filter is not null or new.tags <> '{}') execute function autopost.check_routing();
