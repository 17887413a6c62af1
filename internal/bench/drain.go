package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"golang.org/x/sync/errgroup"

	"autopost"
	"autopost/internal/bench/live"
)

const (
	// daemonBatch is the largest batch of a daemon.
	daemonBatch = 60
	// claimInterval is the wait after an empty claim, as in a daemon.
	claimInterval = 20 * time.Millisecond
	// stuckAfter is the longest time without a sent delivery.
	stuckAfter = 2 * time.Minute
)

// drain claims, starts and commits deliveries until total are sent.
type drain struct {
	base      *base
	workspace string
	claimers  int
	batch     int
	total     int64
	// accounts are the credentials of a daemon that knows its secrets: claims start the calls. Without them each call
	// is started by start_call_batch, as by n8n.
	accounts []string

	sent, refused, empty atomic.Int64
	claim, start, commit step
	lastSent             atomic.Int64

	mu sync.Mutex
	// tokens are the claimed tokens. A token that appears twice was claimed twice.
	tokens map[string]bool
	// claims counts the claims of each delivery.
	claims map[string]int
	twice  int
}

// claimed is the part of a claim that start and commit need.
type claimed struct {
	DeliveryID string     `json:"delivery_id"`
	ClaimToken string     `json:"claim_token"`
	sendAt     *time.Time // the slot
	begunAt    *time.Time // start of the call; nil if it is not started
}

// settled is an item of commit_outcome_batch.
type settled struct {
	claimed
	Outcome autopost.Outcome `json:"outcome"`
}

// sentText is the n-th item of a batch: a text that the platform accepted, as an adapter returns it.
func sentText(item claimed, n int) settled {
	return settled{item, autopost.Sent(strconv.Itoa(n), time.Now().UTC().Truncate(time.Second), nil)}
}

// run drains the queue and returns the duration.
func (d *drain) run(ctx context.Context) (time.Duration, error) {
	d.tokens, d.claims = map[string]bool{}, map[string]int{}
	d.lastSent.Store(time.Now().UnixNano())
	began := time.Now()
	group, ctx := errgroup.WithContext(ctx)
	for n := range d.claimers {
		group.Go(func() error {
			conn, err := d.base.engine.Acquire(ctx)
			if err != nil {
				return err
			}
			defer conn.Release()
			return d.work(ctx, conn, fmt.Sprintf("bench-%d", n))
		})
	}
	if err := group.Wait(); err != nil {
		return 0, err
	}
	return time.Since(began), nil
}

func (d *drain) work(ctx context.Context, conn *pgxpool.Conn, run string) error {
	for d.sent.Load() < d.total {
		items, err := timed(&d.claim, conn, func() ([]claimed, error) { return d.claimSome(ctx, conn, run) })
		if err != nil {
			return fmt.Errorf("claim: %w", err)
		}
		if len(items) == 0 {
			d.empty.Add(1)
			if time.Since(time.Unix(0, d.lastSent.Load())) > stuckAfter {
				return fmt.Errorf("stuck: %d of %d deliveries are sent, and no other can be claimed", d.sent.Load(), d.total)
			}
			if err := pause(ctx, claimInterval); err != nil {
				return err
			}
			continue
		}
		d.note(items)
		begun, rest := d.begun(items)
		if len(rest) > 0 {
			started, err := timed(&d.start, conn, func() ([]settled, error) { return d.startAll(ctx, conn, rest) })
			if err != nil {
				return fmt.Errorf("start: %w", err)
			}
			begun = append(begun, started...)
		}
		if len(begun) == 0 {
			continue
		}
		_, err = timed(&d.commit, conn, func() (int, error) { return 0, d.commitAll(ctx, conn, begun) })
		if err != nil {
			return fmt.Errorf("commit: %w", err)
		}
		d.sent.Add(int64(len(begun)))
		d.lastSent.Store(time.Now().UnixNano())
	}
	return nil
}

// begun splits claimed deliveries into those whose call the claim has started, and the rest.
func (d *drain) begun(items []claimed) (begun []settled, rest []claimed) {
	for _, item := range items {
		if item.begunAt == nil {
			rest = append(rest, item)
			continue
		}
		begun = append(begun, sentText(item, len(begun)+1))
	}
	return begun, rest
}

// claimSome reads the same columns as a daemon.
func (d *drain) claimSome(ctx context.Context, conn *pgxpool.Conn, run string) ([]claimed, error) {
	const columns = `select delivery_id::text, claim_token, send_at, call_begun_at, message_id, channel_id, platform, target_id, auth_ref, rate_group, attempt,
		sending_lease_until, rendered_text, render_meta, payload, settings, trace_id, on_unknown, unknown_outcomes, last_call_at, last_provider_message_id,
		deadline from autopost.`
	statement, args := columns+`claim_deliveries($1, $2, $3)`, []any{d.workspace, run, d.batch}
	if d.accounts != nil {
		statement, args = columns+`claim_and_start($1, $2, $3, '[]', $4)`, append(args, d.accounts)
	}
	rows, err := conn.Query(ctx, statement, args...)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (claimed, error) {
		var c claimed
		into := make([]any, len(row.FieldDescriptions())) // nil: read and discarded
		into[0], into[1], into[2], into[3] = &c.DeliveryID, &c.ClaimToken, &c.sendAt, &c.begunAt
		return c, row.Scan(into...)
	})
}

// startAll starts the calls and returns those that the database allowed.
func (d *drain) startAll(ctx context.Context, conn *pgxpool.Conn, items []claimed) ([]settled, error) {
	var answers []struct {
		Applied bool
		Reason  string
	}
	if err := callJSON(ctx, conn, &answers, `select autopost.start_call_batch($1, $2)`, d.workspace, items); err != nil {
		return nil, err
	}
	begun := make([]settled, 0, len(items))
	for i, answer := range answers {
		switch {
		case answer.Applied:
			begun = append(begun, sentText(items[i], i+1))
		case answer.Reason == "stale":
			return nil, errors.New("a new claim was stale")
		default:
			d.refused.Add(1)
		}
	}
	return begun, nil
}

func (d *drain) commitAll(ctx context.Context, conn *pgxpool.Conn, items []settled) error {
	var answers []struct {
		Applied bool
		Status  string
	}
	if err := callJSON(ctx, conn, &answers, `select autopost.commit_outcome_batch($1, $2)`, d.workspace, items); err != nil {
		return err
	}
	for _, answer := range answers {
		if !answer.Applied || answer.Status != "sent" {
			return fmt.Errorf("a sent delivery must be committed as sent, got %+v", answer)
		}
	}
	return nil
}

func (d *drain) note(items []claimed) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, item := range items {
		if d.tokens[item.ClaimToken] {
			d.twice++
		}
		d.tokens[item.ClaimToken] = true
		d.claims[item.DeliveryID]++
	}
}

// perRow returns the processor time of the backends per delivery, in microseconds.
func (d *drain) perRow() float64 {
	return d.claim.perRow(d) + d.start.perRow(d) + d.commit.perRow(d)
}

// shares returns the processor time of the backend in each step, and the time of a connection
// beside it, in microseconds per delivery.
func (d *drain) shares() []Figure {
	var all []Figure
	for _, s := range []struct {
		name string
		step *step
	}{{"claim and start", &d.claim}, {"start_call_batch", &d.start}, {"commit_outcome_batch", &d.commit}} {
		if s.step.processor.Load() == 0 {
			continue
		}
		all = append(all, figure(s.name+": processor time", "µs/row", s.step.perRow(d)),
			figure(s.name+": time of a connection", "µs/row", float64(s.step.wall.Load())/1e3/float64(d.sent.Load())))
	}
	return all
}

// callJSON calls a function that returns one jsonb value.
func callJSON(ctx context.Context, conn *pgxpool.Conn, into any, sql string, args ...any) error {
	var raw []byte
	if err := conn.QueryRow(ctx, sql, args...).Scan(&raw); err != nil {
		return err
	}
	return json.Unmarshal(raw, into)
}

// step sums the calls of one kind over all connections, in nanoseconds.
type step struct {
	wall, processor atomic.Int64
}

func (s *step) perRow(d *drain) float64 {
	return float64(s.processor.Load()) / 1e3 / float64(d.sent.Load())
}

func timed[T any](s *step, conn *pgxpool.Conn, work func() (T, error)) (T, error) {
	backend := int(conn.Conn().PgConn().PID())
	before, err := live.Running(backend)
	if err != nil {
		return *new(T), err
	}
	began := time.Now()
	v, err := work()
	s.wall.Add(int64(time.Since(began)))
	after, unread := live.Running(backend)
	s.processor.Add(int64(after - before))
	return v, errors.Join(err, unread)
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// drainByDaemons is P3e: the drain of P3 with daemons, adapters and HTTP. The processor time
// of each part gives the largest possible rate on a machine that all of them share.
func (b *bench) drainByDaemons(ctx context.Context) (result Result, err error) {
	w, err := b.endToEnd(ctx, "live")
	if err != nil {
		return result, err
	}
	defer func() { err = errors.Join(err, w.close(ctx)) }()
	const workspace = "live"
	q, err := b.queue(ctx, w.base, workspace, everyLimit(b.channels))
	if err != nil {
		return result, err
	}
	if err := w.bots(ctx, workspace); err != nil {
		return result, err
	}
	if _, err := w.admin.Exec(ctx, `alter database `+w.name+` set track_functions = 'pl'`); err != nil {
		return result, fmt.Errorf("count calls of functions: %w", err)
	}
	var bySQL, byOne, byTwo spent
	drained := func(daemons int, s *spent) func(context.Context) (float64, error) {
		return func(ctx context.Context) (float64, error) { return w.drained(ctx, q, daemons, s) }
	}
	samples, err := b.interleave(ctx, func(context.Context) error { return nil },
		subject{"SQL only", "rows/s", func(ctx context.Context) (float64, error) {
			made, err := q.fill(ctx, b.drain)
			if err != nil {
				return 0, err
			}
			d := b.drainer(q, made)
			d.batch = min(b.batch, daemonBatch)
			rate := 0.0
			err = w.measureSpent(ctx, nil, &bySQL, float64(made), func() (err error) {
				rate, err = perSecond(d.total)(d.run(ctx))
				return err
			})
			return rate, err
		}},
		subject{"one daemon", "rows/s", drained(1, &byOne)}, subject{"two daemons", "rows/s", drained(2, &byTwo)})
	if err != nil {
		return result, err
	}
	best := make([]float64, len(samples["one daemon"]))
	for i := range best {
		best[i] = max(samples["one daemon"][i], samples["two daemons"][i])
	}
	result.Checks = []Check{
		atMost(1.5, ratio("processor time of the database: one daemon / SQL only", byOne.database, bySQL.database)),
		atLeast(0.43, ratio("end to end / SQL only, all on the same processors", best, samples["SQL only"])),
	}
	result.Figures = []Figure{
		figure(fmt.Sprintf("SQL only, %d connections, batches of %d", claimers, min(b.batch, daemonBatch)), "rows/s", samples["SQL only"]...),
		figure("one daemon", "rows/s", samples["one daemon"]...),
		figure("two daemons", "rows/s", samples["two daemons"]...),
	}
	result.Figures = append(result.Figures, bySQL.figures("SQL only")...)
	result.Figures = append(result.Figures, byOne.figures("one daemon")...)
	result.Figures = append(result.Figures, byTwo.figures("two daemons")...)
	result.Notes = []string{fmt.Sprintf("daemons, platform and database share %d processors; with SQL only, the benchmark is the client", runtime.NumCPU())}
	return result, nil
}

// drained starts daemons, sends some deliveries to warm their connections up, and then
// measures a drain in calls per second from the first call to the last.
func (w *endToEnd) drained(ctx context.Context, q *queue, daemons int, s *spent) (rate float64, err error) {
	running, stop, err := w.serve(ctx, daemons, q.workspace)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, stop()) }()
	limited, cancel := context.WithTimeout(ctx, stuckAfter+time.Duration(w.bench.drain)*10*time.Millisecond)
	defer cancel()
	warm, err := w.fillAtOnce(ctx, q, q.shape.channels)
	if err != nil {
		return 0, err
	}
	if _, err := w.platform.Arrivals(limited, "", warm); err != nil {
		return 0, err
	}
	rows, err := w.fillAtOnce(ctx, q, w.bench.drain)
	if err != nil {
		return 0, err
	}
	calls, err := w.platform.Arrivals(limited, "", 1)
	if err != nil {
		return 0, err
	}
	err = w.measureSpent(ctx, running, s, float64(rows-len(calls)), func() (err error) {
		calls, err = w.platform.Arrivals(limited, "", rows)
		return err
	})
	if err != nil {
		return 0, err
	}
	return float64(rows-1) / calls[rows-1].At.Sub(calls[0].At).Seconds(), nil
}

// fillAtOnce makes all rows visible to the running daemons at the same moment. It resets the
// recorded calls.
func (w *endToEnd) fillAtOnce(ctx context.Context, q *queue, rows int) (int, error) {
	const status = `update autopost.workspaces set status = $2 where workspace_id = $1`
	if err := w.exec(ctx, status, q.workspace, "paused"); err != nil {
		return 0, err
	}
	made, err := q.fill(ctx, rows)
	if err != nil {
		return 0, err
	}
	w.platform.Reset()
	return int(made), w.exec(ctx, status, q.workspace, "active")
}
