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
	// calmWorkspaces is the number of workspaces with the steady load, one channel each.
	calmWorkspaces = 8
	// steadyPeriod is the time between two posts of the steady load.
	steadyPeriod = 30 * time.Millisecond
	// callTimeout limits a call to the dead platform. slowAnswer is the delay of the slow one.
	callTimeout = 10 * time.Second
	slowAnswer  = 2 * time.Second
	// rampUp is the time between the start of a disturbance and the measurement. The
	// disturbance then has all the capacity that it can get.
	rampUp = 2 * time.Second
)

// scene is a database and a daemon with calm workspaces and a disturbance.
type scene struct {
	*endToEnd
	name   string
	daemon *live.Daemon
	stop   func() error
	// loud are the workspaces of the disturbance.
	loud []string
	// dead and slow are the failing platforms; nil in a scene without them.
	dead, slow *live.Platform
}

// block is one measurement of the steady load.
type block struct {
	delays []live.Delay
	// others is the rate of the calls of the disturbance, per second.
	others float64
	// busy is the used processor time of the machine in percent.
	busy float64
}

// isolationRun is one run of the goal isolation.
type isolationRun struct {
	*bench
	scenes []*scene
	blocks map[string][]block
	order  []string
}

// isolation measures the delay of the posts of calm workspaces: alone, with a disturbance in
// the same installation, and with the same disturbance in another installation on this
// machine. The last one shows the effect of shared processors and disks.
func (b *bench) isolation(ctx context.Context) (result Result, err error) {
	r := &isolationRun{bench: b, blocks: map[string][]block{}}
	defer func() { err = errors.Join(err, r.close(ctx)) }()
	if err := r.open(ctx); err != nil {
		return result, err
	}
	alone := r.scenes[0]
	subjects := []subject{r.measure("alone", alone, nil)}
	for i, h := range r.scenes[1:] {
		if i == 1 {
			subjects = append(subjects, r.measure("alone again", alone, nil))
		}
		subjects = append(subjects, r.measure(h.name, h, h), r.measure(h.name+", elsewhere", alone, h))
	}
	if _, err := b.interleave(ctx, func(context.Context) error { return nil }, subjects...); err != nil {
		return result, err
	}
	return r.result(), nil
}

// open creates the scenes.
func (r *isolationRun) open(ctx context.Context) error {
	backlog := thousands(fmt.Sprint(r.blocked)) + " due"
	for _, kind := range []struct {
		name    string
		disturb func(*scene, context.Context) error
	}{
		{"alone", func(*scene, context.Context) error { return nil }},
		{"a dead and a slow platform", (*scene).failing},
		{backlog + ", limited", func(h *scene, ctx context.Context) error {
			return h.crowded(ctx, shape{channels: r.channels, groups: 2, parallel: 1, rate: 1, groupRate: 30})
		}},
		{backlog + ", unlimited", func(h *scene, ctx context.Context) error {
			return h.crowded(ctx, shape{channels: r.channels, groups: 8, parallel: 1000})
		}},
	} {
		w, err := r.endToEnd(ctx, fmt.Sprintf("scene%d", len(r.scenes)))
		if err != nil {
			return err
		}
		h := &scene{endToEnd: w, name: kind.name}
		r.scenes = append(r.scenes, h)
		r.printf("  scene: %s", h.name)
		if err := errors.Join(h.addCalm(ctx), kind.disturb(h, ctx)); err != nil {
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
	for _, h := range r.scenes {
		errs = append(errs, h.close(ctx))
	}
	return errors.Join(errs...)
}

func (r *isolationRun) blockPosts() int { return max(calmWorkspaces, r.posts/4) }

func calm(n int) string { return fmt.Sprintf("calm%d", n%calmWorkspaces) }

// addCalm adds the calm workspaces.
func (h *scene) addCalm(ctx context.Context) error {
	for n := range calmWorkspaces {
		if err := h.workspace(ctx, calm(n), shape{channels: 1, parallel: 10}); err != nil {
			return err
		}
	}
	return h.exec(ctx, `update autopost.workspace_endpoints set ingress_rps = 1000000`)
}

// failing adds channels with a backlog to two calm and two loud workspaces: on a platform that
// never answers, and on a platform that answers late. No circuit breaker stops them.
func (h *scene) failing(ctx context.Context) (err error) {
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
	disturbed := append([]string{calm(0), calm(1)}, h.loud...)
	err = h.exec(ctx, `insert into autopost.platform_limits (workspace_id, platform, rate_group)
		select w, p, p from unnest($1::text[]) w, unnest('{max,x}'::text[]) p`, disturbed)
	if err != nil {
		return err
	}
	err = h.exec(ctx, `insert into autopost.channels (workspace_id, channel_id, platform, target_id, auth_ref, rate_group, max_parallel)
		select w, p || '-' || n, p, case p when 'max' then (-70000000 - n)::text else (4200000 + n)::text end, p, p, 10
		from unnest($1::text[]) w, unnest('{max,x}'::text[]) p, generate_series(1, $2::int) n`, disturbed, channels)
	if err != nil {
		return err
	}
	for _, name := range disturbed {
		message, err := h.post(ctx, name, "One of many.")
		if err != nil {
			return err
		}
		posts := max(1, h.bench.blocked/10/len(disturbed)/(2*channels))
		if _, err := h.backlog(ctx, name, message, posts, `t.channel_id like 'max-%' or t.channel_id like 'x-%'`); err != nil {
			return err
		}
	}
	// The steady posts use only the healthy platform.
	return errors.Join(
		h.exec(ctx, `update autopost.channels set route_filter = '{"include_any": ["backlog"]}' where platform <> 'telegram'`),
		h.exec(ctx, `update autopost.settings set value = '1000000' where key = 'breaker_channels'`))
}

// crowded adds a loud workspace with very many due deliveries.
func (h *scene) crowded(ctx context.Context, s shape) error {
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

// start starts the daemon without the disturbance.
func (h *scene) start(ctx context.Context) (err error) {
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
	h.engine.Close() // the daemons need its connections
	h.env = append(h.env, fmt.Sprintf("ADAPTER_TIMEOUT_MS=%d", callTimeout.Milliseconds()))
	running, stop, err := h.serve(ctx, 1, names...)
	if err != nil {
		return err
	}
	h.daemon, h.stop = running[0], stop
	_, err = h.steady(ctx, calmWorkspaces) // warms the daemon up
	return err
}

// toggle starts or stops the loud workspaces and the failing platforms.
func (h *scene) toggle(ctx context.Context, on bool) error {
	return errors.Join(
		h.exec(ctx, `update autopost.workspaces set status = case when $1 then 'active' else 'paused' end where workspace_id = any ($2)`, on, h.loud),
		h.exec(ctx, `update autopost.platform_limits set cooldown_until = case when not $1 then now() + interval '1 day' end where platform <> 'telegram'`, on))
}

// platforms returns the platforms of the scene.
func (h *scene) platforms() []*live.Platform {
	return slices.DeleteFunc([]*live.Platform{h.platform, h.dead, h.slow}, func(p *live.Platform) bool { return p == nil })
}

func (h *scene) calls() (n int) {
	for _, p := range h.platforms() {
		n += p.Calls()
	}
	return n
}

func (h *scene) delay(dead, slow time.Duration) {
	if h.dead != nil {
		h.dead.Delay(dead)
		h.slow.Delay(slow)
	}
}

// begin starts the disturbance and waits for rampUp.
func (h *scene) begin(ctx context.Context) error {
	h.delay(live.Never, slowAnswer)
	if err := h.toggle(ctx, true); err != nil {
		return err
	}
	return pause(ctx, min(rampUp, h.bench.hold))
}

// end stops the disturbance and waits until no delivery is in flight.
func (h *scene) end(ctx context.Context) error {
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

// steady pushes posts to the calm workspaces in turn.
func (h *scene) steady(ctx context.Context, posts int) ([]live.Delay, error) {
	ctx, cancel := context.WithTimeout(ctx, stuckAfter)
	defer cancel()
	return h.platform.Steady(ctx, steadyPeriod, posts, func(ctx context.Context, n int, mark string) error {
		return sendOne(ctx, pushClient, h.daemon.URL+"/hooks/push", calm(n), mark+" "+text())
	})
}

func (h *scene) close(ctx context.Context) error {
	var errs []error
	if h.stop != nil {
		errs = append(errs, h.stop())
	}
	for _, p := range []*live.Platform{h.dead, h.slow} {
		if p != nil {
			errs = append(errs, p.Close())
		}
	}
	return errors.Join(append(errs, h.endToEnd.close(ctx))...)
}

// measure measures the steady load of one scene during the disturbance of another scene, or of
// the same one. other may be nil.
func (r *isolationRun) measure(name string, in, other *scene) subject {
	r.order = append(r.order, name)
	return subject{name, "ms", func(ctx context.Context) (_ float64, err error) {
		if other != nil {
			defer func() { err = errors.Join(err, other.end(ctx)) }()
			if err := other.begin(ctx); err != nil {
				return 0, err
			}
		}
		var made block
		before, began := 0, time.Now()
		if other != nil {
			before = other.calls()
		}
		idle, all, err := live.Processors()
		if err != nil {
			return 0, err
		}
		if made.delays, err = in.steady(ctx, r.blockPosts()); err != nil {
			return 0, err
		}
		idleThen, allThen, err := live.Processors()
		if err != nil {
			return 0, err
		}
		made.busy = 100 * (1 - (idleThen-idle)/(allThen-all))
		if other != nil {
			calls := other.calls() - before
			if in == other {
				calls -= len(made.delays)
			}
			made.others = float64(calls) / time.Since(began).Seconds()
		}
		r.blocks[name] = append(r.blocks[name], made)
		return fromAnswer(made).at(0.99), nil
	}}
}

// spread are delays in milliseconds.
type spread []float64

func (s spread) at(q float64) float64 { return quantile(s, q) }

func fromAnswer(blocks ...block) (s spread) {
	for _, b := range blocks {
		for _, d := range b.delays {
			s = append(s, milliseconds(d.FromAnswer))
		}
	}
	return s
}

func fromRequest(blocks ...block) (s spread) {
	for _, b := range blocks {
		for _, d := range b.delays {
			s = append(s, milliseconds(d.FromRequest))
		}
	}
	return s
}

// tails divides p99s. Each sample leaves out one round, so that the range shows the influence
// of a single round.
func tails(name string, rounds int, above, below func(round int) []block) Figure {
	var samples []float64
	for without := range rounds {
		var a, b []block
		for round := range rounds {
			if round != without || rounds == 1 {
				a, b = append(a, above(round)...), append(b, below(round)...)
			}
		}
		samples = append(samples, fromAnswer(a...).at(0.99)/fromAnswer(b...).at(0.99))
	}
	return figure(name, "x", samples...)
}

func (r *isolationRun) of(names ...string) func(round int) []block {
	return func(round int) (found []block) {
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
		fmt.Sprintf("%d posts per block, one each %s to %d workspaces; p50, p99 and maximum are per block", r.blockPosts(), steadyPeriod, calmWorkspaces),
		"elsewhere: the same disturbance with another daemon and database on the same server, to show the effect of processors and disk",
	}
	return result
}

// figures returns the figures of the blocks of a name.
func (r *isolationRun) figures(name string) []Figure {
	each := func(of func(block) float64) (samples []float64) {
		for _, b := range r.blocks[name] {
			samples = append(samples, of(b))
		}
		return samples
	}
	quantileOf := func(s func(...block) spread, q float64) []float64 {
		return each(func(b block) float64 { return s(b).at(q) })
	}
	figures := []Figure{
		figure(name+", p50", "ms", quantileOf(fromAnswer, 0.5)...),
		figure("  p99", "ms", quantileOf(fromAnswer, 0.99)...),
		figure("  maximum", "ms", quantileOf(fromAnswer, 1)...),
		figure("  p99 from the request", "ms", quantileOf(fromRequest, 0.99)...),
		figure("  processors busy", "%", each(func(b block) float64 { return b.busy })...),
	}
	if !strings.HasPrefix(name, "alone") {
		figures = append(figures, figure("  calls of the disturbance", "/s", each(func(b block) float64 { return b.others })...))
	}
	return figures
}
