package bench

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"
)

// queue is a workspace whose queue is refilled before every drain.
type queue struct {
	base               *base
	workspace, pattern string
	shape              shape
}

// queue creates a workspace with an empty queue.
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

// fill adds about rows due deliveries to all channels. It returns their number.
func (q *queue) fill(ctx context.Context, rows int) (int64, error) {
	made, err := q.base.backlog(ctx, q.workspace, q.pattern, max(1, rows/q.shape.channels), "true")
	if err != nil {
		return 0, err
	}
	return made, q.base.settle(ctx)
}

// drainer returns a drain of total deliveries with the usual claimers.
func (b *bench) drainer(q *queue, total int64) *drain {
	return &drain{base: q.base, workspace: q.workspace, claimers: claimers, batch: b.batch, total: total}
}

// drainAgainstRiver is P3. A build without River measures only the drain of autopost.
func (b *bench) drainAgainstRiver(ctx context.Context) (result Result, err error) {
	own, err := b.migrated(ctx, "drain")
	if err != nil {
		return result, err
	}
	defer func() { err = errors.Join(err, own.close(ctx)) }()
	other, err := b.openPeer(ctx)
	if err != nil {
		return result, err
	}
	if other != nil {
		defer func() { err = errors.Join(err, other.close(ctx)) }()
	}
	q, err := b.queue(ctx, own, "drain", everyLimit(b.channels))
	if err != nil {
		return result, err
	}
	var d *drain
	var inserted []float64
	subjects := []subject{{"autopost", "rows/s", func(ctx context.Context) (float64, error) {
		return perSecond(d.total)(d.run(ctx))
	}}}
	if other != nil {
		subjects = append(subjects, subject{"River", "jobs/s", func(ctx context.Context) (float64, error) {
			return perSecond(int64(b.drain))(other.drain(ctx, b.drain))
		}})
	}
	samples, err := b.interleave(ctx, func(ctx context.Context) error {
		if other != nil {
			rate, err := perSecond(int64(b.drain))(other.insert(ctx, b.drain))
			if err != nil {
				return err
			}
			inserted = append(inserted, rate)
		}
		made, err := q.fill(ctx, b.drain)
		d = b.drainer(q, made)
		return err
	}, subjects...)
	if err != nil {
		return result, err
	}
	result.Figures = []Figure{figure("autopost drains with all limits", "rows/s", samples["autopost"]...)}
	if other == nil {
		result.Notes = []string{noPeer}
	} else {
		result.Checks = []Check{atLeast(1.3, ratio("autopost / River, rows kept", samples["autopost"], samples["River"]))}
		result.Figures = append(result.Figures, figure("River drains", "jobs/s", samples["River"]...), figure("River inserts", "jobs/s", inserted...))
	}
	result.Figures = append(result.Figures, d.shares()...)
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
		figure("autopost drains with all limits", "rows/s", samples["autopost"]...),
		figure("bare: two UPDATEs and one INSERT per row", "rows/s", samples["bare"]...),
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

// bareTables have the columns and indexes of the autopost tables, but no triggers,
// references, partitions or row-level security.
const bareTables = `
create table bench.deliveries (like autopost.deliveries including all) with (fillfactor = 80);
create table bench.events (like autopost.events including all);`

// The writes of claim, start and commit without any decision.
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

// bareLifecycle runs the same writes on the bare tables, with the same number of connections
// and the same batches. It returns the duration.
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

// heldSnapshot is P11: the same work alternates between two databases. In one of them an open
// transaction holds a snapshot, so that vacuum cannot remove dead rows.
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
			rate, err := b.postAndDrain(ctx, queues[name])
			if err != nil {
				return result, err
			}
			rates[name] = append(rates[name], rate)
		}
	}
	last := len(rates["free"]) * 2 / 3
	held, free := rates["held"][last:], rates["free"][last:]
	result.Checks = []Check{atLeast(0.9, ratio(fmt.Sprintf("held for %s / free, last third of the rounds", time.Since(began).Round(time.Second)), held, free))}
	result.Figures = []Figure{
		figure("free: enqueue and drain", "rows/s", free...),
		figure("held", "rows/s", held...),
		figure("held, first third", "rows/s", rates["held"][:max(1, len(rates["held"])/3)]...),
	}
	return result, nil
}

// postAndDrain posts to all channels and drains. It returns rows per second over both.
func (b *bench) postAndDrain(ctx context.Context, q *queue) (float64, error) {
	began := time.Now()
	if _, err := q.base.post(ctx, q.workspace, text()); err != nil {
		return 0, err
	}
	if _, err := b.drainer(q, int64(q.shape.channels)).run(ctx); err != nil {
		return 0, err
	}
	return float64(q.shape.channels) / time.Since(began).Seconds(), nil
}
