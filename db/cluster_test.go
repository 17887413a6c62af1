package db_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"autopost/internal/testing/pgtest"
)

// TestFunctionsRunOnClusters checks all functions and views with the lint of cluster_lint_test.go.
func TestFunctionsRunOnClusters(t *testing.T) {
	t.Parallel()
	base := pgtest.New(t)
	require.Empty(t, newClusterLint(base).check(base, ""))
}

// clusterViolations are function bodies that break one rule each, and how they are created.
var clusterViolations = []struct{ rule, create string }{
	{"sql-function", `create function autopost.planted(p_workspace_id text) returns text language sql as $$
		select w.status from autopost.workspaces w where w.workspace_id = p_workspace_id -- KEEP
		$$`},
	{"generic-plan", plantedWith(`set plan_cache_mode = force_generic_plan`, `null;`)},
	{"forbidden", planted(`delete from autopost.events_default e where e.workspace_id = p_workspace_id and e.ctid = '(0,1)'; -- KEEP`)},
	{"forbidden", planted(`create temporary table planted_rows (n int); -- KEEP`)},
	{"trigger-name", `create function autopost.planted() returns trigger language plpgsql as $$ begin
		if tg_table_name = 'channels' then return null; end if; -- KEEP
		return new;
		end $$`},
	{"whole-row", `create function autopost.planted() returns trigger language plpgsql as $$ begin
		perform autopost.is_held(new, now(), now()); -- KEEP
		return new;
		end $$`},
	{"whole-row", planted(`perform autopost.is_held(c, null, null) from autopost.channels c where c.workspace_id = p_workspace_id; -- KEEP`)},
	{"whole-row", planted(`perform array_agg(c order by c.channel_id) from autopost.channels c where c.workspace_id = p_workspace_id; -- KEEP`)},
	{"roles", planted(`perform 1 from autopost.channels c, pg_roles r where c.workspace_id = p_workspace_id; -- KEEP`)},
	{"recursion", plantedOfAll(`with recursive w as (select w.workspace_id from autopost.workspaces w union all select w.workspace_id from w) select count(*) into v_n from w; -- KEEP`)},
	{"who-calls", plantedOfAll(`select count(*) into v_n from autopost.workspaces w where autopost.may_access(w.workspace_id); -- KEEP`)},
	{"workspace", planted(`perform 1 from autopost.channels c where c.channel_id = 'a'; -- KEEP`)},
	{"workspace", planted(`perform 1 from autopost.channels c join autopost.channel_gates g using (channel_id) where c.workspace_id = p_workspace_id; -- KEEP`)},
	{"outer-lateral", `create view autopost.planted as select w.workspace_id, c.n from autopost.workspaces w
		left join lateral (select count(*) as n from autopost.channels c where c.workspace_id = w.workspace_id) c on true`},
	{"outer-lateral", plantedOfAll(`select count(*) into v_n from autopost.workspaces w left join lateral (select 1 from autopost.channels c where c.workspace_id = w.workspace_id limit 1) c on true; -- KEEP`)},
	{"row-array", `create function autopost.planted() returns void language plpgsql as $$
declare
	v_rows autopost.workspaces[]; -- KEEP
begin
	perform count(*) from autopost.workspaces w;
end
$$`},
	{"node-table", planted(`perform 1 from autopost.deliveries d join autopost.dispatch_runs r on r.run_id = d.claimed_by where d.workspace_id = p_workspace_id; -- KEEP`)},
	{"values", planted(`insert into autopost.avatars (workspace_id, avatar_id, name) values (p_workspace_id, (select 'a'), 'A'); -- KEEP`)},
	{"returning", planted(`update autopost.avatars a set name = 'A' where a.workspace_id = p_workspace_id returning (select 'a'); -- KEEP`)},
	{"returning", planted(`update autopost.avatars a set name = 'A' where a.workspace_id = p_workspace_id returning jsonb_build_object('a', a.name); -- KEEP`)},
	{"stable-of-column", planted(`update autopost.channels c set paused_until = v_now + interval '1 second' * 2 ^ (c.max_parallel + 1) where c.workspace_id = p_workspace_id; -- KEEP`)},
	{"simple-case", planted(`update autopost.avatars a set name = case a.name when 'A' then 'B' else 'C' end where a.workspace_id = p_workspace_id; -- KEEP`)},
	{"row-count", planted(`insert into autopost.avatars (workspace_id, avatar_id, name) select p_workspace_id, 'a', 'A' on conflict do nothing; -- KEEP
		get diagnostics v_n = row_count;`)},
	{"volatile-in-change", planted(`update autopost.channels c set updated_at = autopost.now_ts() where c.workspace_id = p_workspace_id; -- KEEP`)},
	{"volatile-in-change", planted(`delete from autopost.channels c where c.workspace_id = p_workspace_id and random() > 0.5; -- KEEP`)},
	{"volatile-in-change", planted(`insert into autopost.avatars (workspace_id, avatar_id, name) values (p_workspace_id, 'a', 'A') on conflict (workspace_id, avatar_id) do update set name = autopost.new_id()::text; -- KEEP`)},
	{"stable-in-case", planted(`update autopost.channels c set settings = case when p_workspace_id = 'a' then to_jsonb(1) end where c.workspace_id = p_workspace_id; -- KEEP`)},
	{"stable-in-case", planted(`update autopost.channels c set paused_until = coalesce(v_now - interval '1 day', v_now) where c.workspace_id = p_workspace_id; -- KEEP`)},
	{"stable-of-column", planted(`update autopost.channels c set settings = jsonb_build_object('a', c.channel_id) where c.workspace_id = p_workspace_id; -- KEEP`)},
	{"stable-of-column", planted(`update autopost.channels c set paused_until = (c.settings ->> 'at')::timestamptz where c.workspace_id = p_workspace_id; -- KEEP`)},
	{"stable-of-column", planted(`update autopost.channels c set paused_until = c.paused_until + interval '1 day' where c.workspace_id = p_workspace_id; -- KEEP`)},
	{"stable-of-column", planted(`update autopost.channels c set paused_until = v_now + make_interval(secs => c.max_parallel) where c.workspace_id = p_workspace_id; -- KEEP`)},
	{"stable-in-case", planted(`update autopost.channels c set paused_until = case when v_n = 1 then v_now + autopost.slot_horizon() end where c.workspace_id = p_workspace_id; -- KEEP`)},
	{"volatile-in-change", planted(`with a as (update autopost.channels c set enabled = true where c.workspace_id = p_workspace_id),
		b as (delete from autopost.avatars d where d.workspace_id = p_workspace_id and random() > 0.5) -- KEEP
		select 1 into v_n;`)},
}

// planted is a function of one workspace with these statements.
func planted(body string) string { return plantedWith("", body) }

func plantedWith(settings, body string) string {
	return `create function autopost.planted(p_workspace_id text) returns void language plpgsql ` + settings + ` as $$
declare
	v_now timestamptz := now();
	v_n int;
begin
	` + body + `
end
$$`
}

// plantedOfAll is a function of all workspaces.
func plantedOfAll(body string) string {
	return `create function autopost.planted() returns void language plpgsql as $$
declare
	v_n int;
begin
	` + body + `
end
$$`
}

// TestClusterLintFindsPlantedViolations checks each rule, and that an exception needs a reason.
func TestClusterLintFindsPlantedViolations(t *testing.T) {
	t.Parallel()
	base := pgtest.New(t)
	lint := newClusterLint(base)
	rules := func(create string) []string {
		base.Exec(`set check_function_bodies = off; ` + create)
		var found []string
		for _, f := range lint.check(base, "planted") {
			found = append(found, f.rule)
		}
		base.Exec(`do $$ begin
			if to_regclass('autopost.planted') is not null then drop view autopost.planted; else drop routine autopost.planted; end if;
			end $$`)
		return found
	}
	for _, p := range clusterViolations {
		require.Equal(t, []string{p.rule}, slices.Compact(rules(p.create)), p.create)
		if kept := strings.ReplaceAll(p.create, "-- KEEP", "-- citus: ok, a test"); kept != p.create && p.rule != "sql-function" {
			require.Empty(t, rules(kept), kept)
			require.Equal(t, []string{"no-reason"}, slices.Compact(rules(strings.ReplaceAll(p.create, "-- KEEP", "-- citus: ok"))))
		}
	}
}
