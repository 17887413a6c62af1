package db_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"autopost/internal/testing/pgtest"
)

const (
	runFanout = `select autopost.run_fanout('w', 2)`
	only      = `select autopost.enqueue_messages_and_deliveries('w', 'in', 'api', jsonb_build_object('text', $1::text,
		'routing', jsonb_build_object('include_channels', jsonb_build_array($2::text))))`
)

// manyChannels is a world where two channels are as many as one transaction takes.
func manyChannels(t *testing.T, channels ...string) *pgtest.DB {
	t.Helper()
	base := world(t, channels...)
	base.Exec(`update autopost.settings set value = '2' where key = 'fanout_chunk_channels'`)
	return base
}

// A worker that dies in the middle of a range changes nothing. Before that, other workers
// neither wait for it nor process its range.
func TestFanoutOfADeadWorkerGoesOn(t *testing.T) {
	t.Parallel()
	base := manyChannels(t, "a", "b", "c", "d", "e")
	base.Exec(enqueue, "in", "to all")
	first, second := base.Session("first", "engine"), impatient(base, "second")
	first.Exec(`begin`)
	require.Equal(t, "running", answer(t, first.Exec(runFanout))["status"])
	require.Equal(t, "busy", answer(t, second.Exec(runFanout))["status"])
	first.Exec(`rollback`)
	second.Exec(`set lock_timeout = 0`) // a rollback may hold locks for a moment after its answer

	for _, status := range []string{"running", "running", "done", "idle"} {
		require.Equal(t, status, answer(t, second.Exec(runFanout))["status"])
	}
	require.Equal(t, []string{"a", "b", "c", "d", "e"}, pgtest.Column[string](base, `select channel_id from autopost.deliveries order by 1`))
}

// The range in progress and an enqueue of the same content meet at the message: the
// later sees what the earlier did, in both orders.
func TestFanoutAndTheSameContentWaitForEachOther(t *testing.T) {
	t.Parallel()
	base := manyChannels(t, "a", "b", "c", "d")
	base.Exec(enqueue, "in", "x")
	worker, other := base.Session("worker", "engine"), base.Session("other", "engine")

	worker.Exec(`begin`)
	worker.Exec(runFanout)
	waiting := other.Start(only, "x", "a")
	require.Equal(t, []string{"worker"}, waiting.Blocked())
	worker.Exec(`commit`)
	require.Equal(t, "duplicate", answer(t, waiting.Wait())["status"])

	other.Exec(`begin`)
	other.Exec(only, "x", "d")
	waiting = worker.Start(runFanout)
	require.Equal(t, []string{"other"}, waiting.Blocked())
	other.Exec(`commit`)
	went := answer(t, waiting.Wait())
	require.Equal(t, []any{3.0, 1.0}, []any{went["enqueued"], went["deduped"]}, "%v", went)
	require.Equal(t, 4, pgtest.Value[int](base, `select count(*)::int from autopost.deliveries`))
}

// A row edit of many channels takes their gates in the order of the channels, though
// their rows lie in another: an enqueue that holds one of them is waited for, not met in a circle.
func TestEditOfManyChannelsTakesGatesInOrder(t *testing.T) {
	t.Parallel()
	for _, edit := range []string{`max_parallel = 3`, `rate_group = 'elsewhere'`} {
		base := world(t, "b", "a")
		enqueuer, operator := base.Session("enqueuer", "engine"), base.Session("operator", "")
		enqueuer.Exec(`begin`)
		enqueuer.Exec(only, "x", "a")
		editing := operator.Start(`update autopost.channels set ` + edit)
		require.Equal(t, []string{"enqueuer"}, editing.Blocked())
		enqueuer.Exec(`set local lock_timeout = '5s'`)
		enqueuer.Exec(only, "y", "b")
		enqueuer.Exec(`commit`)
		editing.Wait()
		require.Equal(t, []string{"a", "b"}, channels(enqueuer.Exec(claim)), edit)
	}
}

// Arrays of overlapping posts in any order, fan-outs and edits of all channels at once:
// nobody dies in a circle, and every channel has every content once.
func TestFanoutsEnqueuesAndEditsDoNotDeadlock(t *testing.T) {
	t.Parallel()
	base := manyChannels(t, "e", "b", "d", "a", "c")
	pool, err := pgxpool.New(t.Context(), base.URL("engine")+"&pool_max_conns=8")
	require.NoError(t, err)
	defer pool.Close()
	const texts, rounds = 6, 12
	var everyone sync.WaitGroup
	repeat := func(sql func() string) {
		everyone.Go(func() {
			for range rounds {
				if _, err := pool.Exec(context.Background(), sql()); err != nil {
					t.Errorf("%s: %v", sql(), err)
				}
			}
		})
	}
	for i := range 4 {
		repeat(func() string {
			items := ""
			for n, text := range rand.Perm(texts) {
				hint := ""
				if (n+i)%2 == 0 {
					hint = `, "routing": {"include_channels": ["c", "a"]}`
				}
				items += fmt.Sprintf(`,{"text": "post %d"%s}`, text, hint)
			}
			return `select autopost.enqueue_messages_and_deliveries_batch('w', 'in', 'api', '[` + items[1:] + `]')`
		})
	}
	for range 2 {
		repeat(func() string { return `select autopost.run_fanout('w', 1 + (random() * 3)::int)` })
	}
	everyone.Go(func() {
		for n := range rounds {
			base.Exec(`update autopost.channels set max_parallel = $1`, 1+n%3)
		}
	})
	everyone.Wait()
	for left := "running"; left != "idle"; {
		left = base.JSON(runFanout)["status"].(string)
		require.Contains(t, []string{"running", "done", "idle"}, left)
	}
	require.Zero(t, pgtest.Value[int](base, `select deadlocks::int from pg_stat_database where datname = current_database()`))
	require.Equal(t, []int{texts * 5, texts * 5}, pgtest.Column[int](base, `
		select unnest(array[count(*), count(distinct (channel_id, content_hash))])::int from autopost.deliveries`))
	require.Empty(t, pgtest.Column[string](base, `select v.invariant || v.sample from autopost.verify('w') v where v.violations > 0`))
}
