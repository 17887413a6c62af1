package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"autopost/internal/config"
	"autopost/internal/localpg"
	"autopost/internal/pg"
)

// database is where a command finds PostgreSQL: the one it was given, or the
// private one of the data directory, started or attached to.
type database struct {
	url       string // of calls
	directURL string // of migrations and LISTEN
	private   *localpg.Instance
}

func loadConfig() (config.Config, error) {
	cfg, err := config.Load(os.Environ())
	if err != nil {
		return cfg, misuse{err}
	}
	return cfg, nil
}

// openDatabase starts the private PostgreSQL unless a URL was given. Close it.
func openDatabase(ctx context.Context, cfg config.Config) (*database, error) {
	if !cfg.DatabaseURL.IsZero() {
		return &database{url: cfg.DatabaseURL.Reveal(), directURL: cfg.ListenURL.Reveal()}, nil
	}
	private, err := localpg.Start(ctx, localpg.Options{Dir: filepath.Join(cfg.DataDir, "pg"), BinDir: cfg.PostgresBin})
	if err != nil {
		return nil, err
	}
	return &database{url: private.URL(), directURL: private.URL(), private: private}, nil
}

// close stops the private PostgreSQL if this process started it.
func (d *database) close() error {
	if d.private == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	return d.private.Stop(ctx)
}

// store opens the calls, as the role of the daemon.
func (d *database) store(ctx context.Context) (*pg.Store, error) {
	return pg.Open(ctx, pg.Options{URL: d.url, Pooled: d.url != d.directURL})
}

// withStore runs work over the configured database, brought up to date first where it is the private one.
func withStore(ctx context.Context, work func(context.Context, *pg.Store) error) (err error) {
	cfg, err := loadConfig()
	if err != nil {
		return err
	}
	db, err := openDatabase(ctx, cfg)
	if err != nil {
		return err
	}
	defer func() {
		if stopErr := db.close(); err == nil {
			err = stopErr
		}
	}()
	if db.private != nil {
		if err := pg.Migrate(ctx, db.directURL); err != nil {
			return err
		}
	}
	store, err := db.store(ctx)
	if err != nil {
		return err
	}
	defer store.Close()
	if err := store.Ready(ctx); err != nil {
		return fmt.Errorf("the database is not ready: %w", err)
	}
	return work(ctx, store)
}
