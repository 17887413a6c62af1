package callfaults

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"autopost/internal/pg"
	"autopost/internal/testing/pgtest"
	"autopost/test/harness"
)

var errGone = errors.New("the connection is gone")

// calls makes one call of a stage to its database fail.
type calls struct {
	pg.Querier
	// db is the store whose calls go through here.
	db *pg.Store
	// functions are the SQL functions that count.
	functions []string
	// fails is the number of the failing call, from 1. If late is true, the call is made and its answer is lost.
	fails int
	late  bool

	mu     sync.Mutex
	paused bool
	n      int
	failed string
}

var calledFunction = regexp.MustCompile(`autopost\.([a-z_]+)\(`)

// Query implements pg.Querier.
func (c *calls) Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error) {
	if !c.hits(sql) {
		return c.Querier.Query(ctx, sql, args...)
	}
	if !c.late {
		return nil, errGone
	}
	rows, err := c.Querier.Query(ctx, sql, args...)
	if err == nil {
		rows.Close() // reads to the end: the statement commits
		err = rows.Err()
	}
	return nil, errors.Join(errGone, err)
}

// hits counts a call and reports whether it must fail.
func (c *calls) hits(sql string) bool {
	called := calledFunction.FindStringSubmatch(sql)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.paused || called == nil || !slices.Contains(c.functions, called[1]) {
		return false
	}
	c.n++
	if c.n != c.fails {
		return false
	}
	c.failed = called[1]
	return true
}

// pause stops counting until it is called with false.
func (c *calls) pause(on bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.paused = on
}

// failure returns the function that failed; "" if none has.
func (c *calls) failure() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.failed
}

// scenario runs a stage to its end, checks the result and returns the number of unknown outcomes.
type scenario func(t *testing.T, h *harness.Harness, c *calls) (unknown int)

// everyCall runs a scenario with every stride-th of its calls failing, each in its own installation and in both ways,
// until the scenario ends before that call. A long run makes each call fail.
func everyCall(t *testing.T, stride int, functions []string, run scenario) {
	if pgtest.Long() {
		stride = 1
	}
	for _, late := range []bool{false, true} {
		name := map[bool]string{false: "does not arrive", true: "its answer is lost"}[late]
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			failed := map[string]int{}
			runs, unknown := 0, 0
			for n := stride; ; n += stride {
				c := &calls{functions: functions, fails: n, late: late}
				t.Run(fmt.Sprint(n), func(t *testing.T) {
					h := harness.New(t)
					h.Workspace("news")
					c.open(t, h)
					unknown += run(t, h, c)
				})
				last := c.failure()
				if last == "" || t.Failed() {
					break
				}
				failed[last]++
				runs++
			}
			t.Logf("%d runs with a failed call, %d unknown outcomes: %v", runs, unknown, failed)
			require.Positive(t, runs, "a slow machine makes fewer calls, because they share more work")
		})
	}
}

func (c *calls) open(t *testing.T, h *harness.Harness) {
	db, err := pg.Open(t.Context(), pg.Options{URL: h.URL(""), Wrap: func(q pg.Querier) pg.Querier {
		c.Querier = q
		return c
	}})
	require.NoError(t, err)
	t.Cleanup(db.Close)
	c.db = db
}

// serve runs a stage until end is called, at the latest at the end of the test.
func serve(t *testing.T, run func(context.Context) error) (end func()) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- run(ctx) }()
	end = sync.OnceFunc(func() {
		cancel()
		require.NoError(t, <-ended)
	})
	t.Cleanup(end)
	return end
}
