package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"autopost/internal/admin"
)

const (
	// clockTolerance is how far the database's clock may be from ours: leases, slots and signatures are
	// reckoned with seconds.
	clockTolerance = 5 * time.Second
	// roundTolerance is how long a dispatcher may be without a round; an idle one has one every 30 s.
	roundTolerance = 45 * time.Second
)

// checks are what /readyz asks. The schema stands for the migrations too: its digest is over both.
func (d *daemon) checks() []admin.Check {
	checks := []admin.Check{
		{Name: "database", Part: admin.ReadyFunc(d.answers), Remedy: "the database does not answer: look whether it runs, and at DATABASE_URL"},
		{Name: "schema", After: "database", Part: d.store, Remedy: "the schema is not of this program: run autopost migrate of the same version"},
		{Name: "room", After: "database", Part: admin.ReadyFunc(d.room), Remedy: "the disk of the database is full, it took nothing within the last minute: make room there (docs/operate/disks.md)"},
		{Name: "clock", After: "database", Part: admin.ReadyFunc(d.clock), Remedy: "the clocks of the database and of this machine are more than 5 s apart: set both by NTP"},
		{Name: "storage", Part: admin.ReadyFunc(d.storage(&lasting{ask: d.blobs.Writable})), Remedy: "the media origin cannot be written, or its disk is full: look at AUTOPOST_BLOB_URL, the room and the rights there (docs/operate/disks.md)"},
	}
	if d.watch.dispatches {
		checks = append(checks, admin.Check{Name: "dispatcher", Part: admin.ReadyFunc(d.rounds), Remedy: "nobody has looked for deliveries for 45 s: look at the log for dispatch.*"})
	}
	return checks
}

// writtenFor is how long a bucket that could be written is taken to be so: each write to one costs.
const writtenFor = time.Minute

// lasting asks again only when the last good answer is too old.
type lasting struct {
	ask func(context.Context) error

	mu   sync.Mutex
	good time.Time
}

// Ready implements admin.Ready.
func (l *lasting) Ready(ctx context.Context) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.good.IsZero() && time.Since(l.good) < writtenFor {
		return nil
	}
	err := l.ask(ctx)
	if err == nil {
		l.good = time.Now()
	}
	return err
}

func (d *daemon) answers(ctx context.Context) error {
	_, _, err := d.store.Skew(ctx)
	return err
}

func (d *daemon) room(context.Context) error { return d.disks.full(databaseDisk) }

// storage is ready where the bucket can be written and has taken all that came lately.
func (d *daemon) storage(bucket admin.Ready) func(context.Context) error {
	return func(ctx context.Context) error { return errors.Join(d.disks.full(mediaDisk), bucket.Ready(ctx)) }
}

func (d *daemon) clock(ctx context.Context) error {
	skew, trip, err := d.store.Skew(ctx)
	if err == nil && skew.Abs() > clockTolerance+trip {
		err = fmt.Errorf("the database's clock is %s ahead", skew.Round(time.Millisecond))
	}
	return err
}

func (d *daemon) rounds(context.Context) error {
	at, ok := d.watch.LastRound()
	if !ok {
		return errors.New("there was no round yet")
	}
	if ago := time.Since(at); ago > roundTolerance {
		return fmt.Errorf("the last round was %s ago", ago.Round(time.Second))
	}
	return nil
}
