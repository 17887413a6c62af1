create or replace function autopost.verify(p_workspace_id text) returns setof autopost.verify_finding
language plpgsql security definer set search_path = autopost, pg_temp set enable_nestloop = off set jit = off
as $$
-- The invariants over a live database: one row each, violations 0 where it holds, and at most five of the offending rows.
-- Takes no lock and writes nothing. Each invariant is one statement, so one snapshot: what is on its way at that moment is no finding.
-- Hash joins wherever one is possible: a workspace that the last ANALYZE did not know is estimated at one row, and row by row the
-- history of a large one would take hours.
-- What happened while the database's clock was put back has no order by time: I1, I20, I21, I25, I43 and I44 leave such deliveries out (verify_torn).
-- Raises AP002, AP003, AP005 as enter_workspace. Reads: all tables.
-- Not here, and why: I9 past (a refused commit leaves no trace to weigh); I12 I19 I23 receiver (only its log knows);
-- I28 I37 load (shown by a measurement); I30 source (a cursor's words are its kind's own); I32 I33 I34 absent (no tables yet).
-- In part: I11 by slots; I13 by events; I14 lower end; I15 by events; I20 our side; I35 by events; I36 by shape; I39 by events.
begin
	perform autopost.enter_workspace(p_workspace_id);
	return query select 'I1', 'recorded transitions are allowed, unbroken, and end at the status', count(*), coalesce(jsonb_agg(v.found) filter (where v.n <= 5), '[]')
		from autopost.verify_i01(p_workspace_id) with ordinality v (found, n) where not autopost.verify_torn(p_workspace_id, v.found);
	return query select 'I2', 'one send_attempt an attempt, and none beyond', count(*), coalesce(jsonb_agg(v.found) filter (where v.n <= 5), '[]')
		from autopost.verify_i02(p_workspace_id) with ordinality v (found, n);
	return query select 'I3', 'no more attempts than allowed and granted', count(*), coalesce(jsonb_agg(v.found) filter (where v.n <= 5), '[]')
		from autopost.verify_i03(p_workspace_id) with ordinality v (found, n);
	return query select 'I4', 'one live delivery a content and channel', count(*), coalesce(jsonb_agg(v.found) filter (where v.n <= 5), '[]')
		from autopost.verify_i04(p_workspace_id) with ordinality v (found, n);
	return query select 'I5', 'nothing enqueued that was sent inside the dedup window', count(*), coalesce(jsonb_agg(v.found) filter (where v.n <= 5), '[]')
		from autopost.verify_i05(p_workspace_id) with ordinality v (found, n);
	return query select 'I6', 'sent has its time and its platform id', count(*), coalesce(jsonb_agg(v.found) filter (where v.n <= 5), '[]')
		from autopost.verify_i06(p_workspace_id) with ordinality v (found, n);
	return query select 'I7', 'in flight has a token, sending has a lease', count(*), coalesce(jsonb_agg(v.found) filter (where v.n <= 5), '[]')
		from autopost.verify_i07(p_workspace_id) with ordinality v (found, n);
	return query select 'I8', 'no claim token twice', count(*), coalesce(jsonb_agg(v.found) filter (where v.n <= 5), '[]')
		from autopost.verify_i08(p_workspace_id) with ordinality v (found, n);
	return query select 'I10', 'no more in flight than max_parallel, and the counter is right', count(*), coalesce(jsonb_agg(v.found) filter (where v.n <= 5), '[]')
		from autopost.verify_i10(p_workspace_id) with ordinality v (found, n);
	return query select 'I11', 'slots of a channel no closer than its rate', count(*), coalesce(jsonb_agg(v.found) filter (where v.n <= 5), '[]')
		from autopost.verify_i11(p_workspace_id) with ordinality v (found, n);
	return query select 'I13', 'no call inside a wait that the platform gave', count(*), coalesce(jsonb_agg(v.found) filter (where v.n <= 5), '[]')
		from autopost.verify_i13(p_workspace_id) with ordinality v (found, n);
	return query select 'I14', 'no retry before the platforms wait or the policys', count(*), coalesce(jsonb_agg(v.found) filter (where v.n <= 5), '[]')
		from autopost.verify_i14(p_workspace_id) with ordinality v (found, n);
	return query select 'I15', 'no call while its channel is paused or disabled, or beside the probe of an open breaker', count(*), coalesce(jsonb_agg(v.found) filter (where v.n <= 5), '[]')
		from autopost.verify_i15(p_workspace_id) with ordinality v (found, n);
	return query select 'I16', 'no call before its time', count(*), coalesce(jsonb_agg(v.found) filter (where v.n <= 5), '[]')
		from autopost.verify_i16(p_workspace_id) with ordinality v (found, n);
	return query select 'I17', 'what was acknowledged is there, and counted', count(*), coalesce(jsonb_agg(v.found) filter (where v.n <= 5), '[]')
		from autopost.verify_i17(p_workspace_id) with ordinality v (found, n);
	return query select 'I18', 'no shut gate before what is due, no expired lease left lying', count(*), coalesce(jsonb_agg(v.found) filter (where v.n <= 5), '[]')
		from autopost.verify_i18(p_workspace_id) with ordinality v (found, n);
	return query select 'I20', 'no more blind resends than allowed, every unknown outcome counted', count(*), coalesce(jsonb_agg(v.found) filter (where v.n <= 5), '[]')
		from autopost.verify_i20(p_workspace_id) with ordinality v (found, n) where not autopost.verify_torn(p_workspace_id, v.found);
	return query select 'I21', 'sent was called for, and nothing after the end', count(*), coalesce(jsonb_agg(v.found) filter (where v.n <= 5), '[]')
		from autopost.verify_i21(p_workspace_id) with ordinality v (found, n) where not autopost.verify_torn(p_workspace_id, v.found);
	return query select 'I22', 'a series is sent when its steps are acknowledged, each item once', count(*), coalesce(jsonb_agg(v.found) filter (where v.n <= 5), '[]')
		from autopost.verify_i22(p_workspace_id) with ordinality v (found, n);
	return query select 'I24', 'one event a transition, and counters that agree', count(*), coalesce(jsonb_agg(v.found) filter (where v.n <= 5), '[]')
		from autopost.verify_i24(p_workspace_id) with ordinality v (found, n);
	return query select 'I25', 'events bear the attempt of their time', count(*), coalesce(jsonb_agg(v.found) filter (where v.n <= 5), '[]')
		from autopost.verify_i25(p_workspace_id) with ordinality v (found, n) where not autopost.verify_torn(p_workspace_id, v.found);
	return query select 'I26', 'nothing leads out of the workspace', count(*), coalesce(jsonb_agg(v.found) filter (where v.n <= 5), '[]')
		from autopost.verify_i26(p_workspace_id) with ordinality v (found, n);
	return query select 'I27', 'error_streak is the run of permanent errors of the channel', count(*), coalesce(jsonb_agg(v.found) filter (where v.n <= 5), '[]')
		from autopost.verify_i27(p_workspace_id) with ordinality v (found, n);
	return query select 'I29', 'no slot further ahead than the horizon, no call beyond a quota', count(*), coalesce(jsonb_agg(v.found) filter (where v.n <= 5), '[]')
		from autopost.verify_i29(p_workspace_id) with ordinality v (found, n);
	return query select 'I31', 'a receipt has its message or its submission', count(*), coalesce(jsonb_agg(v.found) filter (where v.n <= 5), '[]')
		from autopost.verify_i31(p_workspace_id) with ordinality v (found, n);
	return query select 'I35', 'what a person did is in the log, which is one chain, whole and unchanged', count(*), coalesce(jsonb_agg(v.found) filter (where v.n <= 5), '[]')
		from autopost.verify_i35(p_workspace_id) with ordinality v (found, n);
	return query select 'I36', 'no token in events and errors', count(*), coalesce(jsonb_agg(v.found) filter (where v.n <= 5), '[]')
		from autopost.verify_i36(p_workspace_id) with ordinality v (found, n);
	return query select 'I38', 'live deliveries have their media', count(*), coalesce(jsonb_agg(v.found) filter (where v.n <= 5), '[]')
		from autopost.verify_i38(p_workspace_id) with ordinality v (found, n);
	return query select 'I39', 'what the dedup window needs is kept', count(*), coalesce(jsonb_agg(v.found) filter (where v.n <= 5), '[]')
		from autopost.verify_i39(p_workspace_id) with ordinality v (found, n);
	return query select 'I40', 'stored hashes are what hashing gives', count(*), coalesce(jsonb_agg(v.found) filter (where v.n <= 5), '[]')
		from autopost.verify_i40(p_workspace_id) with ordinality v (found, n);
	return query select 'I41', 'an act in flight has its claim, a finished one its time', count(*), coalesce(jsonb_agg(v.found) filter (where v.n <= 5), '[]')
		from autopost.verify_i41(p_workspace_id) with ordinality v (found, n);
	return query select 'I42', 'each call and each end of an act is told once', count(*), coalesce(jsonb_agg(v.found) filter (where v.n <= 5), '[]')
		from autopost.verify_i42(p_workspace_id) with ordinality v (found, n);
	return query select 'I43', 'only what was sent is changed', count(*), coalesce(jsonb_agg(v.found) filter (where v.n <= 5), '[]')
		from autopost.verify_i43(p_workspace_id) with ordinality v (found, n) where not autopost.verify_torn(p_workspace_id, v.found);
	return query select 'I44', 'acts of a post come in order, one at a time, and none after its removal', count(*), coalesce(jsonb_agg(v.found) filter (where v.n <= 5), '[]')
		from autopost.verify_i44(p_workspace_id) with ordinality v (found, n) where not autopost.verify_torn(p_workspace_id, v.found);
	return query select 'I45', 'no more calls of an act than allowed', count(*), coalesce(jsonb_agg(v.found) filter (where v.n <= 5), '[]')
		from autopost.verify_i45(p_workspace_id) with ordinality v (found, n);
	return query select 'I46', 'nothing is paid for before it is claimed', count(*), coalesce(jsonb_agg(v.found) filter (where v.n <= 5), '[]')
		from autopost.verify_i46(p_workspace_id) with ordinality v (found, n);
end
$$;
