create or replace function autopost.verify(p_workspace_id text) returns setof autopost.verify_finding
language plpgsql security definer set search_path = autopost, pg_temp set enable_nestloop = off set jit = off
as $$
-- Purpose: checks the invariants of a live database. Each row has one invariant, its violations (0
--          if it holds) and up to five findings. Takes no lock and writes nothing. Each invariant
--          is one statement with one snapshot. Hash joins are forced: for a workspace without
--          statistics the planner expects one row, and nested loops over a long history take hours.
--          While the database's clock was set back, events have no order; I1, I20, I21, I25, I43
--          and I44 skip such deliveries (verify_torn). I11, I13, I14, I15, I20, I35, I36 and I39
--          are checked in part.
-- Raises:  AP002, AP003, AP005 as enter_workspace.
-- Reads:   all tables.
-- The database alone cannot check:
-- I9: a stale commit changes nothing
-- I12: calls of a credential keep its rate across channels and workspaces
-- I19: the platform accepted each sent delivery and returned the same id
-- I23: all calls of a delivery have the same content
-- I28: a dead or slow channel does not delay the others
-- I30: a pull cursor never passes an uncommitted item
-- I37: each active workspace with work is served within a few rounds
begin
	perform autopost.enter_workspace(p_workspace_id);
	return query select 'I1', 'recorded transitions are allowed, complete, and end at the status', count(*),
		coalesce(jsonb_agg(v.found) filter (where v.n <= 5), '[]')
		from autopost.verify_i01(p_workspace_id) with ordinality v (found, n)
			where not autopost.verify_torn(p_workspace_id, v.found);
	return query select 'I2', 'each attempt has one send_attempt', count(*),
		coalesce(jsonb_agg(v.found) filter (where v.n <= 5), '[]')
		from autopost.verify_i02(p_workspace_id) with ordinality v (found, n);
	return query select 'I3', 'attempts stay within the allowed and granted number', count(*),
		coalesce(jsonb_agg(v.found) filter (where v.n <= 5), '[]')
		from autopost.verify_i03(p_workspace_id) with ordinality v (found, n);
	return query select 'I4', 'one live delivery per content and channel', count(*),
		coalesce(jsonb_agg(v.found) filter (where v.n <= 5), '[]')
		from autopost.verify_i04(p_workspace_id) with ordinality v (found, n);
	return query select 'I5', 'content sent within the dedup window is not enqueued again', count(*),
		coalesce(jsonb_agg(v.found) filter (where v.n <= 5), '[]')
		from autopost.verify_i05(p_workspace_id) with ordinality v (found, n);
	return query select 'I6', 'a sent delivery has its time and platform id', count(*),
		coalesce(jsonb_agg(v.found) filter (where v.n <= 5), '[]')
		from autopost.verify_i06(p_workspace_id) with ordinality v (found, n);
	return query select 'I7', 'a delivery in flight has a token, a sending one also a lease', count(*),
		coalesce(jsonb_agg(v.found) filter (where v.n <= 5), '[]')
		from autopost.verify_i07(p_workspace_id) with ordinality v (found, n);
	return query select 'I8', 'each claim token is issued once', count(*),
		coalesce(jsonb_agg(v.found) filter (where v.n <= 5), '[]')
		from autopost.verify_i08(p_workspace_id) with ordinality v (found, n);
	return query select 'I10', 'calls in flight stay within max_parallel, and the counter is exact', count(*),
		coalesce(jsonb_agg(v.found) filter (where v.n <= 5), '[]')
		from autopost.verify_i10(p_workspace_id) with ordinality v (found, n);
	return query select 'I11', 'slots of a channel keep its rate', count(*),
		coalesce(jsonb_agg(v.found) filter (where v.n <= 5), '[]')
		from autopost.verify_i11(p_workspace_id) with ordinality v (found, n);
	return query select 'I13', 'no call starts during a wait that the platform stated', count(*),
		coalesce(jsonb_agg(v.found) filter (where v.n <= 5), '[]')
		from autopost.verify_i13(p_workspace_id) with ordinality v (found, n);
	return query select 'I14', 'a retry waits as long as platform and policy require', count(*),
		coalesce(jsonb_agg(v.found) filter (where v.n <= 5), '[]')
		from autopost.verify_i14(p_workspace_id) with ordinality v (found, n);
	return query select 'I15', 'no call starts in a paused or disabled channel, or next to the probe of a breaker',
		count(*), coalesce(jsonb_agg(v.found) filter (where v.n <= 5), '[]')
		from autopost.verify_i15(p_workspace_id) with ordinality v (found, n);
	return query select 'I16', 'no call starts before its time', count(*),
		coalesce(jsonb_agg(v.found) filter (where v.n <= 5), '[]')
		from autopost.verify_i16(p_workspace_id) with ordinality v (found, n);
	return query select 'I17', 'acknowledged posts are stored and counted', count(*),
		coalesce(jsonb_agg(v.found) filter (where v.n <= 5), '[]')
		from autopost.verify_i17(p_workspace_id) with ordinality v (found, n);
	return query select 'I18', 'no gate is closed before a due delivery, and expired leases are ended', count(*),
		coalesce(jsonb_agg(v.found) filter (where v.n <= 5), '[]')
		from autopost.verify_i18(p_workspace_id) with ordinality v (found, n);
	return query select 'I20', 'blind resends stay within the limit, and each unknown outcome is counted', count(*),
		coalesce(jsonb_agg(v.found) filter (where v.n <= 5), '[]')
		from autopost.verify_i20(p_workspace_id) with ordinality v (found, n)
			where not autopost.verify_torn(p_workspace_id, v.found);
	return query select 'I21', 'a sent delivery was called, and no call follows its end', count(*),
		coalesce(jsonb_agg(v.found) filter (where v.n <= 5), '[]')
		from autopost.verify_i21(p_workspace_id) with ordinality v (found, n)
			where not autopost.verify_torn(p_workspace_id, v.found);
	return query select 'I22', 'a series is sent after all steps are acknowledged, each item once', count(*),
		coalesce(jsonb_agg(v.found) filter (where v.n <= 5), '[]')
		from autopost.verify_i22(p_workspace_id) with ordinality v (found, n);
	return query select 'I24', 'each transition has one event, and counters agree', count(*),
		coalesce(jsonb_agg(v.found) filter (where v.n <= 5), '[]')
		from autopost.verify_i24(p_workspace_id) with ordinality v (found, n);
	return query select 'I25', 'events have the attempt of their time', count(*),
		coalesce(jsonb_agg(v.found) filter (where v.n <= 5), '[]')
		from autopost.verify_i25(p_workspace_id) with ordinality v (found, n)
			where not autopost.verify_torn(p_workspace_id, v.found);
	return query select 'I26', 'no reference leads to another workspace', count(*),
		coalesce(jsonb_agg(v.found) filter (where v.n <= 5), '[]')
		from autopost.verify_i26(p_workspace_id) with ordinality v (found, n);
	return query select 'I27', 'error_streak counts the permanent errors of the channel in a row', count(*),
		coalesce(jsonb_agg(v.found) filter (where v.n <= 5), '[]')
		from autopost.verify_i27(p_workspace_id) with ordinality v (found, n);
	return query select 'I29', 'no slot is beyond the horizon, and no call beyond a quota', count(*),
		coalesce(jsonb_agg(v.found) filter (where v.n <= 5), '[]')
		from autopost.verify_i29(p_workspace_id) with ordinality v (found, n);
	return query select 'I31', 'a receipt has its message or submission', count(*),
		coalesce(jsonb_agg(v.found) filter (where v.n <= 5), '[]')
		from autopost.verify_i31(p_workspace_id) with ordinality v (found, n);
	return query select 'I32', 'each message to the bot has one reply, in the order of its dialog', count(*),
		coalesce(jsonb_agg(v.found) filter (where v.n <= 5), '[]')
		from autopost.verify_i32(p_workspace_id) with ordinality v (found, n);
	return query select 'I33', 'a file job is published once, and only as approved', count(*),
		coalesce(jsonb_agg(v.found) filter (where v.n <= 5), '[]')
		from autopost.verify_i33(p_workspace_id) with ordinality v (found, n);
	return query select 'I34', 'nothing moderated is queued before its approval, and only as approved', count(*),
		coalesce(jsonb_agg(v.found) filter (where v.n <= 5), '[]')
		from autopost.verify_i34(p_workspace_id) with ordinality v (found, n);
	return query select 'I35', 'operator actions are in the log, and its chain is unchanged', count(*),
		coalesce(jsonb_agg(v.found) filter (where v.n <= 5), '[]')
		from autopost.verify_i35(p_workspace_id) with ordinality v (found, n);
	return query select 'I36', 'events and errors have no token', count(*),
		coalesce(jsonb_agg(v.found) filter (where v.n <= 5), '[]')
		from autopost.verify_i36(p_workspace_id) with ordinality v (found, n);
	return query select 'I38', 'live deliveries have their media', count(*),
		coalesce(jsonb_agg(v.found) filter (where v.n <= 5), '[]')
		from autopost.verify_i38(p_workspace_id) with ordinality v (found, n);
	return query select 'I39', 'rows that the dedup window needs are kept', count(*),
		coalesce(jsonb_agg(v.found) filter (where v.n <= 5), '[]')
		from autopost.verify_i39(p_workspace_id) with ordinality v (found, n);
	return query select 'I40', 'stored hashes are correct', count(*),
		coalesce(jsonb_agg(v.found) filter (where v.n <= 5), '[]')
		from autopost.verify_i40(p_workspace_id) with ordinality v (found, n);
	return query select 'I41', 'a post change in flight has its claim, a finished one its time', count(*),
		coalesce(jsonb_agg(v.found) filter (where v.n <= 5), '[]')
		from autopost.verify_i41(p_workspace_id) with ordinality v (found, n);
	return query select 'I42', 'each call and each end of a post change has one event', count(*),
		coalesce(jsonb_agg(v.found) filter (where v.n <= 5), '[]')
		from autopost.verify_i42(p_workspace_id) with ordinality v (found, n);
	return query select 'I43', 'only sent posts are changed', count(*),
		coalesce(jsonb_agg(v.found) filter (where v.n <= 5), '[]')
		from autopost.verify_i43(p_workspace_id) with ordinality v (found, n)
			where not autopost.verify_torn(p_workspace_id, v.found);
	return query select 'I44', 'changes of a post run in order, one at a time, and none after its removal', count(*),
		coalesce(jsonb_agg(v.found) filter (where v.n <= 5), '[]')
		from autopost.verify_i44(p_workspace_id) with ordinality v (found, n)
			where not autopost.verify_torn(p_workspace_id, v.found);
	return query select 'I45', 'calls of a post change stay within the limit', count(*),
		coalesce(jsonb_agg(v.found) filter (where v.n <= 5), '[]')
		from autopost.verify_i45(p_workspace_id) with ordinality v (found, n);
	return query select 'I46', 'an attempt is charged after its claim', count(*),
		coalesce(jsonb_agg(v.found) filter (where v.n <= 5), '[]')
		from autopost.verify_i46(p_workspace_id) with ordinality v (found, n);
	return query select 'I48', 'a due occurrence became one post, or was skipped', count(*),
		coalesce(jsonb_agg(v.found) filter (where v.n <= 5), '[]')
		from autopost.verify_i48(p_workspace_id) with ordinality v (found, n);
	return query select 'I49', 'a moved post has the time of its event, a replaced one its successor', count(*),
		coalesce(jsonb_agg(v.found) filter (where v.n <= 5), '[]')
		from autopost.verify_i49(p_workspace_id) with ordinality v (found, n);
	return query select 'I50', 'no link of an account keeps sealed data after its end', count(*),
		coalesce(jsonb_agg(v.found) filter (where v.n <= 5), '[]')
		from autopost.verify_i50(p_workspace_id) with ordinality v (found, n);
end
$$;
