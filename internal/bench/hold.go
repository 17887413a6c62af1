package bench

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"golang.org/x/sync/errgroup"
)

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

// The ceiling of all groups together, in calls a second, and the groups it is split into.
const (
	pacedCeiling = 1000
	pacedGroups  = 4
)

// bindingRates shows the branch of the claim that reserves slots while everybody
// wants one: how much of the ceiling is used, and that nothing is above it.
func (b *bench) bindingRates(ctx context.Context) (result Result, err error) {
	base, err := b.migrated(ctx, "rates")
	if err != nil {
		return result, err
	}
	defer func() { err = errors.Join(err, base.close(ctx)) }()
	// The channels together may do twice what their groups may.
	channels := min(b.channels, 400)
	s := shape{channels: channels, groups: pacedGroups, parallel: 1000, rate: 2 * pacedCeiling / float64(channels), groupRate: pacedCeiling / pacedGroups}
	q, err := b.queue(ctx, base, "rates", s)
	if err != nil {
		return result, err
	}
	if _, err := q.fill(ctx, int(b.paced.Seconds()*pacedCeiling*3/2)+2*channels); err != nil {
		return result, err
	}
	p := &paced{drain: b.drainer(q, 0), until: time.Now().Add(b.paced)}
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
		atMost(0, figure("calls closer to each other than a rate allows", "", above)),
	}
	result.Figures = append([]Figure{
		figure("of a shared ceiling of 1,000 calls/s over 4 groups", "calls/s", rate),
		figure("starts refused for a rate", "", float64(p.refused.Load())),
	}, p.shares()...)
	return result, nil
}

// paced is a drain that waits for each slot, as a sender does.
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
		items, err := timed(&p.claim, func() ([]claimed, error) { return p.claimSome(ctx, conn, run) })
		if err != nil {
			return err
		}
		slices.SortFunc(items, func(a, b claimed) int { return a.slot().Compare(b.slot()) })
		for len(items) > 0 {
			if items, err = p.sendDue(ctx, conn, items); err != nil {
				return err
			}
		}
		if err := pause(ctx, 10*lookAgain); err != nil {
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

// sendDue waits for the first slot, sends all whose slot has come, and returns the rest.
func (p *paced) sendDue(ctx context.Context, conn *pgxpool.Conn, items []claimed) ([]claimed, error) {
	if err := pause(ctx, time.Until(items[0].slot())); err != nil {
		return nil, err
	}
	now, due := time.Now(), 0
	for due < len(items) && !items[due].slot().After(now) {
		due++
	}
	due = max(due, 1)
	begun, err := timed(&p.start, func() ([]settled, error) { return p.startAll(ctx, conn, items[:due]) })
	if err != nil || len(begun) == 0 {
		return items[due:], err
	}
	_, err = timed(&p.commit, func() (int, error) { return 0, p.commitAll(ctx, conn, begun) })
	p.sent.Add(int64(len(begun)))
	return items[due:], err
}

// above counts, in the slots under which calls began, pairs that are closer than their channel or group allows.
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
		return 0, errors.New("no start recorded its slot")
	}
	return above, nil
}
