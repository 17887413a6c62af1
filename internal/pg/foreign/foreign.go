// Package foreign reads from databases that are not ours: one query, in a
// transaction that may not write, within a time. It stands below pg because nobody
// else speaks to PostgreSQL, and beside it because nothing of autopost is there.
package foreign

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"autopost"
)

const (
	connectTimeout = 10 * time.Second
	// maxRows bounds an answer, also where many rows share a value of the cursor column.
	maxRows = 10_000
	// maxBytes bounds it too, summed over all values.
	maxBytes = 32 << 20
)

// Query is what to read.
type Query struct {
	// DSN of a PostgreSQL, postgres://user:password@host:5432/database.
	DSN autopost.Secret
	// SQL is one select whose parameter $1 is After.
	SQL string
	// CursorColumn is the column of it by which the rows are ordered.
	CursorColumn string
	// After is nil at first.
	After *string
	// Newest, if positive, asks for that many rows with the greatest values of the
	// cursor column instead of those with the least, greatest first.
	Newest int
	// Limit bounds the others; rows that share the last value come all.
	Limit int
	// Timeout of the statement.
	Timeout time.Duration
}

// Rows are an answer as text, in the notation of PostgreSQL, times in UTC.
type Rows struct {
	Columns []string
	Values  [][]*string
}

// Error is why nothing was read. It holds nothing of the DSN but host and user.
type Error struct {
	// Code is "dsn", "connect", "rights", "query", "cursor_column", "timeout" or "too_much".
	Code    string
	Message string
}

// Error implements error.
func (e *Error) Error() string { return e.Code + ": " + e.Message }

// Read runs a query. Its errors are *Error.
func Read(ctx context.Context, q Query) (Rows, error) {
	config, err := parse(q.DSN)
	if err != nil {
		return Rows{}, err
	}
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return Rows{}, refused(config, err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	rows, err := read(ctx, conn, q)
	if err != nil {
		return Rows{}, explain(ctx, conn, q, err)
	}
	return rows, nil
}

// parse reads a DSN. What the driver would take from this process's environment,
// which is that of our own database, is not for others: host and user must stand in
// the DSN, and no password does for one that it lacks.
func parse(dsn autopost.Secret) (*pgx.ConnConfig, error) {
	// The parsers repeat what they could not read.
	refused := &Error{Code: "dsn", Message: "the credential is no DSN: write postgres://user:password@host:5432/database"}
	u, err := url.Parse(dsn.Reveal())
	if err != nil || u.Scheme != "postgres" && u.Scheme != "postgresql" {
		return nil, refused
	}
	given := u.Query()
	if u.Hostname()+given.Get("host") == "" || u.User.Username()+given.Get("user") == "" {
		return nil, refused
	}
	config, err := pgx.ParseConfig(dsn.Reveal())
	if err != nil {
		return nil, refused
	}
	password, _ := u.User.Password()
	config.Password = cmp.Or(password, given.Get("password"))
	config.ConnectTimeout = connectTimeout
	return config, nil
}

func read(ctx context.Context, conn *pgx.Conn, q Query) (rows Rows, err error) {
	tx, err := conn.BeginTx(ctx, pgx.TxOptions{AccessMode: pgx.ReadOnly})
	if err != nil {
		return rows, err
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(ctx)) }()
	milliseconds := q.Timeout.Milliseconds()
	if _, err := tx.Exec(ctx, fmt.Sprintf(`set local statement_timeout = %d; set local lock_timeout = %d; set local timezone = 'UTC'; set local datestyle = 'ISO'`,
		milliseconds, milliseconds)); err != nil {
		return rows, err
	}
	answer, err := tx.Query(ctx, q.wrapped(), pgx.QueryExecModeDescribeExec, pgx.QueryResultFormats{pgx.TextFormatCode}, q.After)
	if err != nil {
		return rows, err
	}
	defer answer.Close()
	for _, field := range answer.FieldDescriptions() {
		rows.Columns = append(rows.Columns, field.Name)
	}
	size := 0
	for answer.Next() {
		var values []*string
		for _, raw := range answer.RawValues() {
			if raw == nil {
				values = append(values, nil)
				continue
			}
			size += len(raw)
			value := string(raw)
			values = append(values, &value)
		}
		if rows.Values = append(rows.Values, values); len(rows.Values) > maxRows || size > maxBytes {
			return rows, &Error{Code: "too_much", Message: fmt.Sprintf("the query gives more than %d rows that share a value of cursor_column, or %d bytes: "+
				"choose a column that grows row by row, or select less", maxRows, maxBytes)}
		}
	}
	return rows, answer.Err()
}

// wrapped orders and bounds the query from outside, so that neither rests on how it
// was written.
func (q Query) wrapped() string {
	column := pgx.Identifier{"q", q.CursorColumn}.Sanitize()
	direction, limit := "asc", q.Limit
	if q.Newest > 0 {
		direction, limit = "desc", q.Newest
	}
	return fmt.Sprintf("select * from (\n%s\n) q where %s is not null order by %s %s fetch first %d rows with ties", q.SQL, column, column, direction, limit)
}

// refused says why there is no connection.
func refused(config *pgx.ConnConfig, err error) *Error {
	at := fmt.Sprintf("%s as %s", config.Host, config.User)
	pgErr, ok := errors.AsType[*pgconn.PgError](err)
	switch {
	case !ok:
		return &Error{Code: "connect", Message: at + ": no connection; check host, port and that it may be reached from here"}
	case strings.HasPrefix(pgErr.Code, "28"), pgErr.Code == "42501":
		return &Error{Code: "rights", Message: at + ": the database lets nobody in like that; check user and password, and grant connect"}
	case pgErr.Code == "3D000":
		return &Error{Code: "dsn", Message: at + ": there is no such database; correct its name in the DSN"}
	}
	return &Error{Code: "connect", Message: at + ": " + pgErr.Message}
}

// explain says why a query gave no rows, and what to do.
func explain(ctx context.Context, conn *pgx.Conn, q Query, err error) error {
	if own, ok := errors.AsType[*Error](err); ok {
		return own
	}
	pgErr, ok := errors.AsType[*pgconn.PgError](err)
	switch {
	case ctx.Err() != nil, ok && (pgErr.Code == "57014" || pgErr.Code == "55P03"):
		return &Error{Code: "timeout", Message: "the query took too long; give it an index on cursor_column, or raise timeout_seconds"}
	case !ok:
		return &Error{Code: "connect", Message: "the connection broke off during the query"}
	case pgErr.Code == "42501":
		return &Error{Code: "rights", Message: pgErr.Message + "; grant select to the user of the DSN"}
	case pgErr.Code == "25006":
		return &Error{Code: "query", Message: "the query writes, and the transaction is read only: write a select"}
	case pgErr.Code == "42703":
		if columns, found := q.columns(ctx, conn); found {
			return &Error{Code: "cursor_column", Message: fmt.Sprintf("the query gives no column %s; it gives %s", q.CursorColumn, strings.Join(columns, ", "))}
		}
	}
	return &Error{Code: "query", Message: fmt.Sprintf("the database refuses the query: %s (%s); try it with psql", pgErr.Message, pgErr.Code)}
}

// columns are those of the query itself; not found where it has a fault of its own,
// or gives the cursor column after all.
func (q Query) columns(ctx context.Context, conn *pgx.Conn) (names []string, found bool) {
	described, err := conn.Prepare(ctx, "", q.SQL)
	if err != nil {
		return nil, false
	}
	for _, field := range described.Fields {
		if field.Name == q.CursorColumn {
			return nil, false
		}
		names = append(names, field.Name)
	}
	return names, true
}
