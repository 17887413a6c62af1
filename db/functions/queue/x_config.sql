-- Global X: one X channel of a workspace that posts domain events. Its configuration is x_post_config;
-- the settings global_x_… limit it.

create or replace function autopost.x_defaults() returns jsonb
language sql immutable parallel safe
as $$
-- Purpose: the configuration of Global X without a row, as flat fields.
select '{"enabled": true, "enableImages": true, "enableVideos": true, "enableCombat": true, "moderation.enabled": false,
	"rate.perHour": 8, "rate.perDay": 30, "mode": "live", "channel_id": null}'::jsonb
$$;

create or replace function autopost.flat_fields(p_fields jsonb) returns jsonb
language sql immutable parallel safe
as $$
-- Purpose: {"rate": {"perHour": 8}} as {"rate.perHour": 8}.
select coalesce(jsonb_object_agg(concat_ws('.', f.key, n.key), coalesce(n.value, f.value)), '{}')
from jsonb_each(p_fields) f
left join lateral jsonb_each(case when jsonb_typeof(f.value) = 'object' then f.value else '{}' end) n on true
where jsonb_typeof(f.value) <> 'object' or n.key is not null
$$;

create or replace function autopost.nested_fields(p_fields jsonb) returns jsonb
language sql immutable parallel safe
as $$
-- Purpose: the reverse of flat_fields.
select coalesce(jsonb_object_agg(g.head, g.value), '{}')
from (
	select split_part(f.key, '.', 1) as head, case when bool_or(f.key like '%.%')
		then jsonb_object_agg(split_part(f.key, '.', 2), f.value) else (array_agg(f.value))[1] end as value
	from jsonb_each(p_fields) f
	group by 1) g
$$;

create or replace function autopost.x_ceiling(p_key text, p_value int) returns int
language sql stable
as $$
-- Purpose: a cap under the ceiling of a setting; 0 does not limit it.
select least(p_value, nullif(autopost.setting(p_key), 0)::int)
$$;

create or replace function autopost.x_config(p_workspace_id text) returns jsonb
language plpgsql stable
as $$
-- Purpose: the effective configuration of Global X as flat fields: the stored one over the defaults,
--          under the settings global_x_….
-- Reads:   x_post_config, settings.
begin
	return (select f.fields || jsonb_build_object(
		'moderation.enabled', (f.fields -> 'moderation.enabled')::boolean
			or autopost.setting_is_on('global_x_moderation_enabled'),
		'rate.perHour', autopost.x_ceiling('global_x_posting_rate_per_hour', (f.fields ->> 'rate.perHour')::int),
		'rate.perDay', autopost.x_ceiling('global_x_posting_rate_per_day', (f.fields ->> 'rate.perDay')::int),
		'held', f.fields ->> 'mode' = 'hold' or not autopost.setting_is_on('global_x_posting_enabled'))
	from (
		select autopost.x_defaults() || coalesce((select autopost.flat_fields(c.config) from autopost.x_post_config c
			where c.workspace_id = p_workspace_id and c.key = 'global'), '{}') as fields) f);
end
$$;

create or replace function autopost.x_channels(p_workspace_id text) returns text[]
language plpgsql stable
as $$
-- Purpose: the configured channel of Global X, else all X channels with the avatar of the setting.
-- Reads:   x_post_config, settings, channels.
begin
	return (select array(select c.channel_id from autopost.channels c
		where c.workspace_id = p_workspace_id and c.platform = 'x' and case when x.configured is not null
			then c.channel_id = x.configured
			else c.settings ->> 'avatar_id' = (select nullif(s.value #>> '{}', '') from autopost.settings s
				where s.key = 'global_x_account_avatar_id') end)
	from (select (select c.config ->> 'channel_id' from autopost.x_post_config c
		where c.workspace_id = p_workspace_id and c.key = 'global') as configured) x);
end
$$;

create or replace function autopost.x_channel(p_workspace_id text) returns text
language sql stable
as $$
-- Purpose: the channel of Global X: the configured one, else the only X channel with the avatar of
--          the setting; null if neither exists.
select case when cardinality(c.ids) = 1 then c.ids[1] end from (select autopost.x_channels(p_workspace_id) as ids) c
$$;

create or replace function autopost.without_x_channel(p_submission autopost.submissions) returns jsonb
language plpgsql stable
as $$
-- Purpose: the error of an event of Global X that has no enabled channel; null otherwise.
-- Reads:   channels.
declare
	v_channel text;
begin
	if p_submission.event_type is null or p_submission.event_type not in ('image', 'video', 'combat') then
		return null;
	end if;
	v_channel := autopost.x_channel(p_submission.workspace_id);
	if exists (select 1 from autopost.channels c where c.workspace_id = p_submission.workspace_id
		and c.channel_id = v_channel and c.enabled) then
		return null;
	end if;
	return jsonb_build_object('category', 'PERMANENT', 'code', 'no_x_channel', 'message', case
		when v_channel is null
			then 'the workspace must have one X channel for events: set channel_id of the x-posts config'
		else format('channel %s must be enabled for events', v_channel) end);
end
$$;

create or replace function autopost.release_x_channels(p_workspace_id text) returns void
language plpgsql
as $$
-- Purpose: ends the caps and the hold of channels that do not post events any more. While several
--          channels have the avatar, none of them is released. Quotas that an operator set stay.
-- Locks:   quotas, channels, channel_gates.
-- Writes:  quotas, channels, channel_gates.
declare
	v_kept text[] := autopost.x_channels(p_workspace_id);
begin
	delete from autopost.quotas q
	where q.workspace_id = p_workspace_id and q.global_x and q.channel_id <> all (v_kept);
	update autopost.channels c set held_until = null
	where c.workspace_id = p_workspace_id and c.held_until is not null and c.channel_id <> all (v_kept);
end
$$;

create or replace function autopost.apply_x_config(p_workspace_id text) returns void
language plpgsql
as $$
-- Purpose: gives the channel of Global X its caps, at most so many posts per hour and per day, and
--          holds it if the configuration says so. Other channels lose them.
-- Locks:   quotas, channels, channel_gates.
-- Writes:  quotas, channels, channel_gates.
declare
	v_config jsonb := autopost.x_config(p_workspace_id);
	v_channel text := autopost.x_channel(p_workspace_id);
begin
	perform autopost.release_x_channels(p_workspace_id);
	if v_channel is null then
		return;
	end if;
	insert into autopost.quotas as q (workspace_id, channel_id, window_seconds, max_sends, created_at, global_x)
	values (p_workspace_id, v_channel, 3600, (v_config ->> 'rate.perHour')::int, autopost.now_ts(), true),
		(p_workspace_id, v_channel, 86400, (v_config ->> 'rate.perDay')::int, autopost.now_ts(), true)
	on conflict (workspace_id, subject, window_seconds) do update set max_sends = excluded.max_sends, global_x = true
	where q.max_sends <> excluded.max_sends or not q.global_x;
	update autopost.channels c set held_until = case when (v_config -> 'held')::boolean then timestamptz 'infinity' end
	where c.workspace_id = p_workspace_id and c.channel_id = v_channel
		and (c.held_until is not null) <> (v_config -> 'held')::boolean;
end
$$;

create or replace function autopost.x_default_templates(p_workspace_id text) returns setof autopost.templates
language sql stable
as $$
-- Purpose: the templates of Global X before the first change or event, as version 0.
select p_workspace_id, b.template_id, 'x', 0, b.body, '{}'::jsonb, b.vars::text[], b.sanitize::text[], 'None',
	null::int, true, null::timestamptz
from (values
	('image', '{avatar_name}: {prompt}', '{avatar_name,prompt,short_hash}', '{avatar_name,prompt,short_hash}'),
	('video', 'New video drop: {title}', '{title,avatar_name}', '{title,avatar_name}'),
	('combat', '{winner_name} defeated {loser_name} in {rounds} rounds!', '{winner_name,loser_name,rounds,summary}',
		'{winner_name,loser_name,rounds,summary}')
) b (template_id, body, vars, sanitize)
$$;

create or replace function autopost.x_template(p_workspace_id text, p_name text) returns autopost.templates
language plpgsql stable
as $$
-- Purpose: the newest template of Global X for image, video or combat, else the default one.
-- Reads:   templates.
declare
	v_template autopost.templates := autopost.newest_template(p_workspace_id, p_name, 'x');
begin
	if v_template.template_id is null then
		select b.* into v_template from autopost.x_default_templates(p_workspace_id) b where b.template_id = p_name;
	end if;
	return v_template;
end
$$;

create or replace function autopost.x_template_fields(p_name text, p_body text) returns jsonb
language sql stable
as $$
-- Purpose: a template of Global X with another body, as put_template takes it.
select jsonb_build_object('body', p_body, 'vars', b.vars, 'sanitize', b.sanitize)
from autopost.x_default_templates('') b where b.template_id = p_name
$$;

create or replace function autopost.ensure_x_config(p_workspace_id text) returns void
language plpgsql
as $$
-- Purpose: makes the row of Global X and its templates at the first change or event.
-- Locks:   x_post_config; as apply_x_config.
-- Writes:  x_post_config, templates; as apply_x_config.
begin
	insert into autopost.x_post_config (workspace_id, key, config, updated_at)
	values (p_workspace_id, 'global', '{}', autopost.now_ts())
	on conflict (workspace_id, key) do nothing;
	if not found then
		return;
	end if;
	insert into autopost.templates (workspace_id, template_id, platform, version, body, defaults, vars, sanitize,
		parse_mode, max_length, enabled, created_at)
	select p_workspace_id, b.template_id, 'x', 1, b.body, b.defaults, b.vars, b.sanitize, b.parse_mode, b.max_length,
		true, autopost.now_ts()
	from autopost.x_default_templates(p_workspace_id) b
	where not exists (select 1 from autopost.templates t where t.workspace_id = p_workspace_id
		and t.template_id = b.template_id);
	perform autopost.apply_x_config(p_workspace_id);
end
$$;

create or replace function autopost.event_delivery(p_submission autopost.submissions) returns setof autopost.deliveries
language plpgsql stable
as $$
-- Purpose: the delivery that an enqueued event made; no row if it made none.
-- Reads:   deliveries.
begin
	return query
	select d.* from autopost.deliveries d -- all columns: the row type is the answer
	where d.workspace_id = p_submission.workspace_id and d.message_id = p_submission.message_id
		and d.ingest_run_id = p_submission.run_id
	order by d.delivery_id
	limit 1;
end
$$;

create or replace function autopost.follow_x_channel() returns trigger
language plpgsql
as $$
-- Purpose: moves the caps and the hold of Global X when an X channel gets or loses its avatar.
-- Locks:   as apply_x_config.
-- Writes:  as apply_x_config.
begin
	perform autopost.apply_x_config(new.workspace_id) where exists (select 1 from autopost.x_post_config c
		where c.workspace_id = new.workspace_id);
	return null;
end
$$;

create or replace trigger follow_x_channel after insert or update of settings on autopost.channels
	for each row when (new.platform = 'x') execute function autopost.follow_x_channel();
