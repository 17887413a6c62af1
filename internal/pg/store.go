// Package pg is the only one that talks to PostgreSQL: one Go method per SQL
// function, with its name. A method is one bare call outside any transaction, and
// decides nothing; what an answer means is the caller's business.
//
// It also hears the bell of the database (Listen); package schema below it brings a
// database up to date.
package pg

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgconn/ctxwatch"
	"github.com/jackc/pgx/v5/pgxpool"

	"autopost/internal/pg/schema"
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
	// Asked, if there is one, is told of each statement.
	Asked Asked
}

// trusted is how long an idle connection is used again without a ping.
const trusted = 15 * time.Second

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
	if o.Asked != nil {
		config.ConnConfig.Tracer = observer{o.Asked}
	}
	// A cancelled context cancels the query and keeps the connection.
	config.ConnConfig.BuildContextWatcherHandler = func(conn *pgconn.PgConn) ctxwatch.Handler {
		return &pgconn.CancelRequestContextWatcherHandler{Conn: conn, CancelRequestDelay: 0, DeadlineDelay: 5 * time.Second}
	}
	// A connection that was used a moment ago is taken to be alive: a daemon that has
	// nothing to do would ask the database twice for each thing.
	config.ShouldPing = func(_ context.Context, p pgxpool.ShouldPingParams) bool { return p.IdleDuration > trusted }
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, fmt.Errorf("open the database: %w", err)
	}
	return &Store{pool: pool}, nil
}

// ThroughPooler reports whether a URL leads through a pooler that keeps no session
// settings, as PgBouncer: it refuses a connection that brings its role along.
func ThroughPooler(ctx context.Context, url string) (bool, error) {
	config, err := pgx.ParseConfig(url)
	if err != nil {
		return false, fmt.Errorf("parse the database URL: %w", err)
	}
	config.RuntimeParams["role"] = "autopost_engine"
	conn, err := pgx.ConnectConfig(ctx, config)
	if hasState(err, stateProtocolViolation) {
		return true, nil
	}
	if err != nil {
		return false, fmt.Errorf("connect: %w", err)
	}
	return false, conn.Close(ctx)
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
	want, err := schema.FunctionsDigest()
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
	args, err := jsonArguments(args)
	if err != nil {
		return nil, err
	}
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

// jsonArguments makes JSON of the arguments that are objects or lists of such. A
// direct connection would do that by itself, knowing the types of the parameters;
// through a pooler nobody does.
func jsonArguments(args []any) ([]any, error) {
	bound := slices.Clone(args)
	for i, arg := range args {
		v := reflect.ValueOf(arg)
		if !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil() {
			continue
		}
		t := v.Type()
		for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice {
			t = t.Elem()
		}
		if t == reflect.TypeFor[time.Time]() || t.Kind() != reflect.Struct && t.Kind() != reflect.Map {
			continue
		}
		raw, err := json.Marshal(arg)
		if err != nil {
			return nil, fmt.Errorf("argument %d: %w", i+1, err)
		}
		bound[i] = json.RawMessage(raw)
	}
	return bound, nil
}

// Asked is told of each statement: which function of ours it called, "other" for none,
// how long it took, and what it failed of; nil when it did not.
type Asked func(function string, took time.Duration, err error)

// observer is a pgx.QueryTracer that tells of what was asked.
type observer struct{ tell Asked }

type askedKey struct{}

type question struct {
	function string
	began    time.Time
}

// TraceQueryStart implements pgx.QueryTracer.
func (observer) TraceQueryStart(ctx context.Context, _ *pgx.Conn, q pgx.TraceQueryStartData) context.Context {
	return context.WithValue(ctx, askedKey{}, question{functionOf(q.SQL), time.Now()})
}

// TraceQueryEnd implements pgx.QueryTracer.
func (o observer) TraceQueryEnd(ctx context.Context, _ *pgx.Conn, q pgx.TraceQueryEndData) {
	if asked, ok := ctx.Value(askedKey{}).(question); ok {
		o.tell(asked.function, time.Since(asked.began), translate(q.Err))
	}
}

// functionOf is the first function of ours that a statement calls. Statements are constants
// of this package, so that there are few.
func functionOf(sql string) string {
	for rest := sql; ; {
		_, after, found := strings.Cut(rest, "autopost.")
		if !found {
			return "other"
		}
		end := strings.IndexFunc(after, func(r rune) bool { return r != '_' && (r < 'a' || r > 'z') && (r < '0' || r > '9') })
		if end > 0 && after[end] == '(' {
			return after[:end]
		}
		rest = after
	}
}

// Connections is how many connections are in use, idle, and the most that there may be.
func (s *Store) Connections() (inUse, idle, most int32) {
	stat := s.pool.Stat()
	return stat.AcquiredConns(), stat.IdleConns(), stat.MaxConns()
}
