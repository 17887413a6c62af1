package worker_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"autopost/internal/worker"
)

// ledger blocks each batch until proceed and records its size.
type ledger struct {
	proceed chan struct{}
	sizes   map[string][]int
	refused string
}

func (l *ledger) ask(ctx context.Context, key string, items []string) ([]string, error) {
	select {
	case <-l.proceed:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	l.sizes[key] = append(l.sizes[key], len(items))
	answers := make([]string, 0, len(items))
	for _, item := range items {
		if item == l.refused {
			return nil, fmt.Errorf("%w: it cannot be stored", worker.ErrRefused)
		}
		answers = append(answers, "answer to "+item)
	}
	return answers, nil
}

// asked makes a ledger. results has an error for each question, nil if the answer belongs to it.
func asked(ctx context.Context, refused string) (l *ledger, do func(key, item string), results chan error) {
	l = &ledger{proceed: make(chan struct{}), sizes: map[string][]int{}, refused: refused}
	batches := worker.NewBatcher(ctx, worker.Bounds{Most: 6, Timeout: time.Minute}, l.ask)
	results = make(chan error, 100)
	return l, func(key, item string) {
		go func() {
			answer, err := batches.Do(ctx, key, item)
			if err == nil && answer != "answer to "+item {
				err = errors.New(answer)
			}
			results <- err
		}()
	}, results
}

func TestWaitingCallsAreMerged(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l, do, results := asked(t.Context(), "")
		for n := range 20 {
			do(fmt.Sprint("w", n%2), fmt.Sprint(n))
		}
		synctest.Wait()
		require.Empty(t, results, "no call has returned before the first answer")
		for range 6 {
			l.proceed <- struct{}{}
			synctest.Wait()
		}
		require.Len(t, results, 20)
		for range 20 {
			require.NoError(t, <-results)
		}
		require.Equal(t, map[string][]int{"w0": {1, 6, 3}, "w1": {1, 6, 3}}, l.sizes, "no batch is larger than the limit")
		do("w0", "alone")
		l.proceed <- struct{}{}
		require.NoError(t, <-results, "an idle key calls at once")
	})
}

// A key with a rest calls at once if it was idle. Then it waits for more questions, as long as its work demands or
// until they fill a batch.
func TestARestMergesLaterCalls(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var sizes []int
		batches := worker.NewBatcher(t.Context(), worker.Bounds{Most: 9, Timeout: time.Minute, Rest: worker.Rest{Times: 9, Most: time.Second}, Enough: 6},
			func(_ context.Context, _ string, items []int) ([]int, error) {
				<-time.After(10 * time.Millisecond)
				mu.Lock()
				defer mu.Unlock()
				sizes = append(sizes, len(items))
				return items, nil
			})
		began := time.Now()
		do := func(after time.Duration, n int) {
			for range n {
				go func() {
					<-time.After(after)
					_, _ = batches.Do(t.Context(), "w", n)
				}()
			}
		}
		at := func(want time.Duration, sizesWant ...int) {
			<-time.After(time.Until(began.Add(want)))
			synctest.Wait()
			mu.Lock()
			defer mu.Unlock()
			require.Equal(t, sizesWant, sizes, "after %s", want)
		}
		do(0, 1)
		at(10*time.Millisecond, 1)
		do(10*time.Millisecond, 2)
		do(50*time.Millisecond, 2)
		at(109*time.Millisecond, 1)
		at(110*time.Millisecond, 1, 4)
		do(time.Millisecond, 6)
		at(121*time.Millisecond, 1, 4, 6)
		at(1121*time.Millisecond, 1, 4, 6)
		do(0, 1)
		at(1131*time.Millisecond, 1, 4, 6, 1)
	})
}

func TestARefusedItemFailsAlone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l, do, results := asked(t.Context(), "3")
		do("w", "first")
		synctest.Wait()
		for n := range 6 {
			do("w", fmt.Sprint(n))
		}
		synctest.Wait()
		close(l.proceed)
		refused := 0
		for range 7 {
			if err := <-results; err != nil {
				require.ErrorIs(t, err, worker.ErrRefused)
				refused++
			}
		}
		require.Equal(t, 1, refused)
	})
}

func TestACancelledCallIsNotMade(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := &ledger{proceed: make(chan struct{}), sizes: map[string][]int{}}
		batches := worker.NewBatcher(t.Context(), worker.Bounds{Most: 6, Timeout: time.Minute}, l.ask)
		done := make(chan error, 3)
		ask := func(ctx context.Context) {
			_, err := batches.Do(ctx, "w", "item")
			done <- err
		}
		go ask(t.Context())
		synctest.Wait()
		ctx, leave := context.WithCancel(t.Context())
		go ask(ctx)
		synctest.Wait()
		go ask(t.Context())
		synctest.Wait()
		require.Equal(t, 3, batches.Unanswered("w"))
		leave()
		require.ErrorIs(t, <-done, context.Canceled)
		require.Equal(t, 2, batches.Unanswered("w"))
		close(l.proceed)
		require.NoError(t, <-done)
		require.NoError(t, <-done)
		require.Equal(t, []int{1, 1}, l.sizes["w"])
		require.Zero(t, batches.Unanswered("w"))
	})
}

func TestABatchHasATimeout(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		_, do, results := asked(t.Context(), "")
		do("w", "item")
		require.ErrorIs(t, <-results, context.DeadlineExceeded)
	})
}

// Many keys ask, leave and count at once; each answer belongs to its question.
func TestManyKeysAskAtOnce(t *testing.T) {
	t.Parallel()
	batches := worker.NewBatcher(t.Context(), worker.Bounds{Most: 8, Timeout: time.Minute}, func(_ context.Context, key int, items []int) ([]int, error) {
		answers := make([]int, 0, len(items))
		for _, item := range items {
			answers = append(answers, 1000*key+item)
		}
		return answers, nil
	})
	var asking sync.WaitGroup
	for n := range 64 * 20 {
		asking.Go(func() {
			key, item := n%64, n/64
			ctx, leave := context.WithCancel(t.Context())
			defer leave()
			if n%7 == 0 {
				leave()
			}
			answer, err := batches.Do(ctx, key, item)
			batches.Unanswered(key)
			if err == nil && answer != 1000*key+item {
				t.Errorf("key %d, item %d got the answer %d", key, item, answer)
			}
		})
	}
	asking.Wait()
	for key := range 64 {
		require.Zero(t, batches.Unanswered(key))
	}
}
