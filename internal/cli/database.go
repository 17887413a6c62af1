package cli

import (
	"context"
	"fmt"
	"log/slog"
	"os"

	"autopost/internal/config"
	"autopost/internal/credential"
	"autopost/internal/daemon"
	"autopost/internal/pg"
)

// withDatabase calls work with the configured database, which must exist. It does not migrate it.
func withDatabase(ctx context.Context, work func(context.Context, config.Config, *daemon.Database) error) error {
	return withOpened(ctx, daemon.OpenDatabase, work)
}

// withNewDatabase is withDatabase, and creates the private database if needed.
func withNewDatabase(ctx context.Context, work func(context.Context, config.Config, *daemon.Database) error) error {
	return withOpened(ctx, daemon.CreateDatabase, work)
}

func withOpened(ctx context.Context, open func(context.Context, config.Config) (*daemon.Database, error), work func(context.Context, config.Config, *daemon.Database) error) (err error) {
	cfg, err := config.Load(os.Environ())
	if err != nil {
		return err
	}
	db, err := open(ctx, cfg)
	if err != nil {
		return err
	}
	defer func() {
		if stopErr := db.Close(); err == nil {
			err = stopErr
		}
	}()
	return db.Advise(work(ctx, cfg, db))
}

// withStore calls work with a database that has the right schema.
func withStore(ctx context.Context, work func(context.Context, *pg.Store) error) error {
	return withConfiguredStore(ctx, func(ctx context.Context, _ config.Config, store *pg.Store) error { return work(ctx, store) })
}

// withConfiguredStore is withStore for work that also needs the configuration.
func withConfiguredStore(ctx context.Context, work func(context.Context, config.Config, *pg.Store) error) error {
	return withDatabase(ctx, func(ctx context.Context, cfg config.Config, db *daemon.Database) error {
		if err := db.MigratePrivate(ctx); err != nil {
			return err
		}
		store, err := db.Open(ctx)
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

// credentialTools are the tools of a command that opens or seals credentials.
type credentialTools struct {
	cfg   config.Config
	store *pg.Store
	vault *credential.Vault
}

// withCredentials calls work with the vault of a database that has the right schema.
func withCredentials(ctx context.Context, work func(context.Context, credentialTools) error) error {
	return withConfiguredStore(ctx, func(ctx context.Context, cfg config.Config, store *pg.Store) error {
		vault, err := daemon.NewVault(cfg, store, slog.New(slog.DiscardHandler))
		if err != nil {
			return err
		}
		return work(ctx, credentialTools{cfg, store, vault})
	})
}
