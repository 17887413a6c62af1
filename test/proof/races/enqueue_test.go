package races_test

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"autopost/internal/testing/pgtest"
)

// The same posts again and again, by every function for input at once, in arrays whose order is chance, while workers send them: each
// channel gets each content once, and the answers count what happened.
func TestSamePostsByEveryFunction(t *testing.T) {
	t.Parallel()
	sessions, channels, texts, repeats := 8, 20, 40, 10
	if pgtest.Long() {
		sessions, channels, texts, repeats = 32, 50, 1000, 20
	}
	c := newCrowd(t, channels, sessions+4)
	c.db.Exec(`update autopost.channels set rate_rps = null, max_parallel = 100`)
	c.db.Exec(`delete from autopost.platform_limits`)
	var offers []string
	for n := range texts * repeats {
		offers = append(offers, fmt.Sprint("post ", n%texts))
	}
	rand.Shuffle(len(offers), func(i, j int) { offers[i], offers[j] = offers[j], offers[i] })

	var refs, next, enqueued, deduped, sentNow atomic.Int64
	var posting, sending sync.WaitGroup
	began := time.Now()
	for range sessions {
		posting.Go(func() {
			for {
				size := int64(1 + rand.IntN(20))
				from := next.Add(size) - size
				if from >= int64(len(offers)) {
					return
				}
				for _, result := range results(c.post(&refs, offers[from:min(from+size, int64(len(offers)))]...)) {
					enqueued.Add(int64(result["enqueued"].(float64)))
					deduped.Add(int64(result["deduped"].(float64)))
				}
			}
		})
	}
	posted := make(chan struct{})
	for n := range 4 {
		sending.Go(func() {
			for {
				select {
				case <-posted:
					return
				default:
				}
				for _, w := range c.claim(fmt.Sprint("run-", n), 20) {
					if c.ask("start", `select autopost.start_call('w', $1, $2)`, w.id, w.token)["applied"] != true {
						continue // its lease ran out in the crowd
					}
					if c.ask("commit", `select autopost.commit_outcome('w', $1, $2, $3::jsonb)`, w.id, w.token, sent)["applied"] == true {
						sentNow.Add(1)
					}
				}
			}
		})
	}
	posting.Wait()
	took := time.Since(began)
	close(posted)
	sending.Wait()

	attempts := int64(len(offers) * channels)
	t.Logf("%d deliveries attempted by %d sessions in %s, %d enqueued, %d suppressed, %d sent meanwhile", attempts, sessions, took.Round(time.Millisecond),
		enqueued.Load(), deduped.Load(), sentNow.Load())
	require.EqualValues(t, texts*channels, enqueued.Load())
	require.Equal(t, attempts, enqueued.Load()+deduped.Load())
	require.EqualValues(t, texts*channels, pgtest.Value[int64](c.db, `select count(*) from autopost.deliveries`))
	require.Empty(t, pgtest.Column[string](c.db, `select channel_id || ' ' || content_hash from autopost.deliveries group by channel_id, content_hash having count(*) > 1`))
	require.EqualValues(t, texts*repeats, pgtest.Value[int64](c.db, `select sum(seen_count)::bigint from autopost.messages`))
	require.Positive(t, sentNow.Load())
	require.Zero(t, pgtest.Value[int64](c.db, `select deadlocks from pg_stat_database where datname = current_database()`), "deadlocks")
	c.ask("recover", `select autopost.recover_sending_leases('w')`)
	require.Empty(t, pgtest.Column[string](c.db, `select format('%s %s: %s', v.invariant, v.title, v.sample) from autopost.verify('w') v where v.violations > 0`))
}

// results are the answers for each post of a call.
func results(answer map[string]any) (each []map[string]any) {
	list, _ := answer["results"].([]any)
	for _, r := range list {
		each = append(each, r.(map[string]any))
	}
	return each
}
