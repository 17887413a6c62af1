package pg

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
)

// Bells wake what waits for work. Each is a hint: it may be lost, and it may ring for nothing.
type Bells struct {
	// Deliveries: a gate is open, or will be soon.
	Deliveries chan struct{}
	// Acts: something is to be done to a post that was sent.
	Acts chan struct{}
	// Submissions: a post waits for its media.
	Submissions chan struct{}
	// Fanout: a post goes to more channels than one transaction takes.
	Fanout chan struct{}
	// Sources: one is to be polled.
	Sources chan struct{}
	// Results: a webhook is to be told something, or events are to be read for it.
	Results chan struct{}
	// Leases: one is over, or its holder has not been heard of for too long.
	Leases chan struct{}
	// Alerts: people are to be told of something, or that it is over.
	Alerts chan struct{}
}

// NewBells makes bells that nobody rings yet.
func NewBells() Bells {
	bell := func() chan struct{} { return make(chan struct{}, 1) }
	return Bells{Deliveries: bell(), Acts: bell(), Submissions: bell(), Fanout: bell(), Sources: bell(), Results: bell(), Leases: bell(), Alerts: bell()}
}

// named finds a bell by the name that the database has for it; nil where this program knows none.
func (b Bells) named(name string) chan struct{} {
	switch name {
	case "deliveries":
		return b.Deliveries
	case "acts":
		return b.Acts
	case "submissions":
		return b.Submissions
	case "fanout":
		return b.Fanout
	case "sources":
		return b.Sources
	case "results":
		return b.Results
	case "leases":
		return b.Leases
	case "alerts":
		return b.Alerts
	}
	return nil
}

func (b Bells) ringAll() {
	for _, bell := range []chan struct{}{b.Deliveries, b.Acts, b.Submissions, b.Fanout, b.Sources, b.Results, b.Leases, b.Alerts} {
		ring(bell)
	}
}

func ring(bell chan struct{}) {
	select {
	case bell <- struct{}{}:
	default: // it rings already
	}
}

// Listen hears NOTIFY autopost_wake on a connection of its own (url must be
// direct) and rings the bells until ctx ends. It reconnects by itself, and rings
// all bells then, for what it may have missed.
func Listen(ctx context.Context, url string, bells Bells, log *slog.Logger) error {
	const least, most = 100 * time.Millisecond, 5 * time.Second
	for pause := least; ; pause = min(2*pause, most) {
		began := time.Now()
		err := listenOnce(ctx, url, bells)
		if time.Since(began) > most { // it was heard for a while
			pause = least
		}
		if ctx.Err() == nil {
			log.Warn("database.listen_lost", "error", err, "retry_in", pause)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(pause):
		}
	}
}

func listenOnce(ctx context.Context, url string, bells Bells) error {
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	if _, err := conn.Exec(ctx, `listen autopost_wake`); err != nil {
		return err
	}
	bells.ringAll()
	for {
		notification, err := conn.WaitForNotification(ctx)
		if err != nil {
			return err
		}
		ring(bells.named(notification.Payload))
	}
}

// dueTimeout bounds one question for what is due.
const dueTimeout = 10 * time.Second

// DueStages names the bells behind which there is something to do now, or will be within a time.
func (s *Store) DueStages(ctx context.Context, within time.Duration) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, dueTimeout)
	defer cancel()
	stages, err := s.texts(ctx, `select * from autopost.due_stages($1)`, within.Milliseconds())
	if err != nil {
		return nil, fmt.Errorf("due stages: %w", err)
	}
	return stages, nil
}

// Poll asks every period what is due, and rings the bells for it until ctx ends: for what comes due by its time, and
// for what a NOTIFY that was lost, or that no listener hears, did not tell. Where the database does not answer it
// rings all of them, so that each finds out by itself.
func Poll(ctx context.Context, store *Store, bells Bells, period time.Duration, log *slog.Logger) error {
	ticker := time.NewTicker(period)
	defer ticker.Stop()
	for down := false; ; {
		stages, err := store.DueStages(ctx, period)
		if ctx.Err() != nil {
			return nil
		}
		switch {
		case err != nil && !down:
			log.Error("due.unavailable", "error", err)
		case err == nil && down:
			log.Info("due.recovered")
		}
		if down = err != nil; down {
			bells.ringAll()
		}
		for _, stage := range stages {
			ring(bells.named(stage))
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}
