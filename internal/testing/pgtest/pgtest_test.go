package pgtest_test

import (
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"autopost/internal/testing/pgtest"
)

func TestDatabasesAreMigratedAndSeparate(t *testing.T) {
	t.Parallel()
	a, b := pgtest.New(t), pgtest.New(t)
	require.True(t, pgtest.Value[bool](a, `select to_regclass('autopost.deliveries') is not null`))
	a.Exec(`create table only_here (n int); insert into only_here values (1), (2)`)
	require.Equal(t, []int{1, 2}, pgtest.Column[int](a, `select n from only_here order by n`))
	require.Error(t, b.Err(`select n from only_here`))

	var n int
	var word string
	require.NoError(t, a.QueryRow(`select n, $1::text from only_here where n = 2`, "two").Scan(&n, &word))
	require.Equal(t, 2, n)
	require.Equal(t, "two", word)
	require.Equal(t, map[string]any{"a": 1.0}, a.JSON(`select '{"a": 1}'::jsonb`))
}

func TestURLLogsInAsMember(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	for _, role := range []string{"autopost_engine", "autopost_caller", "autopost_reader", "autopost_owner"} {
		conn, err := pgx.Connect(t.Context(), db.URL(role))
		require.NoError(t, err)
		var member, super bool
		err = conn.QueryRow(t.Context(), `select pg_has_role(session_user, $1, 'member'),
			(select rolsuper from pg_roles where rolname = session_user)`, role).Scan(&member, &super)
		require.NoError(t, err)
		require.True(t, member, role)
		require.False(t, super, role)
		require.NoError(t, conn.Close(t.Context()))
	}
	require.Equal(t, db.URL("engine"), db.URL("autopost_engine"))
}

func TestDatabaseInUseIsDropped(t *testing.T) {
	t.Parallel()
	var name string
	t.Run("test", func(t *testing.T) {
		db := pgtest.New(t)
		name = pgtest.Value[string](db, `select current_database()`)
		db.Session("left open", "engine").Exec(`begin`)
	})
	outer := pgtest.New(t)
	require.Empty(t, pgtest.Column[string](outer, `select datname from pg_database where datname = $1`, name))
	require.Empty(t, pgtest.Column[string](outer, `select rolname from pg_roles where rolname = $1`, name+"_engine"))
}

func TestSessionsBlockAndContinue(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	db.Exec(`create table counter as select 1 as n`)
	a, b := db.Session("a", ""), db.Session("b", "")
	a.Exec(`begin`)
	a.Exec(`update counter set n = n + 1`)
	waiting := b.Start(`update counter set n = n * 10 returning n`)
	require.Equal(t, []string{"a"}, waiting.Blocked())
	require.Empty(t, db.Session("c", "").Exec(`select n from counter for update skip locked`))
	a.Exec(`commit`)
	require.Equal(t, [][]any{{int32(20)}}, waiting.Wait())
}

func TestSessionsDeadlock(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	db.Exec(`create table pair as select n from generate_series(1, 2) n`)
	a, b := db.Session("a", ""), db.Session("b", "")
	a.Exec(`begin`)
	b.Exec(`begin`)
	b.Exec(`set deadlock_timeout = '10s'`)
	a.Exec(`set deadlock_timeout = '20ms'`)
	a.Exec(`update pair set n = n where n = 1`)
	b.Exec(`update pair set n = n where n = 2`)
	second := b.Start(`update pair set n = n where n = 1`)
	require.Equal(t, []string{"a"}, second.Blocked())
	require.ErrorContains(t, a.Start(`update pair set n = n where n = 2`).Err(), "40P01")
	a.Exec(`rollback`)
	second.Wait()
}
