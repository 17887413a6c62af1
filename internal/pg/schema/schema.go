// Package schema brings a database to the tables and functions of this program, and
// reports whether it has them.
package schema

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"path"
	"strings"
	"sync"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"

	"autopost/db"
	"autopost/internal/failpoint"
)

const (
	stateInsufficientPrivilege = "42501"
	migrationLock              = 7026111 // advisory lock for Migrate
	migrationsTable            = "autopost.schema_migrations"
	firstVersion               = 101 // versions 1 to 100 were never released
)

// Migrate brings a database up to date: roles, tables, functions, grants and
// partitions. It is repeatable, waits for another migration of the same database,
// and needs a direct connection (no pooler) as a role that may create roles, or
// that is a member of autopost_owner where the roles exist. In a Citus cluster url leads to
// the coordinator, the role is a superuser and all nodes are up.
func Migrate(ctx context.Context, url string) error {
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	defer conn.Close(context.WithoutCancel(ctx))
	distributed, err := onCoordinator(ctx, conn)
	if err != nil {
		return err
	}
	if err := waitForMigrations(ctx, conn); err != nil {
		return fmt.Errorf("wait for other migrations: %w", err)
	}
	if err := bootstrap(ctx, conn); err != nil {
		return err
	}
	if err := checkBaseline(ctx, conn); err != nil {
		return err
	}
	if err := migrateTables(ctx, url, distributed); err != nil {
		return err
	}
	failpoint.Hit(failpoint.BetweenMigrations)
	if err := installFunctions(ctx, conn, distributed); err != nil {
		return err
	}
	if distributed {
		if err := distribute(ctx, conn); err != nil {
			return err
		}
	}
	if _, err := conn.Exec(ctx, `select autopost.ensure_event_partitions()`); err != nil {
		return fmt.Errorf("make the partitions of events: %w", err)
	}
	if _, err := conn.Exec(ctx, `select autopost.note_cluster()`); err != nil {
		return fmt.Errorf("note the cluster: %w", err)
	}
	return nil
}

// waitForMigrations takes the lock of migrations. If another session holds it, a log line names that session.
func waitForMigrations(ctx context.Context, conn *pgx.Conn) error {
	var free bool
	if err := conn.QueryRow(ctx, `select pg_try_advisory_lock($1)`, migrationLock).Scan(&free); err != nil || free {
		return err
	}
	var holder string
	err := conn.QueryRow(ctx, `
		select coalesce(string_agg(format('pid %s, role %s, %s', a.pid, a.usename, coalesce(nullif(a.application_name, ''), 'no application name')), '; '), 'unknown')
		from pg_locks l join pg_stat_activity a on a.pid = l.pid
		where l.locktype = 'advisory' and l.granted and l.classid = 0 and l.objid = $1
		and l.database = (select d.oid from pg_database d where d.datname = current_database())`, migrationLock).Scan(&holder)
	if err != nil {
		return err
	}
	slog.WarnContext(ctx, "schema.migration_waits", "holder", holder, "remedy", "wait for the other migration, or end that session: select pg_terminate_backend(PID)")
	_, err = conn.Exec(ctx, `select pg_advisory_lock($1)`, migrationLock)
	return err
}

// bootstrap makes what the owner role needs before it can make anything itself.
func bootstrap(ctx context.Context, conn *pgx.Conn) error {
	_, err := conn.Exec(ctx, db.Roles)
	if refused, ok := errors.AsType[*pgconn.PgError](err); ok && refused.Code == stateInsufficientPrivilege {
		to := conn.Config()
		return fmt.Errorf("this role may not prepare the database: %w\nlet a superuser run: (autopost migrate --print-roles; echo 'grant autopost_owner to %s;') | psql -d %s",
			err, pgx.Identifier{to.User}.Sanitize(), to.Database)
	}
	if err != nil {
		return fmt.Errorf("make roles and schema: %w", err)
	}
	return nil
}

// ErrUnreleased means that the database has the tables of a version before the first release.
var ErrUnreleased = errors.New("this database is older than the first release and cannot be upgraded: start with a new database")

// checkBaseline returns ErrUnreleased if the database has migrations before the baseline.
func checkBaseline(ctx context.Context, conn *pgx.Conn) error {
	var table *string
	if err := conn.QueryRow(ctx, `select to_regclass($1)::text`, migrationsTable).Scan(&table); err != nil {
		return fmt.Errorf("find the table of migrations: %w", err)
	}
	if table == nil {
		return nil
	}
	return pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `set local role autopost_owner`); err != nil {
			return fmt.Errorf("become the owner: %w", err)
		}
		var unreleased bool
		query := `select exists (select 1 from ` + migrationsTable + ` m where m.version_id between 1 and $1)`
		if err := tx.QueryRow(ctx, query, firstVersion-1).Scan(&unreleased); err != nil {
			return fmt.Errorf("read the applied migrations: %w", err)
		}
		if unreleased {
			return ErrUnreleased
		}
		return nil
	})
}

// migrateTables runs the numbered migrations as the owner.
func migrateTables(ctx context.Context, url string, distributed bool) error {
	provider, closePool, err := migrations(url, distributed)
	if err != nil {
		return err
	}
	defer closePool()
	if _, err := provider.Up(ctx); err != nil {
		return fmt.Errorf("migrate tables: %w", err)
	}
	return nil
}

func migrations(url string, distributed bool) (*goose.Provider, func(), error) {
	config, err := pgx.ParseConfig(url)
	if err != nil {
		return nil, nil, fmt.Errorf("parse the database URL: %w", err)
	}
	pool := stdlib.OpenDB(*config, stdlib.OptionAfterConnect(func(ctx context.Context, conn *pgx.Conn) error {
		_, err := conn.Exec(ctx, `set role autopost_owner`)
		if err == nil && distributed {
			_, err = conn.Exec(ctx, clusterDDL)
		}
		return err
	}))
	files, err := fs.Sub(db.Migrations, "migrations")
	if err != nil {
		return nil, nil, err
	}
	provider, err := goose.NewProvider(goose.DialectPostgres, pool, files,
		goose.WithTableName(migrationsTable), goose.WithDisableGlobalRegistry(true))
	if err != nil {
		return nil, nil, fmt.Errorf("read migrations: %w", err)
	}
	return provider, func() { closeQuietly(pool) }, nil
}

func closeQuietly(pool *sql.DB) { _ = pool.Close() }

// Migration is one numbered change of the tables.
type Migration struct {
	Version int64
	Name    string
	Applied bool
}

// Status lists every migration of this binary and whether the database has it.
func Status(ctx context.Context, url string) ([]Migration, error) {
	provider, closePool, err := migrations(url, false)
	if err != nil {
		return nil, err
	}
	defer closePool()
	fresh, err := withoutSchema(ctx, url)
	if err != nil {
		return nil, err
	}
	if fresh {
		return unapplied(provider), nil
	}
	states, err := provider.Status(ctx)
	if err != nil {
		return nil, fmt.Errorf("read the state of migrations: %w", err)
	}
	list := make([]Migration, 0, len(states))
	for _, state := range states {
		list = append(list, Migration{Version: state.Source.Version, Name: state.Source.Path, Applied: state.State == goose.StateApplied})
	}
	return list, nil
}

// withoutSchema reports whether the database was never migrated. It returns ErrUnreleased as
// Migrate does.
func withoutSchema(ctx context.Context, url string) (bool, error) {
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return false, fmt.Errorf("connect: %w", err)
	}
	defer conn.Close(context.WithoutCancel(ctx))
	var fresh bool
	if err := conn.QueryRow(ctx, `select to_regnamespace('autopost') is null`).Scan(&fresh); err != nil || fresh {
		return fresh, err
	}
	return false, checkBaseline(ctx, conn)
}

// InUse reports whether the database has a workspace.
func InUse(ctx context.Context, url string) (used bool, err error) {
	fresh, err := withoutSchema(ctx, url)
	if err != nil || fresh {
		return false, err
	}
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return false, fmt.Errorf("connect: %w", err)
	}
	defer conn.Close(context.WithoutCancel(ctx))
	if err := conn.QueryRow(ctx, `select exists (select 1 from autopost.workspaces)`).Scan(&used); err != nil {
		return false, fmt.Errorf("look for workspaces: %w", err)
	}
	return used, nil
}

func unapplied(provider *goose.Provider) []Migration {
	var list []Migration
	for _, source := range provider.ListSources() {
		list = append(list, Migration{Version: source.Version, Name: source.Path})
	}
	return list
}

// writeFunctions writes all views and functions in the order of db/functions/install.sql, then the grants.
func writeFunctions(w io.Writer) error {
	install, err := fs.ReadFile(db.Functions, "functions/install.sql")
	if err != nil {
		return err
	}
	for line := range strings.Lines(string(install)) {
		file, ok := strings.CutPrefix(strings.TrimSpace(line), `\ir `)
		if !ok {
			continue
		}
		content, err := fs.ReadFile(db.Functions, path.Join("functions", file))
		if err != nil {
			return fmt.Errorf("install.sql: %w", err)
		}
		if _, err := w.Write(append(content, '\n')); err != nil {
			return err
		}
	}
	_, err = io.WriteString(w, db.Grants)
	return err
}

// FunctionsDigest returns the digest of the views, functions, grants, migrations and distribute.sql of this program. The first call
// computes it.
var FunctionsDigest = sync.OnceValues(func() (string, error) {
	migrations, err := fs.Glob(db.Migrations, "migrations/*.sql")
	if err != nil {
		return "", err
	}
	sum := sha256.New()
	if err := writeFunctions(sum); err != nil {
		return "", err
	}
	for _, name := range migrations {
		text, err := fs.ReadFile(db.Migrations, name)
		if err != nil {
			return "", err
		}
		fmt.Fprintf(sum, "%s\n%s\n", name, text)
	}
	fmt.Fprintln(sum, db.Distribute)
	return hex.EncodeToString(sum.Sum(nil)), nil
})

// installFunctions re-creates all functions and grants in one transaction, unless
// the database has exactly these already.
func installFunctions(ctx context.Context, conn *pgx.Conn, distributed bool) error {
	var source strings.Builder
	if err := writeFunctions(&source); err != nil {
		return err
	}
	digest, err := FunctionsDigest()
	if err != nil {
		return err
	}
	return pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		var installed string
		if _, err := tx.Exec(ctx, `set local role autopost_owner; set local check_function_bodies = off`); err != nil {
			return fmt.Errorf("become the owner: %w", err)
		}
		if err := tx.QueryRow(ctx, `select coalesce(max(f.digest), '') from autopost.installed_functions f`).Scan(&installed); err != nil {
			return fmt.Errorf("read what is installed: %w", err)
		}
		if installed != digest {
			if err := installSource(ctx, tx, source.String(), distributed); err != nil {
				return fmt.Errorf("install functions: %w", err)
			}
			if _, err := tx.Exec(ctx, `delete from autopost.installed_functions`); err != nil {
				return err
			}
			if _, err := tx.Exec(ctx, `insert into autopost.installed_functions (digest) values ($1)`, digest); err != nil {
				return fmt.Errorf("remember what is installed: %w", err)
			}
		}
		if _, err := tx.Exec(ctx, `select autopost.keep_plans()`); err != nil { // also after a plain database became a cluster
			return fmt.Errorf("set the plans of functions: %w", err)
		}
		return nil
	})
}

// Seed runs a script of SQL as the owner of the schema, in one transaction.
func Seed(ctx context.Context, url, script string) error {
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	defer conn.Close(context.WithoutCancel(ctx))
	return pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `set local role autopost_owner`); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, script)
		return err
	})
}
