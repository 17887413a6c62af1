package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"autopost/internal/config"
	"autopost/internal/localpg"
	"autopost/internal/pg"
	"autopost/internal/pg/schema"
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

// outlived fails when the private PostgreSQL that this process started has ended: nothing
// brings that back but a new start.
func (d *database) outlived(ctx context.Context) error {
	select {
	case <-d.private.Done():
		return errors.New("the private PostgreSQL has ended: postgres.log in its folder says why; start autopost again when that is mended")
	case <-ctx.Done():
		return nil
	}
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
	pooled := d.url != d.directURL
	if !pooled && d.private == nil {
		var err error
		if pooled, err = pg.ThroughPooler(ctx, d.url); err != nil {
			return nil, err
		}
	}
	return pg.Open(ctx, pg.Options{URL: d.url, Pooled: pooled})
}

// advised is an error with what to do, where the database let nobody in.
func (d *database) advised(err error) error {
	variable := "DATABASE_URL"
	switch {
	case d.private != nil:
		variable = "postgres.log in the folder pg of AUTOPOST_DATA_DIR"
	case d.url != d.directURL:
		variable = "DATABASE_URL and AUTOPOST_LISTEN_URL"
	}
	if remedy := pg.Remedy(err, variable); remedy != "" {
		return fmt.Errorf("%w\n%s", err, remedy)
	}
	return err
}

// watchedStore is store, with a watch and disks that are told of each call.
func (d *database) watchedStore(ctx context.Context, w *watch, on *disks) (*pg.Store, error) {
	store, err := pg.Open(ctx, pg.Options{URL: d.url, Pooled: d.url != d.directURL, Asked: on.asked})
	if err == nil {
		w.observe(store)
	}
	return store, err
}

// withDatabase runs work over the configured database as it is.
func withDatabase(ctx context.Context, work func(context.Context, config.Config, *database) error) (err error) {
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
	return db.advised(work(ctx, cfg, db))
}

// migratePrivate brings the private database up to date; any other is its operator's.
func (d *database) migratePrivate(ctx context.Context) error {
	if d.private == nil {
		return nil
	}
	return schema.Migrate(ctx, d.directURL)
}

// withStore runs work over the calls of a database that is ready for them.
func withStore(ctx context.Context, work func(context.Context, *pg.Store) error) error {
	return withConfiguredStore(ctx, func(ctx context.Context, _ config.Config, store *pg.Store) error { return work(ctx, store) })
}

// withConfiguredStore is withStore for work that needs the configuration, too.
func withConfiguredStore(ctx context.Context, work func(context.Context, config.Config, *pg.Store) error) error {
	return withDatabase(ctx, func(ctx context.Context, cfg config.Config, db *database) error {
		if err := db.migratePrivate(ctx); err != nil {
			return err
		}
		store, err := db.store(ctx)
		if err != nil {
			return err
		}
		defer store.Close()
		if err := store.Ready(ctx); err != nil {
			return fmt.Errorf("the database is not ready: %w", err)
		}
		return work(ctx, cfg, store)
	})
}
