package bench

import (
	"context"
	"errors"
	"time"
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
