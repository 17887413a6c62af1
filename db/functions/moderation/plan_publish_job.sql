create or replace function autopost.plan_publish_job(p_workspace_id text, p_job_id text, p_platform text) returns jsonb
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: dry run of the post of a complete file job: what its channel would get.
-- Returns: {"status": "planned", "channel": {"channel_id", "target_id", "auth_ref"}, "post": row of plan, "warnings"};
--          or {"status": unknown, incomplete, no_channel or rejected}.
-- Raises:  AP001 for a wrong argument.
-- Reads:   publish_jobs, pull_sources, channels, channel_auth, platforms; as plan.
declare
	v_job autopost.publish_jobs;
	v_channel autopost.channels;
	v_plan jsonb;
begin
	perform autopost.enter_workspace(p_workspace_id);
	perform autopost.check_job_name(p_job_id, p_platform);
	select j.* into v_job from autopost.publish_jobs j
	where j.workspace_id = p_workspace_id and j.job_id = p_job_id and j.platform = p_platform;
	select c.* into v_channel from autopost.job_channel(v_job) c;
	if v_job.digest is null or v_channel.channel_id is null then
		return jsonb_build_object('status', case when v_job.job_id is null then 'unknown'
			when v_job.digest is null then 'incomplete' else 'no_channel' end);
	end if;
	v_plan := autopost.plan(p_workspace_id, autopost.job_post(v_job, v_channel)
		|| jsonb_build_object('tags', autopost.job_tags(v_job)), null);
	return jsonb_build_object('status', v_plan -> 'status', 'channel', jsonb_build_object('channel_id',
		v_channel.channel_id, 'target_id', v_channel.target_id, 'auth_ref', coalesce((select a.auth_ref
		from autopost.channel_auth a where a.workspace_id = p_workspace_id and a.channel_id = v_channel.channel_id),
		v_channel.auth_ref)), 'post', (select c.value from jsonb_array_elements(v_plan -> 'channels') c
		where c.value ->> 'channel_id' = v_channel.channel_id), 'warnings', case
		when v_job.artifacts ? 'subtitles' and (select p.takes from autopost.platforms p where p.platform =
			p_platform) = 'videos'
			and coalesce(v_job.payload #> '{publish_config,subtitles_language}', v_job.payload #>
				'{publish_config,language}',
			v_channel.settings #> '{youtube,captions_language}') is null then
		'["subtitles are left out: give publish_config.subtitles_language, or captions_language of the channel"]'
			else '[]' end::jsonb);
end
$$;
