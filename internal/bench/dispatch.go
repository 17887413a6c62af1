package bench

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"golang.org/x/sync/errgroup"
)

// fourClaimers is P7.
func (b *bench) fourClaimers(ctx context.Context) (result Result, err error) {
	base, err := b.migrated(ctx, "claimers")
	if err != nil {
		return result, err
	}
	defer func() { err = errors.Join(err, base.close(ctx)) }()
	q, err := b.queue(ctx, base, "claimers", everyLimit(b.channels))
	if err != nil {
		return result, err
	}
	var doubles float64
	drained := func(claimers int) func(context.Context) (float64, error) {
		return func(ctx context.Context) (float64, error) {
			made, err := q.fill(ctx, b.drain/2)
			if err != nil {
				return 0, err
			}
			d := b.drainer(q, made)
			d.claimers = claimers
			rate, err := perSecond(d.total)(d.run(ctx))
			doubles += float64(d.doubles())
			return rate, err
		}
	}
	nothing := func(context.Context) error { return nil }
	samples, err := b.interleave(ctx, nothing, subject{"one", "rows/s", drained(1)}, subject{"four", "rows/s", drained(claimers)})
	if err != nil {
		return result, err
	}
	deadlocks, err := value[float64](ctx, base, `select deadlocks::float8 from pg_stat_database where datname = current_database()`)
	if err != nil {
		return result, err
	}
	result.Checks = []Check{
		atLeast(1.2, ratio("4 claimers / 1", samples["four"], samples["one"])),
		atMost(0, figure("deadlocks", "", deadlocks)),
		atMost(0, figure("double claims", "", doubles)),
	}
	result.Figures = []Figure{figure("1 claimer", "rows/s", samples["one"]...), figure("4 claimers", "rows/s", samples["four"]...)}
	return result, nil
}

// doubles counts deliveries that were claimed twice without a refused start in between.
func (d *drain) doubles() int {
	found := d.twice
	for _, claims := range d.claims {
		found += claims - 1
	}
	return found - int(d.refused.Load())
}

// manyWorkspaces is P9.
func (b *bench) manyWorkspaces(ctx context.Context) (result Result, err error) {
	base, err := b.migrated(ctx, "workspaces")
	if err != nil {
		return result, err
	}
	defer func() { err = errors.Join(err, base.close(ctx)) }()
	w, err := b.tenants(ctx, base)
	if err != nil {
		return result, err
	}
	samples, err := b.interleave(ctx, w.fill,
		subject{"poll", "ms", w.poll},
		subject{"one call", "ms", w.oneCall})
	if err != nil {
		return result, err
	}
	small, err := w.small(ctx)
	if err != nil {
		return result, err
	}
	result.Checks = []Check{
		atMost(1.5, ratio(fmt.Sprintf("a poll of %d workspaces, %d with work / one claim of the same rows", b.workspaces, len(w.busy)), samples["poll"], samples["one call"])),
		atMost(0, figure("workspaces with work that a poll left out", "", w.left...)),
	}
	result.Figures = []Figure{
		figure("a dispatch poll", "ms", samples["poll"]...),
		figure("  of it ready_workspaces", "ms", w.ready...),
		figure("one claim", "ms", samples["one call"]...),
		figure(fmt.Sprintf("%d workspaces with one row each, one claim per workspace", b.workspaces), "ms", small),
	}
	return result, nil
}

// tenants are many workspaces with little work in few of them, and one workspace with the same
// amount of work.
type tenants struct {
	bench       *bench
	base        *base
	all         []string
	busy        []*queue
	one         *queue
	rows        int // of all busy workspaces
	ready, left []float64
}

func (b *bench) tenants(ctx context.Context, base *base) (*tenants, error) {
	const channels = 20
	w := &tenants{bench: b, base: base, rows: b.batch}
	for n := range b.workspaces {
		name := fmt.Sprintf("tenant-%05d", n)
		w.all = append(w.all, name)
		if n%100 != 0 {
			if err := base.workspace(ctx, name, everyLimit(channels)); err != nil {
				return nil, err
			}
			continue
		}
		q, err := b.queue(ctx, base, name, everyLimit(channels))
		if err != nil {
			return nil, err
		}
		w.busy = append(w.busy, q)
	}
	var err error
	if w.one, err = b.queue(ctx, base, "one", everyLimit(channels*len(w.busy))); err != nil {
		return nil, err
	}
	return w, w.serveOne(ctx, "paused")
}

// fill adds the same number of rows to the busy workspaces together and to the one.
func (w *tenants) fill(ctx context.Context) error {
	for _, q := range w.busy {
		if _, err := q.base.backlog(ctx, q.workspace, q.pattern, max(1, w.rows/len(w.busy)/q.shape.channels), "true"); err != nil {
			return err
		}
	}
	_, err := w.one.fill(ctx, w.rows)
	return err
}

// poll does one poll of a dispatcher: it lists the ready workspaces and claims from each.
func (w *tenants) poll(ctx context.Context) (float64, error) {
	began := time.Now()
	ready, err := names(ctx, w.base, w.bench.workspaces)
	if err != nil {
		return 0, err
	}
	w.ready = append(w.ready, millis(time.Since(began)))
	for _, workspace := range ready {
		if _, err := w.claim(ctx, workspace, w.bench.batch); err != nil {
			return 0, err
		}
	}
	took := millis(time.Since(began))
	w.left = append(w.left, float64(len(w.busy)-len(ready)))
	return took, nil
}

func names(ctx context.Context, b *base, limit int) ([]string, error) {
	var list []string
	err := b.engine.QueryRow(ctx, `select coalesce(array_agg(w), '{}') from autopost.ready_workspaces($1) w`, limit).Scan(&list)
	return list, err
}

// oneCall activates the one workspace, claims from it and pauses it again.
func (w *tenants) oneCall(ctx context.Context) (float64, error) {
	if err := w.serveOne(ctx, "active"); err != nil {
		return 0, err
	}
	took, err := w.claim(ctx, w.one.workspace, w.bench.batch)
	return took, errors.Join(err, w.serveOne(ctx, "paused"))
}

func (w *tenants) serveOne(ctx context.Context, status string) error {
	return w.base.exec(ctx, `update autopost.workspaces set status = $2 where workspace_id = $1`, w.one.workspace, status)
}

// claim claims from a workspace and returns the time in milliseconds.
func (w *tenants) claim(ctx context.Context, workspace string, limit int) (float64, error) {
	conn, err := w.base.engine.Acquire(ctx)
	if err != nil {
		return 0, err
	}
	defer conn.Release()
	d := &drain{base: w.base, workspace: workspace, batch: limit}
	began := time.Now()
	got, err := d.claimSome(ctx, conn, "bench")
	if err == nil && len(got) == 0 {
		err = errors.New("a ready workspace gave no delivery")
	}
	return millis(time.Since(began)), err
}

// small measures batches of one row, one per workspace.
func (w *tenants) small(ctx context.Context) (float64, error) {
	for _, workspace := range w.all {
		if _, err := w.base.post(ctx, workspace, text()); err != nil {
			return 0, err
		}
	}
	if err := w.base.settle(ctx); err != nil {
		return 0, err
	}
	began := time.Now()
	ready, err := names(ctx, w.base, w.bench.workspaces)
	if err != nil {
		return 0, err
	}
	if len(ready) != len(w.all) {
		return 0, fmt.Errorf("%d of %d workspaces with work are ready", len(ready), len(w.all))
	}
	for _, workspace := range ready {
		if _, err := w.claim(ctx, workspace, 1); err != nil {
			return 0, err
		}
	}
	return millis(time.Since(began)), nil
}

func millis(took time.Duration) float64 { return float64(took.Microseconds()) / 1000 }

// The total rate of all groups in calls per second, and the number of groups.
const (
	pacedCeiling = 1000
	pacedGroups  = 4
)

// bindingRates measures the reservation of slots under full load: the used part of the rates,
// and that no rate is exceeded.
func (b *bench) bindingRates(ctx context.Context) (result Result, err error) {
	base, err := b.migrated(ctx, "rates")
	if err != nil {
		return result, err
	}
	defer func() { err = errors.Join(err, base.close(ctx)) }()
	// The rates of the channels allow twice the rates of their groups.
	channels := min(b.channels, 400)
	s := shape{channels: channels, groups: pacedGroups, parallel: 1000, rate: 2 * pacedCeiling / float64(channels), groupRate: pacedCeiling / pacedGroups}
	q, err := b.queue(ctx, base, "rates", s)
	if err != nil {
		return result, err
	}
	if _, err := q.fill(ctx, int(b.paced.Seconds()*pacedCeiling*3/2)+2*channels); err != nil {
		return result, err
	}
	p := &paced{drain: b.inThreeCalls(q, 0), until: time.Now().Add(b.paced)}
	group, working := errgroup.WithContext(ctx)
	for n := range claimers {
		group.Go(func() error { return p.work(working, fmt.Sprintf("paced-%d", n)) })
	}
	began := time.Now()
	if err := group.Wait(); err != nil {
		return result, err
	}
	rate := float64(p.sent.Load()) / time.Since(began).Seconds()
	above, err := p.above(ctx)
	if err != nil {
		return result, err
	}
	result.Checks = []Check{
		atMost(0, figure("calls closer together than a rate allows", "", above)),
	}
	result.Figures = append([]Figure{
		figure("used of a total rate of 1,000 calls/s over 4 groups", "calls/s", rate),
		figure("starts refused by a rate", "", float64(p.refused.Load())),
	}, p.shares()...)
	return result, nil
}

// paced is a drain that waits for each slot, like a daemon.
type paced struct {
	*drain
	until time.Time
}

func (p *paced) work(ctx context.Context, run string) error {
	conn, err := p.base.engine.Acquire(ctx)
	if err != nil {
		return err
	}
	defer conn.Release()
	for time.Now().Before(p.until) {
		items, err := timed(&p.claim, conn, func() ([]claimed, error) { return p.claimSome(ctx, conn, run) })
		if err != nil {
			return err
		}
		slices.SortFunc(items, func(a, b claimed) int { return a.slot().Compare(b.slot()) })
		for len(items) > 0 {
			if items, err = p.sendDue(ctx, conn, items); err != nil {
				return err
			}
		}
		if err := pause(ctx, claimInterval/2); err != nil {
			return err
		}
	}
	return nil
}

func (c claimed) slot() time.Time {
	if c.sendAt == nil {
		return time.Time{}
	}
	return *c.sendAt
}

// sendDue waits for the first slot, sends all deliveries with a due slot and returns the rest.
func (p *paced) sendDue(ctx context.Context, conn *pgxpool.Conn, items []claimed) ([]claimed, error) {
	if err := pause(ctx, time.Until(items[0].slot())); err != nil {
		return nil, err
	}
	now, due := time.Now(), 0
	for due < len(items) && !items[due].slot().After(now) {
		due++
	}
	due = max(due, 1)
	begun, err := timed(&p.start, conn, func() ([]settled, error) { return p.startAll(ctx, conn, items[:due]) })
	if err != nil || len(begun) == 0 {
		return items[due:], err
	}
	_, err = timed(&p.commit, conn, func() (int, error) { return 0, p.commitAll(ctx, conn, begun) })
	p.sent.Add(int64(len(begun)))
	return items[due:], err
}

// above counts the pairs of slots that are closer than the rate of their channel or group
// allows.
func (p *paced) above(ctx context.Context) (float64, error) {
	const slots = `
		with begun as (
			select e.channel_id, c.rate_group, c.rate_rps, l.rate_rps as group_rps, (e.meta ->> 'send_at')::timestamptz as slot
			from autopost.events e
			join autopost.channels c on c.workspace_id = e.workspace_id and c.channel_id = e.channel_id
			join autopost.platform_limits l on l.workspace_id = e.workspace_id and l.platform = c.platform and l.rate_group = c.rate_group
			where e.workspace_id = $1 and e.action = 'send_attempt')
		select count(*) filter (where b.of_channel < 0.999 / b.rate_rps or b.of_group < 0.999 / b.group_rps)::float8, count(b.slot)::float8
		from (
			select b.*, extract(epoch from b.slot - lag(b.slot) over (partition by b.channel_id order by b.slot)) as of_channel,
				extract(epoch from b.slot - lag(b.slot) over (partition by b.rate_group order by b.slot)) as of_group
			from begun b) b`
	var above, counted float64
	if err := p.base.owner.QueryRow(ctx, slots, p.workspace).Scan(&above, &counted); err != nil {
		return 0, err
	}
	if counted == 0 {
		return 0, errors.New("no start event contains its slot")
	}
	return above, nil
}
