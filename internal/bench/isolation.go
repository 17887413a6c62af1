package bench

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"autopost/internal/bench/live"
)

const (
	// calmWorkspaces share the steady load, a channel each.
	calmWorkspaces = 8
	// steadyPeriod is between two posts of that load.
	steadyPeriod = 30 * time.Millisecond
	// callTimeout is how long a call of the dead platform is waited for, and slowAnswer how long for one of the slow.
	callTimeout = 10 * time.Second
	slowAnswer  = 2 * time.Second
	// rampUp is how long a trouble lasts before the posts that it may delay come: it is to have all the places that it gets.
	rampUp = 2 * time.Second
)

// house is a database and a daemon: calm workspaces, and what can be going on beside them.
type house struct {
	*whole
	name   string
	daemon *live.Daemon
	stop   func() error
	// loud are the workspaces with the backlog of the trouble.
	loud []string
	// dead and slow are platforms; nil where there are none.
	dead, slow *live.Platform
}

// stretch is a part of the run with the steady load.
type stretch struct {
	delays []live.Delay
	// beside is how many calls a second came from the others; busy is how much of the processors was not idle.
	beside, busy float64
}

// isolationRun is what isolation has made and measured.
type isolationRun struct {
	*bench
	houses []*house
	blocks map[string][]stretch
	order  []string
}

// isolation measures how long posts of calm workspaces wait for their calls: alone,
// while there is trouble in the same house, and while the same trouble goes on in another
// house of the machine, which is what processors and disk do to them.
func (b *bench) isolation(ctx context.Context) (result Result, err error) {
	r := &isolationRun{bench: b, blocks: map[string][]stretch{}}
	defer func() { err = errors.Join(err, r.close(ctx)) }()
	if err := r.open(ctx); err != nil {
		return result, err
	}
	alone := r.houses[0]
	subjects := []subject{r.stretch("alone", alone, nil)}
	for i, h := range r.houses[1:] {
		if i == 1 {
			subjects = append(subjects, r.stretch("alone again", alone, nil))
		}
		subjects = append(subjects, r.stretch(h.name, h, h), r.stretch(h.name+", elsewhere", alone, h))
	}
	if _, err := b.interleave(ctx, func(context.Context) error { return nil }, subjects...); err != nil {
		return result, err
	}
	return r.result(), nil
}

// open makes the houses.
func (r *isolationRun) open(ctx context.Context) error {
	million := thousands(fmt.Sprint(r.blocked)) + " due"
	for _, kind := range []struct {
		name    string
		furnish func(*house, context.Context) error
	}{
		{"alone", func(*house, context.Context) error { return nil }},
		{"a dead and a slow platform", (*house).failing},
		{million + ", limited", func(h *house, ctx context.Context) error {
			return h.crowded(ctx, shape{channels: r.channels, groups: 2, parallel: 1, rate: 1, groupRate: 30})
		}},
		{million + ", unlimited", func(h *house, ctx context.Context) error {
			return h.crowded(ctx, shape{channels: r.channels, groups: 8, parallel: 1000})
		}},
	} {
		w, err := r.whole(ctx, fmt.Sprintf("house%d", len(r.houses)))
		if err != nil {
			return err
		}
		h := &house{whole: w, name: kind.name}
		r.houses = append(r.houses, h)
		r.say("  house: %s", h.name)
		if err := errors.Join(h.settleIn(ctx), kind.furnish(h, ctx)); err != nil {
			return err
		}
		if err := h.start(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (r *isolationRun) close(ctx context.Context) error {
	var errs []error
	for _, h := range r.houses {
		errs = append(errs, h.close(ctx))
	}
	return errors.Join(errs...)
}

func (r *isolationRun) stretchPosts() int { return max(calmWorkspaces, r.posts/4) }

func calm(n int) string { return fmt.Sprintf("calm%d", n%calmWorkspaces) }

// settleIn makes the calm workspaces.
func (h *house) settleIn(ctx context.Context) error {
	for n := range calmWorkspaces {
		if err := h.workspace(ctx, calm(n), shape{channels: 1, parallel: 10}); err != nil {
			return err
		}
	}
	return h.exec(ctx, `update autopost.workspace_endpoints set ingress_rps = 1000000`)
}

// failing gives two of the calm workspaces and two others channels of a platform that never
// answers and of one that answers late, with backlogs. No breaker stops them.
func (h *house) failing(ctx context.Context) (err error) {
	const channels = 20
	if h.dead, err = live.NewPlatform(ctx); err != nil {
		return err
	}
	if h.slow, err = live.NewPlatform(ctx); err != nil {
		return err
	}
	h.loud = []string{"loud0", "loud1"}
	h.env = append(h.env, "AUTOPOST_MAX_API_URL="+h.dead.URL, "AUTOPOST_X_API_URL="+h.slow.URL,
		`BENCH_X={"consumer_key":"k","consumer_secret":"s","access_token":"t","access_token_secret":"s"}`)
	for _, name := range h.loud {
		if err := h.workspace(ctx, name, shape{channels: 1}); err != nil {
			return err
		}
	}
	troubled := append([]string{calm(0), calm(1)}, h.loud...)
	err = h.exec(ctx, `insert into autopost.channels (workspace_id, channel_id, platform, target_id, auth_ref, rate_group, max_parallel)
		select w, p || '-' || n, p, case p when 'max' then (-70000000 - n)::text else (4200000 + n)::text end, p, p, 10
		from unnest($1::text[]) w, unnest('{max,x}'::text[]) p, generate_series(1, $2::int) n`, troubled, channels)
	if err != nil {
		return err
	}
	for _, name := range troubled {
		message, err := h.post(ctx, name, "Of many.")
		if err != nil {
			return err
		}
		posts := max(1, h.bench.blocked/10/len(troubled)/(2*channels))
		if _, err := h.backlog(ctx, name, message, posts, `t.channel_id like 'max-%' or t.channel_id like 'x-%'`); err != nil {
			return err
		}
	}
	// The steady posts go to the healthy platform alone.
	return errors.Join(
		h.exec(ctx, `update autopost.channels set route_filter = '{"include_any": ["backlog"]}' where platform <> 'telegram'`),
		h.exec(ctx, `insert into autopost.platform_limits (workspace_id, platform, rate_group)
			select w, p, p from unnest($1::text[]) w, unnest('{max,x}'::text[]) p`, troubled),
		h.exec(ctx, `update autopost.settings set value = '1000000' where key = 'breaker_channels'`))
}

// crowded adds a workspace with very many due deliveries.
func (h *house) crowded(ctx context.Context, s shape) error {
	const name = "loud0"
	h.loud = []string{name}
	if err := h.workspace(ctx, name, s); err != nil {
		return err
	}
	message, err := h.post(ctx, name, text())
	if err != nil {
		return err
	}
	_, err = h.backlog(ctx, name, message, max(1, h.bench.blocked/s.channels), "true")
	return err
}

// start starts the daemon, with the trouble off.
func (h *house) start(ctx context.Context) (err error) {
	names := slices.Clone(h.loud)
	for n := range calmWorkspaces {
		names = append(names, calm(n))
	}
	for _, name := range names {
		if err := h.bots(ctx, name); err != nil {
			return err
		}
	}
	err = errors.Join(
		h.exec(ctx, `update autopost.credential_bindings set secret_ref = 'env:BENCH_X' where platform = 'x'`),
		h.toggle(ctx, false), h.exec(ctx, `vacuum autopost.deliveries`), h.settle(ctx))
	if err != nil {
		return err
	}
	h.engine.Close() // its connections are wanted by the daemons
	h.env = append(h.env, fmt.Sprintf("ADAPTER_TIMEOUT_MS=%d", callTimeout.Milliseconds()))
	running, stop, err := h.serve(ctx, 1, names...)
	if err != nil {
		return err
	}
	h.daemon, h.stop = running[0], stop
	_, err = h.steady(ctx, calmWorkspaces) // so that it has done everything once
	return err
}

// toggle lets the loud workspaces and the failing platforms go on, or stops them.
func (h *house) toggle(ctx context.Context, on bool) error {
	return errors.Join(
		h.exec(ctx, `update autopost.workspaces set status = case when $1 then 'active' else 'paused' end where workspace_id = any ($2)`, on, h.loud),
		h.exec(ctx, `update autopost.platform_limits set cooldown_until = case when not $1 then now() + interval '1 day' end where platform <> 'telegram'`, on))
}

// platforms are those of the house.
func (h *house) platforms() []*live.Platform {
	return slices.DeleteFunc([]*live.Platform{h.platform, h.dead, h.slow}, func(p *live.Platform) bool { return p == nil })
}

func (h *house) calls() (n int) {
	for _, p := range h.platforms() {
		n += p.Calls()
	}
	return n
}

func (h *house) delay(dead, slow time.Duration) {
	if h.dead != nil {
		h.dead.Delay(dead)
		h.slow.Delay(slow)
	}
}

// begin lets the trouble go on until it is under way.
func (h *house) begin(ctx context.Context) error {
	h.delay(live.Never, slowAnswer)
	if err := h.toggle(ctx, true); err != nil {
		return err
	}
	return pause(ctx, min(rampUp, h.bench.hold))
}

// end stops the trouble and waits until nothing of it is in hand.
func (h *house) end(ctx context.Context) error {
	err := h.toggle(ctx, false)
	h.delay(0, 0)
	for err == nil {
		var sending bool
		sending, err = value[bool](ctx, h.base, `select exists (select from autopost.deliveries d where d.status = 'sending')`)
		if !sending {
			break
		}
		err = errors.Join(err, pause(ctx, 20*time.Millisecond))
	}
	for _, p := range h.platforms() {
		p.Reset()
	}
	return err
}

// steady pushes so many posts to the calm workspaces in turn.
func (h *house) steady(ctx context.Context, posts int) ([]live.Delay, error) {
	ctx, cancel := context.WithTimeout(ctx, stuckAfter)
	defer cancel()
	return h.platform.Steady(ctx, steadyPeriod, posts, func(ctx context.Context, n int, mark string) error {
		return sendOne(ctx, pusher, h.daemon.URL+"/hooks/push", calm(n), mark+" "+text())
	})
}

func (h *house) close(ctx context.Context) error {
	var errs []error
	if h.stop != nil {
		errs = append(errs, h.stop())
	}
	for _, p := range []*live.Platform{h.dead, h.slow} {
		if p != nil {
			errs = append(errs, p.Close())
		}
	}
	return errors.Join(append(errs, h.whole.close(ctx))...)
}

// stretch measures the steady load in a house, while the trouble of another, or of the same, goes on.
func (r *isolationRun) stretch(name string, in, beside *house) subject {
	r.order = append(r.order, name)
	return subject{name, "ms", func(ctx context.Context) (_ float64, err error) {
		if beside != nil {
			defer func() { err = errors.Join(err, beside.end(ctx)) }()
			if err := beside.begin(ctx); err != nil {
				return 0, err
			}
		}
		var made stretch
		before, began := 0, time.Now()
		if beside != nil {
			before = beside.calls()
		}
		idle, all, err := live.Processors()
		if err != nil {
			return 0, err
		}
		if made.delays, err = in.steady(ctx, r.stretchPosts()); err != nil {
			return 0, err
		}
		idleThen, allThen, err := live.Processors()
		if err != nil {
			return 0, err
		}
		made.busy = 100 * (1 - (idleThen-idle)/(allThen-all))
		if beside != nil {
			calls := beside.calls() - before
			if in == beside {
				calls -= len(made.delays)
			}
			made.beside = float64(calls) / time.Since(began).Seconds()
		}
		r.blocks[name] = append(r.blocks[name], made)
		return fromAnswer(made).at(0.99), nil
	}}
}

// spread are delays in milliseconds.
type spread []float64

func (s spread) at(q float64) float64 { return quantile(s, q) }

func fromAnswer(blocks ...stretch) (s spread) {
	for _, b := range blocks {
		for _, d := range b.delays {
			s = append(s, milliseconds(d.FromAnswer))
		}
	}
	return s
}

func fromRequest(blocks ...stretch) (s spread) {
	for _, b := range blocks {
		for _, d := range b.delays {
			s = append(s, milliseconds(d.FromRequest))
		}
	}
	return s
}

// tails divides p99s. Each sample is of all rounds but one, so that the range shows what a single round does.
func tails(name string, rounds int, above, below func(round int) []stretch) Figure {
	var samples []float64
	for without := range rounds {
		var a, b []stretch
		for round := range rounds {
			if round != without || rounds == 1 {
				a, b = append(a, above(round)...), append(b, below(round)...)
			}
		}
		samples = append(samples, fromAnswer(a...).at(0.99)/fromAnswer(b...).at(0.99))
	}
	return figure(name, "x", samples...)
}

func (r *isolationRun) of(names ...string) func(round int) []stretch {
	return func(round int) (found []stretch) {
		for _, name := range names {
			found = append(found, r.blocks[name][round])
		}
		return found
	}
}

func (r *isolationRun) result() (result Result) {
	alone := r.of("alone", "alone again")
	result.Figures = []Figure{tails("noise: p99 alone again / alone", r.rounds, r.of("alone again"), r.of("alone"))}
	for _, name := range r.order {
		if strings.HasPrefix(name, "alone") {
			continue
		}
		ratio := tails(name+": p99 / alone", r.rounds, r.of(name), alone)
		if strings.HasSuffix(name, "elsewhere") {
			result.Figures = append(result.Figures, ratio)
			continue
		}
		result.Checks = append(result.Checks, atMost(1.2, ratio))
	}
	for _, name := range r.order {
		result.Figures = append(result.Figures, r.figures(name)...)
	}
	result.Notes = []string{
		fmt.Sprintf("%d posts a stretch, one each %s to %d workspaces; p50, p99 and most are of stretches", r.stretchPosts(), steadyPeriod, calmWorkspaces),
		"elsewhere: the same trouble under another daemon and in another database of the same server, for what processors and disk do",
	}
	return result
}

// figures are those of the blocks of a name.
func (r *isolationRun) figures(name string) []Figure {
	each := func(of func(stretch) float64) (samples []float64) {
		for _, b := range r.blocks[name] {
			samples = append(samples, of(b))
		}
		return samples
	}
	quantileOf := func(s func(...stretch) spread, q float64) []float64 {
		return each(func(b stretch) float64 { return s(b).at(q) })
	}
	figures := []Figure{
		figure(name+", p50", "ms", quantileOf(fromAnswer, 0.5)...),
		figure("  p99", "ms", quantileOf(fromAnswer, 0.99)...),
		figure("  most", "ms", quantileOf(fromAnswer, 1)...),
		figure("  p99 from the request", "ms", quantileOf(fromRequest, 0.99)...),
		figure("  processors busy", "%", each(func(b stretch) float64 { return b.busy })...),
	}
	if !strings.HasPrefix(name, "alone") {
		figures = append(figures, figure("  calls beside", "/s", each(func(b stretch) float64 { return b.beside })...))
	}
	return figures
}
