package bench

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"slices"
	"strings"
	"time"

	"autopost/internal/bench/live"
)

// whole is a database, a platform and the daemons between them.
type whole struct {
	*base
	bench    *bench
	platform *live.Platform
	// env are further variables of its daemons, NAME=value.
	env []string
}

// whole makes a migrated database and a platform. Close it.
func (b *bench) whole(ctx context.Context, kind string) (w *whole, err error) {
	if b.program == "" {
		return nil, errors.New("no program is given to run as the daemon")
	}
	w = &whole{bench: b}
	if w.base, err = b.migrated(ctx, kind); err != nil {
		return nil, err
	}
	if w.platform, err = live.NewPlatform(ctx); err != nil {
		return nil, errors.Join(err, w.base.close(ctx))
	}
	return w, nil
}

func (w *whole) close(ctx context.Context) error {
	return errors.Join(w.platform.Close(), w.base.close(ctx))
}

// pusher calls the doors of daemons.
var pusher = &http.Client{Timeout: time.Minute}

// tokenOf is the bot of a workspace that answers for all its groups.
func tokenOf(workspace string) string { return "token-" + workspace }

// bots binds the credentials of a workspace's channels.
func (w *whole) bots(ctx context.Context, workspace string) error {
	return w.exec(ctx, `insert into autopost.credential_bindings (workspace_id, auth_ref, platform, secret_ref)
		select distinct c.workspace_id, c.auth_ref, c.platform, 'env:' || $2::text from autopost.channels c where c.workspace_id = $1`,
		workspace, variableOf(workspace))
}

func variableOf(workspace string) string { return "BENCH_TOKEN_" + strings.ToUpper(workspace) }

// serve starts daemons that know the bots of the workspaces; stop drains them.
func (w *whole) serve(ctx context.Context, daemons int, workspaces ...string) (running []*live.Daemon, stop func() error, err error) {
	stop = func() error {
		var errs []error
		for _, d := range running {
			errs = append(errs, d.Stop())
		}
		return errors.Join(errs...)
	}
	options := live.Options{Program: w.bench.program, DatabaseURL: w.bench.at(w.name), PlatformURL: w.platform.URL, Env: slices.Clone(w.env)}
	for _, name := range workspaces {
		options.Env = append(options.Env, variableOf(name)+"="+tokenOf(name))
	}
	for range daemons {
		d, err := live.Start(ctx, options)
		if err != nil {
			return nil, nil, errors.Join(err, stop())
		}
		running = append(running, d)
	}
	return running, stop, nil
}

// drainByDaemons is P3e: the drain of P3 through daemons, adapters and real HTTP.
func (b *bench) drainByDaemons(ctx context.Context) (result Result, err error) {
	w, err := b.whole(ctx, "whole")
	if err != nil {
		return result, err
	}
	defer func() { err = errors.Join(err, w.close(ctx)) }()
	const workspace = "whole"
	q, err := b.queue(ctx, w.base, workspace, everyLimit(b.channels))
	if err != nil {
		return result, err
	}
	if err := w.bots(ctx, workspace); err != nil {
		return result, err
	}
	drained := func(daemons int) func(context.Context) (float64, error) {
		return func(ctx context.Context) (float64, error) {
			made, err := q.fill(ctx, b.drain)
			if err != nil {
				return 0, err
			}
			return w.drained(ctx, int(made), daemons, workspace)
		}
	}
	samples, err := b.interleave(ctx, func(context.Context) error { return nil },
		subject{"SQL alone", "rows/s", func(ctx context.Context) (float64, error) {
			made, err := q.fill(ctx, b.drain)
			if err != nil {
				return 0, err
			}
			d := b.drainer(q, made)
			return perSecond(d.total)(d.run(ctx))
		}},
		subject{"one daemon", "rows/s", drained(1)}, subject{"two daemons", "rows/s", drained(2)})
	if err != nil {
		return result, err
	}
	best := make([]float64, len(samples["one daemon"]))
	for i := range best {
		best[i] = max(samples["one daemon"][i], samples["two daemons"][i])
	}
	result.Checks = []Check{atLeast(0.7, ratio("from end to end / SQL alone", best, samples["SQL alone"]))}
	result.Figures = []Figure{
		figure(fmt.Sprintf("SQL alone, %d connections, batches of %d", claimers, b.batch), "rows/s", samples["SQL alone"]...),
		figure("one daemon", "rows/s", samples["one daemon"]...),
		figure("two daemons", "rows/s", samples["two daemons"]...),
	}
	result.Notes = []string{"daemons and platform run on the processors that the database runs on"}
	return result, nil
}

// drained starts daemons over rows that are due: calls a second from the first to the last.
func (w *whole) drained(ctx context.Context, rows, daemons int, workspace string) (rate float64, err error) {
	w.platform.Reset()
	_, stop, err := w.serve(ctx, daemons, workspace)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, stop()) }()
	patience, cancel := context.WithTimeout(ctx, stuckAfter+time.Duration(rows)*10*time.Millisecond)
	defer cancel()
	calls, err := w.platform.Arrivals(patience, "", rows)
	if err != nil {
		return 0, err
	}
	return float64(rows-1) / calls[rows-1].At.Sub(calls[0].At).Seconds(), nil
}

// idleLatency is P8: from the answer to a webhook to the first byte at the platform,
// one post after another, against the commits that must lie between.
func (b *bench) idleLatency(ctx context.Context) (result Result, err error) {
	w, err := b.whole(ctx, "idle")
	if err != nil {
		return result, err
	}
	defer func() { err = errors.Join(err, w.close(ctx)) }()
	const workspace = "idle"
	daemon, stop, err := w.furnished(ctx, workspace)
	if err != nil {
		return result, err
	}
	defer func() { err = errors.Join(err, stop()) }()
	var fromAnswer, fromRequest, commits []float64
	for range b.posts {
		commit, err := w.commit(ctx)
		if err != nil {
			return result, err
		}
		l, err := w.latency(ctx, daemon, workspace)
		if err != nil {
			return result, err
		}
		commits = append(commits, commit)
		fromAnswer, fromRequest = append(fromAnswer, l.fromAnswer), append(fromRequest, l.fromRequest)
	}
	twoCommits := 2 * quantile(commits, 0.5)
	result.Checks = []Check{
		atMost(twoCommits+3, figure("webhook accepted to first byte, p50", "ms", quantile(fromAnswer, 0.5))),
		atMost(twoCommits+23, figure("webhook accepted to first byte, p99", "ms", quantile(fromAnswer, 0.99))),
	}
	result.Figures = []Figure{
		figure("webhook's request to first byte, p50", "ms", quantile(fromRequest, 0.5)),
		figure("webhook's request to first byte, p99", "ms", quantile(fromRequest, 0.99)),
		figure("a commit, p50", "ms", quantile(commits, 0.5)),
		figure("a commit, p99", "ms", quantile(commits, 0.99)),
	}
	result.Notes = []string{fmt.Sprintf("%d posts, one after another; the bound is two commits, measured between them, and 3 or 23 ms", b.posts)}
	return result, nil
}

// furnished makes a workspace with one channel that has no limits, and a daemon.
func (w *whole) furnished(ctx context.Context, workspace string) (daemon *live.Daemon, stop func() error, err error) {
	if err := w.workspace(ctx, workspace, shape{channels: 1}); err != nil {
		return nil, nil, err
	}
	if err := w.bots(ctx, workspace); err != nil {
		return nil, nil, err
	}
	const prepare = `update autopost.workspace_endpoints set ingress_rps = 1000000; create table if not exists bench.commits (n int)`
	if err := w.exec(ctx, prepare); err != nil {
		return nil, nil, err
	}
	running, stop, err := w.serve(ctx, 1, workspace)
	if err != nil {
		return nil, nil, err
	}
	return running[0], stop, nil
}

// commit is how long one takes that is waited for, in milliseconds.
func (w *whole) commit(ctx context.Context) (float64, error) {
	began := time.Now()
	err := w.exec(ctx, `insert into bench.commits values (1)`)
	return milliseconds(time.Since(began)), err
}

type latency struct{ fromRequest, fromAnswer float64 }

// latency pushes a post and waits for its call.
func (w *whole) latency(ctx context.Context, daemon *live.Daemon, workspace string) (latency, error) {
	patience, cancel := context.WithTimeout(ctx, stuckAfter)
	defer cancel()
	before, err := w.platform.Arrivals(ctx, tokenOf(workspace), 0)
	if err != nil {
		return latency{}, err
	}
	asked := time.Now()
	if err := sendOne(ctx, pusher, daemon.URL+"/hooks/push", workspace, text()); err != nil {
		return latency{}, err
	}
	answered := time.Now()
	calls, err := w.platform.Arrivals(patience, tokenOf(workspace), len(before)+1)
	if err != nil {
		return latency{}, err
	}
	at := calls[len(before)].At
	return latency{milliseconds(at.Sub(asked)), milliseconds(at.Sub(answered))}, nil
}

// idleDaemon is P13.
func (b *bench) idleDaemon(ctx context.Context) (result Result, err error) {
	w, err := b.whole(ctx, "quiet")
	if err != nil {
		return result, err
	}
	defer func() { err = errors.Join(err, w.close(ctx)) }()
	if _, err := w.admin.Exec(ctx, `alter database `+w.name+` set track_functions = 'pl'`); err != nil {
		return result, fmt.Errorf("count calls of functions: %w", err)
	}
	daemon, stop, err := w.furnished(ctx, "quiet")
	if err != nil {
		return result, err
	}
	defer func() { err = errors.Join(err, stop()) }()
	if _, err := w.latency(ctx, daemon, "quiet"); err != nil { // so that it has done everything once
		return result, err
	}
	if err := pause(ctx, min(b.quiet, 5*time.Second)); err != nil {
		return result, err
	}
	before, err := daemon.Usage()
	if err != nil {
		return result, err
	}
	queries, err := w.queries(ctx)
	if err != nil {
		return result, err
	}
	if err := pause(ctx, b.quiet); err != nil {
		return result, err
	}
	after, err := daemon.Usage()
	if err != nil {
		return result, err
	}
	queriesThen, err := w.queries(ctx)
	if err != nil {
		return result, err
	}
	result.Checks = []Check{
		atMost(0.5, figure("of a processor", "%", 100*(after.Processor-before.Processor).Seconds()/b.quiet.Seconds())),
		atMost(40, figure("resident memory beside the program", "MB", float64(after.Own)/(1<<20))),
		atMost(1, figure("queries a second", "", (queriesThen-queries)/b.quiet.Seconds())),
	}
	result.Figures = []Figure{figure("pages of the program that are in memory", "MB", float64(after.Program)/(1<<20))}
	result.Notes = []string{fmt.Sprintf("over %s, after a first post; the program's pages are its file's, and daemons of a machine share them", b.quiet)}
	return result, nil
}

// queries counts the calls of public functions: a query of a daemon is one.
func (w *whole) queries(ctx context.Context) (float64, error) {
	return value[float64](ctx, w.base, `select coalesce(sum(f.calls), 0)::float8 from pg_stat_user_functions f join pg_proc p on p.oid = f.funcid and p.prosecdef`)
}

// fanOutLive is one post to very many channels, until the last has been called.
func (b *bench) fanOutLive(ctx context.Context) (result Result, err error) {
	w, err := b.whole(ctx, "wide")
	if err != nil {
		return result, err
	}
	defer func() { err = errors.Join(err, w.close(ctx)) }()
	const workspace = "wide"
	if err := w.workspace(ctx, workspace, everyLimit(b.fan)); err != nil {
		return result, err
	}
	if err := w.bots(ctx, workspace); err != nil {
		return result, err
	}
	if err := w.settle(ctx); err != nil {
		return result, err
	}
	running, stop, err := w.serve(ctx, 1, workspace)
	if err != nil {
		return result, err
	}
	defer func() { err = errors.Join(err, stop()) }()
	var first, last []float64
	for range b.rounds {
		w.platform.Reset()
		asked := time.Now()
		if err := sendOne(ctx, pusher, running[0].URL+"/hooks/push", workspace, text()); err != nil {
			return result, err
		}
		patience, cancel := context.WithTimeout(ctx, stuckAfter+time.Duration(b.fan)*10*time.Millisecond)
		calls, err := w.platform.Arrivals(patience, "", b.fan)
		cancel()
		if err != nil {
			return result, err
		}
		first, last = append(first, calls[0].At.Sub(asked).Seconds()), append(last, calls[b.fan-1].At.Sub(asked).Seconds())
	}
	// A tripwire and no goal: two seconds for a thousand channels.
	result.Checks = []Check{atMost(max(2, float64(b.fan)/500), figure(fmt.Sprintf("webhook to the last of %d calls", b.fan), "s", last...))}
	result.Figures = []Figure{figure("webhook to the first call", "s", first...)}
	return result, nil
}

// quantile takes the nearest rank.
func quantile(samples []float64, q float64) float64 {
	sorted := slices.Sorted(slices.Values(samples))
	return sorted[max(0, int(math.Ceil(q*float64(len(sorted))))-1)]
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
