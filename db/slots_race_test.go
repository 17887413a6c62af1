package db_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"autopost/internal/testing/pgtest"
	"autopost/internal/testing/posttest"
)

// A hundred posts and moves that take the next free slot of a channel at the same moment get a hundred slots. The gap is
// kept, and so are the posting window and the quota that the channel shares with another one.
func TestParallelTakersGetDifferentSlots(t *testing.T) {
	t.Parallel()
	const takers = 100
	base := world(t, "a", "b")
	base.Exec(`update autopost.channels set settings = '{"min_gap_seconds": 600}', window_mode = 'windowed', timezone = 'Europe/Berlin',
		posting_window = '{"mon": [["08:00", "20:00"]], "tue": [["08:00", "20:00"]], "thu": [["08:00", "20:00"]], "sun": [["08:00", "20:00"]]}' where channel_id = 'a'`)
	base.Exec(groupQuota, 5)
	ids := make([]string, 0, takers/2)
	for n := range takers / 2 {
		posttest.Post(base, "w", fmt.Sprint("waits ", n))
		ids = append(ids, pgtest.Value[string](base, `select delivery_id::text from autopost.deliveries where channel_id = 'a' order by delivery_id desc limit 1`))
	}
	base.Exec(`select autopost.skip_deliveries('w', array(select delivery_id from autopost.deliveries where channel_id = 'b'), 'o', 'r', false)`)
	config, err := pgxpool.ParseConfig(base.URL("engine"))
	require.NoError(t, err)
	config.MaxConns = 25
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	require.NoError(t, err)
	defer pool.Close()
	var group sync.WaitGroup
	errs := make(chan error, takers)
	start := make(chan struct{})
	for n := range takers {
		group.Go(func() {
			<-start
			sql, subject := `select autopost.reschedule('w', array[$1]::uuid[], null, 'o', 'r', false)`, ""
			if n < len(ids) {
				subject = ids[n]
			} else {
				sql, subject = `select autopost.submit_post('w', 'in', 'api', jsonb_build_object('text', $1::text, 'slot', 'next_free', 'routing', '{"include_channels": ["a"]}'::jsonb))`, fmt.Sprint("new ", n)
			}
			_, err := pool.Exec(t.Context(), sql, subject)
			errs <- err
		})
	}
	close(start)
	group.Wait()
	close(errs)
	for err := range errs {
		require.NoError(t, err)
	}
	slots := pgtest.Column[time.Time](base, `select scheduled_for from autopost.deliveries where channel_id = 'a' and status = 'queued' and scheduled_for is not null order by 1`)
	require.Len(t, slots, takers)
	require.Zero(t, pgtest.Value[int](base, `select count(*)::int from autopost.deliveries d join autopost.channels c using (workspace_id, channel_id)
		where d.channel_id = 'a' and d.status = 'queued' and autopost.opens_at(c.window_mode, c.timezone, c.posting_window, d.scheduled_for) <> d.scheduled_for`), "outside the posting window")
	for n := 1; n < len(slots); n++ {
		require.GreaterOrEqual(t, slots[n].Sub(slots[n-1]), 10*time.Minute)
		if n >= 5 {
			require.GreaterOrEqual(t, slots[n].Sub(slots[n-5]), time.Hour, "the quota has five an hour")
		}
	}
}

// The calendar of an interval reads what is in it, not the history, the queue or the posts of other times, with true and with stale statistics.
func TestCalendarReadsItsIntervalAlone(t *testing.T) {
	t.Parallel()
	for name, before := range map[string]string{"no statistics": ``, "statistics of nothing": `analyze`, "true statistics": ``} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			base := world(t, "a", "b", "c")
			if before != "" {
				base.Exec(before)
			}
			posttest.Post(base, "w", "one")
			look := base.Session("look", "engine")
			const month = `select autopost.calendar('w', now() + interval '10 days', now() + interval '40 days', null)`
			const slots = `select autopost.next_free_slots('w', 'a', now() + interval '3 days', 3)`
			cost := func(query string) float64 {
				pages(look, query) // plans, and fills the caches of the session
				return pages(look, query)
			}
			few, fewSlots := cost(month), cost(slots)
			// Rows before and after the interval, then some in it.
			base.Exec(`set session_replication_role = replica;
				insert into autopost.deliveries (workspace_id, delivery_id, message_id, channel_id, hash_version, content_hash, status, sent_at, finished_at, provider_message_id, not_before)
				select 'w', case when n % 2 = 0 then gen_random_uuid() else autopost.uuid_v7_of(now() - n * interval '1 minute' - n % 9 * interval '7 minutes', n || c) end,
					d.message_id, c, 1, 'sent ' || n, 'sent', now() - n * interval '1 minute', now(), n::text, now() - n * interval '1 minute'
				from generate_series(1, 10000) n, unnest('{a,b,c}'::text[]) c, (select message_id from autopost.deliveries limit 1) d;
				insert into autopost.deliveries (workspace_id, delivery_id, message_id, channel_id, hash_version, content_hash, status, scheduled_for)
				select 'w', gen_random_uuid(), d.message_id, c, 1, 'waits ' || n, 'queued', now() + case when n <= 10 then 20 when n % 2 = 0 then 1 else 50 end * interval '1 day'
				from generate_series(1, 5000) n, unnest('{a,b,c}'::text[]) c, (select message_id from autopost.deliveries limit 1) d;
				set session_replication_role = origin`)
			if name == "true statistics" {
				base.Exec(`analyze`)
			}
			require.Equal(t, 30, pgtest.Value[int](base, `select sum((i.value ->> 'channels')::int)::int from jsonb_array_elements(autopost.calendar('w', now() + interval '10 days', now() + interval '40 days', null) -> 'items') i`))
			require.Less(t, cost(month), few+200)
			require.Less(t, cost(slots), fewSlots+200)
			require.Equal(t, 360, pgtest.Value[int](base, `select sum((i.value ->> 'channels')::int)::int from jsonb_array_elements(
				autopost.calendar('w', now() - interval '3 hours', now() - interval '1 hour', null) -> 'items') i`), "posts that were sent soon, and others")
			for newest := 1; newest <= 2; newest++ { // the first is found by its id
				require.Equal(t, 5-newest, pgtest.Value[int](base, `select round(extract(epoch from autopost.after_gap(c, now(), interval '5 minutes',
					array(select d.delivery_id from autopost.deliveries d where d.due_at <= now() and d.status = 'queued'), now()) - now()) / 60)::int
					from autopost.channels c where c.channel_id = 'a'`))
				base.Exec(`delete from autopost.deliveries where content_hash = 'sent ' || $1::int`, newest)
			}
		})
	}
}
