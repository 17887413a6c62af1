package races_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"autopost/internal/testing/pgtest"
	"autopost/internal/testing/posttest"
	"autopost/internal/testing/wait"
)

// workers is the number of concurrent workers.
const workers = 6

// query runs one bare statement on any connection.
type query func(sql string, args ...any) ([][]any, error)

// A pooler in transaction mode at its worst, where each statement goes over another connection that forgets everything after it;
// at full size PgBouncer as well. Nothing rests on a session.
func TestTransactionPooler(t *testing.T) {
	t.Parallel()
	kinds := map[string]func(*testing.T, *pgtest.DB) query{"another connection for every statement": otherConnection}
	if pgtest.Long() {
		kinds["PgBouncer"] = bouncer
	}
	for name, open := range kinds {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := callerWorkspace(t)
			postThrough(t, db, open(t, db))
		})
	}
}

// otherConnection gives each statement a connection of a few by chance, and discards all afterwards.
func otherConnection(t *testing.T, db *pgtest.DB) query {
	const connections = 6
	free := make(chan *pgx.Conn, connections)
	for range connections {
		free <- bare(t, db.URL("caller"))
	}
	return func(sql string, args ...any) ([][]any, error) {
		for range rand.IntN(connections) {
			select {
			case c := <-free:
				free <- c // to the end of the line
			default:
			}
		}
		c := <-free
		defer func() { free <- c }()
		rows, err := ask(c, sql, args...)
		if _, discarded := c.Exec(context.Background(), `discard all`); err == nil {
			err = discarded
		}
		return rows, err
	}
}

// bouncer is PgBouncer with fewer servers than clients.
func bouncer(t *testing.T, db *pgtest.DB) query {
	address := pgtest.PgBouncer(t, db.URL("caller"), 3)
	conns := make(chan *pgx.Conn, workers)
	for range workers {
		conns <- bare(t, address)
	}
	return func(sql string, args ...any) ([][]any, error) {
		c := <-conns
		defer func() { conns <- c }()
		return ask(c, sql, args...)
	}
}

// callerWorkspace makes a workspace that the group autopost_caller may use.
func callerWorkspace(t *testing.T) *pgtest.DB {
	t.Helper()
	db := pgtest.New(t)
	posttest.Workspace(db, "w")
	db.Exec(`select autopost.apply_settings('{"ingress_drops_per_second": 100000}', 'o', 'r', false)`) // so that each repeat has an event of its own
	for n := range 5 {
		posttest.Channel(db, "w", fmt.Sprint("c", n), posttest.MaxParallel(2), posttest.Group(fmt.Sprint("g", n%2)))
	}
	db.Exec(`insert into autopost.role_workspaces (role_name, workspace_id) values ('autopost_caller', 'w')`)
	return db
}

// bare is a connection without prepared statements, which no pooler would keep.
func bare(t *testing.T, address string) *pgx.Conn {
	t.Helper()
	config, err := pgx.ParseConfig(address)
	require.NoError(t, err)
	config.DefaultQueryExecMode = pgx.QueryExecModeSimpleProtocol
	c, err := pgx.ConnectConfig(t.Context(), config)
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Close(context.Background()) })
	return c
}

func ask(c *pgx.Conn, sql string, args ...any) ([][]any, error) {
	rows, err := c.Query(context.Background(), sql, args...)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) ([]any, error) { return row.Values() })
}

// postThrough enqueues and sends posts by several workers, then checks the rows. Each call is a statement of its own.
func postThrough(t *testing.T, db *pgtest.DB, through query) {
	t.Helper()
	const posts, channels = 40, 5
	var next, done, repeated atomic.Int64
	var group sync.WaitGroup
	deadline := time.Now().Add(wait.Bound)
	for n := range workers {
		group.Go(func() {
			for done.Load() < posts*channels && time.Now().Before(deadline) && !t.Failed() {
				if p := next.Add(1); p <= posts {
					item := fmt.Sprintf(`[{"text": "post %d", "source_ref": "%d"}]`, p, p)
					for range 2 { // the second is a repeat
						if _, err := through(`select autopost.receive_push('w', 'in', $1::jsonb)`, item); err != nil {
							t.Errorf("push: %v", err)
						}
					}
				}
				work, err := through(`select delivery_id::text, claim_token from autopost.claim_deliveries('w', $1, 3)`, fmt.Sprint("run-", n))
				if err != nil {
					t.Errorf("claim: %v", err)
				}
				for _, w := range work {
					for _, step := range []string{
						`select autopost.start_call('w', $1::uuid, $2)`,
						`select autopost.record_series_progress('w', $1::uuid, $2, '{"step": "text", "ids": ["1"]}')`,
						`select autopost.commit_outcome('w', $1::uuid, $2, '{"ok": true, "provider_message_id": "1"}')`,
						`select autopost.commit_outcome('w', $1::uuid, $2, '{"ok": true, "provider_message_id": "1"}')`,
					} {
						rows, err := through(step, w...)
						if err != nil || len(rows) != 1 || rows[0][0].(map[string]any)["applied"] != true {
							t.Errorf("%s: %v %v", step, rows, err)
							return
						}
						if rows[0][0].(map[string]any)["repeated"] == true {
							repeated.Add(1)
						}
					}
					done.Add(1)
				}
			}
		})
	}
	group.Wait()
	require.EqualValues(t, posts*channels, done.Load())
	require.EqualValues(t, posts*channels, repeated.Load(), "a commit that is asked again knows its answer")
	require.EqualValues(t, posts*channels, pgtest.Value[int64](db, `select count(*) from autopost.deliveries where status = 'sent' and attempt = 1`))
	require.EqualValues(t, posts, pgtest.Value[int64](db, `select count(*) from autopost.events where action = 'ingress_dedup_dropped'`))
	rows, err := through(`select to_jsonb(v) from autopost.verify('w') v where v.violations > 0`)
	require.NoError(t, err)
	require.Empty(t, rows)
}
