// Package externaldb reads from databases of customers: one query in a read-only transaction with a timeout.
package externaldb

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
	"autopost/internal/ingest/pull"
	"autopost/internal/ingest/pull/sqlquery"
)

const (
	connectTimeout = 10 * time.Second
	// maxRows limits an answer, also if many rows share a value of the cursor column.
	maxRows = 10_000
	// maxBytes limits the sum of all values.
	maxBytes = 32 << 20
)

// Read runs a query. Its errors are *pull.Failure and contain only the host and the user of the DSN.
func Read(ctx context.Context, q sqlquery.Question) (sqlquery.Answer, error) {
	config, err := parse(q.DSN)
	if err != nil {
		return sqlquery.Answer{}, err
	}
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return sqlquery.Answer{}, refused(err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	rows, err := read(ctx, conn, q)
	if err != nil {
		return sqlquery.Answer{}, explain(ctx, conn, q, err)
	}
	return rows, nil
}

// parse reads a DSN. The driver would complete it from the environment of this process, which belongs to our database.
// So the DSN must contain host and user, and a missing password stays empty.
func parse(dsn autopost.Secret) (*pgx.ConnConfig, error) {
	// The errors of the parsers contain the DSN.
	refused := &pull.Failure{Code: "pull_db_dsn", Message: "the credential must be a DSN: write postgres://user:password@host:5432/database"}
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

func read(ctx context.Context, conn *pgx.Conn, q sqlquery.Question) (rows sqlquery.Answer, err error) {
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
	answer, err := tx.Query(ctx, wrapped(q), pgx.QueryExecModeDescribeExec, pgx.QueryResultFormats{pgx.TextFormatCode}, q.After)
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
			return rows, &pull.Failure{Code: "pull_db_too_much", Message: fmt.Sprintf("the query must return at most %d rows with the same value of cursor_column, and %d bytes: "+
				"choose a column that grows row by row, or select less", maxRows, maxBytes)}
		}
	}
	return rows, answer.Err()
}

// wrapped sorts and limits the query from outside, so that the text of the query need not.
func wrapped(q sqlquery.Question) string {
	column := pgx.Identifier{"q", q.CursorColumn}.Sanitize()
	direction, limit := "asc", q.Limit
	if q.Newest > 0 {
		direction, limit = "desc", q.Newest
	}
	return fmt.Sprintf("select * from (\n%s\n) q where %s is not null order by %s %s fetch first %d rows with ties", q.SQL, column, column, direction, limit)
}

// refused classifies a failed connection. Its message has no host: the DSN is a secret.
func refused(err error) *pull.Failure {
	pgErr, ok := errors.AsType[*pgconn.PgError](err)
	switch {
	case !ok:
		return &pull.Failure{Code: "pull_db_connect", Message: "no connection to the database; check host, port and network access"}
	case strings.HasPrefix(pgErr.Code, "28"), pgErr.Code == "42501":
		return &pull.Failure{Code: "pull_db_rights", Message: "the database refused the login; check user and password, and grant connect"}
	case pgErr.Code == "3D000":
		return &pull.Failure{Code: "pull_db_dsn", Message: "the database does not exist; correct its name in the DSN"}
	}
	return &pull.Failure{Code: "pull_db_connect", Message: "the database refused the connection: " + pgErr.Message}
}

// explain classifies a failed query and adds the remedy.
func explain(ctx context.Context, conn *pgx.Conn, q sqlquery.Question, err error) error {
	if own, ok := errors.AsType[*pull.Failure](err); ok {
		return own
	}
	pgErr, ok := errors.AsType[*pgconn.PgError](err)
	switch {
	case ctx.Err() != nil, ok && (pgErr.Code == "57014" || pgErr.Code == "55P03"):
		return &pull.Failure{Code: "pull_db_timeout", Message: "the query timed out; add an index on cursor_column, or raise timeout_seconds"}
	case !ok:
		return &pull.Failure{Code: "pull_db_connect", Message: "the connection closed during the query"}
	case pgErr.Code == "42501":
		return &pull.Failure{Code: "pull_db_rights", Message: pgErr.Message + "; grant select to the user of the DSN"}
	case pgErr.Code == "25006":
		return &pull.Failure{Code: "pull_db_query", Message: "the query must not write: write a select"}
	case pgErr.Code == "42703":
		if names, found := columns(ctx, conn, q); found {
			return &pull.Failure{Code: "pull_db_cursor_column", Message: fmt.Sprintf("the query must return the column %s; it returns %s", q.CursorColumn, strings.Join(names, ", "))}
		}
	}
	return &pull.Failure{Code: "pull_db_query", Message: fmt.Sprintf("the database refuses the query: %s (%s); try it with psql", pgErr.Message, pgErr.Code)}
}

// columns returns the columns of the query itself. found is false if the query is invalid or returns the cursor column.
func columns(ctx context.Context, conn *pgx.Conn, q sqlquery.Question) (names []string, found bool) {
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
