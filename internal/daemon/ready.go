package daemon

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"autopost/internal/api"
)

const (
	// clockTolerance is how far the database's clock may differ from ours: leases, slots and signatures depend on
	// seconds.
	clockTolerance = 5 * time.Second
	// pollTolerance is how long a dispatcher may pause; an idle one polls every 30 s.
	pollTolerance = 45 * time.Second
)

// checks are the checks of /readyz. The digest of the schema covers the migrations, too.
func (d *Daemon) checks() []api.Check {
	checks := []api.Check{
		{Name: "database", Part: api.ReadyFunc(d.answers), Remedy: "the database does not answer: check that it runs, and check DATABASE_URL"},
		{Name: "schema", After: "database", Part: d.store, Remedy: "the schema is of another version: run autopost migrate of the version of this program"},
		{Name: "room", After: "database", Part: api.ReadyFunc(d.databaseSpace), Remedy: "the disk of the database was full within the last minute: free space on it (docs/operate/disks.md)"},
		{Name: "clock", After: "database", Part: api.ReadyFunc(d.clock), Remedy: "the clocks of the database and of this machine differ by more than 5 s: synchronize both by NTP"},
		{Name: "storage", Part: api.ReadyFunc(d.storage(&cachedCheck{check: d.blobs.Writable})), Remedy: "the media store is not writable, or its disk is full: check AUTOPOST_BLOB_URL, its free space and its rights (docs/operate/disks.md)"},
	}
	if d.watch.dispatches {
		checks = append(checks, api.Check{Name: "dispatcher", Part: api.ReadyFunc(d.polls), Remedy: "the dispatcher has not polled for 45 s: see dispatch.* in the log"})
	}
	if d.bot != nil {
		checks = append(checks, api.Check{Name: "bot", Part: api.ReadyFunc(d.botPolls), Remedy: "the stage bot has not polled for 45 s: see bot.* in the log"})
	}
	return checks
}

// writableFor is how long a successful write counts: each write to a bucket costs.
const writableFor = time.Minute

// cachedCheck repeats its check only if the last success is too old.
type cachedCheck struct {
	check func(context.Context) error

	mu      sync.Mutex
	success time.Time
}

// Ready implements api.Ready.
func (c *cachedCheck) Ready(ctx context.Context) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.success.IsZero() && time.Since(c.success) < writableFor {
		return nil
	}
	err := c.check(ctx)
	if err == nil {
		c.success = time.Now()
	}
	return err
}

func (d *Daemon) answers(ctx context.Context) error {
	_, _, err := d.store.Skew(ctx)
	return err
}

func (d *Daemon) databaseSpace(context.Context) error { return d.disks.full(databaseDisk) }

// storage checks that the bucket is writable and that no recent write failed.
func (d *Daemon) storage(bucket api.Ready) func(context.Context) error {
	return func(ctx context.Context) error { return errors.Join(d.disks.full(mediaDisk), bucket.Ready(ctx)) }
}

func (d *Daemon) clock(ctx context.Context) error {
	skew, trip, err := d.store.Skew(ctx)
	if err == nil && skew.Abs() > clockTolerance+trip {
		err = fmt.Errorf("the clock of the database is %s ahead", skew.Round(time.Millisecond))
	}
	return err
}

func (d *Daemon) polls(context.Context) error {
	at, ok := d.watch.LastPoll()
	return recent("dispatcher", at, ok)
}

func (d *Daemon) botPolls(context.Context) error {
	at, ok := d.bot.LastPoll()
	return recent("stage bot", at, ok)
}

// recent returns an error if the last poll of a part was too long ago, or if there was none.
func recent(part string, at time.Time, ok bool) error {
	if !ok {
		return fmt.Errorf("the %s has not polled yet", part)
	}
	if ago := time.Since(at); ago > pollTolerance {
		return fmt.Errorf("the last poll was %s ago", ago.Round(time.Second))
	}
	return nil
}
