package daemon

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"autopost/internal/config"
	"autopost/internal/localpg"
	"autopost/internal/pg"
	"autopost/internal/pg/schema"
	"autopost/internal/worker"
)

// Database is the PostgreSQL of a command: the configured one, or the private one of the data directory, started or
// attached.
type Database struct {
	URL       string // for calls
	DirectURL string // for LISTEN, not through a pooler
	// CoordinatorURL is for migrations and event partitions. It is DirectURL unless that is a worker of a Citus cluster.
	CoordinatorURL string
	MaxConns       int // of the pool; 0 means the default
	Private        *localpg.Instance
}

// CreateDatabase starts the private PostgreSQL unless a URL is configured, and creates its data if needed. Close it.
func CreateDatabase(ctx context.Context, cfg config.Config) (*Database, error) {
	return openDatabase(ctx, cfg, false)
}

// OpenDatabase is CreateDatabase for a private PostgreSQL that already has data: a mistyped folder must not get any.
func OpenDatabase(ctx context.Context, cfg config.Config) (*Database, error) {
	db, err := openDatabase(ctx, cfg, true)
	if errors.Is(err, localpg.ErrNoCluster) {
		return nil, fmt.Errorf("AUTOPOST_DATA_DIR must be a folder with a database, got %s: "+
			"set it or DATABASE_URL, or create a database with autopost serve or autopost migrate", cfg.DataDir)
	}
	return db, err
}

func openDatabase(ctx context.Context, cfg config.Config, existing bool) (*Database, error) {
	if !cfg.DatabaseURL.IsZero() {
		calls, size, err := pg.PoolSize(cfg.DatabaseURL.Reveal())
		if err != nil {
			return nil, err
		}
		direct, _, err := pg.PoolSize(cfg.ListenURL.Reveal())
		if err != nil {
			return nil, err
		}
		coordinator, _, err := pg.PoolSize(cfg.CoordinatorURL.Reveal())
		return &Database{URL: calls, DirectURL: direct, CoordinatorURL: coordinator, MaxConns: size}, err
	}
	private, err := localpg.Start(ctx, localpg.Options{Dir: filepath.Join(cfg.DataDir, "pg"), BinDir: cfg.PostgresBin, Existing: existing})
	if err != nil {
		return nil, err
	}
	return &Database{URL: private.URL(), DirectURL: private.URL(), CoordinatorURL: private.URL(), Private: private}, nil
}

// awaitEnd fails if the private PostgreSQL of this process ends: only a new start of autopost starts it again.
func (d *Database) awaitEnd(ctx context.Context) error {
	select {
	case <-d.Private.Done():
		return errors.New("the private PostgreSQL has ended: see postgres.log in its folder, correct the cause, and start autopost again")
	case <-ctx.Done():
		return nil
	}
}

// Close stops the private PostgreSQL if this process started it.
func (d *Database) Close() error {
	if d.Private == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	return d.Private.Stop(ctx)
}

// Open opens a store as the role of the daemon.
func (d *Database) Open(ctx context.Context) (*pg.Store, error) {
	return pg.Connect(ctx, d.options())
}

func (d *Database) options() pg.Options {
	o := pg.Options{URL: d.URL, Pooled: d.URL != d.DirectURL, MaxConns: d.MaxConns}
	if d.CoordinatorURL != d.DirectURL {
		o.CoordinatorURL = d.CoordinatorURL
	}
	return o
}

// Advise adds the remedy to an error if the database accepts no connection.
func (d *Database) Advise(err error) error {
	variable := "DATABASE_URL"
	switch {
	case d.Private != nil:
		variable = "postgres.log in the folder pg of AUTOPOST_DATA_DIR"
	case d.URL != d.DirectURL:
		variable = "DATABASE_URL and AUTOPOST_LISTEN_URL"
	}
	if remedy := pg.Remedy(err, variable); remedy != "" {
		return fmt.Errorf("%w\n%s", err, remedy)
	}
	return err
}

// openRecorded opens a store whose calls w and on record.
// A change of this daemon wakes its streams, because the database does not send a notification for each.
func (d *Database) openRecorded(ctx context.Context, w *watch, on *disks, streams chan<- struct{}) (*pg.Store, error) {
	options := d.options()
	options.Observe = func(function string, took time.Duration, err error) {
		on.observe(function, took, err)
		if err == nil && isVisible(function) {
			worker.Wake(streams)
		}
	}
	store, err := pg.Connect(ctx, options)
	if err == nil {
		w.observe(store)
	}
	return store, err
}

// visible are the beginnings of the names of functions whose changes are seen on pages.
var visible = []string{
	"commit_outcome_batch", "commit_act", "commit_submission", "receive_", "submit_", "ingest_pull_chunk", "run_recurrences", "run_fanout", "write_once",
	"decide_", "edit_", "replace_post", "retry_submission", "reschedule", "shift_deliveries", "move_occurrence", "skip_", "manual_requeue", "requeue_auth_lost", "resolve_unknown",
	"request_acts", "cancel_acts", "pause_", "resume_channel", "enable_", "disable_", "acknowledge_alert", "apply_", "put_channel", "put_recurrence", "remove_", "set_workspace_status",
}

// isVisible reports whether a call of a function may change what pages show.
func isVisible(function string) bool {
	return slices.ContainsFunc(visible, func(begin string) bool { return strings.HasPrefix(function, begin) })
}

// Migrate brings the schema up to date, through the coordinator of a cluster. If the coordinator is down, a daemon
// beside a worker goes on with the schema of its node, which New checks.
func (d *Database) Migrate(ctx context.Context, log *slog.Logger) error {
	err := schema.Migrate(ctx, d.CoordinatorURL)
	if err != nil && d.CoordinatorURL != d.DirectURL && pg.Unreachable(err) {
		log.WarnContext(ctx, "schema.coordinator_down", "error", err, "remedy", "start the coordinator; until then nothing is migrated")
		return nil
	}
	return err
}

// MigratePrivate migrates the private database. It does nothing for a configured one.
func (d *Database) MigratePrivate(ctx context.Context) error {
	if d.Private == nil {
		return nil
	}
	return schema.Migrate(ctx, d.DirectURL)
}
