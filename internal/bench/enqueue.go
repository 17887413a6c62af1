package bench

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// leanTable is the least that could hold the rows: what has no primary key and no
// references is no queue.
const leanTable = `
create table bench.lean (like autopost.deliveries including defaults including generated);
alter table bench.lean add primary key (workspace_id, delivery_id),
	add foreign key (workspace_id, channel_id) references autopost.channels (workspace_id, channel_id),
	add foreign key (workspace_id, message_id) references autopost.messages (workspace_id, message_id);
create unlogged table bench.given (like autopost.deliveries including generated);`

// fanOut is P1: one post to very many channels.
func (b *bench) fanOut(ctx context.Context) (result Result, err error) {
	base, err := b.migrated(ctx, "fanout")
	if err != nil {
		return result, err
	}
	defer func() { err = errors.Join(err, base.close(ctx)) }()
	if err := base.exec(ctx, leanTable); err != nil {
		return result, err
	}
	const workspace = "fanout"
	if err := base.workspace(ctx, workspace, everyLimit(b.fan)); err != nil {
		return result, err
	}
	pattern, err := base.post(ctx, workspace, text())
	if err != nil {
		return result, err
	}
	var events []float64
	samples, err := b.interleave(ctx, func(ctx context.Context) error {
		// As after a drain: every gate is closed, and the post has to open them all.
		if err := base.exec(ctx, `update autopost.channel_gates set ready_at = 'infinity' where workspace_id = $1`, workspace); err != nil {
			return err
		}
		if err := base.exec(ctx, `truncate bench.given`); err != nil {
			return err
		}
		_, err := base.clone(ctx, "bench.given", "deliveries", map[string]string{"delivery_id": `autopost.uuid_v7_of(clock_timestamp(), t.channel_id)`},
			`from autopost.deliveries t where t.workspace_id = $1 and t.message_id = $2 order by t.channel_id`, workspace, pattern)
		return errors.Join(err, base.settle(ctx))
	}, subject{"autopost", "µs/delivery", func(ctx context.Context) (float64, error) {
		body := text()
		began := time.Now()
		message, err := base.post(ctx, workspace, body)
		took := time.Since(began)
		if err != nil {
			return 0, err
		}
		made, err := value[[]float64](ctx, base, `select array[
			(select count(*) from autopost.deliveries d where d.workspace_id = $1 and d.message_id = $2 and d.status = 'queued'),
			(select count(*) from autopost.events e where e.workspace_id = $1 and e.message_id = $2)]::float8[]`, workspace, message)
		if err != nil {
			return 0, err
		}
		if int(made[0]) != b.fan {
			return 0, fmt.Errorf("the post is for %d channels, and %v deliveries wait", b.fan, made[0])
		}
		events = append(events, made[1])
		return micros(took, b.fan), nil
	}}, subject{"bare", "µs/row", func(ctx context.Context) (float64, error) {
		began := time.Now()
		_, err := base.clone(ctx, "bench.lean", "deliveries", nil, `from bench.given t`)
		return micros(time.Since(began), b.fan), err
	}})
	if err != nil {
		return result, err
	}
	result.Checks = []Check{atMost(2, ratio("autopost / bare insert into PK + 2 FK", samples["autopost"], samples["bare"]))}
	result.Figures = []Figure{
		figure(fmt.Sprintf("one post to %d channels", b.fan), "µs/delivery", samples["autopost"]...),
		figure("the same rows, bare", "µs/row", samples["bare"]...),
		figure("events that it wrote", "rows", events...),
	}
	result.Notes = []string{"its audit is those few events: with and without them is the same ratio"}
	return result, nil
}

// history is P2: the whole life of a delivery above little and much history. The
// content was posted before, so that the dedup has to look.
func (b *bench) history(ctx context.Context) (result Result, err error) {
	worlds := []*aged{
		{name: "little history", rows: b.littleHistory},
		{name: "much history", rows: b.muchHistory},
		{name: "much history, unknown to ANALYZE", rows: b.muchHistory, unknown: true},
	}
	for _, w := range worlds {
		if err := w.make(ctx, b); err != nil {
			return result, errors.Join(err, closeAll(ctx, worlds))
		}
	}
	defer func() { err = errors.Join(err, closeAll(ctx, worlds)) }()
	var subjects []subject
	for _, w := range worlds {
		subjects = append(subjects, subject{w.name, "µs/delivery", w.life})
	}
	samples, err := b.interleave(ctx, func(ctx context.Context) error {
		for _, w := range worlds {
			if err := w.forget(ctx); err != nil {
				return err
			}
		}
		return nil
	}, subjects...)
	if err != nil {
		return result, err
	}
	little := worlds[0]
	for _, w := range worlds[1:] {
		result.Checks = append(result.Checks,
			atMost(1.3, ratio(w.name+" / little: time", samples[w.name], samples[little.name])),
			atMost(1.3, ratio(w.name+" / little: buffers", w.buffers, little.buffers)))
	}
	for _, w := range worlds {
		result.Figures = append(result.Figures,
			figure(fmt.Sprintf("%s (%s rows)", w.name, thousands(fmt.Sprint(w.rows))), "µs/delivery", samples[w.name]...),
			figure("  buffers", "per delivery", w.buffers...),
			figure("  buffers of the enqueue alone", "per delivery", w.enqueue...))
	}
	return result, nil
}

// aged is a workspace with history, in a database of its own.
type aged struct {
	name    string
	rows    int
	unknown bool

	base             *base
	queue            *queue
	text             string
	buffers, enqueue []float64
}

func (w *aged) make(ctx context.Context, b *bench) (err error) {
	b.say("  %s: %s rows", w.name, thousands(fmt.Sprint(w.rows)))
	if w.base, err = b.migrated(ctx, "history"); err != nil {
		return err
	}
	// The statistics are as old as this makes them: nobody may analyze in between.
	if err := w.base.exec(ctx, `alter table autopost.deliveries set (autovacuum_enabled = false);
		alter table autopost.messages set (autovacuum_enabled = false); alter table autopost.channels set (autovacuum_enabled = false);
		alter table autopost.channel_gates set (autovacuum_enabled = false)`); err != nil {
		return err
	}
	if w.unknown {
		known, err := b.queue(ctx, w.base, "known", everyLimit(b.channels))
		if err != nil {
			return err
		}
		if _, err := w.base.copies(ctx, known.workspace, known.pattern, max(1, w.rows/b.channels), "true", sentLongAgo); err != nil {
			return err
		}
		if err := w.base.settle(ctx); err != nil {
			return err
		}
	}
	if w.queue, err = b.queue(ctx, w.base, "measured", everyLimit(b.channels)); err != nil {
		return err
	}
	w.text = text()
	if _, err := w.base.copies(ctx, w.queue.workspace, w.queue.pattern, max(1, w.rows/b.channels), "true", sentLongAgo); err != nil {
		return err
	}
	if w.unknown {
		err = w.base.checkpoint(ctx)
	} else {
		err = w.base.settle(ctx)
	}
	if err != nil {
		return err
	}
	_, err = w.life(ctx) // the first one fills the caches and makes the content a repeated one
	w.buffers, w.enqueue = nil, nil
	return err
}

// forget moves what was sent out of the dedup window.
func (w *aged) forget(ctx context.Context) error {
	return w.base.exec(ctx, `update autopost.deliveries set sent_at = now() - interval '200 days'
		where workspace_id = $1 and status = 'sent' and sent_at > now() - interval '199 days'`, w.queue.workspace)
}

// life enqueues the content again to all channels and delivers it; microseconds a delivery.
func (w *aged) life(ctx context.Context) (float64, error) {
	enqueue, err := explain(ctx, w.base, `select autopost.enqueue_messages_and_deliveries($1, 'bench', 'api', jsonb_build_object('text', $2::text))`,
		w.queue.workspace, w.text)
	if err != nil {
		return 0, err
	}
	rows := float64(w.queue.shape.channels)
	sum := enqueue
	for left := rows; left > 0; {
		claim, start, commit, err := explainClaim(ctx, w.queue, min(1000, int(left)))
		if err != nil {
			return 0, err
		}
		sum = sum.plus(claim).plus(start).plus(commit)
		left -= claim.rows
	}
	w.buffers, w.enqueue = append(w.buffers, sum.buffers/rows), append(w.enqueue, enqueue.buffers/rows)
	return sum.ms * 1000 / rows, nil
}

func closeAll(ctx context.Context, worlds []*aged) error {
	var errs []error
	for _, w := range worlds {
		if w.base != nil {
			errs = append(errs, w.base.close(ctx))
		}
	}
	return errors.Join(errs...)
}

func micros(took time.Duration, rows int) float64 {
	return float64(took.Microseconds()) / float64(rows)
}
