// Package pg is the only package that uses our database. It has one method per SQL function, with the name of the
// function. A method is one call outside any transaction. It decides nothing and returns the types of its callers.
//
// Listen receives the wake-ups of the database. Package schema migrates it.
package pg

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"autopost/internal/pg/schema"
)

// Options configure a Store.
type Options struct {
	// URL of the database. Required.
	URL string
	// CoordinatorURL is the coordinator of a Citus cluster, for changes of tables; "" means that URL leads to it, or
	// that there is no cluster.
	CoordinatorURL string
	// Pooled means that URL leads through a pooler in transaction mode. Then a connection keeps neither prepared
	// statements nor a role.
	Pooled bool
	// MaxConns bounds the pool; 0 means 16.
	MaxConns int
	// Observe receives each statement; nil for none.
	Observe Observe
	// Wrap replaces the connections, for tests that make calls fail; nil for none.
	Wrap func(Querier) Querier
}

// Querier runs statements. *pgxpool.Pool implements it.
type Querier interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// trusted is how long an idle connection is reused without a ping.
const trusted = 15 * time.Second

// Store calls the functions of schema autopost. It is safe for concurrent use.
type Store struct {
	pool  *pgxpool.Pool
	calls Querier
	// coordinator is for changes of tables; nil means pool.
	coordinator *pgxpool.Pool
	runID       string // "" for a caller that is not a daemon
}

// ForRun returns a Store that names a run in its leases of renewals and alert messages: they end when the run is silent.
func (s *Store) ForRun(runID string) *Store {
	of := *s
	of.runID = runID
	return &of
}

// onCoordinator returns a Store that calls the coordinator of the cluster.
func (s *Store) onCoordinator() *Store {
	if s.coordinator == nil {
		return s
	}
	of := *s
	of.calls = s.coordinator
	return &of
}

// Open connects lazily. On a direct connection it sets the role autopost_engine, so that the login has no more rights than
// the daemon needs.
func Open(ctx context.Context, o Options) (*Store, error) {
	pool, err := o.open(ctx)
	if err != nil {
		return nil, err
	}
	store := &Store{pool: pool, calls: pool}
	if o.CoordinatorURL != "" {
		there := o
		there.URL, there.Pooled, there.MaxConns = o.CoordinatorURL, false, 1
		if store.coordinator, err = there.open(ctx); err != nil {
			pool.Close()
			return nil, fmt.Errorf("coordinator: %w", err)
		}
	}
	if o.Wrap != nil {
		store.calls = o.Wrap(pool)
	}
	return store, nil
}

// open opens a pool of connections to URL.
func (o Options) open(ctx context.Context) (*pgxpool.Pool, error) {
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
	if o.Observe != nil {
		config.ConnConfig.Tracer = observer{o.Observe}
	}
	cancelSafely(config)
	// A recently used connection counts as alive: otherwise an idle daemon would send a ping with each call.
	config.ShouldPing = func(_ context.Context, p pgxpool.ShouldPingParams) bool { return p.IdleDuration > trusted }
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, fmt.Errorf("open the database: %w", err)
	}
	return pool, nil
}

// PoolSize removes pool_max_conns from a database URL, because PostgreSQL does not know it, and returns its value;
// 0 if it is absent.
func PoolSize(raw string) (address string, size int, err error) {
	if !strings.Contains(raw, poolSize) {
		return raw, 0, nil
	}
	u, err := url.Parse(raw)
	if err != nil { // the error would show the password
		return "", 0, fmt.Errorf("the database URL must be a URL if it has %s: correct it", poolSize)
	}
	query := u.Query()
	if size, err = strconv.Atoi(query.Get(poolSize)); err != nil || size < 2 || size > 1000 {
		return "", 0, fmt.Errorf("%s must be between 2 and 1000, got %q: correct it in the database URL", poolSize, query.Get(poolSize))
	}
	query.Del(poolSize)
	u.RawQuery = query.Encode()
	return u.String(), size, nil
}

const poolSize = "pool_max_conns"

// Connect opens a store and makes its first connection. A pooler without session settings, such as PgBouncer, refuses a
// connection with a role; then the store is a pooled one.
func Connect(ctx context.Context, o Options) (*Store, error) {
	store, err := Open(ctx, o)
	if err != nil || o.Pooled {
		return store, err
	}
	conn, err := store.pool.Acquire(ctx)
	if err == nil {
		conn.Release()
		return store, nil
	}
	store.Close()
	if hasState(err, stateProtocolViolation) {
		o.Pooled = true
		return Open(ctx, o)
	}
	return nil, fmt.Errorf("connect: %w", err)
}

// Close closes the connections when they are free.
func (s *Store) Close() {
	s.pool.Close()
	if s.coordinator != nil {
		s.coordinator.Close()
	}
}

// Ready checks that the database answers and has the functions of this binary.
func (s *Store) Ready(ctx context.Context) error {
	installed, err := call[string](ctx, s, `select * from autopost.functions_digest()`)
	if hasState(err, stateInvalidSchemaName) || hasState(err, stateUndefinedFunction) {
		return errors.New("the schema is missing: run autopost migrate")
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

// call runs a function that returns one value; jsonb is decoded into T.
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

// query runs a call whose rows have one column. It repeats a statement that failed because an upgrade outdated its cached
// plan.
func query(ctx context.Context, s *Store, sql string, args ...any) ([]answer, error) {
	args, err := jsonArguments(args)
	if err != nil {
		return nil, err
	}
	run := func() ([]answer, error) {
		rows, err := s.calls.Query(ctx, sql, args...)
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
	answers, err := run()
	if hasState(err, stateFeatureNotSupported) {
		answers, err = run()
	}
	return answers, translate(err)
}

// jsonArguments encodes structs and maps, and lists of them, as JSON. A direct connection would do that, because it knows
// the types of the parameters; a connection through a pooler does not.
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

// instantOrNull returns an instant in RFC 3339 as an argument for $n::timestamptz; "" is null. A cluster refuses other casts
// from text to an instant.
func instantOrNull(at string) any {
	if at == "" {
		return nil
	}
	return at
}

// Observe receives a finished statement: the function of ours that it called ("other" for none), its duration and its
// error.
type Observe func(function string, took time.Duration, err error)

// observer is a pgx.QueryTracer.
type observer struct{ observe Observe }

type statementKey struct{}

type statement struct {
	function string
	began    time.Time
}

// TraceQueryStart implements pgx.QueryTracer.
func (observer) TraceQueryStart(ctx context.Context, _ *pgx.Conn, q pgx.TraceQueryStartData) context.Context {
	return context.WithValue(ctx, statementKey{}, statement{functionOf(q.SQL), time.Now()})
}

// TraceQueryEnd implements pgx.QueryTracer.
func (o observer) TraceQueryEnd(ctx context.Context, _ *pgx.Conn, q pgx.TraceQueryEndData) {
	if s, ok := ctx.Value(statementKey{}).(statement); ok {
		o.observe(s.function, time.Since(s.began), translate(q.Err))
	}
}

// functionOf returns the first function of ours that a statement calls.
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

// Connections returns the number of connections in use, of idle ones, and the limit.
func (s *Store) Connections() (inUse, idle, most int32) {
	stat := s.pool.Stat()
	return stat.AcquiredConns(), stat.IdleConns(), stat.MaxConns()
}

// texts runs a call that returns rows of one text.
func (s *Store) texts(ctx context.Context, sql string, args ...any) ([]string, error) {
	answers, err := query(ctx, s, sql, args...)
	if err != nil {
		return nil, err
	}
	list := make([]string, 0, len(answers))
	for _, a := range answers {
		list = append(list, string(a.raw))
	}
	return list, nil
}
