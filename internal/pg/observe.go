package pg

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

// Asked is told of each statement: which function of ours it called, "other" for none,
// how long it took, and whether it failed.
type Asked func(function string, took time.Duration, failed bool)

// observer is a pgx.QueryTracer that tells of what was asked.
type observer struct{ tell Asked }

type askedKey struct{}

type question struct {
	function string
	began    time.Time
}

// TraceQueryStart implements pgx.QueryTracer.
func (observer) TraceQueryStart(ctx context.Context, _ *pgx.Conn, q pgx.TraceQueryStartData) context.Context {
	return context.WithValue(ctx, askedKey{}, question{functionOf(q.SQL), time.Now()})
}

// TraceQueryEnd implements pgx.QueryTracer.
func (o observer) TraceQueryEnd(ctx context.Context, _ *pgx.Conn, q pgx.TraceQueryEndData) {
	if asked, ok := ctx.Value(askedKey{}).(question); ok {
		o.tell(asked.function, time.Since(asked.began), q.Err != nil)
	}
}

// functionOf is the first function of ours that a statement calls. Statements are constants
// of this package, so that there are few.
func functionOf(sql string) string {
	for rest := sql; ; {
		_, after, found := strings.Cut(rest, "autopost.")
		if !found {
			return "other"
		}
		end := strings.IndexFunc(after, func(r rune) bool { return r != '_' && (r < 'a' || r > 'z') && (r < '0' || r > '9') })
		if end > 0 && after[end] == '(' {
			return after[:end]
		}
		rest = after
	}
}

// Connections is how many connections are in use, idle, and the most that there may be.
func (s *Store) Connections() (inUse, idle, most int32) {
	stat := s.pool.Stat()
	return stat.AcquiredConns(), stat.IdleConns(), stat.MaxConns()
}

// QueueLine is a row of queue_metrics.
type QueueLine struct {
	WorkspaceID, Platform, RateGroup, Gate string
	Channels, Waiting, Due, InFlight       int64
	OldestDueAt                            *time.Time
}

// QueueMetrics tells what waits, in all workspaces, in few rows.
func (s *Store) QueueMetrics(ctx context.Context) ([]QueueLine, error) {
	return read[QueueLine](ctx, s, "queue metrics", `
		select workspace_id, platform, rate_group, gate, channels, waiting, due, in_flight, oldest_due_at from autopost.queue_metrics()`)
}

// Skew is how far the clock of the database is ahead of this machine's, at most off by half of the trip there and back.
func (s *Store) Skew(ctx context.Context) (skew, trip time.Duration, err error) {
	asked := time.Now()
	var theirs time.Time
	if err := s.pool.QueryRow(ctx, `select pg_catalog.clock_timestamp()`).Scan(&theirs); err != nil {
		return 0, 0, fmt.Errorf("ask for the clock: %w", translate(err))
	}
	trip = time.Since(asked)
	return theirs.Sub(asked.Add(trip / 2)), trip, nil
}
