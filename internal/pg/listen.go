package pg

import (
	"context"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
)

// Bells are what a database rings for. Each is a hint: it may be lost, and polling must do without it.
type Bells struct {
	// Deliveries: a gate was opened.
	Deliveries chan struct{}
	// Submissions: a post waits for its media.
	Submissions chan struct{}
	// Fanout: a post goes to more channels than one transaction takes.
	Fanout chan struct{}
	// Acts: something is to be done to a post that was sent.
	Acts chan struct{}
	// Alerts: people are to be told of something, or that it is over.
	Alerts chan struct{}
}

// NewBells makes bells that nobody rings yet.
func NewBells() Bells {
	return Bells{Deliveries: make(chan struct{}, 1), Submissions: make(chan struct{}, 1), Fanout: make(chan struct{}, 1), Acts: make(chan struct{}, 1), Alerts: make(chan struct{}, 1)}
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
	ring(bells.Deliveries)
	ring(bells.Submissions)
	ring(bells.Fanout)
	ring(bells.Acts)
	ring(bells.Alerts)
	for {
		notification, err := conn.WaitForNotification(ctx)
		if err != nil {
			return err
		}
		switch notification.Payload {
		case "deliveries":
			ring(bells.Deliveries)
		case "submissions":
			ring(bells.Submissions)
		case "fanout":
			ring(bells.Fanout)
		case "acts":
			ring(bells.Acts)
		case "alerts":
			ring(bells.Alerts)
		}
	}
}

func ring(bell chan struct{}) {
	select {
	case bell <- struct{}{}:
	default:
	}
}
