package bench

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"autopost/internal/localpg"
	"autopost/internal/pg/schema"
)

// claimers is the number of connections of a drain, for autopost and for the peer.
const claimers = 4

// serverSettings are the settings of all figures of this project. All others are the defaults
// of PostgreSQL, so commits are durable.
var serverSettings = []string{"shared_buffers=1GB", "max_connections=100"}

// server is the measured PostgreSQL with the databases of the benchmark.
type server struct {
	url     *url.URL
	admin   *pgx.Conn
	private *localpg.Instance
	dir     string
	made    []string
	// template is a migrated database. The other databases with the schema are its copies.
	template string
}

// openServer starts a private PostgreSQL, or connects to the one of the options.
func openServer(ctx context.Context, o Options) (s *server, err error) {
	s = &server{}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.close())
		}
	}()
	address := o.URL
	if address == "" {
		if s.dir, err = os.MkdirTemp("", "autopost-bench-"); err != nil {
			return s, err
		}
		// For root, PostgreSQL runs as another user.
		if err = os.Chmod(s.dir, 0o711); err != nil {
			return s, err
		}
		s.private, err = localpg.Start(ctx, localpg.Options{Dir: filepath.Join(s.dir, "pg"), BinDir: o.BinDir, Settings: serverSettings})
		if err != nil {
			return s, err
		}
		address = s.private.URL()
	}
	if s.url, err = url.Parse(address); err != nil {
		return s, fmt.Errorf("DATABASE_URL must be a URL: %w", err)
	}
	if s.admin, err = pgx.Connect(ctx, address); err != nil {
		return s, fmt.Errorf("connect: %w", err)
	}
	return s, nil
}

// close drops the databases, also after an interrupt.
func (s *server) close() error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	var errs []error
	if s.admin != nil {
		errs = append(errs, s.admin.Close(ctx))
	}
	if s.private == nil {
		for _, name := range s.made {
			errs = append(errs, s.drop(ctx, name))
		}
	} else {
		errs = append(errs, s.private.Stop(ctx))
	}
	if s.dir != "" {
		errs = append(errs, os.RemoveAll(s.dir))
	}
	return errors.Join(errs...)
}

// drop uses a new connection, because an interrupt ends the others.
func (s *server) drop(ctx context.Context, name string) error {
	conn, err := pgx.Connect(ctx, s.url.String())
	if err != nil {
		return err
	}
	_, err = conn.Exec(ctx, "drop database if exists "+pgx.Identifier{name}.Sanitize()+" with (force)")
	return errors.Join(err, conn.Close(ctx))
}

// at returns the DSN of a database of the server.
func (s *server) at(name string) string {
	u := *s.url
	u.Path = "/" + name
	return u.String()
}

// created numbers the databases of this process: several runs may share a server.
var created atomic.Int64

// create makes a database as a copy of the template.
func (s *server) create(ctx context.Context, kind, template string) (string, error) {
	name := fmt.Sprintf("autopost_bench_%d_%d_%s", os.Getpid(), created.Add(1), kind)
	_, err := s.admin.Exec(ctx, "create database "+pgx.Identifier{name}.Sanitize()+" template "+pgx.Identifier{template}.Sanitize())
	if err != nil {
		return "", fmt.Errorf("create database %s: %w", name, err)
	}
	s.made = append(s.made, name)
	return name, nil
}

// base is a migrated database. The owner prepares it; the engine is measured.
type base struct {
	server *server
	name   string
	// admin has the login of the server's URL. owner and engine have other roles.
	admin, owner *pgx.Conn
	engine       *pgxpool.Pool
}

// migrated creates a database with the schema.
func (s *server) migrated(ctx context.Context, kind string) (*base, error) {
	if s.template == "" {
		made, err := s.create(ctx, "template", "template1")
		if err != nil {
			return nil, err
		}
		if err := schema.Migrate(ctx, s.at(made)); err != nil {
			return nil, fmt.Errorf("migrate %s: %w", made, err)
		}
		s.template = made
	}
	name, err := s.create(ctx, kind, s.template)
	if err != nil {
		return nil, err
	}
	b := &base{server: s, name: name}
	if b.admin, err = pgx.Connect(ctx, s.at(name)); err != nil {
		return nil, err
	}
	if b.owner, err = pgx.Connect(ctx, s.at(name)); err != nil {
		return nil, errors.Join(err, b.close(ctx))
	}
	const own = `create schema bench authorization autopost_owner`
	if _, err := b.admin.Exec(ctx, own); err != nil {
		return nil, errors.Join(err, b.close(ctx))
	}
	if _, err := b.owner.Exec(ctx, `set role autopost_owner`); err != nil {
		return nil, errors.Join(err, b.close(ctx))
	}
	if b.engine, err = b.pool(ctx, "autopost_engine"); err != nil {
		return nil, errors.Join(err, b.close(ctx))
	}
	return b, nil
}

// pool opens the connections of a drain in a role. settings are pairs of name and value.
func (b *base) pool(ctx context.Context, role string, settings ...string) (*pgxpool.Pool, error) {
	config, err := pgxpool.ParseConfig(b.server.at(b.name))
	if err != nil {
		return nil, err
	}
	config.MaxConns, config.MinConns = claimers, claimers
	config.ConnConfig.RuntimeParams["role"] = role
	for i := 0; i+1 < len(settings); i += 2 {
		config.ConnConfig.RuntimeParams[settings[i]] = settings[i+1]
	}
	return pgxpool.NewWithConfig(ctx, config)
}

// close drops the database.
func (b *base) close(ctx context.Context) error {
	if b.engine != nil {
		b.engine.Close()
	}
	for _, conn := range []*pgx.Conn{b.admin, b.owner} {
		if conn != nil {
			_ = conn.Close(ctx)
		}
	}
	return b.server.drop(context.WithoutCancel(ctx), b.name)
}

// exec runs a statement as the owner.
func (b *base) exec(ctx context.Context, sql string, args ...any) error {
	if _, err := b.owner.Exec(ctx, sql, args...); err != nil {
		return fmt.Errorf("%.60s…: %w", sql, err)
	}
	return nil
}

// settle ends a preparation: it updates the statistics and writes all pages to disk, so that
// the measured part does not pay for them.
func (b *base) settle(ctx context.Context) error {
	if err := b.exec(ctx, `analyze autopost.channels, autopost.channel_gates, autopost.messages, autopost.deliveries, autopost.events`); err != nil {
		return err
	}
	// As the monitor of each daemon does within 15 seconds.
	if err := b.exec(ctx, `select autopost.refresh_statistics()`); err != nil {
		return err
	}
	return b.checkpoint(ctx)
}

// checkpoint does nothing if the login lacks the right. The figures are then noisier.
func (b *base) checkpoint(ctx context.Context) error {
	_, err := b.admin.Exec(ctx, `checkpoint`)
	if lacksRights(err) {
		return nil
	}
	return err
}

// value queries one value as the owner.
func value[T any](ctx context.Context, b *base, sql string, args ...any) (T, error) {
	rows, err := b.owner.Query(ctx, sql, args...)
	if err != nil {
		return *new(T), err
	}
	return pgx.CollectExactlyOneRow(rows, pgx.RowTo[T])
}
