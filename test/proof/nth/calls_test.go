package nth

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"autopost/internal/pg"
	"autopost/internal/pgtest"
	"autopost/test/house"
)

// patience is how long a walk may take to come to its end by itself.
const patience = 40 * time.Second

var errGone = errors.New("the connection is gone")

// calls are those of a stage to its database, one of which fails.
type calls struct {
	db *pg.Store
	// fails is the number of that call, from 1; late says that it is made, and only its answer lost.
	fails int
	late  bool

	mu  sync.Mutex
	n   int
	met string
}

// through makes a call, unless it is the one to fail.
func through[T any](c *calls, what string, ask func() (T, error)) (T, error) {
	c.mu.Lock()
	c.n++
	hit := c.n == c.fails
	if hit {
		c.met = what
	}
	c.mu.Unlock()
	if hit && !c.late {
		return *new(T), errGone
	}
	answer, err := ask()
	if hit {
		return *new(T), errors.Join(errGone, err)
	}
	return answer, err
}

// done makes a call without an answer.
func done(c *calls, what string, ask func() error) error {
	_, err := through(c, what, func() (struct{}, error) { return struct{}{}, ask() })
	return err
}

// failed names the call that failed; "" while none has.
func (c *calls) failed() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.met
}

// everyCall lets every stride-th call of a walk fail, in a house of its own, either way,
// until a walk comes to its end before that call. A long run lets each fail. A walk
// judges the end, and returns how many outcomes it left in doubt.
func everyCall(t *testing.T, stride int, walk func(t *testing.T, h *house.House, c *calls) (doubts int)) {
	if pgtest.Long() {
		stride = 1
	}
	for _, late := range []bool{false, true} {
		name := map[bool]string{false: "does not arrive", true: "its answer is lost"}[late]
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			met := map[string]int{}
			runs, doubts := 0, 0
			for n := stride; ; n += stride {
				c := &calls{fails: n, late: late}
				t.Run(fmt.Sprint(n), func(t *testing.T) {
					h := house.New(t)
					h.Workspace("news")
					c.db = open(t, h)
					doubts += walk(t, h, c)
				})
				last := c.failed()
				if last == "" || t.Failed() {
					break
				}
				met[last]++
				runs++
			}
			t.Logf("%d runs with a call that failed, %d outcomes in doubt: %v", runs, doubts, met)
			require.Greater(t, runs, 1)
		})
	}
}

func open(t *testing.T, h *house.House) *pg.Store {
	db, err := pg.Open(t.Context(), pg.Options{URL: h.URL("")})
	require.NoError(t, err)
	t.Cleanup(db.Close)
	return db
}

// serve runs a stage until end, which is called at the end of the test at the latest.
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

func convert[A, B any](list []A, one func(A) B) []B {
	out := make([]B, 0, len(list))
	for _, a := range list {
		out = append(out, one(a))
	}
	return out
}
