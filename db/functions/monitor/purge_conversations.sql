create or replace function autopost.purge_conversations(p_workspace_id text) returns jsonb
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: deletes conversations of the bot that are older than bot_log_retention_days: up to 5,000 rows
--          each of its log, of ended messages and of states. An expired state goes at once. A message that is open stays;
--          one that was given up goes with its age.
-- Returns: {"purged", "more"}.
-- Raises:  AP002, AP003, AP005 as enter_workspace.
-- Locks:   bot_state, bot_inbox, bot_outbox; all with SKIP LOCKED.
-- Writes:  bot_state, bot_inbox, bot_outbox, bot_logs.
declare
	v_now timestamptz;
	v_before timestamptz;
	v_ids uuid[];
	v_counts int[] := '{}';
	v_count int;
begin
	perform autopost.enter_workspace(p_workspace_id);
	v_now := autopost.now_ts();
	v_before := v_now - autopost.setting_interval('bot_log_retention_days');
	with old as (
		select s.provider, s.auth_ref, s.chat_id from autopost.bot_state s
		where s.workspace_id = p_workspace_id and coalesce(s.expires_at, s.updated_at) <= v_now
		and (s.expires_at <= v_now or s.updated_at <= v_before)
		limit 5000
		for update of s skip locked)
	delete from autopost.bot_state s using old o
	where s.workspace_id = p_workspace_id and s.provider = o.provider and s.auth_ref = o.auth_ref
	and s.chat_id = o.chat_id;
	get diagnostics v_count = row_count;
	v_counts := v_counts || v_count;
	v_ids := array(
		select i.inbox_id from autopost.bot_inbox i
		where i.workspace_id = p_workspace_id and i.ts < v_before and (i.status = 'processed' or i.tries = 5)
		limit 5000
		for update of i skip locked);
	delete from autopost.bot_inbox i where i.workspace_id = p_workspace_id and i.inbox_id = any (v_ids);
	v_counts := v_counts || cardinality(v_ids);
	v_ids := array(
		select o.reply_id from autopost.bot_outbox o
		where o.workspace_id = p_workspace_id and o.finished_at < v_before
		limit 5000
		for update of o skip locked);
	delete from autopost.bot_outbox o where o.workspace_id = p_workspace_id and o.reply_id = any (v_ids);
	v_counts := v_counts || cardinality(v_ids);
	v_ids := array(
		select l.id from autopost.bot_logs l
		where l.workspace_id = p_workspace_id and l.ts < v_before
		limit 5000
		for update of l skip locked);
	delete from autopost.bot_logs l where l.workspace_id = p_workspace_id and l.id = any (v_ids);
	v_counts := v_counts || cardinality(v_ids);
	return jsonb_build_object('purged', (select sum(c.n) from unnest(v_counts) c (n)), 'more', 5000 = any (v_counts));
end
$$;
