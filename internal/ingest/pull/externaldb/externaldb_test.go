package externaldb_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"autopost"
	"autopost/internal/ingest/pull"
	"autopost/internal/ingest/pull/externaldb"
	"autopost/internal/ingest/pull/sqlquery"
	"autopost/internal/testing/pgtest"
)

const posts = `select id, text, at from shop.posts where $1::timestamptz is null or at > $1`

func database(t *testing.T) (*pgtest.DB, sqlquery.Question) {
	t.Helper()
	db := pgtest.New(t)
	db.Exec(`create schema shop`)
	db.Exec(`create table shop.posts (id int primary key, text text, at timestamptz)`)
	db.Exec(`insert into shop.posts select n, 'post ' || n, timestamptz '2026-11-20 12:00:00.000001+03' + interval '1 minute' * (n / 2) from generate_series(1, 9) n`)
	return db, sqlquery.Question{DSN: autopost.NewSecret(db.URL("")), SQL: posts, CursorColumn: "at", Limit: 3, Timeout: 5 * time.Second}
}

func ids(rows sqlquery.Answer) string {
	var list []string
	for _, row := range rows.Values {
		list = append(list, *row[0])
	}
	return strings.Join(list, " ")
}

func TestRowsAreSortedByTheCursor(t *testing.T) {
	t.Parallel()
	_, q := database(t)
	rows, err := externaldb.Read(t.Context(), q)
	require.NoError(t, err)
	require.Equal(t, []string{"id", "text", "at"}, rows.Columns)
	require.Equal(t, "1 2 3", ids(rows))
	q.After = rows.Values[2][2]
	require.Equal(t, "2026-11-20 09:01:00.000001+00", *q.After)
	rows, err = externaldb.Read(t.Context(), q)
	require.NoError(t, err)
	require.Equal(t, "4 5 6 7", ids(rows), "all rows with the last value are returned")

	q.After, q.Newest = nil, 3
	rows, err = externaldb.Read(t.Context(), q)
	require.NoError(t, err)
	require.ElementsMatch(t, []string{"9", "8", "7", "6"}, strings.Fields(ids(rows)))
}

func TestNothingIsWritten(t *testing.T) {
	t.Parallel()
	db, q := database(t)
	db.Exec(`create function sneaky() returns timestamptz language plpgsql as $$begin delete from shop.posts; return now(); end$$`)
	for _, sql := range []string{
		`select sneaky() as at, $1::text`, `with d as (delete from shop.posts returning at) select at, $1::text from d`,
		`select 1) q; delete from shop.posts; select (select now() as at, $1::text`,
	} {
		q.SQL = sql
		_, err := externaldb.Read(t.Context(), q)
		requireError(t, err, "query", "")
	}
	require.Equal(t, 9, pgtest.Value[int](db, `select count(*)::int from shop.posts`))
}

func TestErrorsContainTheRemedy(t *testing.T) {
	t.Parallel()
	db, q := database(t)
	db.Exec(`grant usage on schema shop to public`)
	with := func(change func(*sqlquery.Question)) sqlquery.Question {
		changed := q
		change(&changed)
		return changed
	}
	for name, c := range map[string]struct {
		q           sqlquery.Question
		code, words string
	}{
		"no DSN":        {with(func(q *sqlquery.Question) { q.DSN = autopost.NewSecret("mysql://canary-pw@h") }), "dsn", "postgres://user:password@host"},
		"no host":       {with(func(q *sqlquery.Question) { q.DSN = autopost.NewSecret("postgres:///db?user=canary-pw") }), "dsn", "host"},
		"no user":       {with(func(q *sqlquery.Question) { q.DSN = autopost.NewSecret("postgres://canary-pw/db") }), "dsn", "user"},
		"key and value": {with(func(q *sqlquery.Question) { q.DSN = autopost.NewSecret("host=h user=canary-pw") }), "dsn", "postgres://"},
		"nobody there":  {with(func(q *sqlquery.Question) { q.DSN = autopost.NewSecret("postgres://u:canary-pw@127.0.0.1:1/db") }), "connect", "no connection to the database; check host"},
		"no such table": {with(func(q *sqlquery.Question) { q.SQL = `select at from nowhere where at > $1` }), "query", `relation "nowhere" does not exist`},
		"no rights":     {with(func(q *sqlquery.Question) { q.DSN = autopost.NewSecret(db.URL("autopost_reader")) }), "rights", "grant select"},
		"no cursor":     {with(func(q *sqlquery.Question) { q.CursorColumn = "updated" }), "cursor_column", "must return the column updated; it returns id, text, at"},
		"no such field": {with(func(q *sqlquery.Question) { q.SQL = `select at, colour from shop.posts where at > $1` }), "query", "colour"},
		"too slow": {with(func(q *sqlquery.Question) {
			q.SQL, q.Timeout = `select now() as at, pg_sleep(60), $1::text`, 50*time.Millisecond
		}), "timeout", "timeout_seconds"},
		"too many": {with(func(q *sqlquery.Question) { q.SQL = `select now() as at, $1::text from generate_series(1, 10001)` }), "too_much", "row by row"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := externaldb.Read(t.Context(), c.q)
			requireError(t, err, c.code, c.words)
		})
	}
}

func requireError(t *testing.T, err error, code, words string) {
	t.Helper()
	refused, ok := errors.AsType[*pull.Failure](err)
	require.True(t, ok, "%v", err)
	require.Equal(t, "pull_db_"+code, refused.Code, refused.Message)
	require.Contains(t, refused.Message, words)
	require.NotContains(t, err.Error(), "canary")
}
