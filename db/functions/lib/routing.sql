create or replace function autopost.route_matches(p_filter jsonb, p_tags text[]) returns boolean
language sql immutable parallel safe
as $$
-- Whether a channel's route_filter lets a message with these tags through; no filter lets everything through.
select p_filter is null or (
	(coalesce(jsonb_array_length(p_filter -> 'include_any'), 0) = 0 or p_filter -> 'include_any' ?| p_tags)
	and coalesce(p_filter -> 'include_all', '[]') <@ to_jsonb(p_tags)
	and not coalesce(p_filter -> 'exclude' ?| p_tags, false))
$$;

create or replace function autopost.variant_of(p_payload jsonb, p_channel autopost.channels) returns jsonb
language sql immutable parallel safe
as $$
-- What the post says for this channel alone, over what it says for the channel's platform; null where it says nothing.
select nullif(coalesce(p_payload -> 'variants' -> p_channel.platform, '{}') || coalesce(p_payload -> 'variants' -> p_channel.channel_id, '{}'), '{}')
$$;

create or replace function autopost.render_choice(p_payload jsonb, p_channel autopost.channels) returns jsonb
language sql stable parallel safe
as $$
-- All of a channel that decides how a payload looks there: channels with the same choice share one rendering.
-- Stable, not immutable, because of jsonb_build_object: only so is it inlined into the statement that asks it of each channel.
select jsonb_strip_nulls(jsonb_build_object(
	'platform', p_channel.platform,
	'parse_mode', coalesce(autopost.variant_of(p_payload, p_channel) ->> 'parse_mode', p_payload ->> 'parse_mode', p_channel.settings ->> 'parse_mode'),
	'send_mode', p_channel.send_mode,
	'disable_preview', p_channel.settings -> 'disable_preview',
	'template_ref', p_channel.template_ref,
	'long_text', p_channel.settings -> 'long_text',
	'utm', nullif(p_channel.settings -> 'utm', '{}'),
	'variant', autopost.variant_of(p_payload, p_channel)))
$$;
