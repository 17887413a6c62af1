create or replace function autopost.summary_of(p_workspace_id text) returns jsonb
language plpgsql stable
as $$
-- Purpose: the object of get_summary.
-- Reads:   submissions, alerts, x_post_config, bot_rules, bot_inbox.
declare
	v_most constant int := 1000;
begin
	return jsonb_build_object(
		'pending', (select count(*) from (select from autopost.submissions s
			where s.workspace_id = p_workspace_id and s.status = 'pending' limit v_most) x),
		'alerts', (select count(*) from (select from autopost.alerts a
			where a.workspace_id = p_workspace_id and a.ended_at is null limit v_most) x),
		'refused_credentials', (
			select coalesce(jsonb_agg(jsonb_build_object('alert_id', l.alert_id, 'kind', l.kind, 'subject', l.subject,
				'severity', l.severity, 'what', l.what, 'remedy', l.remedy, 'amount', l.amount, 'meta', l.meta,
				'raised_at', l.raised_at)
				order by l.raised_at), '[]')
			from (select a.alert_id, a.kind, a.subject, a.severity, a.what, a.remedy, a.amount, a.meta, a.raised_at
				from autopost.alerts a
				where a.workspace_id = p_workspace_id and a.ended_at is null and a.kind = 'auth_lost'
				order by a.raised_at limit 20) l),
		'x_posts', exists (select 1 from autopost.x_post_config x where x.workspace_id = p_workspace_id),
		'bot', exists (select 1 from autopost.bot_rules b where b.workspace_id = p_workspace_id and b.enabled)
			or exists (select 1 from autopost.bot_inbox i where i.workspace_id = p_workspace_id));
end
$$;

create or replace function autopost.get_summary(p_workspace_id text) returns jsonb
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: returns what every page shows of a workspace. It is cheap.
-- Returns: {"pending": posts that wait for a decision, "alerts": open ones (1,000 means that many or
--          more of both), "refused_credentials": alerts about credentials that a platform refuses,
--          "x_posts": true if Global X posts are configured, "bot": true if a rule of the bot is
--          enabled or a customer has written}.
-- Reads:   as summary_of.
begin
	perform autopost.enter_workspace(p_workspace_id);
	return autopost.summary_of(p_workspace_id);
end
$$;
