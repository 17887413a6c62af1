create or replace function autopost.x_templates(p_workspace_id text) returns jsonb
language sql stable
as $$
-- Purpose: the bodies of the templates of Global X, as flat fields.
-- Reads:   templates.
select jsonb_object_agg('templates.' || k.key, n.body)
from unnest('{image,video,combat}'::text[]) k (key), autopost.x_template(p_workspace_id, k.key) n
$$;

create or replace function autopost.get_x_post_config(p_workspace_id text) returns jsonb
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: the configuration of Global X.
-- Returns: {"stored": what was set, with "_id" and "updatedAt", "effective": {"enabled",
--          "enableImages", "enableVideos", "enableCombat", "moderation", "rate", "templates", "mode",
--          "held", "channel_id"}}. The settings global_x_… limit the stored values.
-- Reads:   x_post_config, settings, channels, templates.
declare
	v_stored autopost.x_post_config;
	v_templates jsonb;
begin
	perform autopost.enter_workspace(p_workspace_id);
	select c.* into v_stored from autopost.x_post_config c where c.workspace_id = p_workspace_id and c.key = 'global';
	v_templates := autopost.x_templates(p_workspace_id);
	return jsonb_build_object('stored', coalesce(v_stored.config, '{}') || jsonb_build_object('_id', 'global',
		'updatedAt',
			v_stored.updated_at) || case when v_stored.key is not null then autopost.nested_fields(v_templates)
				else '{}' end,
		'effective', autopost.nested_fields(autopost.x_config(p_workspace_id) || v_templates || jsonb_build_object(
			'channel_id', autopost.x_channel(p_workspace_id))));
end
$$;
