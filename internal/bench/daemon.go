package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"os"
	"path/filepath"
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

var errNoProgram = errors.New("no program is given to run as the daemon")

// whole makes a migrated database and a platform. Close it.
func (b *bench) whole(ctx context.Context, kind string) (w *whole, err error) {
	if b.program == "" {
		return nil, errNoProgram
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
	options := live.Options{Program: w.bench.program, DatabaseURL: w.bench.at(w.name), PlatformURL: w.platform.URL,
		Env: append([]string{"AUTOPOST_OUTBOUND_ALLOW=127.0.0.1/32", "BENCH_SIGNING_KEY=whsec_YmVuY2gga2V5IG9mIHRoaXJ0eS10d28gYnl0ZXMhISE="}, w.env...)}
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

// toldAfter is when a connection that does nothing has told the statistics what it did, and a little more.
const toldAfter = 12 * time.Second

// apart is a bench with a program of its own: what this process maps of the other, a daemon could not give back.
func (b *bench) apart() (alone *bench, remove func() error, err error) {
	if b.program == "" {
		return nil, nil, errNoProgram
	}
	dir, err := os.MkdirTemp("", "autopost-bench-")
	if err != nil {
		return nil, nil, err
	}
	own := *b
	own.program = filepath.Join(dir, "autopost")
	if err := copyProgram(own.program, b.program); err != nil {
		return nil, nil, errors.Join(err, os.RemoveAll(dir))
	}
	return &own, func() error { return os.RemoveAll(dir) }, nil
}

// copyProgram leaves nothing that is still to be written: the system keeps such pages.
func copyProgram(to, from string) (err error) {
	source, err := os.Open(from)
	if err != nil {
		return err
	}
	defer source.Close() //nolint:errcheck // it is read only
	target, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY|os.O_EXCL, 0o700)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, target.Close()) }()
	if _, err := io.Copy(target, source); err != nil {
		return err
	}
	return target.Sync()
}

// idleDaemon is P13.
func (b *bench) idleDaemon(ctx context.Context) (result Result, err error) {
	b, remove, err := b.apart()
	if err != nil {
		return result, err
	}
	defer func() { err = errors.Join(err, remove()) }()
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
	if err := pause(ctx, min(b.quiet, toldAfter)); err != nil {
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
		atMost(40, figure("resident memory", "MB", float64(after.Own+after.Program)/(1<<20))),
		atMost(1, figure("queries a second", "", (queriesThen-queries)/b.quiet.Seconds())),
	}
	result.Figures = []Figure{
		figure("of it the daemon's own", "MB", float64(after.Own)/(1<<20)),
		figure("of it pages of the program, which daemons of a machine share", "MB", float64(after.Program)/(1<<20)),
	}
	result.Notes = []string{fmt.Sprintf("over %s, after a first post", b.quiet)}
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

// listening are the workspaces whose result webhooks are told.
const listening = 4

// listen makes workspaces in which posts were sent, and in each a webhook that nobody told yet.
func (w *whole) listen(ctx context.Context) (events int, err error) {
	for n := range listening {
		name := fmt.Sprint("told", n)
		q, err := w.bench.queue(ctx, w.base, name, shape{channels: w.bench.channels, parallel: 1000})
		if err != nil {
			return 0, err
		}
		made, err := q.fill(ctx, w.bench.drain/listening)
		if err != nil {
			return 0, err
		}
		if _, err := w.bench.drainer(q, made).run(ctx); err != nil {
			return 0, err
		}
		if err := w.exec(ctx, `insert into autopost.credential_bindings (workspace_id, auth_ref, platform, secret_ref) values ($1, 'key', 'webhook', 'env:BENCH_SIGNING_KEY')`, name); err != nil {
			return 0, err
		}
		if err := w.exec(ctx, `insert into autopost.result_webhooks (workspace_id, webhook_id, url, signing_ref, event_types, rps, max_parallel, enabled_at, next_send_at)
			values ($1, 'bench', $2, 'key', '{delivery.*}', 1000, 100, '2000-01-01', now())`, name, w.platform.URL+"/bot"+name+"/told"); err != nil {
			return 0, err
		}
	}
	return value[int](ctx, w.base, `select count(*)::int from autopost.events where action = 'sent'`)
}

// untold takes back what the webhooks were told.
func (w *whole) untold(ctx context.Context) error {
	if err := w.exec(ctx, `truncate autopost.webhook_sends`); err != nil {
		return err
	}
	if err := w.exec(ctx, `delete from autopost.webhook_cursors`); err != nil {
		return err
	}
	return w.exec(ctx, `insert into autopost.webhook_cursors (workspace_id, done_at, mark_xid, mark_at, read_at, next_done_at)
		select w.workspace_id, '2000-01-01', pg_current_xact_id(), now(), '2000-01-01', '2000-01-01' from autopost.result_webhooks w`)
}

// tellResults is from the events that are there to the last call of result webhooks,
// read by one connection, and read and told by one daemon.
func (b *bench) tellResults(ctx context.Context) (result Result, err error) {
	w, err := b.whole(ctx, "told")
	if err != nil {
		return result, err
	}
	defer func() { err = errors.Join(err, w.close(ctx)) }()
	events, err := w.listen(ctx)
	if err != nil {
		return result, err
	}
	samples, err := b.interleave(ctx, func(context.Context) error { return nil },
		subject{"read", "events/s", func(ctx context.Context) (float64, error) {
			if err := w.untold(ctx); err != nil {
				return 0, err
			}
			began := time.Now()
			err := w.readAll(ctx, events)
			return float64(events) / time.Since(began).Seconds(), err
		}},
		subject{"told", "events/s", func(ctx context.Context) (float64, error) {
			if err := w.untold(ctx); err != nil {
				return 0, err
			}
			return w.served(ctx, events, 1)
		}})
	if err != nil {
		return result, err
	}
	result.Checks = []Check{
		atLeast(3000, figure("events read and queued by one connection", "events/s", samples["read"]...)),
		atLeast(3000, figure("events told by one daemon, from the first call to the last", "events/s", samples["told"]...)),
	}
	result.Notes = []string{fmt.Sprintf("%d events of posts that were sent, in %d workspaces with a webhook each; the receiver runs on the same processors", events, listening)}
	return result, nil
}

// served starts daemons over what there is to do: calls a second from the first to the last.
func (w *whole) served(ctx context.Context, rows, daemons int, workspaces ...string) (rate float64, err error) {
	w.platform.Reset()
	_, stop, err := w.serve(ctx, daemons, workspaces...)
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

// readAll reads all events of all workspaces by one connection.
func (w *whole) readAll(ctx context.Context, events int) error {
	for n := range listening {
		for more := true; more; {
			var err error
			if more, err = value[bool](ctx, w.base, `select (autopost.enqueue_webhooks($1) ->> 'more')::boolean`, fmt.Sprint("told", n)); err != nil {
				return err
			}
		}
	}
	queued, err := value[int](ctx, w.base, `select count(*)::int from autopost.webhook_sends`)
	if err == nil && queued != events {
		err = fmt.Errorf("%d of %d events were queued", queued, events)
	}
	return err
}

// quantile takes the nearest rank.
func quantile(samples []float64, q float64) float64 {
	sorted := slices.Sorted(slices.Values(samples))
	return sorted[max(0, int(math.Ceil(q*float64(len(sorted))))-1)]
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
