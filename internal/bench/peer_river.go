//go:build peers

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

	"autopost/internal/bench/live"
)

// riverInsertBatch is the batch size of River's own benchmark.
const riverInsertBatch = 5000

// riverPeer is River in its own database, with the settings of River's own benchmark:
// many workers, a fetch every two milliseconds, jobs completed in batches.
type riverPeer struct {
	server *server
	name   string
	pool   *pgxpool.Pool
}

// jobArgs is smaller than a delivery, which contains the rendered post.
type jobArgs struct {
	N int `json:"n"`
}

func (jobArgs) Kind() string { return "bench" }

type worker struct {
	river.WorkerDefaults[jobArgs]
}

func (*worker) Work(context.Context, *river.Job[jobArgs]) error { return nil }

func (s *server) openPeer(ctx context.Context) (peer, error) {
	name, err := s.create(ctx, "river", "template1")
	if err != nil {
		return nil, err
	}
	p := &riverPeer{server: s, name: name}
	config, err := pgxpool.ParseConfig(s.at(name))
	if err != nil {
		return nil, err
	}
	// One more than autopost: River keeps one connection for LISTEN.
	config.MaxConns = claimers + 1
	if p.pool, err = pgxpool.NewWithConfig(ctx, config); err != nil {
		return nil, err
	}
	migrator, err := rivermigrate.New(riverpgxv5.New(p.pool), &rivermigrate.Config{Logger: quietLogger()})
	if err == nil {
		_, err = migrator.Migrate(ctx, rivermigrate.DirectionUp, nil)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("migrate River: %w", err), p.close(ctx))
	}
	return p, nil
}

func quietLogger() *slog.Logger { return slog.New(slog.NewTextHandler(io.Discard, nil)) }

func (p *riverPeer) close(ctx context.Context) error {
	p.pool.Close()
	return p.server.drop(context.WithoutCancel(ctx), p.name)
}

func (p *riverPeer) client() (*river.Client[pgx.Tx], error) {
	workers := river.NewWorkers()
	river.AddWorker(workers, &worker{})
	return river.NewClient(riverpgxv5.New(p.pool), &river.Config{
		FetchCooldown:               2 * time.Millisecond,
		FetchPollInterval:           20 * time.Millisecond,
		JobTimeout:                  -1,
		CompletedJobRetentionPeriod: -1,
		Logger:                      quietLogger(),
		Queues:                      map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: 2000}},
		Workers:                     workers,
	})
}

func (p *riverPeer) insert(ctx context.Context, total int) (took, error) {
	client, err := p.client()
	if err != nil {
		return took{}, err
	}
	return p.measured(ctx, func() error {
		for left := total; left > 0; left -= riverInsertBatch {
			batch := make([]river.InsertManyParams, min(left, riverInsertBatch))
			for i := range batch {
				batch[i] = river.InsertManyParams{Args: jobArgs{i}}
			}
			if _, err := client.InsertManyFast(ctx, batch); err != nil {
				return err
			}
		}
		return nil
	})
}

// drain measures from the start of the client until the last job is completed. River keeps the
// rows.
func (p *riverPeer) drain(ctx context.Context, total int) (took, error) {
	client, err := p.client()
	if err != nil {
		return took{}, err
	}
	done, cancel := client.SubscribeConfig(&river.SubscribeConfig{ChanSize: total + 1, Kinds: []river.EventKind{river.EventKindJobCompleted}})
	defer cancel()
	spent, err := p.measured(ctx, func() error {
		if err := client.Start(ctx); err != nil {
			return err
		}
		for range total {
			select {
			case <-done:
			case <-time.After(stuckAfter):
				return errors.Join(errors.New("the peer River completes no more jobs"), client.StopAndCancel(context.WithoutCancel(ctx)))
			case <-ctx.Done():
				return errors.Join(ctx.Err(), client.StopAndCancel(context.WithoutCancel(ctx)))
			}
		}
		return nil
	})
	if err != nil {
		return spent, err
	}
	return spent, client.Stop(ctx)
}

// measured runs work and reads the processor time of all backends of the database.
func (p *riverPeer) measured(ctx context.Context, work func() error) (t took, err error) {
	before, err := p.server.backends(ctx, p.name)
	if err != nil {
		return t, err
	}
	began := time.Now()
	if err := work(); err != nil {
		return t, err
	}
	t.wall = time.Since(began)
	after, err := p.server.backends(ctx, p.name)
	for pid, ran := range after {
		t.processor += ran - before[pid]
	}
	return t, err
}

// backends returns the processor time of each client backend of a database.
func (s *server) backends(ctx context.Context, database string) (map[int]time.Duration, error) {
	rows, err := s.admin.Query(ctx, `select a.pid from pg_stat_activity a where a.datname = $1 and a.backend_type = 'client backend'`, database)
	if err != nil {
		return nil, err
	}
	pids, err := pgx.CollectRows(rows, pgx.RowTo[int])
	if err != nil {
		return nil, err
	}
	times := map[int]time.Duration{}
	for _, pid := range pids {
		if times[pid], err = live.Running(pid); err != nil {
			return nil, err
		}
	}
	return times, nil
}
