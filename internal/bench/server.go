package bench

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"autopost/internal/localpg"
	"autopost/internal/pg/schema"
)

// claimers is the number of connections of every drain, ours and the peer's.
const claimers = 4

// serverSettings are those of every figure of this project: the rest is PostgreSQL's
// default, so that a commit is durable.
var serverSettings = []string{"shared_buffers=1GB", "max_connections=100"}

// server is the PostgreSQL that is measured. Its databases are the benchmark's own.
type server struct {
	url     *url.URL
	admin   *pgx.Conn
	private *localpg.Instance
	dir     string
	made    []string
	// template is migrated; every other database with the schema is its copy.
	template string
}

// openServer starts a private PostgreSQL, or takes the one of the options.
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
		// PostgreSQL runs as another user when we are root.
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
		return s, fmt.Errorf("the database URL must be a URL: %w", err)
	}
	if s.admin, err = pgx.Connect(ctx, address); err != nil {
		return s, fmt.Errorf("connect: %w", err)
	}
	return s, nil
}

// close drops what was made, also when the benchmark was interrupted.
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

// drop has a connection of its own: that of the preparations ends with an interrupt.
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

// create makes a database of the benchmark, a copy of the given one.
func (s *server) create(ctx context.Context, kind, template string) (string, error) {
	name := fmt.Sprintf("autopost_bench_%d_%d_%s", os.Getpid(), len(s.made), kind)
	_, err := s.admin.Exec(ctx, "create database "+pgx.Identifier{name}.Sanitize()+" template "+pgx.Identifier{template}.Sanitize())
	if err != nil {
		return "", fmt.Errorf("create database %s: %w", name, err)
	}
	s.made = append(s.made, name)
	return name, nil
}

// base is a migrated database: prepared as its owner, measured as the engine.
type base struct {
	server *server
	name   string
	// admin is whoever the server's URL says; owner and engine have that login and another role.
	admin, owner *pgx.Conn
	engine       *pgxpool.Pool
}

// migrated makes a database with the schema in it.
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

// pool opens the connections of a drain, in a role, with further settings as pairs of name and value.
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

// exec runs statements of the preparation, as the owner.
func (b *base) exec(ctx context.Context, sql string, args ...any) error {
	if _, err := b.owner.Exec(ctx, sql, args...); err != nil {
		return fmt.Errorf("%.60s…: %w", sql, err)
	}
	return nil
}

// settle ends a preparation: statistics are known and what it wrote is on disk,
// so that the measured part does not pay for it.
func (b *base) settle(ctx context.Context) error {
	if err := b.exec(ctx, `analyze autopost.channels, autopost.channel_gates, autopost.messages, autopost.deliveries, autopost.events`); err != nil {
		return err
	}
	return b.checkpoint(ctx)
}

// checkpoint needs rights that the login of a given server may lack; the figures are then noisier.
func (b *base) checkpoint(ctx context.Context) error {
	_, err := b.admin.Exec(ctx, `checkpoint`)
	if lacksRights(err) {
		return nil
	}
	return err
}

// value asks for one value, as the owner.
func value[T any](ctx context.Context, b *base, sql string, args ...any) (T, error) {
	rows, err := b.owner.Query(ctx, sql, args...)
	if err != nil {
		return *new(T), err
	}
	return pgx.CollectExactlyOneRow(rows, pgx.RowTo[T])
}
