package simulation

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"autopost"
	"autopost/internal/dispatch"
)

const (
	lease     = 20 * time.Second
	horizon   = time.Second
	lead      = 5 * time.Millisecond // a claim starts calls so long before their slot
	tolerance = 100 * time.Millisecond
	attempts  = 1000 // no delivery here runs out of them
)

var errGone = errors.New("the connection is gone")

// paced is what has a rate: a channel or a group.
type paced struct {
	name  string
	every time.Duration
	next  time.Time
}

type channel struct {
	paced
	group    *paced
	parallel int
	hold     bool
}

// row is a delivery.
type row struct {
	id       string
	channel  *channel
	steps    int
	status   string
	due      time.Time
	attempt  int
	token    string
	run      string
	lease    time.Time
	slot     time.Time
	started  bool
	lost     string // the token of the claim that was released as lost
	settled  string // the token of the last commit, and
	answer   dispatch.Commit
	unknown  []time.Time
	progress autopost.SeriesProgress
}

func (r *row) final() bool { return r.status == "sent" || r.status == "failed" || r.status == "held" }

func (r *row) holds(token string, now time.Time) bool {
	return r.status == "sending" && r.token == token && now.Before(r.lease)
}

// slot is the next instant at which a channel and its group may be called.
func (w *world) slot(c *channel, now time.Time) time.Time {
	at := now
	for _, p := range []*paced{&c.paced, c.group} {
		if p.next.After(at) {
			at = p.next
		}
	}
	return at
}

// reserve takes a slot; a few nanoseconds of its own keep any two instants apart.
func (w *world) reserve(r *row, now time.Time) time.Time {
	at := w.slot(r.channel, now).Add(time.Duration(1 + w.draw("slot", r.id, r.attempt, now.UnixNano()).IntN(5000)))
	for _, p := range []*paced{&r.channel.paced, r.channel.group} {
		p.next = at.Add(p.every)
	}
	return at
}

func (w *world) unknownOutcome(r *row, now time.Time) string {
	r.unknown = append(r.unknown, now)
	switch {
	case r.channel.hold:
		r.status = "held"
	case len(r.unknown) > 1:
		r.status = "failed"
	default:
		r.status, r.due = "retry", now.Add(2*time.Second)
	}
	return r.status
}

// recover ends leases, as the monitor does.
func (w *world) recover() {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := time.Now()
	for _, r := range w.rows {
		if r.status != "sending" || now.Before(r.lease) {
			continue
		}
		if r.started {
			w.note("recovered %s as %s", r.token, w.unknownOutcome(r, now))
			continue
		}
		r.status, r.due = "retry", now
		w.note("recovered %s, not begun", r.token)
	}
}

// daemon is the database as one daemon reaches it, until it dies.
type daemon struct {
	*world
	dispatch.Store // nil: there are no post changes, so their methods are never called

	run  string
	dead bool
	made map[string]int
}

// ask makes a call to the database: what it does may be lost, or its answer, or it hangs.
func ask[T any](ctx context.Context, d *daemon, what, about string, do func(now time.Time) T) (T, error) {
	key := what + " " + about
	d.mu.Lock()
	d.made[key]++
	luck := d.draw(d.run, key, d.made[key])
	d.mu.Unlock()
	way := func() bool { return wait(ctx, time.Duration(200_000+luck.IntN(4_000_000))) }
	trouble := luck.IntN(100)
	if trouble == 0 {
		wait(ctx, time.Minute) // the caller's patience ends first
	}
	if !way() || trouble == 1 {
		return *new(T), errGone
	}
	d.mu.Lock()
	if d.dead {
		d.mu.Unlock()
		return *new(T), errGone
	}
	answer := do(time.Now())
	d.note("%s %s: %v", d.run, key, answer)
	d.mu.Unlock()
	if !way() || trouble == 2 || d.gone() {
		return *new(T), errGone
	}
	return answer, nil
}

func (d *daemon) gone() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.dead
}

func (d *daemon) ReadyWork(ctx context.Context, _ string, _ int, _ []dispatch.Capacity) (dispatch.Work, error) {
	return ask(ctx, d, "ready", "", func(now time.Time) (work dispatch.Work) {
		for _, r := range d.rows {
			if (r.status == "queued" || r.status == "retry") && !r.due.After(now) && d.slot(r.channel, now).Sub(now) < horizon {
				return dispatch.Work{Ready: []dispatch.ClaimKey{{WorkspaceID: "news", Platform: autopost.Telegram}}}
			}
		}
		return work
	})
}

func (d *daemon) ClaimAndStart(ctx context.Context, _, runID string, limit int, free []dispatch.Capacity, authRefs []string) ([]dispatch.Claimed, error) {
	var claimed []dispatch.Claimed
	_, err := ask(ctx, d, "claim", "", func(now time.Time) (tokens []string) {
		flying, grouped := map[*channel]int{}, map[*paced]int{}
		for _, r := range d.rows {
			if r.status == "sending" {
				flying[r.channel]++
			}
		}
		for _, r := range d.rows {
			channel := r.channel
			waits := (r.status == "queued" || r.status == "retry") && !r.due.After(now)
			if !waits || len(tokens) == limit || flying[channel] == channel.parallel || grouped[channel.group] == capacityOf(channel.group.name, free) || d.slot(channel, now).Sub(now) >= horizon {
				continue
			}
			flying[channel]++
			grouped[channel.group]++
			var c dispatch.Claimed
			r.attempt++
			r.status, r.started, r.run, r.token = "sending", false, runID, fmt.Sprintf("%s/%d", r.id, r.attempt)
			r.lease, r.slot = now.Add(lease), d.reserve(r, now)
			tokens = append(tokens, r.token)
			c.Delivery = d.delivery(r)
			if r.started = slices.Contains(authRefs, r.id) && r.slot.Sub(now) <= lead; r.started {
				c.Start = &dispatch.Start{Applied: true, Limited: true, SendIn: r.slot.Sub(now), Deadline: lease}
			}
			claimed = append(claimed, c)
		}
		return tokens
	})
	if err != nil {
		return nil, err
	}
	return claimed, nil
}

// capacityOf is the least capacity that matches a group.
func capacityOf(group string, free []dispatch.Capacity) int {
	least := attempts
	for _, c := range free {
		if c.RateGroup == "" || c.RateGroup == group {
			least = min(least, c.Free)
		}
	}
	return least
}

func (d *daemon) delivery(r *row) autopost.Delivery {
	slot := r.slot
	meta := autopost.RenderMeta{Progress: r.progress}
	for n := range r.steps {
		meta.Steps = append(meta.Steps, autopost.Step{Name: fmt.Sprint("part-", n), Text: true})
	}
	return autopost.Delivery{
		WorkspaceID: "news", DeliveryID: r.id, ClaimToken: r.token, ChannelID: r.channel.name, Platform: autopost.Telegram, AuthRef: r.id,
		RateGroup: r.channel.group.name, Attempt: r.attempt, SendAt: &slot, RenderMeta: meta,
	}
}

func (d *daemon) StartCallBatch(ctx context.Context, _ string, claims []dispatch.Claim) ([]dispatch.Start, error) {
	return ask(ctx, d, "start", names(claims, func(c dispatch.Claim) string { return c.ClaimToken }), func(now time.Time) (starts []dispatch.Start) {
		for _, claim := range claims {
			r := d.row(claim.DeliveryID)
			if r.lost == claim.ClaimToken {
				d.wrongs = append(d.wrongs, fmt.Sprintf("%s processes what it released as lost: %s", d.run, r.lost))
			}
			if !r.holds(claim.ClaimToken, now) {
				starts = append(starts, dispatch.Start{Reason: "stale"})
				continue
			}
			if late := r.slot.Before(now.Add(-tolerance)); late && !r.started && d.slot(r.channel, now).Sub(now) >= horizon {
				r.status, r.due = "retry", now // no slot is free within the horizon
				starts = append(starts, dispatch.Start{Reason: "rate"})
				continue
			} else if late {
				r.slot = d.reserve(r, now) // at any distance, for a running one
			}
			r.started = true
			starts = append(starts, dispatch.Start{Applied: true, Limited: true, SendIn: r.slot.Sub(now), Deadline: r.lease.Sub(now)})
		}
		return starts
	})
}

func (d *daemon) RecordSeriesProgress(ctx context.Context, _, id, token string, ack autopost.Acknowledged) (dispatch.Progress, error) {
	return ask(ctx, d, "progress", token+" "+ack.Step, func(now time.Time) dispatch.Progress {
		r := d.row(id)
		if !r.final() && !r.progress.Done(ack.Step) {
			r.progress = r.progress.With(ack) // the platform has the step, with any caller
		}
		if r.status != "sending" || r.token != token {
			return dispatch.Progress{Reason: "stale"}
		}
		r.slot = d.reserve(r, now)
		r.lease = r.slot.Add(lease)
		return dispatch.Progress{Applied: true, Limited: true, SendIn: r.slot.Sub(now)}
	})
}

func (d *daemon) ExtendLease(ctx context.Context, _, id, token string, seconds int) (bool, error) {
	return ask(ctx, d, "extend", token, func(now time.Time) bool {
		r := d.row(id)
		if !r.holds(token, now) {
			return false
		}
		r.lease = now.Add(time.Duration(seconds) * time.Second)
		return true
	})
}

func (d *daemon) CommitOutcomeBatch(ctx context.Context, _ string, results []dispatch.ClaimResult) ([]dispatch.Commit, error) {
	return ask(ctx, d, "commit", names(results, func(s dispatch.ClaimResult) string { return s.ClaimToken }), func(now time.Time) (commits []dispatch.Commit) {
		for _, s := range results {
			commits = append(commits, d.settle(s, now))
		}
		return commits
	})
}

func (d *daemon) settle(s dispatch.ClaimResult, now time.Time) dispatch.Commit {
	r := d.row(s.DeliveryID)
	if r.settled == s.ClaimToken {
		return r.answer
	}
	if r.status != "sending" || r.token != s.ClaimToken {
		return dispatch.Commit{Reason: "stale"}
	}
	switch {
	case s.Outcome.OK:
		r.status = "sent"
	case !s.Outcome.Error.Known:
		d.unknownOutcome(r, now)
	default:
		pause := max(time.Second, time.Duration(s.Outcome.Error.RetryAfterMS)*time.Millisecond)
		r.status, r.due = "retry", now.Add(pause)
		if s.Outcome.Error.RetryAfterMS > 0 && r.channel.next.Before(r.due) {
			r.channel.next = r.due
		}
	}
	r.settled, r.answer = s.ClaimToken, dispatch.Commit{Applied: true, Status: r.status}
	return r.answer
}

func (d *daemon) ReleaseClaims(ctx context.Context, _ string, tokens []string) error {
	_, err := ask(ctx, d, "release", names(tokens, func(s string) string { return s }), func(now time.Time) (released int) {
		for _, r := range d.rows {
			if r.status == "sending" && !r.started && slices.Contains(tokens, r.token) {
				r.status, r.due = "queued", now
				released++
			}
		}
		return released
	})
	return err
}

func (d *daemon) ReleaseLost(ctx context.Context, _, runID string, known []string) (int, []dispatch.Claim, error) {
	var started []dispatch.Claim
	released, err := ask(ctx, d, "find", "", func(now time.Time) (released int) {
		for _, r := range d.rows {
			switch {
			case r.status != "sending" || r.run != runID || slices.Contains(known, r.token):
			case r.started:
				started = append(started, dispatch.Claim{DeliveryID: r.id, ClaimToken: r.token})
			default:
				r.status, r.due, r.lost = "queued", now, r.token
				released++
			}
		}
		return released
	})
	return released, started, err
}

func (d *daemon) TouchRun(ctx context.Context, _, _ string, _ bool) error {
	_, err := ask(ctx, d, "touch", "", func(time.Time) bool { return true })
	return err
}

func (d *daemon) ReadyActWorkspaces(context.Context, int) ([]string, error) { return nil, nil }

func (d *daemon) row(id string) *row {
	return d.rows[slices.IndexFunc(d.rows, func(r *row) bool { return r.id == id })]
}

func names[T any](list []T, name func(T) string) string {
	var all []string
	for _, x := range list {
		all = append(all, name(x))
	}
	slices.Sort(all)
	return strings.Join(all, ",")
}
