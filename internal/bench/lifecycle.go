package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"
	"golang.org/x/sync/errgroup"
)

// queue is a workspace that is filled again before every drain.
type queue struct {
	base               *base
	workspace, pattern string
	shape              shape
}

// queue makes a workspace of that shape, with nothing in it.
func (b *bench) queue(ctx context.Context, on *base, workspace string, s shape) (*queue, error) {
	if err := on.workspace(ctx, workspace, s); err != nil {
		return nil, err
	}
	pattern, err := on.post(ctx, workspace, text())
	if err != nil {
		return nil, err
	}
	q := &queue{base: on, workspace: workspace, pattern: pattern, shape: s}
	_, err = b.drainer(q, int64(s.channels)).run(ctx)
	return q, err
}

// fill adds about so many deliveries that are due, spread over all channels.
func (q *queue) fill(ctx context.Context, rows int) (int64, error) {
	made, err := q.base.backlog(ctx, q.workspace, q.pattern, max(1, rows/q.shape.channels), "true")
	if err != nil {
		return 0, err
	}
	return made, q.base.settle(ctx)
}

// drainer is a drain of so many deliveries by the usual claimers.
func (b *bench) drainer(q *queue, total int64) *drain {
	return &drain{base: q.base, workspace: q.workspace, claimers: claimers, batch: b.batch, total: total}
}

// drainAgainstRiver is P3.
func (b *bench) drainAgainstRiver(ctx context.Context) (result Result, err error) {
	ours, err := b.migrated(ctx, "drain")
	if err != nil {
		return result, err
	}
	defer func() { err = errors.Join(err, ours.close(ctx)) }()
	theirs, err := b.peer(ctx)
	if err != nil {
		return result, err
	}
	defer func() { err = errors.Join(err, theirs.close(ctx)) }()
	q, err := b.queue(ctx, ours, "drain", everyLimit(b.channels))
	if err != nil {
		return result, err
	}
	var d *drain
	var inserted []float64
	samples, err := b.interleave(ctx, func(ctx context.Context) error {
		rate, err := perSecond(int64(b.drain))(theirs.insert(ctx, b.drain))
		inserted = append(inserted, rate)
		if err != nil {
			return err
		}
		made, err := q.fill(ctx, b.drain)
		d = b.drainer(q, made)
		return err
	}, subject{"autopost", "rows/s", func(ctx context.Context) (float64, error) {
		return perSecond(d.total)(d.run(ctx))
	}}, subject{"River", "jobs/s", func(ctx context.Context) (float64, error) {
		return perSecond(int64(b.drain))(theirs.drain(ctx, b.drain))
	}})
	if err != nil {
		return result, err
	}
	result.Checks = []Check{atLeast(1.3, ratio("autopost / River, rows kept", samples["autopost"], samples["River"]))}
	result.Figures = append([]Figure{
		figure("autopost drains, every limit on", "rows/s", samples["autopost"]...),
		figure("River drains", "jobs/s", samples["River"]...),
		figure("River inserts", "jobs/s", inserted...),
	}, d.shares()...)
	if b.profiled {
		functions, err := b.profile(ctx, q)
		result.Figures = append(result.Figures, functions...)
		return result, err
	}
	return result, nil
}

// drainAgainstBare is P4.
func (b *bench) drainAgainstBare(ctx context.Context) (result Result, err error) {
	base, err := b.migrated(ctx, "lifecycle")
	if err != nil {
		return result, err
	}
	defer func() { err = errors.Join(err, base.close(ctx)) }()
	if err := base.exec(ctx, bareTables); err != nil {
		return result, err
	}
	q, err := b.queue(ctx, base, "drain", everyLimit(b.channels))
	if err != nil {
		return result, err
	}
	var d *drain
	samples, err := b.interleave(ctx, func(ctx context.Context) error {
		made, err := q.fill(ctx, b.drain)
		if err != nil {
			return err
		}
		d = b.drainer(q, made)
		_, err = base.clone(ctx, "bench.deliveries", "deliveries", nil,
			`from autopost.deliveries t where t.workspace_id = $1 and t.status = 'queued'`, q.workspace)
		return errors.Join(err, base.checkpoint(ctx))
	}, subject{"autopost", "rows/s", func(ctx context.Context) (float64, error) {
		return perSecond(d.total)(d.run(ctx))
	}}, subject{"bare", "rows/s", func(ctx context.Context) (float64, error) {
		return perSecond(d.total)(bareLifecycle(ctx, base, q.workspace, b.batch))
	}})
	if err != nil {
		return result, err
	}
	result.Checks = []Check{atLeast(0.85, ratio("autopost / bare lifecycle", samples["autopost"], samples["bare"]))}
	result.Figures = append([]Figure{
		figure("autopost drains, every limit on", "rows/s", samples["autopost"]...),
		figure("bare: two UPDATEs and the insert of the start", "rows/s", samples["bare"]...),
	}, d.shares()...)
	return result, nil
}

func perSecond(rows int64) func(time.Duration, error) (float64, error) {
	return func(took time.Duration, err error) (float64, error) {
		if err != nil {
			return 0, err
		}
		return float64(rows) / took.Seconds(), nil
	}
}

// bareTables have the shape and the indexes of ours, without triggers, references,
// partitions and row-level security.
const bareTables = `
create table bench.deliveries (like autopost.deliveries including all) with (fillfactor = 80);
create table bench.events (like autopost.events including all);`

// The lifecycle of a delivery without anything that decides: what the claim, the
// start and the commit write.
const (
	bareClaim = `update bench.deliveries d
		set status = 'sending', attempt = d.attempt + 1, claimed_at = now(), claimed_by = $3, claim_token = md5($3 || d.delivery_id),
			sending_started_at = now(), sending_lease_until = now() + interval '300 seconds', updated_at = now()
		where d.workspace_id = $1 and d.delivery_id = any ($2::uuid[])`
	bareStart = `insert into bench.events (workspace_id, id, delivery_id, message_id, channel_id, ts, action, attempt, result, meta)
		select d.workspace_id, gen_random_uuid(), d.delivery_id, d.message_id, d.channel_id, now(), 'send_attempt', d.attempt, 'ok',
			jsonb_build_object('run_id', $3::text, 'trace_id', d.trace_id, 'idempotency_key', d.delivery_id)
		from bench.deliveries d where d.workspace_id = $1 and d.delivery_id = any ($2::uuid[])`
	bareCommit = `update bench.deliveries d
		set status = 'sent', sent_at = now(), finished_at = now(), provider_message_id = '1', last_call_at = now(), updated_at = now(),
			settled = jsonb_build_object('token', d.claim_token, 'answer', jsonb_build_object('applied', true, 'status', 'sent', 'attempt', d.attempt)),
			claimed_at = null, claimed_by = null, claim_token = null, sending_started_at = null, sending_lease_until = null
		where d.workspace_id = $1 and d.delivery_id = any ($2::uuid[]) and d.claimed_by = $3`
)

// bareLifecycle runs the same writes over the waiting rows of the bare table, by as
// many connections and in batches of the same size, and returns how long it took.
func bareLifecycle(ctx context.Context, b *base, workspace string, batch int) (time.Duration, error) {
	ids, err := value[[]string](ctx, b, `select coalesce(array_agg(d.delivery_id::text order by d.due_at, d.delivery_id), '{}')
		from bench.deliveries d where d.workspace_id = $1 and d.status = 'queued'`, workspace)
	if err != nil {
		return 0, err
	}
	pool, err := b.pool(ctx, "autopost_owner")
	if err != nil {
		return 0, err
	}
	defer pool.Close()
	batches := make(chan []string, len(ids)/batch+1)
	for from := 0; from < len(ids); from += batch {
		batches <- ids[from:min(from+batch, len(ids))]
	}
	close(batches)
	began := time.Now()
	group, ctx := errgroup.WithContext(ctx)
	for range claimers {
		group.Go(func() error {
			conn, err := pool.Acquire(ctx)
			if err != nil {
				return err
			}
			defer conn.Release()
			for ids := range batches {
				for _, sql := range []string{bareClaim, bareStart, bareCommit} {
					if _, err := conn.Exec(ctx, sql, workspace, ids, "bench"); err != nil {
						return err
					}
				}
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return 0, err
	}
	return time.Since(began), nil
}

// riverInsertBatch is the one of its fastest insert.
const riverInsertBatch = 5000

// peer is River in a database of its own, tuned as its own benchmark tunes it:
// many workers, a fetch every two milliseconds, jobs completed in batches.
type peer struct {
	server *server
	name   string
	pool   *pgxpool.Pool
}

// jobArgs are as small as they can be; ours carry the rendered post.
type jobArgs struct {
	N int `json:"n"`
}

func (jobArgs) Kind() string { return "bench" }

type worker struct {
	river.WorkerDefaults[jobArgs]
}

func (*worker) Work(context.Context, *river.Job[jobArgs]) error { return nil }

func (s *server) peer(ctx context.Context) (*peer, error) {
	name, err := s.create(ctx, "river", "template1")
	if err != nil {
		return nil, err
	}
	p := &peer{server: s, name: name}
	config, err := pgxpool.ParseConfig(s.at(name))
	if err != nil {
		return nil, err
	}
	// One more than ours: River keeps one for LISTEN.
	config.MaxConns = claimers + 1
	if p.pool, err = pgxpool.NewWithConfig(ctx, config); err != nil {
		return nil, err
	}
	migrator, err := rivermigrate.New(riverpgxv5.New(p.pool), &rivermigrate.Config{Logger: quiet()})
	if err == nil {
		_, err = migrator.Migrate(ctx, rivermigrate.DirectionUp, nil)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("migrate River: %w", err), p.close(ctx))
	}
	return p, nil
}

func quiet() *slog.Logger { return slog.New(slog.NewTextHandler(io.Discard, nil)) }

func (p *peer) close(ctx context.Context) error {
	p.pool.Close()
	return p.server.drop(context.WithoutCancel(ctx), p.name)
}

func (p *peer) client() (*river.Client[pgx.Tx], error) {
	workers := river.NewWorkers()
	river.AddWorker(workers, &worker{})
	return river.NewClient(riverpgxv5.New(p.pool), &river.Config{
		FetchCooldown:               2 * time.Millisecond,
		FetchPollInterval:           20 * time.Millisecond,
		JobTimeout:                  -1,
		CompletedJobRetentionPeriod: -1,
		Logger:                      quiet(),
		Queues:                      map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: 2000}},
		Workers:                     workers,
	})
}

// insert adds jobs and returns how long it took.
func (p *peer) insert(ctx context.Context, total int) (time.Duration, error) {
	client, err := p.client()
	if err != nil {
		return 0, err
	}
	began := time.Now()
	for left := total; left > 0; left -= riverInsertBatch {
		batch := make([]river.InsertManyParams, min(left, riverInsertBatch))
		for i := range batch {
			batch[i] = river.InsertManyParams{Args: jobArgs{i}}
		}
		if _, err := client.InsertManyFast(ctx, batch); err != nil {
			return 0, err
		}
	}
	return time.Since(began), nil
}

// drain works what waits and returns how long it took, from the start of the
// client until the last job is recorded as completed. The rows stay.
func (p *peer) drain(ctx context.Context, total int) (time.Duration, error) {
	client, err := p.client()
	if err != nil {
		return 0, err
	}
	done, cancel := client.SubscribeConfig(&river.SubscribeConfig{ChanSize: total + 1, Kinds: []river.EventKind{river.EventKindJobCompleted}})
	defer cancel()
	began := time.Now()
	if err := client.Start(ctx); err != nil {
		return 0, err
	}
	for range total {
		select {
		case <-done:
		case <-time.After(stuckAfter):
			return 0, errors.Join(errors.New("river is stuck"), client.StopAndCancel(context.WithoutCancel(ctx)))
		case <-ctx.Done():
			return 0, errors.Join(ctx.Err(), client.StopAndCancel(context.WithoutCancel(ctx)))
		}
	}
	took := time.Since(began)
	return took, client.Stop(ctx)
}

// heldSnapshot is P11: the same work in two databases by turns; in one of them a
// transaction sees, all the while, what was there when it began, so that nothing
// that was outdated since can be cleared away.
func (b *bench) heldSnapshot(ctx context.Context) (result Result, err error) {
	queues := map[string]*queue{}
	defer func() {
		for _, q := range queues {
			err = errors.Join(err, q.base.close(ctx))
		}
	}()
	for _, name := range []string{"free", "held"} {
		base, err := b.migrated(ctx, name)
		if err != nil {
			return result, err
		}
		if queues[name], err = b.queue(ctx, base, name, everyLimit(b.channels)); err != nil {
			return result, errors.Join(err, base.close(ctx))
		}
	}
	holder, err := pgx.Connect(ctx, b.at(queues["held"].base.name))
	if err != nil {
		return result, err
	}
	defer func() { _ = holder.Close(context.WithoutCancel(ctx)) }()
	if _, err := holder.Exec(ctx, `begin isolation level repeatable read; select count(*) from pg_class`); err != nil {
		return result, err
	}
	rates := map[string][]float64{}
	began := time.Now()
	for n := 0; time.Since(began) < b.hold || n < 3; n++ {
		order := []string{"free", "held"}
		if n%2 == 1 {
			slices.Reverse(order)
		}
		for _, name := range order {
			rate, err := b.turn(ctx, queues[name])
			if err != nil {
				return result, err
			}
			rates[name] = append(rates[name], rate)
		}
	}
	last := len(rates["free"]) * 2 / 3
	held, free := rates["held"][last:], rates["free"][last:]
	result.Checks = []Check{atLeast(0.9, ratio(fmt.Sprintf("held for %s / free, last third of the turns", time.Since(began).Round(time.Second)), held, free))}
	result.Figures = []Figure{
		figure("free: enqueue and drain", "rows/s", free...),
		figure("held", "rows/s", held...),
		figure("held, first third", "rows/s", rates["held"][:max(1, len(rates["held"])/3)]...),
	}
	return result, nil
}

// turn posts to all channels and drains; rows a second over both.
func (b *bench) turn(ctx context.Context, q *queue) (float64, error) {
	began := time.Now()
	if _, err := q.base.post(ctx, q.workspace, text()); err != nil {
		return 0, err
	}
	if _, err := b.drainer(q, int64(q.shape.channels)).run(ctx); err != nil {
		return 0, err
	}
	return float64(q.shape.channels) / time.Since(began).Seconds(), nil
}
