package races_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"autopost/internal/testing/pgtest"
	"autopost/internal/testing/wait"
)

// Workers that send, fail and die, posts by every endpoint, operators and the monitor, all at once on a few channels. Then the
// trouble ends, everything is brought to its end, and nothing is lost, doubled or wrong.
func TestStress(t *testing.T) {
	t.Parallel()
	claimers, enqueuers, operators := 8, 4, 2
	if pgtest.Long() {
		claimers, enqueuers, operators = 64, 32, 8
	}
	c := newCrowd(t, 12, claimers+enqueuers+operators)
	var refs, enqueued atomic.Int64
	var group sync.WaitGroup
	began := time.Now()
	until := pgtest.Until(3 * time.Second)
	if full := began.Add(10 * time.Minute); until.After(full) {
		until = full
	}
	c.together(&group, claimers, until, func(n int) {
		for _, w := range c.claim(fmt.Sprint("run-", n), 1+rand.IntN(6)) {
			c.work(w)
		}
	})
	c.together(&group, enqueuers, until, func(int) {
		texts := make([]string, 1+rand.IntN(3))
		for i := range texts {
			texts[i] = fmt.Sprint("post ", rand.IntN(100+int(refs.Load()/4)))
		}
		for _, result := range results(c.post(&refs, texts...)) {
			enqueued.Add(int64(result["enqueued"].(float64)))
		}
	})
	c.together(&group, operators, until, c.operate)
	group.Wait()
	took := time.Since(began)
	c.drain()

	t.Logf("%d calls in %s: %v", c.ops.Load(), took.Round(time.Millisecond), c.counts)
	t.Logf("%v", pgtest.Column[string](c.db, `select status || ' ' || count(*) from autopost.deliveries group by status order by 1`))
	require.Empty(t, pgtest.Column[string](c.db, `select format('%s %s: %s', v.invariant, v.title, v.sample) from autopost.verify('w') v where v.violations > 0`))
	require.Equal(t, map[string]any{"rearmed": 0.0}, c.db.JSON(`select autopost.rearm_gates('w')`))
	require.Equal(t, enqueued.Load()+c.replaced.Load(), pgtest.Value[int64](c.db, `select count(*) from autopost.deliveries`), "as many deliveries as the answers counted")
	require.Zero(t, pgtest.Value[int64](c.db, `select count(*) from autopost.deliveries where status not in ('sent', 'dead', 'failed_permanent')`))
	require.Zero(t, pgtest.Value[int64](c.db, `select deadlocks from pg_stat_database where datname = current_database()`), "deadlocks")
	c.judge()
}

// drain ends all trouble and works until every delivery is at its end. A person finds what is held, or does not: a refusal
// that came after the end of its lease is held, too.
func (c *crowd) drain() {
	c.t.Helper()
	c.db.Exec(`update autopost.workspaces set status = 'active'`)
	c.db.Exec(`select autopost.resume_channel('w', c.channel_id, 'olga', 'the end', false) from autopost.channels c`)
	c.db.Exec(`select autopost.reschedule('w', d.ids, now(), 'olga', 'the end', false)
		from (select array_agg(d.delivery_id) as ids from autopost.deliveries d where d.status in ('queued', 'retry') and d.scheduled_for > now()) d where d.ids is not null`)
	wait.Until(c.t, "every delivery is final", func() bool {
		for work := c.claim("drain", 100); len(work) > 0; work = c.claim("drain", 100) {
			c.deliver(work)
		}
		c.ask("recover", `select autopost.recover_sending_leases('w')`)
		for _, id := range pgtest.Column[string](c.db, `select delivery_id::text from autopost.deliveries where next_retry_at = 'infinity'`) {
			verdict, message := "absent", ""
			if c.copies[id] > 0 {
				verdict, message = "found", "seen"
			}
			c.db.Exec(`select autopost.resolve_unknown('w', $1::uuid, $2, nullif($3, ''), 'olga', 'looked')`, id, verdict, message)
		}
		return pgtest.Value[int64](c.db, `select count(*) from autopost.deliveries where status in ('queued', 'claimed', 'sending', 'retry')`) == 0
	})
}

// deliver sends what was claimed, all at once.
func (c *crowd) deliver(work []claimed) {
	var items []map[string]any
	for _, w := range work {
		items = append(items, map[string]any{"delivery_id": w.id, "claim_token": w.token, "outcome": json.RawMessage(sent)})
	}
	batch, err := json.Marshal(items)
	require.NoError(c.t, err)
	begun := c.ask("start", `select jsonb_build_object('results', autopost.start_call_batch('w', $1::jsonb))`, string(batch))
	for n, answer := range results(begun) {
		if answer["applied"] == true {
			c.copies[work[n].id]++
		}
	}
	c.ask("commit", `select jsonb_build_object('results', autopost.commit_outcome_batch('w', (
		select jsonb_agg(i) from jsonb_array_elements($1::jsonb) with ordinality i (i, n)
		where ($2::jsonb -> (n - 1)::int -> 'applied')::boolean)))`, string(batch), begun["results"])
}

// judge holds the receiver's log against the rows: what is sent arrived, and nothing arrived more often than was allowed.
func (c *crowd) judge() {
	c.t.Helper()
	most := map[string]int{}
	allowed := map[string][]any{}
	for _, row := range c.db.Session("judge", "").Exec(`
		select d.delivery_id::text, d.status, d.unknown_allowance, d.unknown_outcomes, c.on_unknown
		from autopost.deliveries d join autopost.channels c using (workspace_id, channel_id)`) {
		allowed[row[0].(string)] = row[1:]
	}
	for id, row := range allowed {
		status, allowance, unknown, policy := row[0].(string), int(row[1].(int32)), int(row[2].(int32)), row[3].(string)
		copies := c.copies[id]
		if status == "sent" && copies == 0 {
			c.t.Errorf("%s is sent, and nothing arrived", id)
		}
		if copies > 1+unknown {
			c.t.Errorf("%s: %d copies after %d unknown outcomes", id, copies, unknown)
		}
		// Each requeue by an operator grants one more.
		if policy == "hold" && copies > allowance || copies > 1+allowance {
			c.t.Errorf("%s: %d copies under %s with %d allowed", id, copies, policy, allowance)
		}
		if allowance == 1 {
			most[policy] = max(most[policy], copies)
		}
	}
	c.t.Logf("most copies of one delivery that nobody put back by hand: %v", most)
}
