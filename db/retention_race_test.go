package db_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"autopost"
	"autopost/internal/testing/pgtest"
	"autopost/internal/testing/posttest"
)

const (
	purgeMessages   = `select autopost.purge_messages('w', null)`
	purgeDeliveries = `select autopost.purge_deliveries('w', null)`
	forget          = `select autopost.forget_media_origin('w', 'sha256:' || repeat('1', 64))`
	pause           = `select autopost.pause_channel('w', 'a', 60, $1, 'r', false)`
)

// aged is a world whose clock stands a hundred days after what happen did; of the
// events nothing is left.
func aged(t *testing.T, happen func(base *pgtest.DB)) *pgtest.DB {
	t.Helper()
	base := world(t, "a")
	base.Exec(`create table public.clock as select now() as at;
		grant select on public.clock to public;
		create or replace function autopost.now_ts() returns timestamptz language plpgsql as 'begin return (select at from public.clock); end'`)
	happen(base)
	base.Exec(`update public.clock set at = at + interval '100 days'`)
	base.Exec(`delete from autopost.events`)
	return base
}

func count(base *pgtest.DB, sql string) int {
	return pgtest.Value[int](base, `select count(*)::int from `+sql)
}

func holds(t *testing.T, base *pgtest.DB) {
	t.Helper()
	require.Empty(t, pgtest.Column[string](base, `select invariant || ' ' || sample::text from autopost.verify('w') where violations > 0`))
}

// The same content is enqueued while its message is being removed. The post is not lost in either
// order.
func TestRepeatMeetsThePurgeOfItsMessage(t *testing.T) {
	t.Parallel()
	old := func(base *pgtest.DB) {
		posttest.Post(base, "w", "again")
		base.Exec(`delete from autopost.deliveries`)
	}
	t.Run("the enqueue is first", func(t *testing.T) {
		t.Parallel()
		base := aged(t, old)
		enqueuer, purger := base.Session("enqueuer", "engine"), impatient(base, "purger")
		enqueuer.Exec(`begin`)
		enqueuer.Exec(enqueue, "in", "again")
		require.EqualValues(t, 0, answer(t, purger.Exec(purgeMessages))["purged"], "it is left to who holds it")
		enqueuer.Exec(`commit`)
		require.EqualValues(t, 0, answer(t, purger.Exec(purgeMessages))["purged"])
		require.Equal(t, 1, count(base, `autopost.deliveries d join autopost.messages m using (workspace_id, message_id) where d.status = 'queued' and m.seen_count = 2`))
		holds(t, base)
	})
	t.Run("the purge is first", func(t *testing.T) {
		t.Parallel()
		base := aged(t, old)
		enqueuer, purger := base.Session("enqueuer", "engine"), base.Session("purger", "engine")
		purger.Exec(`begin`)
		require.EqualValues(t, 1, answer(t, purger.Exec(purgeMessages))["purged"])
		waiting := enqueuer.Start(enqueue, "in", "again")
		require.Equal(t, []string{"purger"}, waiting.Blocked())
		purger.Exec(`commit`)
		require.EqualValues(t, 1, answer(t, waiting.Wait())["enqueued"])
		require.Equal(t, 1, count(base, `autopost.deliveries d join autopost.messages m using (workspace_id, message_id) where d.status = 'queued' and m.seen_count = 1`), "it is stored again")
		holds(t, base)
	})
}

func TestRequeueMeetsThePurgeOfItsDelivery(t *testing.T) {
	t.Parallel()
	const requeue = `select autopost.manual_requeue('w', array(select delivery_id from autopost.deliveries), 'olga', 'again')`
	dead := func(base *pgtest.DB) { posttest.Delivery(base, "w", "a", autopost.StatusDead) }
	t.Run("the requeue is first", func(t *testing.T) {
		t.Parallel()
		base := aged(t, dead)
		operator, purger := base.Session("operator", ""), impatient(base, "purger")
		operator.Exec(`begin`)
		operator.Exec(requeue)
		require.EqualValues(t, 0, answer(t, purger.Exec(purgeDeliveries))["purged"])
		operator.Exec(`commit`)
		require.EqualValues(t, 0, answer(t, purger.Exec(purgeDeliveries))["purged"])
		require.Equal(t, 1, count(base, `autopost.deliveries where status = 'retry'`))
	})
	t.Run("the purge is first", func(t *testing.T) {
		t.Parallel()
		base := aged(t, dead)
		operator, purger := base.Session("operator", ""), base.Session("purger", "engine")
		purger.Exec(`begin`)
		require.EqualValues(t, 1, answer(t, purger.Exec(purgeDeliveries))["purged"])
		waiting := operator.Start(requeue)
		require.Equal(t, []string{"purger"}, waiting.Blocked())
		purger.Exec(`commit`)
		require.Equal(t, false, answer(t, waiting.Wait())["applied"])
		require.Zero(t, count(base, `autopost.admin_audit_log`), "nothing was done, nothing is recorded")
		holds(t, base)
	})
}

// A post refers to a medium while it is being taken away: either it is kept, or the
// post is refused.
func TestPostMeetsTheEndOfItsMedium(t *testing.T) {
	t.Parallel()
	const post = `select autopost.enqueue_messages_and_deliveries('w', 'in', 'api',
		jsonb_build_object('media', jsonb_build_array(jsonb_build_object('type', 'image', 'blob_ref', 'sha256:' || repeat('1', 64)))))`
	put := func(base *pgtest.DB) {
		base.Exec(`select autopost.put_media_origin('w', 'sha256:' || repeat('1', 64), 'file:///1', 'image/png', 10, 'image', 1, 1)`)
	}
	t.Run("the post is first", func(t *testing.T) {
		t.Parallel()
		base := aged(t, put)
		enqueuer, sweeper := base.Session("enqueuer", "engine"), base.Session("sweeper", "engine")
		enqueuer.Exec(`begin`)
		require.EqualValues(t, 1, answer(t, enqueuer.Exec(post))["enqueued"])
		waiting := sweeper.Start(forget)
		require.Equal(t, []string{"enqueuer"}, waiting.Blocked())
		enqueuer.Exec(`commit`)
		require.Equal(t, "referenced", answer(t, waiting.Wait())["reason"])
		holds(t, base)
	})
	t.Run("the sweep is first", func(t *testing.T) {
		t.Parallel()
		base := aged(t, put)
		enqueuer, sweeper := base.Session("enqueuer", "engine"), base.Session("sweeper", "engine")
		sweeper.Exec(`begin`)
		require.Equal(t, true, answer(t, sweeper.Exec(forget))["applied"])
		waiting := enqueuer.Start(post)
		require.Equal(t, []string{"sweeper"}, waiting.Blocked())
		sweeper.Exec(`commit`)
		require.Equal(t, "rejected", answer(t, waiting.Wait())["status"])
		holds(t, base)
	})
	t.Run("two workspaces forget the same content", func(t *testing.T) {
		t.Parallel()
		base := aged(t, func(base *pgtest.DB) {
			put(base)
			posttest.Workspace(base, "v")
			base.Exec(`select autopost.put_media_origin('v', 'sha256:' || repeat('1', 64), 'file:///1', 'image/png', 10, 'image', 1, 1)`)
		})
		one, two := base.Session("one", "engine"), base.Session("two", "engine")
		one.Exec(`begin`)
		require.NotContains(t, answer(t, one.Exec(forget)), "token")
		waiting := two.Start(`select autopost.forget_media_origin('v', 'sha256:' || repeat('1', 64))`)
		require.Equal(t, []string{"one"}, waiting.Blocked())
		one.Exec(`commit`)
		require.Contains(t, answer(t, waiting.Wait()), "token", "the second is the last")
	})
	const register = `select autopost.put_media_origin('w', 'sha256:' || repeat('2', 64), 'file:///2', 'image/png', 10, 'image', 1, 1)`
	const remove = `select autopost.begin_media_removal('sha256:' || repeat('2', 64))`
	t.Run("content comes again while its object is taken away", func(t *testing.T) {
		t.Parallel()
		base := world(t, "a")
		keeper, writer := base.Session("keeper", "engine"), base.Session("writer", "engine")
		keeper.Exec(`begin`)
		require.Equal(t, true, answer(t, keeper.Exec(remove))["applied"])
		waiting := writer.Start(register)
		require.Equal(t, []string{"keeper"}, waiting.Blocked())
		keeper.Exec(`commit`)
		require.Equal(t, "being_removed", answer(t, waiting.Wait())["reason"])
	})
	t.Run("an object is taken away while its content is registered", func(t *testing.T) {
		t.Parallel()
		base := world(t, "a")
		keeper, writer := base.Session("keeper", "engine"), base.Session("writer", "engine")
		writer.Exec(`begin`)
		require.Equal(t, true, answer(t, writer.Exec(register))["applied"])
		waiting := keeper.Start(remove)
		require.Equal(t, []string{"writer"}, waiting.Blocked())
		writer.Exec(`commit`)
		require.Equal(t, "held", answer(t, waiting.Wait())["reason"])
	})
}

// Dropping a day needs an exclusive lock. Writers of events must not queue behind a session that
// waits for this lock.
func TestDropOfPartitionsGivesWay(t *testing.T) {
	t.Parallel()
	base := world(t, "a")
	base.Exec(`create table autopost.events_20200101 partition of autopost.events for values from ('2020-01-01 00:00:00+00') to ('2020-01-02 00:00:00+00')`)
	base.Exec(`alter table autopost.events_20200101 owner to autopost_owner`)
	writer, keeper := base.Session("writer", "engine"), base.Session("keeper", "engine")
	const drop = `select autopost.drop_event_partitions()`
	writer.Exec(`begin`)
	writer.Exec(enqueue, "in", "one")
	got := answer(t, keeper.Exec(drop))
	require.Equal(t, map[string]any{"dropped": 0.0, "busy": true, "more": true, "in_default": 0.0}, got)
	writer.Exec(enqueue, "in", "two")
	writer.Exec(`commit`)
	got = answer(t, keeper.Exec(drop))
	require.Equal(t, map[string]any{"dropped": 1.0, "busy": false, "more": false, "in_default": 0.0}, got)
	require.Equal(t, 2, count(base, `autopost.events where action = 'enqueue'`))

	keeper.Exec(`begin`)
	keeper.Exec(`select autopost.ensure_event_partitions()`)
	require.Equal(t, true, answer(t, writer.Exec(drop))["busy"], "one keeper at a time")
	keeper.Exec(`commit`)
}

// Two people act at once: their rows follow each other in one chain.
func TestAuditLogHasNoFork(t *testing.T) {
	t.Parallel()
	base := world(t, "a", "b")
	base.Exec(pause, "olga")
	first, second := base.Session("first", ""), base.Session("second", "")
	first.Exec(`begin`)
	first.Exec(pause, "first")
	waiting := second.Start(`select autopost.pause_channel('w', 'b', 60, 'second', 'r', false)`)
	require.Equal(t, []string{"first"}, waiting.Blocked())
	first.Exec(`commit`)
	waiting.Wait()
	require.Equal(t, []string{"olga", "first", "second"}, pgtest.Column[string](base, `select operator from autopost.admin_audit_log order by seq`))
	holds(t, base)

	first.Exec(`begin`)
	first.Exec(pause, "undone")
	first.Exec(`rollback`)
	second.Exec(pause, "last")
	require.Equal(t, []int{1, 2, 3, 4}, pgtest.Column[int](base, `select seq::int from autopost.admin_audit_log order by seq`), "what was rolled back leaves no gap")
	holds(t, base)
}

// A dedup window grows while the retention that it relies on shrinks.
func TestDedupWindowMeetsRetention(t *testing.T) {
	t.Parallel()
	const (
		shorten = `select autopost.apply_settings('{"delivery_retention_days": 40}', 'ann', 'test', false)`
		widen   = `update autopost.channels set dedup_ttl_hours = 1200`
	)
	t.Run("the retention is first", func(t *testing.T) {
		t.Parallel()
		base := world(t, "a")
		keeper, operator := base.Session("keeper", "engine"), base.Session("operator", "")
		keeper.Exec(`begin`)
		keeper.Exec(shorten)
		waiting := operator.Start(widen)
		require.Equal(t, []string{"keeper"}, waiting.Blocked())
		keeper.Exec(`commit`)
		require.ErrorContains(t, waiting.Err(), "longer than deliveries are kept")
	})
	t.Run("the window is first", func(t *testing.T) {
		t.Parallel()
		base := world(t, "a")
		keeper, operator := base.Session("keeper", "engine"), base.Session("operator", "")
		operator.Exec(`begin`)
		operator.Exec(widen)
		waiting := keeper.Start(shorten)
		require.Equal(t, []string{"operator"}, waiting.Blocked())
		operator.Exec(`commit`)
		require.ErrorContains(t, waiting.Err(), "at least the longest dedup window")
	})
}
