package db_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"autopost"
	"autopost/internal/testing/pgtest"
	"autopost/internal/testing/posttest"
	"autopost/internal/testing/wait"
)

const (
	claim         = `select c.channel_id from autopost.claim_deliveries('w', 'run', 100) c order by 1`
	enqueue       = `select autopost.enqueue_messages_and_deliveries('w', $1, 'api', jsonb_build_object('text', $2::text))`
	push          = `select autopost.receive_push('w', 'in', jsonb_build_array($1::jsonb)) -> 'results' -> 0`
	commit        = `select autopost.commit_outcome('w', $1, $2, '{"ok": true, "provider_message_id": "1"}')`
	recoverLeases = `select autopost.recover_sending_leases('w')`
)

// world is a workspace w with unlimited channels that may have two in flight.
func world(t *testing.T, channels ...string) *pgtest.DB {
	t.Helper()
	base := pgtest.New(t)
	posttest.Workspace(base, "w")
	for _, id := range channels {
		posttest.Channel(base, "w", id, posttest.MaxParallel(2))
	}
	return base
}

// impatient is a session whose statement fails when it has to wait for a lock.
func impatient(base *pgtest.DB, name string) *pgtest.Session {
	s := base.Session(name, "engine")
	s.Exec(`set lock_timeout = '1ms'`)
	return s
}

func channels(rows [][]any) []string {
	ids := []string{}
	for _, row := range rows {
		ids = append(ids, row[0].(string))
	}
	return ids
}

// answer is the one JSON object of a statement.
func answer(t *testing.T, rows [][]any) map[string]any {
	t.Helper()
	require.Len(t, rows, 1)
	object, ok := rows[0][0].(map[string]any)
	require.True(t, ok, "%v", rows)
	return object
}

func TestClaimNeverWaits(t *testing.T) {
	t.Parallel()
	for _, limited := range []bool{false, true} {
		base := world(t, "a", "b")
		if limited {
			base.Exec(`update autopost.channels set rate_rps = 1000`)
			base.Exec(`insert into autopost.platform_limits (workspace_id, platform, rate_group, rate_rps) values ('w', 'telegram', 'bot', 1000)`)
		}
		posttest.Post(base, "w", "one")
		first, second := base.Session("first", "engine"), impatient(base, "second")

		first.Exec(`begin`)
		require.Equal(t, []string{"a", "b"}, channels(first.Exec(claim)))
		require.Empty(t, second.Exec(claim), "behind another claim")
		first.Exec(`commit`)

		posttest.Post(base, "w", "two")
		first.Exec(`begin`)
		first.Exec(enqueue, "in", "three")
		require.Empty(t, second.Exec(claim), "behind an enqueue for the same channels")
		first.Exec(`commit`)

		held := base.QueryRow(`select delivery_id::text, claim_token from autopost.deliveries where channel_id = 'a' and status = 'sending' limit 1`)
		var id, token string
		require.NoError(t, held.Scan(&id, &token))
		first.Exec(`begin`)
		first.Exec(commit, id, token)
		got := channels(second.Exec(claim))
		require.NotContains(t, got, "a", "its channel is being committed")
		first.Exec(`commit`)
		require.Contains(t, append(got, channels(second.Exec(claim))...), "a", "and is served afterwards")
	}
}

// A claim that closes a gate and an enqueue that opens it lock the gate's row, in any order.
// The new delivery is claimable afterwards.
func TestWakeUpIsNeverLost(t *testing.T) {
	t.Parallel()
	t.Run("the enqueue is first", func(t *testing.T) {
		t.Parallel()
		base := world(t, "a")
		enqueuer, claimer := base.Session("enqueuer", "engine"), base.Session("claimer", "engine")
		enqueuer.Exec(`begin`)
		enqueuer.Exec(enqueue, "in", "x")
		require.Empty(t, claimer.Exec(claim))
		enqueuer.Exec(`commit`)
		require.Equal(t, []string{"a"}, channels(claimer.Exec(claim)))
	})
	t.Run("the claim is first", func(t *testing.T) {
		t.Parallel()
		base := world(t, "a")
		posttest.Post(base, "w", "before")
		enqueuer, claimer := base.Session("enqueuer", "engine"), base.Session("claimer", "engine")
		claimer.Exec(`begin`)
		require.Equal(t, []string{"a"}, channels(claimer.Exec(claim)))
		waiting := enqueuer.Start(enqueue, "in", "x")
		require.Equal(t, []string{"claimer"}, waiting.Blocked())
		claimer.Exec(`commit`)
		waiting.Wait()
		require.Equal(t, []string{"a"}, channels(claimer.Exec(claim)))
	})
	t.Run("the claim is first, and the gate before it was closed", func(t *testing.T) {
		t.Parallel()
		base := world(t, "a", "b")
		posttest.Delivery(base, "w", "b", autopost.StatusQueued)
		enqueuer, claimer := base.Session("enqueuer", "engine"), base.Session("claimer", "engine")
		claimer.Exec(`begin`)
		require.Equal(t, []string{"b"}, channels(claimer.Exec(claim)))
		waiting := enqueuer.Start(enqueue, "in", "x")
		require.Equal(t, []string{"claimer"}, waiting.Blocked())
		claimer.Exec(`commit`)
		waiting.Wait()
		require.Equal(t, []string{"a", "b"}, channels(claimer.Exec(claim)))
	})
	t.Run("a commit frees a place while a claim finds the channel full", func(t *testing.T) {
		t.Parallel()
		base := world(t, "a")
		id := posttest.Delivery(base, "w", "a", autopost.StatusSending)
		token := pgtest.Value[string](base, `select claim_token from autopost.deliveries where delivery_id = $1::uuid`, id)
		posttest.Post(base, "w", "second")
		posttest.Post(base, "w", "third")
		claimer, committer := base.Session("claimer", "engine"), base.Session("committer", "engine")
		claimer.Exec(`begin`)
		require.Equal(t, []string{"a"}, channels(claimer.Exec(claim)), "now it is full")
		waiting := committer.Start(commit, id, token)
		require.Equal(t, []string{"claimer"}, waiting.Blocked())
		claimer.Exec(`commit`)
		waiting.Wait()
		require.Equal(t, []string{"a"}, channels(claimer.Exec(claim)))
		require.Equal(t, 2, pgtest.Value[int](base, `select inflight from autopost.channel_gates`))
	})
}

func TestSameContentAtOnce(t *testing.T) {
	t.Parallel()
	for _, end := range []string{"commit", "rollback"} {
		base := world(t, "a", "b")
		base.Exec(`insert into autopost.workspace_endpoints (workspace_id, endpoint_id, kind, secret_hash) values ('w', 'other', 'webhook_push', repeat('b', 64))`)
		first, second := base.Session("first", "engine"), base.Session("second", "engine")
		first.Exec(`begin`)
		require.EqualValues(t, 2, answer(t, first.Exec(enqueue, "in", "x"))["enqueued"])
		waiting := second.Start(enqueue, "other", "x")
		require.Equal(t, []string{"first"}, waiting.Blocked())
		first.Exec(end)
		got := answer(t, waiting.Wait())
		if end == "commit" {
			require.Equal(t, "duplicate", got["status"])
			require.EqualValues(t, 2, got["deduped"])
		} else {
			require.EqualValues(t, 2, got["enqueued"])
		}
		require.Equal(t, 1, pgtest.Value[int](base, `select count(*)::int from autopost.messages`))
		require.Equal(t, 2, pgtest.Value[int](base, `select count(*)::int from autopost.deliveries`))
	}
}

// A failed delivery is requeued while the same content is enqueued. The second one learns that the other was first.
func TestRequeueAndEnqueueAtOnce(t *testing.T) {
	t.Parallel()
	const requeue = `select autopost.manual_requeue('w', array[$1]::uuid[], 'olga', 'again') -> 'results' -> 0`
	setUp := func(t *testing.T) (operator, enqueuer *pgtest.Session, id, text string) {
		base := world(t, "a")
		id = posttest.Delivery(base, "w", "a", autopost.StatusFailedPermanent)
		return base.Session("operator", "engine"), base.Session("enqueuer", "engine"), id, pgtest.Value[string](base, `select rendered_text from autopost.deliveries`)
	}
	t.Run("the enqueue is first", func(t *testing.T) {
		t.Parallel()
		operator, enqueuer, id, text := setUp(t)
		enqueuer.Exec(`begin`)
		require.EqualValues(t, 1, answer(t, enqueuer.Exec(enqueue, "in", text))["enqueued"])
		waiting := operator.Start(requeue, id)
		require.Equal(t, []string{"enqueuer"}, waiting.Blocked())
		enqueuer.Exec(`commit`)
		require.Equal(t, "duplicate", answer(t, waiting.Wait())["reason"])
	})
	t.Run("the requeue is first", func(t *testing.T) {
		t.Parallel()
		operator, enqueuer, id, text := setUp(t)
		operator.Exec(`begin`)
		require.Equal(t, true, answer(t, operator.Exec(requeue, id))["applied"])
		waiting := enqueuer.Start(enqueue, "in", text)
		require.Equal(t, []string{"operator"}, waiting.Blocked())
		operator.Exec(`commit`)
		require.Equal(t, "duplicate", answer(t, waiting.Wait())["status"])
	})
}

func TestSamePushAtOnce(t *testing.T) {
	t.Parallel()
	for _, post := range []string{`{"text": "x", "source_ref": "1"}`, `{"text": "x"}`} {
		for _, end := range []string{"commit", "rollback"} {
			base := world(t, "a")
			first, second := base.Session("first", "engine"), base.Session("second", "engine")
			first.Exec(`begin`)
			one := answer(t, first.Exec(push, post))
			require.Equal(t, "enqueued", one["status"])
			waiting := second.Start(push, post)
			require.Equal(t, []string{"first"}, waiting.Blocked())
			first.Exec(end)
			two := answer(t, waiting.Wait())
			if end == "commit" {
				require.Equal(t, "duplicate", two["status"], post)
				require.Equal(t, one["message_id"], two["message_id"])
			} else {
				require.Equal(t, "enqueued", two["status"], "what was rolled back was not received")
			}
			require.Equal(t, 1, pgtest.Value[int](base, `select count(*)::int from autopost.deliveries`))
			require.Equal(t, 1, pgtest.Value[int](base, `select count(*)::int from autopost.ingress_receipts`))
		}
	}
}

func TestCommitAndRecoveryAtOnce(t *testing.T) {
	t.Parallel()
	setUp := func(t *testing.T) (base *pgtest.DB, id, token string) {
		base = world(t, "a")
		id = posttest.Delivery(base, "w", "a", autopost.StatusSending)
		token = pgtest.Value[string](base, `select claim_token from autopost.deliveries`)
		base.Exec(`update autopost.deliveries set sending_lease_until = now() - interval '1 second'`)
		return base, id, token
	}
	t.Run("the commit is first", func(t *testing.T) {
		t.Parallel()
		base, id, token := setUp(t)
		worker, monitor := base.Session("worker", "engine"), base.Session("monitor", "engine")
		worker.Exec(`begin`)
		require.Equal(t, true, answer(t, worker.Exec(commit, id, token))["applied"])
		waiting := monitor.Start(recoverLeases)
		require.Equal(t, []string{"worker"}, waiting.Blocked())
		worker.Exec(`commit`)
		require.EqualValues(t, 0, answer(t, waiting.Wait())["recovered"])
		require.Equal(t, "sent", pgtest.Value[string](base, `select status from autopost.deliveries`))
	})
	t.Run("the recovery is first", func(t *testing.T) {
		t.Parallel()
		base, id, token := setUp(t)
		worker, monitor := base.Session("worker", "engine"), base.Session("monitor", "engine")
		monitor.Exec(`begin`)
		require.EqualValues(t, 1, answer(t, monitor.Exec(recoverLeases))["recovered"])
		waiting := worker.Start(commit, id, token)
		require.Equal(t, []string{"monitor"}, waiting.Blocked())
		monitor.Exec(`commit`)
		got := answer(t, waiting.Wait())
		require.Equal(t, false, got["applied"])
		require.Equal(t, "stale", got["reason"])
		require.Equal(t, "retry", pgtest.Value[string](base, `select status from autopost.deliveries`))
		require.Equal(t, 0, pgtest.Value[int](base, `select inflight from autopost.channel_gates`))
	})
}

func TestPauseAndStartAtOnce(t *testing.T) {
	t.Parallel()
	const (
		start = `select autopost.start_call('w', d.delivery_id, d.claim_token) from autopost.claim_deliveries('w', 'run', 1) d`
		pause = `update autopost.channels set paused_until = now() + interval '1 hour'`
	)
	t.Run("the pause is first", func(t *testing.T) {
		t.Parallel()
		base := world(t, "a")
		id := posttest.Delivery(base, "w", "a", autopost.StatusSending)
		token := pgtest.Value[string](base, `select claim_token from autopost.deliveries`)
		operator, worker := base.Session("operator", ""), base.Session("worker", "engine")
		operator.Exec(`begin`)
		operator.Exec(pause)
		waiting := worker.Start(`select autopost.start_call('w', $1, $2)`, id, token)
		require.Equal(t, []string{"operator"}, waiting.Blocked())
		operator.Exec(`commit`)
		got := answer(t, waiting.Wait())
		require.Equal(t, "paused", got["reason"])
		require.Equal(t, "retry", pgtest.Value[string](base, `select status from autopost.deliveries`))
		require.Equal(t, 0, pgtest.Value[int](base, `select count(*)::int from autopost.events where action = 'send_attempt'`))
	})
	t.Run("the start is first", func(t *testing.T) {
		t.Parallel()
		base := world(t, "a")
		posttest.Delivery(base, "w", "a", autopost.StatusQueued)
		operator, worker := base.Session("operator", ""), base.Session("worker", "engine")
		worker.Exec(`begin`)
		require.Equal(t, true, answer(t, worker.Exec(start))["applied"])
		waiting := operator.Start(pause)
		require.Equal(t, []string{"worker"}, waiting.Blocked())
		worker.Exec(`commit`)
		waiting.Wait()
		require.Equal(t, "sending", pgtest.Value[string](base, `select status from autopost.deliveries`), "a call that began goes on")
	})
}

// A platform asks a group to wait while an edit moves the channel to another: the wait holds where the channel is now.
func TestCooldownFollowsTheChannelToItsGroup(t *testing.T) {
	t.Parallel()
	base := world(t, "a")
	id := posttest.Delivery(base, "w", "a", autopost.StatusSending)
	token := pgtest.Value[string](base, `select claim_token from autopost.deliveries`)
	operator, worker := base.Session("operator", ""), base.Session("worker", "engine")
	operator.Exec(`begin`)
	operator.Exec(`update autopost.channels set rate_group = 'other'`)
	waiting := worker.Start(`select autopost.schedule_retry('w', $1, $2, '{"category": "TRANSIENT", "scope": "platform", "code": "http_429", "retry_after_ms": 5000}')`, id, token)
	require.Equal(t, []string{"operator"}, waiting.Blocked())
	operator.Exec(`commit`)
	require.Equal(t, "retry", answer(t, waiting.Wait())["status"])
	require.Equal(t, []string{"other"}, pgtest.Column[string](base, `select rate_group from autopost.platform_limits where cooldown_until > now()`))
	require.Empty(t, channels(worker.Exec(claim)))
}

// A workspace is paused while a call that is about to begin waits for its channel: it does not begin.
func TestPauseOfTheWorkspaceAndStartAtOnce(t *testing.T) {
	t.Parallel()
	base := world(t, "a")
	id := posttest.Delivery(base, "w", "a", autopost.StatusSending)
	token := pgtest.Value[string](base, `select claim_token from autopost.deliveries`)
	operator, worker := base.Session("operator", ""), base.Session("worker", "engine")
	operator.Exec(`begin`)
	operator.Exec(`update autopost.channels set title = 'edited'`)
	waiting := worker.Start(`select autopost.start_call('w', $1, $2)`, id, token)
	require.Equal(t, []string{"operator"}, waiting.Blocked())
	operator.Exec(`update autopost.workspaces set status = 'paused'`)
	operator.Exec(`commit`)
	require.Equal(t, "workspace", answer(t, waiting.Wait())["reason"])
}

// Two batches name the same channels in opposite orders: one waits, none dies.
func TestBatchesInOppositeOrdersDoNotDeadlock(t *testing.T) {
	t.Parallel()
	base := world(t, "a", "b")
	posttest.Post(base, "w", "one")
	posttest.Post(base, "w", "two")
	batch := func(text, order string) string {
		return pgtest.Value[string](base, `
			select jsonb_agg(jsonb_build_object('delivery_id', c.delivery_id, 'claim_token', c.claim_token,
				'outcome', '{"ok": false, "error": {"category": "PERMANENT", "scope": "platform", "code": "http_503"}}'::jsonb) order by c.channel_id `+order+`)::text
			from autopost.deliveries c where c.rendered_text = $1`, text)
	}
	base.Exec(claim)
	one, two := batch("one", "asc"), batch("two", "desc")
	const commitBatch = `select autopost.commit_outcome_batch('w', $1::jsonb)`
	first, second := base.Session("first", "engine"), base.Session("second", "engine")
	first.Exec(`begin`)
	first.Exec(commitBatch, one)
	waiting := second.Start(commitBatch, two)
	require.Equal(t, []string{"first"}, waiting.Blocked())
	first.Exec(`commit`)
	waiting.Wait()
	require.Equal(t, 4, pgtest.Value[int](base, `select count(*)::int from autopost.deliveries where status = 'failed_permanent'`))
	require.Equal(t, 4, pgtest.Value[int](base, `select count(*)::int from autopost.events where action = 'failed_permanent'`))
}

// crowd is the shared state of 64 workers.
type crowd struct {
	t        *testing.T
	pool     *pgxpool.Pool
	sent     atomic.Int64
	mu       sync.Mutex
	claims   map[string]int // delivery -> how often it was claimed
	inFlight map[string]int // channel -> claimed and not yet committed, as the workers see it
	most     int
}

const crowdTotal, crowdParallel = 400, 3

func TestCrowdOfWorkers(t *testing.T) {
	t.Parallel()
	base := pgtest.New(t)
	posttest.Workspace(base, "w")
	for n := range 20 {
		posttest.Channel(base, "w", fmt.Sprintf("c%02d", n), posttest.MaxParallel(crowdParallel), posttest.Group(fmt.Sprintf("g%d", n%4)))
	}
	base.Exec(`select autopost.enqueue_messages_and_deliveries_batch('w', 'in', 'api', (select jsonb_agg(jsonb_build_object('text', 'post ' || n)) from generate_series(1, 20) n))`)
	config, err := pgxpool.ParseConfig(base.URL("engine"))
	require.NoError(t, err)
	config.MaxConns = 32
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	require.NoError(t, err)
	defer pool.Close()

	c := &crowd{t: t, pool: pool, claims: map[string]int{}, inFlight: map[string]int{}}
	ctx, cancel := context.WithTimeout(t.Context(), wait.Bound)
	defer cancel()
	var workers sync.WaitGroup
	for n := range 64 {
		workers.Go(func() {
			for c.sent.Load() < crowdTotal && ctx.Err() == nil {
				if err := c.work(ctx, fmt.Sprintf("run-%d", n)); err != nil {
					t.Errorf("worker %d: %v", n, err)
					return
				}
			}
		})
	}
	workers.Wait()

	require.Len(t, c.claims, crowdTotal)
	for id, times := range c.claims {
		require.Equal(t, 1, times, "delivery %s", id)
	}
	require.LessOrEqual(t, c.most, crowdParallel)
	require.Equal(t, crowdTotal, pgtest.Value[int](base, `select count(*)::int from autopost.deliveries where status = 'sent' and attempt = 1`))
	require.Equal(t, 0, pgtest.Value[int](base, `select sum(inflight)::int from autopost.channel_gates`))
	require.Equal(t, crowdTotal, pgtest.Value[int](base, `select count(*)::int from autopost.events where action = 'send_attempt'`))
	require.Equal(t, crowdTotal, pgtest.Value[int](base, `select count(*)::int from autopost.events where action = 'sent'`))
	require.Equal(t, map[string]any{"rearmed": 0.0}, base.JSON(`select autopost.rearm_gates('w')`))
}

// work claims a few, begins their calls and commits them in one batch, in any order.
func (c *crowd) work(ctx context.Context, run string) error {
	rows, err := c.pool.Query(ctx, `select delivery_id::text, channel_id, claim_token from autopost.claim_deliveries('w', $1, 5)`, run)
	if err != nil {
		return err
	}
	items := []map[string]any{}
	taken := []string{}
	for rows.Next() {
		var id, channel, token string
		if err := rows.Scan(&id, &channel, &token); err != nil {
			return err
		}
		items = append(items, map[string]any{"delivery_id": id, "claim_token": token,
			"outcome": map[string]any{"ok": true, "provider_message_id": id}})
		taken = append(taken, channel)
		c.note(id, channel)
	}
	if err := rows.Err(); err != nil || len(items) == 0 {
		return err
	}
	rand.Shuffle(len(items), func(i, j int) { items[i], items[j] = items[j], items[i] })
	batch, err := json.Marshal(items)
	if err != nil {
		return err
	}
	if _, err := c.pool.Exec(ctx, `select autopost.start_call_batch('w', $1::jsonb)`, string(batch)); err != nil {
		return fmt.Errorf("start: %w", err)
	}
	c.mu.Lock()
	for _, channel := range taken {
		c.inFlight[channel]--
	}
	c.mu.Unlock()
	var applied int64
	err = c.pool.QueryRow(ctx, `select count(*) from jsonb_array_elements(autopost.commit_outcome_batch('w', $1::jsonb)) a where a -> 'applied' = 'true'`,
		string(batch)).Scan(&applied)
	if err != nil {
		return fmt.Errorf("commit: %w", err)
	}
	c.sent.Add(applied)
	return nil
}

func (c *crowd) note(id, channel string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.claims[id]++
	c.inFlight[channel]++
	c.most = max(c.most, c.inFlight[channel])
}

// A late call for which no slot is within the horizon waits for a lock until one is:
// the slot in which it begins is reserved by it.
func TestLateStartNeverUsesASlotItDidNotReserve(t *testing.T) {
	t.Parallel()
	base := world(t)
	posttest.Channel(base, "w", "slow", posttest.MaxParallel(2), posttest.Rate(1))
	base.Exec(`create table public.clock as select now() as at;
		grant select on public.clock to public;
		create or replace function autopost.now_ts() returns timestamptz language plpgsql as 'begin return (select at from public.clock); end'`)
	posttest.Post(base, "w", "late")
	worker := base.Session("worker", "engine")
	claimed := worker.Exec(`select c.delivery_id::text, c.claim_token from autopost.claim_deliveries('w', 'run', 1) c`)
	require.Len(t, claimed, 1)
	base.Exec(`update public.clock set at = at + interval '200 milliseconds'`)
	base.Exec(`update autopost.channels set next_allowed_at = autopost.now_ts() + interval '1000.5 milliseconds'`)

	other := base.Session("other", "")
	other.Exec(`begin`)
	other.Exec(`select 1 from autopost.deliveries for no key update`)
	waiting := worker.Start(`select autopost.start_call('w', $1::uuid, $2)`, claimed[0]...)
	require.Equal(t, []string{"other"}, waiting.Blocked())
	base.Exec(`update public.clock set at = at + interval '1 millisecond'`)
	other.Exec(`rollback`)

	got := answer(t, waiting.Wait())
	require.Equal(t, true, got["applied"], "%v", got)
	require.Equal(t, "1000", pgtest.Value[string](base,
		`select round(extract(epoch from next_allowed_at - $1::timestamptz) * 1000)::text from autopost.channels`, got["send_at"]), "the slot is spent")
}

// A channel that joins a group while its channels are being locked is not locked and not changed.
// A late lock would break the lock order and could deadlock.
func TestGroupIsTheChannelsThatWereLocked(t *testing.T) {
	t.Parallel()
	base := world(t, "a", "b")
	base.Exec(`update autopost.channels set rate_group = 'other' where channel_id = 'b'`)
	holder, boss := base.Session("holder", ""), base.Session("boss", "engine")
	holder.Exec(`begin`)
	holder.Exec(`update autopost.channels set title = 'held' where channel_id = 'a'`)
	waiting := boss.Start(`select autopost.disable_group('w', 'telegram', 'bot', 'olga', 'a test', false)`)
	require.Equal(t, []string{"holder"}, waiting.Blocked())
	base.Exec(`update autopost.channels set rate_group = 'bot' where channel_id = 'b'`)
	holder.Exec(`commit`)
	require.Len(t, answer(t, waiting.Wait())["channels"], 1)
	require.Equal(t, []string{"b"}, pgtest.Column[string](base, `select channel_id from autopost.channels where enabled`))
}

// Two orchestrators ask for the turn at the same moment. One gets it; the other learns which run has it.
// Neither waits for a run, only for the commit of begin_dispatch.
func TestTurnIsGivenToOneRun(t *testing.T) {
	t.Parallel()
	const begin = `select autopost.begin_dispatch($1, 60)`
	base := world(t, "a")
	posttest.Post(base, "w", "one")
	first, second := base.Session("first", "engine"), base.Session("second", "engine")
	first.Exec(`begin`)
	require.Equal(t, []any{"w"}, answer(t, first.Exec(begin, "run-1"))["workspaces"])
	waiting := second.Start(begin, "run-2")
	require.Equal(t, []string{"first"}, waiting.Blocked())
	first.Exec(`commit`)
	refused := answer(t, waiting.Wait())
	require.Equal(t, false, refused["granted"])
	require.Equal(t, "run-1", refused["held_by"])

	// One that never committed has held nothing.
	first.Exec(`select autopost.end_dispatch('run-1')`)
	first.Exec(`begin`)
	first.Exec(begin, "run-3")
	waiting = second.Start(begin, "run-4")
	require.Equal(t, []string{"first"}, waiting.Blocked())
	first.Exec(`rollback`)
	require.Equal(t, true, answer(t, waiting.Wait())["granted"])

	// The end of a lease that another run takes over meets the take-over in one order or the other.
	base.Exec(`update autopost.dispatch_cursor set served = '', lease_until = pg_catalog.now() - interval '1 second'`)
	first.Exec(`begin`)
	require.Equal(t, true, answer(t, first.Exec(begin, "run-5"))["granted"])
	late := second.Start(`select autopost.end_dispatch('run-4')`)
	require.Equal(t, []string{"first"}, late.Blocked())
	first.Exec(`commit`)
	require.Equal(t, false, answer(t, late.Wait())["applied"])
	require.Empty(t, pgtest.Value[string](base, `select served from autopost.dispatch_cursor`), "the window of run-4 is run-5's now")
}

func TestTurnIsGivenOnceAmongMany(t *testing.T) {
	t.Parallel()
	base := world(t, "a")
	pool, err := pgxpool.New(t.Context(), base.URL("engine"))
	require.NoError(t, err)
	defer pool.Close()
	var granted atomic.Int32
	var wg sync.WaitGroup
	for n := range 16 {
		wg.Go(func() {
			var yes bool
			err := pool.QueryRow(t.Context(), `select (autopost.begin_dispatch($1, 60) ->> 'granted')::boolean`, fmt.Sprint("run-", n)).Scan(&yes)
			if err != nil {
				t.Error(err)
			}
			if yes {
				granted.Add(1)
			}
		})
	}
	wg.Wait()
	require.EqualValues(t, 1, granted.Load())
}

// A dry run in an open transaction blocks no other session and sends no wake-up.
func TestPlanKeepsNoLockAndSendsNoWakeUp(t *testing.T) {
	t.Parallel()
	base := world(t, "a")
	planner, other := base.Session("planner", "engine"), impatient(base, "other")
	listener, err := pgx.Connect(t.Context(), base.URL(""))
	require.NoError(t, err)
	defer func() { _ = listener.Close(context.WithoutCancel(t.Context())) }()
	_, err = listener.Exec(t.Context(), `listen autopost_wake`)
	require.NoError(t, err)

	planner.Exec(`begin`)
	planned := answer(t, planner.Exec(`select autopost.plan('w', '{"text": "x"}', null)`))
	require.EqualValues(t, 1, planned["counts"].(map[string]any)["queued"])
	require.Equal(t, "off", planner.Exec(`select coalesce(nullif(current_setting('autopost.planning', true), ''), 'off')`)[0][0])
	require.EqualValues(t, 1, answer(t, other.Exec(enqueue, "in", "x"))["enqueued"], "the same content at the same time")
	other.Exec(`select autopost.pause_channel('w', 'a', 60, 'o', 'r', false)`)
	other.Exec(`select autopost.resume_channel('w', 'a', 'o', 'r', false)`)
	require.Equal(t, []string{"a"}, channels(other.Exec(claim)))
	planner.Exec(`commit`)

	for {
		heard, err := listener.WaitForNotification(t.Context())
		require.NoError(t, err)
		if heard.Payload == "the end" {
			break
		}
		require.NotEqual(t, planner.PID(), heard.PID, "the plan has sent a wake-up")
		base.Exec(`select pg_notify('autopost_wake', 'the end')`)
	}
}
