package bench

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"net/http"
	"slices"
	"strings"
	"time"

	"autopost/internal/bench/live"
)

// endToEnd is a database, a platform, and daemons between them.
type endToEnd struct {
	*base
	bench    *bench
	platform *live.Platform
	// env are additional variables of the daemons, NAME=value.
	env []string
}

var errNoProgram = errors.New("Options.Program must be set: pass the path of the autopost binary")

// endToEnd creates a migrated database and a platform. The caller must close it.
func (b *bench) endToEnd(ctx context.Context, kind string) (w *endToEnd, err error) {
	if b.program == "" {
		return nil, errNoProgram
	}
	w = &endToEnd{bench: b}
	if w.base, err = b.migrated(ctx, kind); err != nil {
		return nil, err
	}
	if w.platform, err = live.NewPlatform(ctx); err != nil {
		return nil, errors.Join(err, w.base.close(ctx))
	}
	return w, nil
}

func (w *endToEnd) close(ctx context.Context) error {
	return errors.Join(w.platform.Close(), w.base.close(ctx))
}

// pushClient calls the endpoints of daemons.
var pushClient = &http.Client{Timeout: time.Minute}

// tokenOf returns the bot token of a workspace. All its groups share it.
func tokenOf(workspace string) string { return "token-" + workspace }

// bots binds the credentials of the channels of a workspace.
func (w *endToEnd) bots(ctx context.Context, workspace string) error {
	return w.exec(ctx, `insert into autopost.credential_bindings (workspace_id, auth_ref, platform, secret_ref)
		select distinct c.workspace_id, c.auth_ref, c.platform, 'env:' || $2::text from autopost.channels c where c.workspace_id = $1`,
		workspace, variableOf(workspace))
}

func variableOf(workspace string) string { return "BENCH_TOKEN_" + strings.ToUpper(workspace) }

// serve starts daemons with the bot tokens of the workspaces. stop drains and ends them.
func (w *endToEnd) serve(ctx context.Context, daemons int, workspaces ...string) (running []*live.Daemon, stop func() error, err error) {
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

// idleLatency is P8: the time from the answer of a push to the first byte at the platform, one
// post after the other. The bound depends on the measured time of a commit.
func (b *bench) idleLatency(ctx context.Context) (result Result, err error) {
	w, err := b.endToEnd(ctx, "idle")
	if err != nil {
		return result, err
	}
	defer func() { err = errors.Join(err, w.close(ctx)) }()
	const workspace = "idle"
	daemon, stop, err := w.idleDaemon(ctx, workspace)
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
		figure("webhook request to first byte, p50", "ms", quantile(fromRequest, 0.5)),
		figure("webhook request to first byte, p99", "ms", quantile(fromRequest, 0.99)),
		figure("a commit, p50", "ms", quantile(commits, 0.5)),
		figure("a commit, p99", "ms", quantile(commits, 0.99)),
	}
	result.Notes = []string{fmt.Sprintf("%d posts, one after another; the bound is the time of two commits plus 3 or 23 ms", b.posts)}
	return result, nil
}

// idleDaemon creates a workspace with one unlimited channel, and a daemon.
func (w *endToEnd) idleDaemon(ctx context.Context, workspace string) (daemon *live.Daemon, stop func() error, err error) {
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

// commit returns the time of one synchronous commit in milliseconds.
func (w *endToEnd) commit(ctx context.Context) (float64, error) {
	began := time.Now()
	err := w.exec(ctx, `insert into bench.commits values (1)`)
	return milliseconds(time.Since(began)), err
}

type latency struct{ fromRequest, fromAnswer float64 }

// latency pushes a post, waits for its call and returns the times in milliseconds.
func (w *endToEnd) latency(ctx context.Context, daemon *live.Daemon, workspace string) (latency, error) {
	limited, cancel := context.WithTimeout(ctx, stuckAfter)
	defer cancel()
	before, err := w.platform.Arrivals(ctx, tokenOf(workspace), 0)
	if err != nil {
		return latency{}, err
	}
	asked := time.Now()
	if err := sendOne(ctx, pushClient, daemon.URL+"/hooks/push", workspace, text()); err != nil {
		return latency{}, err
	}
	answered := time.Now()
	calls, err := w.platform.Arrivals(limited, tokenOf(workspace), len(before)+1)
	if err != nil {
		return latency{}, err
	}
	at := calls[len(before)].At
	return latency{milliseconds(at.Sub(asked)), milliseconds(at.Sub(answered))}, nil
}

// statisticsDelay is the time after which an idle connection has reported its statistics.
const statisticsDelay = 12 * time.Second

// idleDaemon is P13.
func (b *bench) idleDaemon(ctx context.Context) (result Result, err error) {
	w, err := b.endToEnd(ctx, "idle")
	if err != nil {
		return result, err
	}
	defer func() { err = errors.Join(err, w.close(ctx)) }()
	if _, err := w.admin.Exec(ctx, `alter database `+w.name+` set track_functions = 'pl'`); err != nil {
		return result, fmt.Errorf("count calls of functions: %w", err)
	}
	daemon, stop, err := w.idleDaemon(ctx, "idle")
	if err != nil {
		return result, err
	}
	defer func() { err = errors.Join(err, stop()) }()
	if _, err := w.latency(ctx, daemon, "idle"); err != nil { // the first post opens connections and loads code
		return result, err
	}
	if err := pause(ctx, min(b.idle, statisticsDelay)); err != nil {
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
	if err := pause(ctx, b.idle); err != nil {
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
	total, functions := 0.0, []string{}
	for _, name := range slices.Sorted(maps.Keys(queriesThen)) {
		if calls := queriesThen[name] - queries[name]; calls > 0 {
			total += calls
			functions = append(functions, fmt.Sprintf("%s %.0f", name, calls))
		}
	}
	result.Checks = []Check{
		atMost(0.5, figure("processor time", "%", 100*(after.Processor-before.Processor).Seconds()/b.idle.Seconds())),
		atMost(64, figure("resident memory", "MB", float64(after.Own+after.Program)/(1<<20))),
		atMost(1, figure("queries per second", "", total/b.idle.Seconds())),
	}
	result.Figures = []Figure{
		figure("  of it private to the daemon", "MB", float64(after.Own)/(1<<20)),
		figure("  of it pages of the program file, which the kernel can drop", "MB", float64(after.Program)/(1<<20)),
	}
	result.Notes = []string{fmt.Sprintf("over %s, after one post; calls:", b.idle)}
	for some := range slices.Chunk(functions, 4) {
		result.Notes = append(result.Notes, strings.Join(some, ", "))
	}
	return result, nil
}

// queries counts the calls of each public function. Each query of a daemon is one such call.
func (w *endToEnd) queries(ctx context.Context) (map[string]float64, error) {
	return value[map[string]float64](ctx, w.base, `select coalesce(jsonb_object_agg(c.funcname, c.calls), '{}') from (
		select f.funcname, sum(f.calls) as calls from pg_stat_user_functions f join pg_proc p on p.oid = f.funcid and p.prosecdef
		group by f.funcname) c`)
}

// fanOutLive measures one post to very many channels, until the last call.
func (b *bench) fanOutLive(ctx context.Context) (result Result, err error) {
	w, err := b.endToEnd(ctx, "wide")
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
		if err := sendOne(ctx, pushClient, running[0].URL+"/hooks/push", workspace, text()); err != nil {
			return result, err
		}
		limited, cancel := context.WithTimeout(ctx, stuckAfter+time.Duration(b.fan)*10*time.Millisecond)
		calls, err := w.platform.Arrivals(limited, "", b.fan)
		cancel()
		if err != nil {
			return result, err
		}
		first, last = append(first, calls[0].At.Sub(asked).Seconds()), append(last, calls[b.fan-1].At.Sub(asked).Seconds())
	}
	// The bound only detects a breakdown: two seconds for a thousand channels.
	result.Checks = []Check{atMost(max(2, float64(b.fan)/500), figure(fmt.Sprintf("webhook to the last of %d calls", b.fan), "s", last...))}
	result.Figures = []Figure{figure("webhook to the first call", "s", first...)}
	return result, nil
}

// webhookWorkspaces is the number of workspaces with a result webhook.
const webhookWorkspaces = 4

// addWebhooks creates workspaces with sent posts and a result webhook each. It returns the
// number of events.
func (w *endToEnd) addWebhooks(ctx context.Context) (events int, err error) {
	for n := range webhookWorkspaces {
		name := fmt.Sprint("events", n)
		q, err := w.bench.queue(ctx, w.base, name, shape{channels: w.bench.channels, parallel: 1000})
		if err != nil {
			return 0, err
		}
		made, err := q.fill(ctx, w.bench.drain/webhookWorkspaces)
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
			values ($1, 'bench', $2, 'key', '{delivery.*}', 1000, 100, '2000-01-01', now())`, name, w.platform.URL+"/bot"+name+"/events"); err != nil {
			return 0, err
		}
	}
	return value[int](ctx, w.base, `select count(*)::int from autopost.events where action = 'sent'`)
}

// resetWebhooks removes the record of sent events.
func (w *endToEnd) resetWebhooks(ctx context.Context) error {
	if err := w.exec(ctx, `truncate autopost.webhook_sends`); err != nil {
		return err
	}
	if err := w.exec(ctx, `delete from autopost.webhook_cursors`); err != nil {
		return err
	}
	return w.exec(ctx, `insert into autopost.webhook_cursors (workspace_id, done_at, mark_xid, mark_at, read_at, next_done_at)
		select w.workspace_id, '2000-01-01', pg_current_xact_id(), now(), '2000-01-01', '2000-01-01' from autopost.result_webhooks w`)
}

// resultWebhooks measures result webhooks: one connection reads the events, and one daemon
// reads and sends them.
func (b *bench) resultWebhooks(ctx context.Context) (result Result, err error) {
	w, err := b.endToEnd(ctx, "events")
	if err != nil {
		return result, err
	}
	defer func() { err = errors.Join(err, w.close(ctx)) }()
	events, err := w.addWebhooks(ctx)
	if err != nil {
		return result, err
	}
	samples, err := b.interleave(ctx, func(context.Context) error { return nil },
		subject{"read", "events/s", func(ctx context.Context) (float64, error) {
			if err := w.resetWebhooks(ctx); err != nil {
				return 0, err
			}
			began := time.Now()
			err := w.readAll(ctx, events)
			return float64(events) / time.Since(began).Seconds(), err
		}},
		subject{"sent", "events/s", func(ctx context.Context) (float64, error) {
			if err := w.resetWebhooks(ctx); err != nil {
				return 0, err
			}
			return w.served(ctx, events, 1)
		}})
	if err != nil {
		return result, err
	}
	result.Checks = []Check{
		atLeast(3000, figure("events read and queued by one connection", "events/s", samples["read"]...)),
		atLeast(3000, figure("events sent by one daemon, from the first call to the last", "events/s", samples["sent"]...)),
	}
	result.Notes = []string{fmt.Sprintf("%d events in %d workspaces with one webhook each; the receiver uses the same processors", events, webhookWorkspaces)}
	return result, nil
}

// served starts daemons and returns calls per second from the first call to the last.
func (w *endToEnd) served(ctx context.Context, rows, daemons int, workspaces ...string) (rate float64, err error) {
	w.platform.Reset()
	_, stop, err := w.serve(ctx, daemons, workspaces...)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, stop()) }()
	limited, cancel := context.WithTimeout(ctx, stuckAfter+time.Duration(rows)*10*time.Millisecond)
	defer cancel()
	calls, err := w.platform.Arrivals(limited, "", rows)
	if err != nil {
		return 0, err
	}
	return float64(rows-1) / calls[rows-1].At.Sub(calls[0].At).Seconds(), nil
}

// readAll reads the events of all workspaces with one connection.
func (w *endToEnd) readAll(ctx context.Context, events int) error {
	for n := range webhookWorkspaces {
		for more := true; more; {
			var err error
			if more, err = value[bool](ctx, w.base, `select (autopost.enqueue_webhooks($1) ->> 'more')::boolean`, fmt.Sprint("events", n)); err != nil {
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

// quantile returns the nearest rank.
func quantile(samples []float64, q float64) float64 {
	sorted := slices.Sorted(slices.Values(samples))
	return sorted[max(0, int(math.Ceil(q*float64(len(sorted))))-1)]
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
