// Package monitor runs periodic maintenance. Each duty has one file:
//
//	clock         compares the clock of the database with the monotonic clock
//	leases        ends the leases of dead holders
//	credentials   renews credentials before they expire, and ends deliveries that wait too long for a refused one
//	bots          keeps bots subscribed to updates, and asks for their rights in chats
//	dropcounters  writes the events of counted drops
//	gates         opens gates whose wake-up was lost
//	tables        creates event partitions and refreshes statistics
//	retention     removes expired rows and partitions
//	media         removes media that nothing needs
//	integrity     reports orphans and the heads of the audit logs
//	alerts        checks for alerts and disks, and sends notices
//	moderation    asks people in chats for decisions, and answers them
//
// The database decides what is expired; any number of monitors may run. A duty that fails, or a workspace for which
// it fails, does not stop the others. Each duty reports its result; a duty that keeps failing becomes an alert.
package monitor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"autopost/internal/telemetry"
	"autopost/internal/worker"
)

// Config sets the periods of the duties. The zero value of every period means its default.
type Config struct {
	// Interval is the period of the duties without a period below (MONITOR_INTERVAL_SECONDS). Default 60 s.
	Interval time.Duration
	// GateSweep is the period of the search for gates that should be open. Default 30 s.
	GateSweep time.Duration
	// Partitions is the period of the creation of event partitions, event_partition_days ahead. Default 24 h.
	Partitions time.Duration
	// Retention is the period of the removal of expired rows and media. autopost.settings has the retention times.
	// Default 1 h.
	Retention time.Duration
	// Integrity is the period of the integrity report, which covers the last whole day, and of the search for
	// objects without a row. Default 24 h.
	Integrity time.Duration
	// RunID identifies this monitor in its reports and clock observations. Required.
	RunID string
	// LeaseWake hints that a lease has expired or its holder is silent. It may be nil.
	LeaseWake <-chan struct{}
	// AlertWake hints that notices are due. New makes it if it is nil; the monitor also writes to it.
	AlertWake chan struct{}
	// ModerationWake hints that a call to a moderators' chat is due. It may be nil.
	ModerationWake <-chan struct{}
	// Fingerprint is a digest of the settings that all daemons should share.
	Fingerprint string
}

func (c Config) withDefaults() Config {
	c.Interval = cmp.Or(c.Interval, time.Minute)
	c.GateSweep = cmp.Or(c.GateSweep, 30*time.Second)
	c.Partitions = cmp.Or(c.Partitions, 24*time.Hour)
	c.Retention = cmp.Or(c.Retention, time.Hour)
	c.Integrity = cmp.Or(c.Integrity, 24*time.Hour)
	if c.AlertWake == nil {
		c.AlertWake = make(chan struct{}, 1)
	}
	return c
}

func (c Config) validate() error {
	if c.RunID == "" {
		return errors.New("monitor config: a run id is required")
	}
	if min(c.Interval, c.GateSweep, c.Partitions, c.Retention, c.Integrity) < 0 {
		return errors.New("monitor config: periods must be positive")
	}
	return nil
}

// queryTimeout bounds one call to the database.
const queryTimeout = 30 * time.Second

// Deps is what a Monitor works with. All but Recorder are required.
type Deps struct {
	Store Store
	// Bucket is the media store.
	Bucket   Bucket
	Renewer  Renewer
	Bots     Bots
	Disks    Disks
	Notifier Notifier
	// Moderator calls the chats in which people decide.
	Moderator Moderator
	Recorder  *telemetry.Recorder
	Log       *slog.Logger
}

// Monitor runs its duties until it is stopped.
type Monitor struct {
	cfg        Config
	deps       Deps
	media      MediaSweep
	clock      observedClock
	moderation *moderation
	// active and all are the active workspaces and all workspaces.
	active, all cachedList
}

// New makes a Monitor without effect.
func New(cfg Config, deps Deps) (*Monitor, error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	m := &Monitor{cfg: cfg, deps: deps, moderation: newModeration(), media: MediaSweep{Store: deps.Store, Bucket: deps.Bucket}}
	m.active.maxAge, m.all.maxAge = cfg.Interval/2, cfg.Interval/2
	return m, nil
}

// duty is one periodic job.
type duty struct {
	name  string
	every time.Duration
	run   func(ctx context.Context) error
	// again says that the last run did work, and that more may be due in this time; 0 otherwise. It may be nil.
	again func() time.Duration
	// delay is the pause before the first run. A start leaves the processor to the posts; what is days old can wait, one duty
	// after another.
	delay time.Duration
	// wake runs the duty before its time. It may be nil.
	wake <-chan struct{}
	// sign makes every result a report: it is a sign of life, with this machine's clock and configuration.
	sign bool
}

func (m *Monitor) duties() []duty {
	return []duty{
		{name: "clock", every: min(m.cfg.Interval, observeInterval), run: m.observeClock},
		{name: "leases", every: m.cfg.Interval, run: m.recoverLeases, wake: m.cfg.LeaseWake},
		{name: "auth_lost", every: m.cfg.Interval, run: m.expireAuthLost},
		{name: "decisions", every: m.cfg.Interval, run: m.expireSubmissions},
		{name: "floods", every: m.cfg.Interval, run: m.closeDropCounters},
		{name: "credentials", every: m.cfg.Interval, run: m.renewCredentials},
		{name: "bots", every: m.cfg.Interval, run: m.checkBots},
		{name: "gates", every: m.cfg.GateSweep, run: m.rearmGates},
		{name: "partitions", every: m.cfg.Partitions, run: m.ensurePartitions},
		{name: "statistics", every: min(m.cfg.Interval, statisticsInterval), run: m.refreshStatistics},
		{name: "retention", every: m.cfg.Retention, delay: 2 * m.cfg.Interval, run: m.purgeAll},
		{name: "media", every: m.cfg.Retention, delay: 3 * m.cfg.Interval, run: m.sweepMedia},
		{name: "stray_media", every: m.cfg.Integrity, delay: 4 * m.cfg.Interval, run: m.sweepStrays},
		{name: "disks", every: m.cfg.Interval, run: m.checkDisks},
		{name: "watch", every: m.cfg.Interval, run: m.checkAlerts, sign: true},
		{name: "tell", every: m.cfg.Interval, run: m.sendNotices, wake: m.cfg.AlertWake},
		{name: "moderation", every: m.cfg.Interval, run: m.callModerators, again: m.moderation.next, wake: m.cfg.ModerationWake},
		{name: "integrity", every: m.cfg.Integrity, delay: 5 * m.cfg.Interval, run: m.checkIntegrity},
	}
}

// Run runs every duty after its delay and then periodically, each at its own pace, until ctx ends. It returns nil.
func (m *Monitor) Run(ctx context.Context) error {
	var running sync.WaitGroup
	for _, d := range m.duties() {
		running.Go(worker.Task(ctx, func() { _ = m.loop(d).Run(ctx) })) // always nil
	}
	running.Wait()
	m.moderation.running.Wait()
	return nil
}

// loop runs a duty periodically. After a failure it runs again within Interval. It reports each failure, and the
// first success after one.
func (m *Monitor) loop(d duty) worker.Loop {
	retry := min(d.every, m.cfg.Interval)
	reported := false // the last report was a success
	return worker.Loop{
		Interval: d.every, Delay: d.delay, Wake: d.wake, Backoff: worker.Backoff{Least: retry, Most: retry},
		Poll: func(ctx context.Context) (time.Duration, error) {
			err := worker.Contained(ctx, func() error { return d.run(ctx) })()
			if ctx.Err() != nil {
				return 0, err
			}
			if err != nil {
				m.deps.Log.Error("monitor.failed", "duty", d.name, "error", err)
			}
			if err != nil || !reported || d.sign {
				reported = m.report(ctx, d, err) && err == nil
			}
			if d.again != nil && err == nil {
				return d.again(), nil
			}
			return 0, err
		},
	}
}

// report records the result of a duty. It returns false if the database did not take it.
func (m *Monitor) report(ctx context.Context, d duty, result error) bool {
	query, cancel := context.WithTimeout(ctx, queryTimeout)
	defer cancel()
	report := DutyReport{RunID: m.cfg.RunID, Duty: d.name, At: time.Now(), Config: m.cfg.Fingerprint}
	if result != nil {
		report.Err = strings.ReplaceAll(result.Error(), "\n", "; ")
	}
	err := m.deps.Store.ReportDuty(query, report)
	if err != nil && ctx.Err() == nil {
		m.deps.Log.Error("monitor.failed", "duty", "report "+d.name, "error", err)
	}
	return err == nil
}

// perWorkspace is the part of a duty for one workspace. It returns what it counts.
type perWorkspace func(ctx context.Context, workspace string) (int, error)

// sweep runs part for every active workspace and adds up the counts.
func (m *Monitor) sweep(ctx context.Context, name string, part perWorkspace) (total int, err error) {
	return m.sweepList(ctx, &m.active, false, name, part)
}

// sweepAll runs part for every workspace, paused ones included.
func (m *Monitor) sweepAll(ctx context.Context, name string, part perWorkspace) (total int, err error) {
	return m.sweepList(ctx, &m.all, true, name, part)
}

// sweepList continues after a failure. It returns the first one and counts the others.
func (m *Monitor) sweepList(ctx context.Context, cache *cachedList, all bool, name string, part perWorkspace) (total int, err error) {
	workspaces, err := cache.get(ctx, func(ctx context.Context) ([]string, error) { return m.deps.Store.ListServedWorkspaces(ctx, all) })
	if err != nil {
		return 0, err
	}
	failures := 0
	for _, workspace := range workspaces {
		if ctx.Err() != nil {
			return total, ctx.Err()
		}
		query, cancel := context.WithTimeout(ctx, queryTimeout)
		n, failure := part(query, workspace)
		cancel()
		if failure != nil {
			failures++
			err = cmp.Or(err, fmt.Errorf("%s ws=%s: %w", name, workspace, failure))
			continue
		}
		total += n
	}
	if failures > 1 {
		err = fmt.Errorf("%w (and %d more workspaces)", err, failures-1)
	}
	return total, err
}

type listFunc func(ctx context.Context) ([]string, error)

func listWorkspaces(ctx context.Context, list listFunc) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, queryTimeout)
	defer cancel()
	workspaces, err := list(ctx)
	if err != nil {
		return nil, fmt.Errorf("list workspaces: %w", err)
	}
	return workspaces, nil
}

// cachedList is a list of workspaces that concurrent duties share.
type cachedList struct {
	maxAge time.Duration

	mu         sync.Mutex
	workspaces []string
	at         time.Time
}

func (c *cachedList) get(ctx context.Context, list listFunc) ([]string, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.at.IsZero() && time.Since(c.at) < c.maxAge {
		return c.workspaces, nil
	}
	asked := time.Now()
	workspaces, err := listWorkspaces(ctx, list)
	if err == nil {
		c.workspaces, c.at = workspaces, asked
	}
	return workspaces, err
}

// done logs the result of a duty: at level INFO only if there was something to do.
func (m *Monitor) done(did bool, name string, attrs ...any) {
	level := slog.LevelDebug
	if did {
		level = slog.LevelInfo
	}
	m.deps.Log.Log(context.Background(), level, name, attrs...)
}
