// Package pg is the only one that talks to PostgreSQL: one Go method per SQL
// function, with its name. A method is one bare call outside any transaction, and
// decides nothing; what an answer means is the caller's business.
//
// It also brings a database up to date (Migrate) and hears its bell (Listen).
package pg

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgconn/ctxwatch"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Options say how to connect.
type Options struct {
	// URL of the database. Required.
	URL string
	// Pooled says that URL leads through a pooler in transaction mode: nothing may
	// then be kept on a connection, neither prepared statements nor a role.
	Pooled bool
	// MaxConns bounds the pool; 0 means 16.
	MaxConns int
}

// Store calls the functions of schema autopost. It is safe for concurrent use.
type Store struct {
	pool *pgxpool.Pool
}

// Open connects lazily. On a direct connection it takes on the role
// autopost_engine, so that whoever the login is has no more rights than the daemon needs.
func Open(ctx context.Context, o Options) (*Store, error) {
	config, err := pgxpool.ParseConfig(o.URL)
	if err != nil {
		return nil, fmt.Errorf("parse the database URL: %w", err)
	}
	config.MaxConns = 16
	if o.MaxConns > 0 {
		config.MaxConns = int32(o.MaxConns)
	}
	if o.Pooled {
		config.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeExec
	} else {
		config.ConnConfig.RuntimeParams["role"] = "autopost_engine"
	}
	config.ConnConfig.RuntimeParams["application_name"] = "autopost"
	// A cancelled context cancels the query and keeps the connection.
	config.ConnConfig.BuildContextWatcherHandler = func(conn *pgconn.PgConn) ctxwatch.Handler {
		return &pgconn.CancelRequestContextWatcherHandler{Conn: conn, CancelRequestDelay: 0, DeadlineDelay: 5 * time.Second}
	}
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, fmt.Errorf("open the database: %w", err)
	}
	return &Store{pool: pool}, nil
}

// Close returns when every connection is given back.
func (s *Store) Close() { s.pool.Close() }

// Ready reports whether the database answers and its functions are those of this binary.
func (s *Store) Ready(ctx context.Context) error {
	installed, err := call[string](ctx, s, `select * from autopost.functions_digest()`)
	if hasState(err, stateInvalidSchemaName) || hasState(err, stateUndefinedFunction) {
		return errors.New("the schema is not there: run autopost migrate")
	}
	if err != nil {
		return err
	}
	want, err := functionsDigest()
	if err != nil {
		return err
	}
	if installed != want {
		return fmt.Errorf("the schema is of another version: run autopost migrate")
	}
	return nil
}

// call runs one function that answers one value; jsonb is decoded into T.
func call[T any](ctx context.Context, s *Store, sql string, args ...any) (T, error) {
	rows, err := query(ctx, s, sql, args...)
	if err != nil {
		return *new(T), err
	}
	if len(rows) != 1 {
		return *new(T), fmt.Errorf("%s answered %d rows", sql, len(rows))
	}
	var value T
	if err := rows[0].scan(&value); err != nil {
		return value, fmt.Errorf("decode the answer of %s: %w", sql, err)
	}
	return value, nil
}

// answer is one row of one column, as text or JSON.
type answer struct{ raw []byte }

func (a answer) scan(into any) error {
	switch target := into.(type) {
	case *string:
		*target = string(a.raw)
		return nil
	case *json.RawMessage:
		*target = a.raw
		return nil
	default:
		if a.raw == nil {
			return nil
		}
		return json.Unmarshal(a.raw, into)
	}
}

// query runs a call whose rows have one column. A statement whose cached plan
// was outdated by an upgrade did nothing and is asked once more.
func query(ctx context.Context, s *Store, sql string, args ...any) ([]answer, error) {
	ask := func() ([]answer, error) {
		rows, err := s.pool.Query(ctx, sql, args...)
		if err != nil {
			return nil, err
		}
		return pgx.CollectRows(rows, func(row pgx.CollectableRow) (answer, error) {
			var text *string
			if err := row.Scan(&text); err != nil || text == nil {
				return answer{}, err
			}
			return answer{raw: []byte(*text)}, nil
		})
	}
	answers, err := ask()
	if hasState(err, stateFeatureNotSupported) {
		answers, err = ask()
	}
	return answers, translate(err)
}
