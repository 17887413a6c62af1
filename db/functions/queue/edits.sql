-- Edits of sent posts: which ones fit the sent messages, and how they look.

create or replace function autopost.delivery_layout(p_render_meta jsonb, p_platform autopost.platforms) returns jsonb
language sql immutable parallel safe
as $$
-- Purpose: the parts of a post that an edit cannot change: its messages, the media and texts in
--          them, and buttons that belong to a message with media.
select jsonb_build_object(
	'steps', (select jsonb_agg(s.value - 'body' - 'captions' - 'text' || jsonb_build_object('text',
		coalesce(s.value -> 'text', 'false')) order by s.ordinality)
		from jsonb_array_elements(p_render_meta -> 'steps') with ordinality s),
	'buttons', case when p_platform.album_buttons and p_render_meta @? '$.steps[*] ? (@.items.size() > 0)'
		then coalesce(p_render_meta -> 'buttons', '[]') end)
$$;

create or replace function autopost.edited_variant(p_variant jsonb, p_changes jsonb) returns jsonb
language sql immutable parallel safe
as $$
-- Purpose: a variant without the fields that an edit of the post replaces. An empty thread or comment of a
--          variant stays: it removes that of the post.
select coalesce(jsonb_object_agg(f.key, f.value), '{}') from jsonb_each(p_variant) f
where not (p_changes ? 'text' and f.key in ('text', 'parse_mode'))
and not (f.key = any (autopost.thread_fields()) and p_changes ? f.key and f.value not in ('[]', '""'))
$$;

create or replace function autopost.edited_thread(p_thread jsonb, p_changes jsonb) returns jsonb
language sql immutable parallel safe
as $$
-- Purpose: the thread of a post after an edit: an array of all parts, or an object by the number of the part
--          ({"3": {"text": "…"}}). A part keeps the fields that the edit does not give.
select coalesce(jsonb_agg(e.value || coalesce(case jsonb_typeof(p_changes)
	when 'array' then p_changes -> (e.ordinality - 1)::int else p_changes -> (e.ordinality + 1)::text end, '{}')
	order by e.ordinality), '[]')
from jsonb_array_elements(p_thread) with ordinality e
$$;

create or replace function autopost.edited_payload(p_payload jsonb, p_changes jsonb) returns jsonb
language sql immutable parallel safe
as $$
-- Purpose: the payload of a post after an edit. A given field replaces the old one; null removes
--          it. A new text, thread or first comment applies everywhere: variants lose theirs unless the edit
--          has variants.
select jsonb_strip_nulls(p_payload - 'type' || (p_changes - 'variants')
	|| case when p_changes ? 'thread'
		then jsonb_build_object('thread', autopost.edited_thread(p_payload -> 'thread',
			p_changes -> 'thread')) else '{}' end
	|| jsonb_build_object('variants', (
	select nullif(coalesce(jsonb_object_agg(v.key, v.value), '{}'), '{}')
	from (
		select o.key, o.value from (
			select e.key, autopost.edited_variant(e.value, p_changes)
				|| coalesce(nullif(p_changes -> 'variants', 'null') -> e.key, '{}') as value
			from jsonb_each(coalesce(p_payload -> 'variants', '{}')) e) o
		where o.value <> '{}'
		union all
		select n.key, n.value from jsonb_each(coalesce(nullif(p_changes -> 'variants', 'null'), '{}')) n
			where not coalesce(p_payload -> 'variants' ? n.key, false)) v)))
$$;

create or replace function autopost.thread_change_error(p_change jsonb, p_thread jsonb) returns jsonb
language plpgsql immutable parallel safe
as $$
-- Purpose: why an edit of a thread does not fit its sent parts, as {field, reason, remedy}; null if it does.
declare
	v_parts int := coalesce(jsonb_array_length(p_thread), 0);
	v_part record;
begin
	if v_parts = 0 then
		return autopost.field_error('thread', 'cannot be added to a post that was sent', 'leave it out') -> 0;
	elsif jsonb_typeof(p_change) = 'array' and jsonb_array_length(p_change) <> v_parts then
		return autopost.field_error('thread', format('must have %s parts like the sent post, got %s', v_parts,
			jsonb_array_length(p_change)), 'name single parts by number: {"2": {"text": "…"}}') -> 0;
	elsif jsonb_typeof(p_change) not in ('array', 'object') then
		return autopost.field_error('thread', 'must be an array of all parts, or an object by the number of the part',
			'write {"2": {"text": "…"}}') -> 0;
	end if;
	for v_part in
		select e.value, format('thread[%s]', e.ordinality - 1) as field, e.ordinality as n,
			p_thread -> (e.ordinality - 1)::int as old
		from jsonb_array_elements(case when jsonb_typeof(p_change) = 'array' then p_change end) with ordinality e
		union all
		select e.value, 'thread.' || e.key, 0, case when e.key ~ '^[0-9]{1,2}$' and e.key::int between 2 and v_parts + 1
			then p_thread -> e.key::int - 2 end
		from jsonb_each(case when jsonb_typeof(p_change) = 'object' then p_change end) e
		order by n, field
	loop
		if v_part.old is null then
			return autopost.field_error(v_part.field, format('must have the number of a part from 2 to %s',
				v_parts + 1),
				'correct the number; part 1 is the text of the post') -> 0;
		elsif jsonb_typeof(v_part.value) <> 'object' then
			return autopost.field_error(v_part.field, 'must be an object', 'write {"text": "…"}') -> 0;
		elsif v_part.value ? 'media' and v_part.value -> 'media' is distinct from coalesce(v_part.old -> 'media',
			'[]') then
			return autopost.field_error(v_part.field || '.media', 'cannot be changed in a post that was sent',
				'change the text; for other media send a new post') -> 0;
		end if;
	end loop;
	return null;
end
$$;

create or replace function autopost.editable_fields() returns text[]
language sql immutable parallel safe
as $$
-- Purpose: the fields of a post that an edit of a sent post may change.
select '{text,parse_mode,link,buttons,disable_preview,template,variants}'::text[] || autopost.thread_fields()
$$;

create or replace function autopost.check_changes(p_changes jsonb, p_payload jsonb) returns void
language plpgsql stable
as $$
-- Purpose: checks the changes of an edit.
-- Raises:  AP001 for an edit that no platform supports.
declare
	v_fields constant text[] := autopost.editable_fields();
	v_wrong jsonb;
begin
	if jsonb_typeof(p_changes) is distinct from 'object' or p_changes = '{}' then
		perform autopost.raise_argument('changes', 'must have a field',
			'pass what the post is to say instead: {"text": "…"}');
	end if;
	if jsonb_typeof(coalesce(nullif(p_changes -> 'variants', 'null'), '{}')) <> 'object'
		or p_changes @? '$.variants.* ? (@.type() != "object")' then
		perform autopost.raise_argument('variants', 'must be an object of objects', 'write {"max": {"text": "…"}}');
	end if;
	select autopost.field_error(f.key, 'cannot be changed in a post that was sent',
		'change ' || array_to_string(v_fields, ', ') || '; for other media send a new post') -> 0
	into v_wrong from jsonb_object_keys(p_changes) f (key) where f.key <> all (v_fields) order by f.key limit 1;
	if v_wrong is null and p_changes ? 'thread' then
		v_wrong := autopost.thread_change_error(p_changes -> 'thread', p_payload -> 'thread');
	end if;
	if v_wrong is null and p_changes ? 'first_comment' and coalesce(p_changes ->> 'first_comment', '') = '' then
		v_wrong := autopost.field_error('first_comment', 'must be a text: a sent comment stays',
			'change its text, or delete the post') -> 0;
	end if;
	v_wrong := coalesce(v_wrong, autopost.payload_errors(autopost.edited_payload(p_payload, p_changes)) -> 0);
	if v_wrong is not null then
		perform autopost.raise_argument(v_wrong ->> 'field', v_wrong ->> 'reason', v_wrong ->> 'remedy');
	end if;
end
$$;

create or replace function autopost.render_edit(p_workspace_id text, p_message_id uuid, p_delivery_ids uuid[],
	p_changes jsonb) returns jsonb
language plpgsql stable
as $$
-- Purpose: renders an edit for deliveries of a message, once per rendering. Removed buttons become
--          an empty list.
-- Returns: {delivery_id: {"text", "meta"} or {"refusal"}}.
-- Reads:   messages, deliveries, post_acts, channels, templates, platforms, media_origin.
declare
	v_payload jsonb;
	v_tags jsonb;
	v_show record;
	v_keys text[]; -- the renderings and their rendering_choice
	v_choices jsonb;
begin
	select m.payload, to_jsonb(m.tags) into v_payload, v_tags from autopost.messages m
		where m.workspace_id = p_workspace_id and m.message_id = p_message_id;
	perform autopost.check_changes(p_changes, v_payload);
	v_payload := autopost.normalize_payload(autopost.edited_payload(v_payload, p_changes));
	select array_agg(w.way::text), coalesce(jsonb_agg(autopost.rendering_choice(w.way)), '[]') into v_keys, v_choices
	from (
		select distinct autopost.rendering_of(v_payload, row(c.*)::autopost.channels) as way from autopost.deliveries d
		join autopost.channels c on c.workspace_id = p_workspace_id and c.channel_id = d.channel_id
		where d.workspace_id = p_workspace_id and d.delivery_id = any (p_delivery_ids)) w;
	select s.* into v_show from autopost.show_post(p_workspace_id, v_payload, v_tags, v_choices) s;
	return (
		select coalesce(jsonb_object_agg(d.delivery_id, case
			when v_show.verdicts[n.n] <> 'queued' then jsonb_build_object('refusal',
				coalesce(v_show.errors[n.n] ->> 'message', 'nothing would be left of the post'))
			when p.takes = 'videos' and x.meta @? '$.steps[*] ? (@.comment == true)' and p_changes ? 'first_comment'
				then jsonb_build_object('refusal', format('%s takes no edit of a first comment: edit it there by hand',
					p.platform))
			when autopost.delivery_layout(x.meta, row(p.*)::autopost.platforms) <> autopost.delivery_layout(d.render_meta, row(p.*)::autopost.platforms)
				then '{"refusal": "the new text does not fit the sent messages: keep their number and form, or delete the post and send it again"}'
			when not x.meta @? '$.steps[*] ? (@.text == true)'
				then '{"refusal": "the post has no text to edit: delete it and send it again"}'
			else jsonb_build_object('text', v_show.texts[n.n], 'meta', x.meta || case
				when not x.meta ? 'buttons' and (d.render_meta ? 'buttons'
				or exists (select 1 from autopost.post_acts a where a.workspace_id = p_workspace_id
					and a.delivery_id = d.delivery_id and a.render_meta ? 'buttons'))
				then '{"buttons": []}'::jsonb else '{}' end) end), '{}')
		from autopost.deliveries d
		join autopost.channels c on c.workspace_id = p_workspace_id and c.channel_id = d.channel_id
		join autopost.platforms p on p.platform = c.platform
		cross join lateral (select array_position(v_keys,
			autopost.rendering_of(v_payload, row(c.*)::autopost.channels)::text) as n) n
		cross join lateral (select case when d.render_meta ? 'comment_failed'
			then autopost.without_comment(v_show.metas[n.n]) else v_show.metas[n.n] end as meta) x
		where d.workspace_id = p_workspace_id and d.delivery_id = any (p_delivery_ids));
end
$$;
