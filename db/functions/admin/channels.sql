create or replace function autopost.default_rate(p_workspace_id text, p_fields jsonb) returns numeric
language plpgsql stable
as $$
-- Purpose: the default limit of a channel in messages per second: that of a group chat if the
--          platform has one and the target is known as such, else 1. A topic of a forum and a short
--          negative id of Telegram are group chats; other targets are known from updates of the bot.
-- Reads:   platforms, discovered_chats.
begin
	return coalesce((
		select p.group_chat_rps from autopost.platforms p
		where p.platform = p_fields ->> 'platform' and (p_fields ->> 'target_id' ~ '(:|^-(?!100\d{10}))'
			or exists (
				select 1 from autopost.discovered_chats d
				where d.workspace_id = p_workspace_id and d.platform = p.platform
					and d.target_id = p_fields ->> 'target_id' and d.kind = 'chat'))), 1);
end
$$;

create or replace function autopost.channel_rules(p_auth_ref text, p_rate_rps numeric default 1) returns jsonb
language sql immutable parallel safe
as $$
-- Purpose: the fields of a channel. The default rate group is that of its credential. p_rate_rps:
--          the default limit (default_rate).
select '{
	"platform": {"is": "text", "required": true, "fixed": true},
	"target_id": {"is": "text", "required": true, "remedy": "write where the posts go"},
	"auth_ref": {"is": "text", "required": true, "remedy": "write the name of a credential"},
	"enabled": {"is": "boolean", "default": true},
	"title": {"is": "text"},
	"send_mode": {"is": "text", "default": "mixed", "in": ["text", "media", "mixed"]},
	"max_parallel": {"is": "integer", "default": 1, "min": 1, "max": 10000},
	"timezone": {"is": "text"},
	"window_mode": {"is": "text", "default": "immediate", "in": ["immediate", "windowed"]},
	"posting_window": {"is": "object"},
	"dedup_ttl_hours": {"is": "integer", "default": 168, "min": 0, "max": 2160},
	"on_unknown": {"is": "text", "default": "reconcile", "in": ["reconcile", "hold", "resend"]},
	"on_auth_lost": {"is": "text", "default": "hold", "in": ["hold", "fail"]},
	"moderated": {"is": "boolean", "default": false},
	"settings": {"is": "object", "default": {}},
	"tags": {"is": "list", "default": []},
	"route_filter": {"is": "object"},
	"template_ref": {"is": "text"}}'::jsonb
	|| jsonb_build_object('rate_group', jsonb_build_object('is', 'text', 'required', true, 'default', p_auth_ref),
		'rate_rps', jsonb_build_object('is', 'number', 'default', p_rate_rps, 'min', 0, 'max', 1000000,
			'remedy', 'write messages a second, 0 for no limit'))
$$;

create or replace function autopost.channel_fields(p_channel autopost.channels) returns jsonb
language plpgsql stable
as $$
-- Purpose: the fields of a stored channel, with its present credential; null without a channel. No
--          rate limit is 0.
-- Reads:   channel_auth.
begin
	if p_channel.channel_id is null then
		return null;
	end if;
	p_channel.auth_ref := autopost.current_auth_ref(p_channel.workspace_id, p_channel);
	p_channel.rate_rps := coalesce(p_channel.rate_rps, 0);
	p_channel.dedup_ttl_hours := coalesce(p_channel.dedup_ttl_hours, 168);
	return autopost.row_fields(to_jsonb(p_channel), autopost.channel_rules(p_channel.auth_ref));
end
$$;

create or replace function autopost.channel_fields_to_put(p_fields jsonb) returns jsonb
language sql immutable parallel safe
as $$
-- Purpose: p_fields with tags as check_routing stores them, so that the answer equals the stored
--          row.
select case when jsonb_typeof(p_fields -> 'tags') = 'array'
	and autopost.field_fault(p_fields -> 'tags', '{"is": "list"}') is null
	then p_fields || jsonb_build_object('tags',
		autopost.canonical_tags(array(select jsonb_array_elements_text(p_fields -> 'tags')))) else p_fields end
$$;

create or replace function autopost.channel_settings_errors(p_settings jsonb) returns jsonb
language sql immutable parallel safe
as $$
-- Purpose: checks the settings of a channel that the renderer uses. Other settings belong to the
--          adapter.
select
	case when coalesce(p_settings ->> 'parse_mode', 'None') not in ('HTML', 'Markdown', 'None')
		then autopost.field_error('settings.parse_mode', format('%s is unknown', p_settings -> 'parse_mode'),
			'use HTML, Markdown or None') else '[]' end
	|| case when coalesce(p_settings ->> 'long_text', 'split') not in ('truncate', 'split', 'caption_reply')
		then autopost.field_error('settings.long_text', format('%s is unknown', p_settings -> 'long_text'),
			'use truncate, split or caption_reply') else '[]' end
	|| case when jsonb_typeof(coalesce(p_settings -> 'disable_preview', 'true')) <> 'boolean'
		then autopost.field_error('settings.disable_preview', 'must be a boolean', 'write true or false') else '[]' end
	|| coalesce((select jsonb_agg(e.value order by f.field)
		from unnest('{disable_notification,protect_content,has_spoiler,show_caption_above_media}'::text[]) f (field)
		cross join lateral jsonb_array_elements(autopost.field_error('settings.' || f.field, 'must be a boolean',
			'write true or false')) e
		where coalesce(jsonb_typeof(p_settings -> f.field), 'boolean') <> 'boolean'), '[]')
	|| case when jsonb_typeof(coalesce(p_settings -> 'link_preview_options', '{}')) <> 'object'
		or jsonb_path_exists(p_settings,
			'$.link_preview_options.keyvalue() ? (!(@.key like_regex "^(prefer_small_media|prefer_large_media|show_above_text)$") || @.value.type() != "boolean")')
			or p_settings -> 'link_preview_options' @> '{"prefer_small_media": true, "prefer_large_media": true}'
		then autopost.field_error('settings.link_preview_options', 'must be an object of Telegram''s booleans',
			'write {"prefer_large_media": true, "show_above_text": true}, or prefer_small_media') else '[]' end
	|| case when coalesce(p_settings -> 'service_chat_id', 'null') <> 'null'
		and not coalesce(p_settings ->> 'service_chat_id' ~ '^-?[1-9][0-9]{0,17}$'
		and jsonb_typeof(p_settings -> 'service_chat_id') = 'number', false)
		then autopost.field_error('settings.service_chat_id', 'must be the number of a chat',
			'write the id of a chat without readers, such as -1001234567890') else '[]' end
	|| case when jsonb_typeof(coalesce(p_settings -> 'utm', '{}')) <> 'object' or jsonb_path_exists(p_settings,
			'$.utm.keyvalue() ? (!(@.key like_regex "^[A-Za-z0-9_]+$") || @.value.type() != "string")')
		then autopost.field_error('settings.utm', 'must be an object of parameters',
			'write {"utm_source": "…"}: names of letters, digits and underscores, values texts') else '[]' end
	|| case when p_settings @? '$.min_gap_seconds ? (@.type() != "number" || @ < 1 || @ > 2678400)'
		then autopost.field_error('settings.min_gap_seconds', format('must be 1 to 2678400 seconds, got %s',
			p_settings -> 'min_gap_seconds'), 'write 3600 for one post an hour, or leave it out') else '[]' end
	|| case when p_settings ? 'moderated'
		then autopost.field_error('settings.moderated', 'must be absent', 'set the field moderated of the channel')
		else '[]' end
$$;

create or replace function autopost.channel_note(p_workspace_id text, p_changed jsonb, p_channel jsonb) returns jsonb
language plpgsql stable
as $$
-- Purpose: {"note"} that names the changed settings of a channel that nothing reads, if the
--          platform lists its settings, a posting window without effect, and a changed credential
--          that is missing; {} without a note.
-- Reads:   platforms, credential_bindings, sealed_secrets.
declare
	v_unread text := (
		select format('platform %s reads no settings.%s', p_channel ->> 'platform',
			string_agg(s.key, ' and no settings.' order by s.key))
		from autopost.platforms p, jsonb_object_keys(p_channel -> 'settings') s (key)
		where p_changed ? 'settings' and p.platform = p_channel ->> 'platform' and p.setting_keys is not null
		and s.key <> all (p.setting_keys || p.platform || '{parse_mode,disable_preview,long_text,utm,min_gap_seconds}'::text[])
		having count(*) > 0);
	v_fault text := case when p_changed ? 'auth_ref'
		then autopost.credential_fault(p_workspace_id, p_channel ->> 'auth_ref', p_channel ->> 'platform') end;
	v_window text := case when p_changed ?| '{posting_window,window_mode}' and p_channel ->> 'window_mode' = 'immediate'
		and jsonb_typeof(p_channel -> 'posting_window') = 'object'
		then 'posting_window has no effect while window_mode is immediate' end;
begin
	return jsonb_strip_nulls(jsonb_build_object('note', nullif(concat_ws('; ', v_unread, v_window, v_fault
		|| ', so the posts of this channel wait (credential_missing): ' || autopost.credential_command(p_workspace_id,
			p_channel ->> 'auth_ref', p_channel ->> 'platform')), '')));
end
$$;

create or replace function autopost.channel_errors(p_workspace_id text, p_channel_id text, p_before jsonb,
	p_after jsonb) returns jsonb
language plpgsql stable
as $$
-- Purpose: checks the fields of a channel together and against other channels. Unchanged fields are
--          not checked again.
-- Returns: an array of {field, reason, remedy}.
-- Reads:   platforms, channels, deliveries, templates, settings.
declare
	v_new jsonb := autopost.fields_that_differ(p_after, p_before);
	v_platform autopost.platforms;
	v_example constant text := 'write {"mon": [["09:00", "12:00"], ["14:00", "24:00"]], …} with the days mon to sun';
	v_fault text;
	v_errors jsonb := '[]';
begin
	if p_before ? 'auth_ref' and v_new ? 'auth_ref'
		and autopost.queue_of(p_workspace_id, array[p_channel_id]) -> 'sending' <> '0' then
		v_errors := v_errors || autopost.field_error('auth_ref', 'must not change while a call is in flight',
			'pause the channel, and try again when its calls have ended');
	end if;
	select p.* into v_platform from autopost.platforms p where p.platform = p_after ->> 'platform';
	if v_platform.platform is null then
		v_errors := v_errors || autopost.field_error('platform', format('%s is unknown', p_after -> 'platform'),
			'use ' || (select string_agg(p.platform, ', ' order by p.platform) from autopost.platforms p));
	elsif v_new ? 'target_id' and p_after ->> 'target_id' !~ v_platform.target_form then
		v_errors := v_errors || autopost.field_error('target_id',
			format('must be a target of %s, got %s', v_platform.platform, p_after -> 'target_id'),
			'write ' || v_platform.target_example);
	end if;
	select c.channel_id into v_fault from autopost.channels c
	where c.workspace_id = p_workspace_id and c.platform = p_after ->> 'platform'
		and c.target_id = v_new ->> 'target_id' and c.channel_id <> p_channel_id;
	if v_fault is not null then
		v_errors := v_errors || autopost.field_error('target_id',
			format('is the target of channel %s already', v_fault), 'change that one, or name another target');
	end if;
	if v_new ? 'timezone' and not autopost.is_zone(p_after ->> 'timezone') then
		v_errors := v_errors || autopost.field_error('timezone',
			format('must be a known time zone, got %s', p_after -> 'timezone'),
			'use a name such as Europe/Moscow, or UTC');
	end if;
	v_fault := autopost.posting_window_error(nullif(v_new -> 'posting_window', 'null'));
	if v_fault is not null then
		v_errors := v_errors || autopost.field_error('posting_window', v_fault, v_example);
	elsif v_new ?| '{window_mode,posting_window}' and p_after ->> 'window_mode' = 'windowed'
		and p_after -> 'posting_window' = 'null' then
		v_errors := v_errors || autopost.field_error('posting_window', 'is missing though window_mode is windowed',
			v_example);
	end if;
	v_fault := autopost.route_filter_error(nullif(v_new -> 'route_filter', 'null'));
	if v_fault is not null then
		v_errors := v_errors || autopost.field_error('route_filter', v_fault, autopost.route_filter_remedy());
	end if;
	v_fault := autopost.dedup_ttl_error((p_after ->> 'dedup_ttl_hours')::int);
	if v_new ? 'dedup_ttl_hours' and v_fault is not null then
		v_errors := v_errors || autopost.field_error('dedup_ttl_hours', v_fault,
			'shorten it, or raise the setting delivery_retention_days first');
	end if;
	if v_new ? 'template_ref'
		and (autopost.newest_template(p_workspace_id, p_after ->> 'template_ref',
		p_after ->> 'platform')).template_id is null
		and p_after -> 'template_ref' <> 'null' then
		v_errors := v_errors || autopost.field_error('template_ref',
			format('must be a template for this platform, got %s', p_after -> 'template_ref'),
			'create the template first');
	end if;
	if v_new ?| '{settings,target_id}' then
		select c.channel_id into v_fault from (
			select p_channel_id as channel_id, p_after ->> 'target_id' as target_id
			union all
			select c.channel_id, c.target_id from autopost.channels c
			where c.workspace_id = p_workspace_id and c.platform = p_after ->> 'platform'
				and c.channel_id <> p_channel_id) c
		where split_part(c.target_id, ':', 1) = p_after #>> '{settings,service_chat_id}'
		limit 1;
		if v_fault is not null then
			v_errors := v_errors || autopost.field_error('settings.service_chat_id',
				format('must not be the target of channel %s: its readers would see lookups', v_fault),
				'name a chat without readers');
		end if;
	end if;
	return v_errors || autopost.channel_settings_errors(v_new -> 'settings');
end
$$;

create or replace function autopost.lock_channels_to_put(p_workspace_id text, p_targets jsonb) returns void
language plpgsql
as $$
-- Purpose: locks the channels to write, {channel_id: new target_id or null}. The target is part of
--          a key that an enqueue locks. A changed target therefore waits here, before any gate is
--          locked.
-- Locks:   channels (channel_id).
declare
	v_channel record;
begin
	for v_channel in
		select c.channel_id, c.target_id <> t.value as moves
		from jsonb_each_text(p_targets) t
		join autopost.channels c on c.workspace_id = p_workspace_id and c.channel_id = t.key
		order by c.channel_id
	loop
		if v_channel.moves then
			perform 1 from autopost.channels c where c.workspace_id = p_workspace_id
				and c.channel_id = v_channel.channel_id for update of c;
		else
			perform autopost.lock_channels(p_workspace_id, array[v_channel.channel_id]);
		end if;
	end loop;
end
$$;

create or replace function autopost.rotation_errors(p_workspace_id text, p_auth_ref text, p_platform text) returns jsonb
language plpgsql stable
as $$
-- Purpose: checks a new credential for a channel of this platform.
-- Returns: an array of {field, reason, remedy}.
-- Reads:   credential_bindings.
declare
	v_bound text := (select b.platform from autopost.credential_bindings b
		where b.workspace_id = p_workspace_id and b.auth_ref = p_auth_ref);
begin
	return case
		when v_bound = p_platform then '[]'
		when v_bound is null then autopost.field_error('auth_ref',
			format('must be a credential of this workspace, got %s', p_auth_ref),
			'store its secret first: autopost credential set')
		else autopost.field_error('auth_ref', format('%s is a credential of platform %s', p_auth_ref, v_bound),
			format('name one of platform %s', p_platform)) end;
end
$$;

create or replace function autopost.give_auth(p_workspace_id text, p_channel autopost.channels, p_auth_ref text,
	p_rate_group text, p_meta jsonb) returns void
language plpgsql
as $$
-- Purpose: sets the credential and the rate group of a locked channel with nothing in flight.
-- Writes:  channel_auth, channels, channel_gates, events(auth_rotated).
declare
	v_old text := autopost.current_auth_ref(p_workspace_id, p_channel);
begin
	insert into autopost.channel_auth (workspace_id, channel_id, auth_ref, rotated_at, updated_at)
	values (p_workspace_id, p_channel.channel_id, p_auth_ref, autopost.now_ts(), autopost.now_ts())
	on conflict (workspace_id, channel_id) do update
	set auth_ref = excluded.auth_ref, rotated_at = excluded.rotated_at, updated_at = excluded.updated_at;
	update autopost.channels c
	set auth_ref = p_auth_ref, rate_group = p_rate_group
	where c.workspace_id = p_workspace_id and c.channel_id = p_channel.channel_id;
	perform autopost.emit_note(p_workspace_id, 'auth_rotated', 'ok', p_channel.channel_id, null, null,
		p_meta || jsonb_build_object('old_auth_ref', v_old, 'new_auth_ref', p_auth_ref,
			'old_rate_group', p_channel.rate_group, 'new_rate_group', p_rate_group));
end
$$;

create or replace function autopost.add_channel(p_workspace_id text, p_channel_id text, p_channel autopost.channels)
	returns void
language plpgsql
as $$
-- Purpose: inserts a channel, its gate and its rate group.
-- Writes:  channels, channel_gates, platform_limits.
begin
	insert into autopost.channels (workspace_id, channel_id, platform, target_id, auth_ref, rate_group, enabled, title,
		send_mode, rate_rps, max_parallel, timezone,
		window_mode, posting_window, dedup_ttl_hours, on_unknown, on_auth_lost, settings, tags, route_filter,
			template_ref, moderated, created_at, updated_at)
	values (p_workspace_id, p_channel_id, p_channel.platform, p_channel.target_id, p_channel.auth_ref,
		p_channel.rate_group, p_channel.enabled, p_channel.title,
		p_channel.send_mode, p_channel.rate_rps, p_channel.max_parallel, p_channel.timezone, p_channel.window_mode,
			p_channel.posting_window,
		p_channel.dedup_ttl_hours, p_channel.on_unknown, p_channel.on_auth_lost, p_channel.settings, p_channel.tags,
			p_channel.route_filter,
		p_channel.template_ref, p_channel.moderated, autopost.now_ts(), autopost.now_ts());
end
$$;

create or replace function autopost.change_channel(p_workspace_id text, p_old autopost.channels,
	p_new autopost.channels, p_meta jsonb) returns void
language plpgsql
as $$
-- Purpose: updates a locked channel. A new target is a separate statement: an update that names the
--          column locks the key.
-- Writes:  channels, channel_gates, platform_limits, events(channel_enabled | channel_disabled).
begin
	update autopost.channels c
	set auth_ref = p_new.auth_ref, rate_group = p_new.rate_group, enabled = p_new.enabled, title = p_new.title,
		send_mode = p_new.send_mode,
		rate_rps = p_new.rate_rps, limited_rps = case when p_new.rate_rps = p_old.rate_rps then c.limited_rps end,
		max_parallel = p_new.max_parallel, timezone = p_new.timezone,
			window_mode = p_new.window_mode,
		posting_window = p_new.posting_window, dedup_ttl_hours = p_new.dedup_ttl_hours, on_unknown = p_new.on_unknown,
			on_auth_lost = p_new.on_auth_lost,
		settings = p_new.settings, tags = p_new.tags, route_filter = p_new.route_filter,
			template_ref = p_new.template_ref, moderated = p_new.moderated
	where c.workspace_id = p_workspace_id and c.channel_id = p_old.channel_id;
	update autopost.channels c
	set target_id = p_new.target_id
	where c.workspace_id = p_workspace_id and c.channel_id = p_old.channel_id and c.target_id <> p_new.target_id;
	perform autopost.emit_note(p_workspace_id, case when p_new.enabled then 'channel_enabled'
		else 'channel_disabled' end, 'ok', p_old.channel_id, null, null, p_meta)
	where p_new.enabled <> p_old.enabled;
end
$$;
