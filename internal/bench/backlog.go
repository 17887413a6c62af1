package bench

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// blockHalf stops the second half of the channels of a workspace: a third by a pause, a third by
// enabled = false, and a third by a rate whose next slot is far away.
const blockHalf = `
update autopost.channels c
set paused_until = case when right(c.channel_id, 6)::int % 3 = 0 then now() + interval '1 day' end,
	enabled = right(c.channel_id, 6)::int % 3 <> 1,
	rate_rps = case when right(c.channel_id, 6)::int % 3 = 2 then 0.00001 else c.rate_rps end,
	next_allowed_at = case when right(c.channel_id, 6)::int % 3 = 2 then now() + interval '1 day' else c.next_allowed_at end
where c.workspace_id = $1 and right(c.channel_id, 6)::int > $2`

// split is a workspace with half of its channels blocked.
type split struct {
	*queue
	open int // number of open channels
	// visited is the duration of the first claims, which close the gates of the blocked channels.
	visited time.Duration
}

// split creates such a workspace in a new database, with a backlog in the blocked half.
func (b *bench) split(ctx context.Context, s shape, backlog int) (*split, error) {
	base, err := b.migrated(ctx, "backlog")
	if err != nil {
		return nil, err
	}
	made, err := b.fillSplit(ctx, base, s, backlog)
	if err != nil {
		return nil, errors.Join(err, base.close(ctx))
	}
	return made, nil
}

func (b *bench) fillSplit(ctx context.Context, base *base, s shape, backlog int) (*split, error) {
	q, err := b.queue(ctx, base, "backlog", s)
	if err != nil {
		return nil, err
	}
	w := &split{queue: q, open: s.channels / 2}
	if err := base.exec(ctx, blockHalf, q.workspace, w.open); err != nil {
		return nil, err
	}
	if backlog > 0 {
		if err := w.addBlocked(ctx, backlog); err != nil {
			return nil, err
		}
	}
	if err := base.settle(ctx); err != nil {
		return nil, err
	}
	began := time.Now()
	for {
		found, err := explain(ctx, base, `select * from autopost.claim_deliveries($1, 'bench', $2)`, q.workspace, 1000)
		if err != nil {
			return nil, err
		}
		if found.rows > 0 {
			return nil, fmt.Errorf("%v deliveries of blocked channels were claimed", found.rows)
		}
		ready, err := value[int](ctx, base, `select count(*)::int from autopost.channel_gates g where g.workspace_id = $1 and g.ready_at <= now()`, q.workspace)
		if err != nil {
			return nil, err
		}
		if ready == 0 {
			w.visited = time.Since(began)
			return w, base.checkpoint(ctx)
		}
	}
}

// addBlocked adds rows that are due and blocked.
func (w *split) addBlocked(ctx context.Context, rows int) error {
	_, err := w.base.backlog(ctx, w.workspace, w.pattern, max(1, rows/(w.shape.channels-w.open)), fmt.Sprintf("right(t.channel_id, 6)::int > %d", w.open))
	return err
}

// due adds about rows that can be claimed and returns their number.
func (w *split) due(ctx context.Context, rows int) (int64, error) {
	return w.base.backlog(ctx, w.workspace, w.pattern, max(1, rows/w.open), fmt.Sprintf("right(t.channel_id, 6)::int <= %d", w.open))
}

// behindBacklog is P5.
func (b *bench) behindBacklog(ctx context.Context) (result Result, err error) {
	for _, channels := range b.spreads {
		if err := b.behindOf(ctx, channels, b.blocked, &result); err != nil {
			return result, err
		}
	}
	if b.deepest > 0 {
		return result, b.behindOf(ctx, 1000, b.deepest, &result)
	}
	return result, nil
}

func (b *bench) behindOf(ctx context.Context, channels, blocked int, result *Result) (err error) {
	b.printf("  %d channels, %s rows blocked", channels, thousands(fmt.Sprint(blocked)))
	splits := map[string]*split{}
	defer func() {
		for _, w := range splits {
			err = errors.Join(err, w.base.close(ctx))
		}
	}()
	for name, backlog := range map[string]int{"empty": 0, "behind": blocked} {
		if splits[name], err = b.split(ctx, everyLimit(channels), backlog); err != nil {
			delete(splits, name)
			return err
		}
	}
	drains, rates := map[string]*drain{}, map[string][]float64{}
	measured := func(name string) subject {
		return subject{name, "µs/row", func(ctx context.Context) (float64, error) {
			rate, err := perSecond(drains[name].total)(drains[name].run(ctx))
			rates[name] = append(rates[name], rate)
			return drains[name].perRow(), err
		}}
	}
	samples, err := b.interleave(ctx, func(ctx context.Context) error {
		for name, w := range splits {
			made, err := w.due(ctx, b.due)
			if err != nil {
				return err
			}
			drains[name] = b.drainer(w.queue, made)
			if err := w.base.settle(ctx); err != nil {
				return err
			}
		}
		return nil
	}, measured("empty"), measured("behind"))
	if err != nil {
		return err
	}
	result.Checks = append(result.Checks, atLeast(0.9, ratio(fmt.Sprintf("%d channels, processor time of the database: empty backlog / behind %s blocked",
		channels, thousands(fmt.Sprint(blocked))), samples["empty"], samples["behind"])))
	result.Figures = append(result.Figures,
		figure(fmt.Sprintf("%d channels: empty backlog", channels), "µs/row", samples["empty"]...),
		figure("  behind the blocked rows", "µs/row", samples["behind"]...),
		ratio("  wall clock: rate behind them / with an empty backlog", rates["behind"], rates["empty"]),
		figure("  once, to close the gates of blocked channels", "ms", float64(splits["behind"].visited.Milliseconds())))
	return nil
}

// claimBuffers is P6. At max_parallel 1 a claim gets one row of a channel, at 10 several.
func (b *bench) claimBuffers(ctx context.Context) (result Result, err error) {
	claims := map[int][]float64{}
	for _, rows := range b.backlogs {
		for parallel, most := range map[int]float64{1: 45, 10: 30} {
			claim, whole, err := b.buffersAt(ctx, rows, parallel)
			if err != nil {
				return result, err
			}
			where := fmt.Sprintf("backlog %s, max_parallel %d", thousands(fmt.Sprint(rows)), parallel)
			claimed := figure(where+": claim", "buffers/row", claim...)
			result.Checks = append(result.Checks, atMost(most, claimed), atMost(100, figure(where+": claim, start and commit", "buffers/row", whole...)))
			claims[parallel] = append(claims[parallel], claimed.Median)
		}
	}
	slices.SortFunc(result.Checks, func(a, c Check) int { return strings.Compare(a.Name, c.Name) })
	for _, parallel := range []int{1, 10} {
		all := figure("", "", claims[parallel]...)
		result.Checks = append(result.Checks, atMost(1.1, figure(fmt.Sprintf("largest / smallest over the backlogs, max_parallel %d", parallel), "x", all.Max/all.Min)))
	}
	return result, nil
}

// buffersAt counts the buffers of claims, and of all steps of a daemon, with nine tenths of a backlog blocked.
func (b *bench) buffersAt(ctx context.Context, rows, parallel int) (claims, whole []float64, err error) {
	b.printf("  backlog of %s rows, max_parallel %d", thousands(fmt.Sprint(rows)), parallel)
	s := everyLimit(2 * b.channels)
	s.parallel = parallel
	w, err := b.split(ctx, s, rows*9/10)
	if err != nil {
		return nil, nil, err
	}
	defer func() { err = errors.Join(err, w.base.close(ctx)) }()
	// Each due channel fills its share of a claim.
	if _, err := w.due(ctx, max(rows/10, 2*(b.rounds+1)*b.batch, b.channels*parallel)); err != nil {
		return nil, nil, err
	}
	if err := w.base.settle(ctx); err != nil {
		return nil, nil, err
	}
	for range b.rounds + 1 {
		bare, _, _, err := explainClaim(ctx, w.queue, b.batch, false)
		if err != nil {
			return nil, nil, err
		}
		claims = append(claims, bare.buffers/bare.rows)
		claim, start, commit, err := explainClaim(ctx, w.queue, b.batch, true)
		if err != nil {
			return nil, nil, err
		}
		whole = append(whole, (claim.buffers+start.buffers+commit.buffers)/claim.rows)
	}
	return claims[1:], whole[1:], nil // the first sample filled the caches
}
