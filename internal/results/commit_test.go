package results

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
)

// ledger holds each commit up until it is let go, and notes how much came with it.
type ledger struct {
	Queue
	proceed chan struct{}
	sizes   map[string][]int
}

func (l *ledger) CommitWebhooks(_ context.Context, workspace string, told []Told) error {
	<-l.proceed
	l.sizes[workspace] = append(l.sizes[workspace], len(told))
	return nil
}

// What comes while a commit of its workspace is under way goes together in the next one.
func TestOutcomesThatWaitAreCommittedTogether(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		queue := &ledger{proceed: make(chan struct{}), sizes: map[string][]int{}}
		c := commits{queue: queue, log: slog.New(slog.DiscardHandler), waiting: map[string][]*commit{}}
		recorded := make(chan string, 20)
		for n := range 20 {
			go func() {
				workspace := fmt.Sprint("w", n%2)
				c.do(t.Context(), workspace, Told{})
				recorded <- workspace
			}()
		}
		synctest.Wait()
		require.Empty(t, recorded, "nobody goes before it is known")
		for range 4 {
			queue.proceed <- struct{}{}
			synctest.Wait()
		}
		require.Len(t, recorded, 20)
		require.Equal(t, map[string][]int{"w0": {1, 9}, "w1": {1, 9}}, queue.sizes)
		require.Empty(t, c.waiting)
	})
}
