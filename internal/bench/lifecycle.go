package bench

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
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
	return &drain{base: q.base, workspace: q.workspace, claimers: claimers, batch: b.batch, total: total, accounts: q.shape.accounts()}
}

// inThreeCalls is drainer with claim, start and commit in a transaction each.
func (b *bench) inThreeCalls(q *queue, total int64) *drain {
	d := b.drainer(q, total)
	d.accounts = nil
	return d
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
	var ownRate, peerRate, peerInsert []float64
	subjects := []subject{{"autopost", "µs/row", func(ctx context.Context) (float64, error) {
		made, err := q.fill(ctx, b.drain)
		if err != nil {
			return 0, err
		}
		d = b.drainer(q, made)
		rate, err := perSecond(d.total)(d.run(ctx))
		ownRate = append(ownRate, rate)
		return d.perRow(), err
	}}}
	if other != nil {
		subjects = append(subjects, subject{"River", "µs/job", func(ctx context.Context) (float64, error) {
			took, err := other.drain(ctx, b.drain)
			peerRate = append(peerRate, float64(b.drain)/took.wall.Seconds())
			return micros(took.processor, b.drain), err
		}})
	}
	samples, err := b.interleave(ctx, func(ctx context.Context) error {
		if other == nil {
			return nil
		}
		took, err := other.insert(ctx, b.drain)
		peerInsert = append(peerInsert, micros(took.processor, b.drain))
		return err
	}, subjects...)
	if err != nil {
		return result, err
	}
	result.Figures = []Figure{
		figure("autopost drains with all limits: processor time of the database", "µs/row", samples["autopost"]...),
		figure("  wall clock", "rows/s", ownRate...),
	}
	if other == nil {
		result.Notes = []string{noPeer}
	} else {
		whole := make([]float64, len(peerInsert))
		for i := range whole {
			whole[i] = peerInsert[i] + samples["River"][i]
		}
		result.Checks = []Check{atLeast(0.6, ratio("processor time: River's insert, fetch and completion / our drain, rows kept", whole, samples["autopost"]))}
		result.Figures = append(result.Figures, figure("River drains: processor time of the database", "µs/job", samples["River"]...),
			figure("  wall clock", "jobs/s", peerRate...), figure("River inserts", "µs/job", peerInsert...),
			ratio("River's drain alone / our drain", samples["River"], samples["autopost"]))
	}
	result.Figures = append(result.Figures, d.shares()...)
	if b.profiled {
		functions, err := b.profile(ctx, q)
		result.Figures = append(result.Figures, functions...)
		return result, err
	}
	return result, nil
}

// drainAgainstFloor is P4. Both sides use one connection.
func (b *bench) drainAgainstFloor(ctx context.Context) (result Result, err error) {
	base, err := b.migrated(ctx, "lifecycle")
	if err != nil {
		return result, err
	}
	defer func() { err = errors.Join(err, base.close(ctx)) }()
	if err := base.exec(ctx, floorTables); err != nil {
		return result, err
	}
	q, err := b.queue(ctx, base, "drain", everyLimit(b.channels))
	if err != nil {
		return result, err
	}
	var d *drain
	var rates, floors []float64
	drained := func(drainer func(*queue, int64) *drain) func(context.Context) (float64, error) {
		return func(ctx context.Context) (float64, error) {
			made, err := q.fill(ctx, b.drain)
			if err != nil {
				return 0, err
			}
			if err := base.checkpoint(ctx); err != nil {
				return 0, err
			}
			one := drainer(q, made)
			one.claimers = 1
			rate, err := perSecond(one.total)(one.run(ctx))
			if one.accounts != nil {
				d, rates = one, append(rates, rate)
			}
			return one.perRow(), err
		}
	}
	samples, err := b.interleave(ctx, func(ctx context.Context) error {
		made, err := q.fill(ctx, b.drain)
		if err != nil {
			return err
		}
		lowest, err := floor(ctx, base, q.workspace, b.batch)
		floors = append(floors, lowest)
		if err != nil {
			return err
		}
		_, err = b.drainer(q, made).run(ctx)
		return err
	}, subject{"autopost", "µs/row", drained(b.drainer)}, subject{"three calls", "µs/row", drained(b.inThreeCalls)})
	if err != nil {
		return result, err
	}
	result.Checks = []Check{atMost(1.7, ratio("processor time: autopost / the floor", samples["autopost"], floors))}
	result.Figures = append([]Figure{
		figure("autopost drains with all limits: processor time of the database", "µs/row", samples["autopost"]...),
		figure("  wall clock", "rows/s", rates...),
		figure("the same with claim, start and commit in three calls", "µs/row", samples["three calls"]...),
		figure("the floor: bare statements with the same promises", "µs/row", floors...),
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
	result.Checks = []Check{atLeast(0.6, ratio(fmt.Sprintf("held for %s / free, last third of the rounds", time.Since(began).Round(time.Second)), held, free))}
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
