// Package monitor is the third stage: it looks after what no caller waits for.
// It compares clocks, ends expired leases, renews credentials before they expire, keeps platforms
// telling what happens to bots, ends what waited too
// long for a refused one, writes the events of requests that were dropped in numbers,
// re-arms gates whose wake-up was lost, keeps the event partitions ahead of the
// calendar and the planner's statistics no older than the rows, removes what is past its time, media included, looks for what should
// not be, and tells people what is wrong and what to do about it.
//
// Each duty is one database function, or the few of a protocol, and one file. The database decides what is
// expired; any number of monitors may run at once. A duty that fails, or a
// workspace for which it fails, never holds up the others. Each reports how it went, and
// one that cannot be done for a while is an alert.
package monitor

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"
)

// Config tells how often the duties are done. The zero value of every field
// means its default.
type Config struct {
	// Interval is the time between two looks for alerts and at disks, and between two sweeps for expired leases,
	// for credentials that expire, for bots to look after, for what waited too long for a refused one, and for
	// floods of dropped requests that are over (MONITOR_INTERVAL_SECONDS). Default 60 s.
	Interval time.Duration
	// GateSweep is the time between two sweeps for gates that should be armed and
	// are not. Default 30 s.
	GateSweep time.Duration
	// Partitions is the time between two looks at the event partitions, which are
	// made two weeks ahead. Default 24 h.
	Partitions time.Duration
	// Retention is the time between two removals of what is past its time, media
	// included. How long things are kept is in autopost.settings. Default 1 h.
	Retention time.Duration
	// Integrity is the time between two reports of orphans and of the heads of the
	// audit logs, and between two looks through the media origin for objects that nobody
	// has a row of. A report looks at the last whole day. Default 24 h.
	Integrity time.Duration
	// RunID names this monitor in its reports, and among those that observe the database's clock. Required.
	RunID string
	// Lapsed rings when a lease is over, or its holder has not been heard of for too long; it is a hint. nil never does.
	Lapsed <-chan struct{}
	// News rings when people are to be told of something at once; it is a hint.
	News chan struct{}
	// Fingerprint is a digest of what all daemons should be configured with alike.
	Fingerprint string
}

func (c Config) withDefaults() Config {
	c.Interval = cmp.Or(c.Interval, time.Minute)
	c.GateSweep = cmp.Or(c.GateSweep, 30*time.Second)
	c.Partitions = cmp.Or(c.Partitions, 24*time.Hour)
	c.Retention = cmp.Or(c.Retention, time.Hour)
	c.Integrity = cmp.Or(c.Integrity, 24*time.Hour)
	if c.News == nil {
		c.News = make(chan struct{}, 1)
	}
	return c
}

func (c Config) validate() error {
	if c.RunID == "" {
		return fmt.Errorf("monitor config: a run id is required")
	}
	if min(c.Interval, c.GateSweep, c.Partitions, c.Retention, c.Integrity) < 0 {
		return fmt.Errorf("monitor config: periods must be positive")
	}
	return nil
}

// queryTimeout bounds one call to the database.
const queryTimeout = 30 * time.Second

// Workspaces lists the workspaces that are at work.
type Workspaces interface {
	ListWorkspaces(ctx context.Context) ([]string, error)
}

// Deps is what a Monitor works with. All are required.
type Deps struct {
	Workspaces Workspaces
	Clock      Clock
	Leases     Leases
	AuthLost   AuthLost
	Floods     Floods
	Gates      Gates
	Tables     Tables
	Retention  Retention
	Intake     Intake
	Archive    Archive
	Integrity  Integrity
	Media      *MediaSweep
	Expiry     Expiry
	Renewer    Renewer
	Bots       *BotKeeper
	Alerts     Alerts
	Disks      Disks
	Teller     Teller
	Log        *slog.Logger
}

// Monitor does its duties until it is stopped.
type Monitor struct {
	cfg     Config
	deps    Deps
	witness witness
	// active are the workspaces at work, all with those that rest.
	active, all remembered
}

// New makes a Monitor without effect.
func New(cfg Config, deps Deps) (*Monitor, error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	return &Monitor{
		cfg: cfg, deps: deps,
		active: remembered{ask: deps.Workspaces.ListWorkspaces, keep: cfg.Interval / 2},
		all:    remembered{ask: deps.Retention.ListAllWorkspaces, keep: cfg.Interval / 2},
	}, nil
}

// duty is one thing to be done again and again.
type duty struct {
	name  string
	every time.Duration
	// once does it and reports what it did; it logs its failures itself and returns
	// false when it has to be done again soon.
	once func(ctx context.Context) bool
	// wake has it done before its time; nil never does.
	wake <-chan struct{}
	// sign has it reported each time: as a sign of life, with this machine's clock and configuration.
	sign bool
}

// Run does every duty at once and then periodically, each at its own pace, until
// ctx ends. It returns nil.
func (m *Monitor) Run(ctx context.Context) error {
	var running sync.WaitGroup
	for _, d := range []duty{
		{name: "clock", every: min(m.cfg.Interval, observeEvery), once: m.watchClock},
		{name: "leases", every: m.cfg.Interval, once: m.recoverLeases, wake: m.cfg.Lapsed},
		{name: "auth_lost", every: m.cfg.Interval, once: m.expireAuthLost},
		{name: "floods", every: m.cfg.Interval, once: m.closeFloods},
		{name: "credentials", every: m.cfg.Interval, once: m.renewCredentials},
		{name: "bots", every: m.cfg.Interval, once: m.keepBots},
		{name: "gates", every: m.cfg.GateSweep, once: m.rearmGates},
		{name: "partitions", every: m.cfg.Partitions, once: m.ensurePartitions},
		{name: "statistics", every: min(m.cfg.Interval, statisticsEvery), once: m.refreshStatistics},
		{name: "retention", every: m.cfg.Retention, once: m.purgeAll},
		{name: "media", every: m.cfg.Retention, once: m.sweepMedia},
		{name: "stray_media", every: m.cfg.Integrity, once: m.sweepStrays},
		{name: "disks", every: m.cfg.Interval, once: m.watchDisks},
		{name: "watch", every: m.cfg.Interval, once: m.watch, sign: true},
		{name: "tell", every: m.cfg.Interval, once: m.tell, wake: m.cfg.News},
		{name: "integrity", every: m.cfg.Integrity, once: m.checkIntegrity},
	} {
		running.Go(func() { m.repeat(ctx, d) })
	}
	running.Wait()
	return nil
}

func (m *Monitor) repeat(ctx context.Context, d duty) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	fine := false // and known to be
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		case <-d.wake:
		}
		problem := m.perform(ctx, d)
		if problem != "" || !fine || d.sign {
			fine = m.tellHow(ctx, d, problem) && problem == ""
		}
		wait := d.every
		if problem != "" {
			wait = min(wait, m.cfg.Interval)
		}
		timer.Reset(wait)
	}
}

// sweep does something for every active workspace and adds up what it came to.
func (m *Monitor) sweep(ctx context.Context, what string, one func(ctx context.Context, workspace string) (int, error)) (total int, ok bool) {
	return m.sweepOf(ctx, &m.active, what, one)
}

func (m *Monitor) sweepOf(
	ctx context.Context, among *remembered, what string, one func(ctx context.Context, workspace string) (int, error),
) (total int, ok bool) {
	workspaces, err := named(ctx, among.list)
	if err != nil {
		m.fail(ctx, what, err)
		return 0, false
	}
	ok = true
	for _, workspace := range workspaces {
		if ctx.Err() != nil {
			return total, false
		}
		query, cancel := context.WithTimeout(ctx, queryTimeout)
		n, err := one(query, workspace)
		cancel()
		if err != nil {
			ok = false
			m.fail(ctx, what, fmt.Errorf("%s ws=%s: %w", what, workspace, err))
			continue
		}
		total += n
	}
	return total, ok
}

func named(ctx context.Context, list func(context.Context) ([]string, error)) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, queryTimeout)
	defer cancel()
	workspaces, err := list(ctx)
	if err != nil {
		return nil, fmt.Errorf("list workspaces: %w", err)
	}
	return workspaces, nil
}

// remembered is a list of workspaces that duties share, so that those which come at the same time ask once.
type remembered struct {
	ask func(ctx context.Context) ([]string, error)
	// keep is how old it may be.
	keep time.Duration

	mu         sync.Mutex
	workspaces []string
	at         time.Time
}

func (r *remembered) list(ctx context.Context) ([]string, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.at.IsZero() && time.Since(r.at) < r.keep {
		return r.workspaces, nil
	}
	asked := time.Now()
	workspaces, err := r.ask(ctx)
	if err == nil {
		r.workspaces, r.at = workspaces, asked
	}
	return workspaces, err
}

// fail logs a failure, and notes it for the duty's report, unless it is but the echo of a stop.
func (m *Monitor) fail(ctx context.Context, what string, err error) {
	note(ctx, err)
	if ctx.Err() == nil {
		m.deps.Log.Error("monitor.failed", "duty", what, "error", err)
	}
}

// done logs what a duty came to: loudly only where there was something to do.
func (m *Monitor) done(did bool, name string, attrs ...any) {
	level := slog.LevelDebug
	if did {
		level = slog.LevelInfo
	}
	m.deps.Log.Log(context.Background(), level, name, attrs...)
}
