package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"
)

// riverInsertBatch is the one of its fastest insert.
const riverInsertBatch = 5000

// peer is River in a database of its own, tuned as its own benchmark tunes it:
// many workers, a fetch every two milliseconds, jobs completed in batches.
type peer struct {
	server *server
	name   string
	pool   *pgxpool.Pool
}

// jobArgs are as small as they can be; ours carry the rendered post.
type jobArgs struct {
	N int `json:"n"`
}

func (jobArgs) Kind() string { return "bench" }

type worker struct {
	river.WorkerDefaults[jobArgs]
}

func (*worker) Work(context.Context, *river.Job[jobArgs]) error { return nil }

func (s *server) peer(ctx context.Context) (*peer, error) {
	name, err := s.create(ctx, "river", "template1")
	if err != nil {
		return nil, err
	}
	p := &peer{server: s, name: name}
	config, err := pgxpool.ParseConfig(s.at(name))
	if err != nil {
		return nil, err
	}
	// One more than ours: River keeps one for LISTEN.
	config.MaxConns = claimers + 1
	if p.pool, err = pgxpool.NewWithConfig(ctx, config); err != nil {
		return nil, err
	}
	migrator, err := rivermigrate.New(riverpgxv5.New(p.pool), &rivermigrate.Config{Logger: quiet()})
	if err == nil {
		_, err = migrator.Migrate(ctx, rivermigrate.DirectionUp, nil)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("migrate River: %w", err), p.close(ctx))
	}
	return p, nil
}

func quiet() *slog.Logger { return slog.New(slog.NewTextHandler(io.Discard, nil)) }

func (p *peer) close(ctx context.Context) error {
	p.pool.Close()
	return p.server.drop(context.WithoutCancel(ctx), p.name)
}

func (p *peer) client() (*river.Client[pgx.Tx], error) {
	workers := river.NewWorkers()
	river.AddWorker(workers, &worker{})
	return river.NewClient(riverpgxv5.New(p.pool), &river.Config{
		FetchCooldown:               2 * time.Millisecond,
		FetchPollInterval:           20 * time.Millisecond,
		JobTimeout:                  -1,
		CompletedJobRetentionPeriod: -1,
		Logger:                      quiet(),
		Queues:                      map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: 2000}},
		Workers:                     workers,
	})
}

// insert adds jobs and returns how long it took.
func (p *peer) insert(ctx context.Context, total int) (time.Duration, error) {
	client, err := p.client()
	if err != nil {
		return 0, err
	}
	began := time.Now()
	for left := total; left > 0; left -= riverInsertBatch {
		batch := make([]river.InsertManyParams, min(left, riverInsertBatch))
		for i := range batch {
			batch[i] = river.InsertManyParams{Args: jobArgs{i}}
		}
		if _, err := client.InsertManyFast(ctx, batch); err != nil {
			return 0, err
		}
	}
	return time.Since(began), nil
}

// drain works what waits and returns how long it took, from the start of the
// client until the last job is recorded as completed. The rows stay.
func (p *peer) drain(ctx context.Context, total int) (time.Duration, error) {
	client, err := p.client()
	if err != nil {
		return 0, err
	}
	done, cancel := client.SubscribeConfig(&river.SubscribeConfig{ChanSize: total + 1, Kinds: []river.EventKind{river.EventKindJobCompleted}})
	defer cancel()
	began := time.Now()
	if err := client.Start(ctx); err != nil {
		return 0, err
	}
	for range total {
		select {
		case <-done:
		case <-time.After(stuckAfter):
			return 0, errors.Join(errors.New("river is stuck"), client.StopAndCancel(context.WithoutCancel(ctx)))
		case <-ctx.Done():
			return 0, errors.Join(ctx.Err(), client.StopAndCancel(context.WithoutCancel(ctx)))
		}
	}
	took := time.Since(began)
	return took, client.Stop(ctx)
}
