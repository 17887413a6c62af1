package service_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"autopost/internal/service"
)

// ledger holds each batch up until it is let go, and notes how much came with it.
type ledger struct {
	proceed chan struct{}
	sizes   map[string][]int
	refused string
}

func (l *ledger) ask(ctx context.Context, lane string, items []string) ([]string, error) {
	select {
	case <-l.proceed:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	l.sizes[lane] = append(l.sizes[lane], len(items))
	answers := make([]string, 0, len(items))
	for _, item := range items {
		if item == l.refused {
			return nil, fmt.Errorf("%w: it cannot be stored", service.ErrRefused)
		}
		answers = append(answers, "answer to "+item)
	}
	return answers, nil
}

// asked is a ledger, and how it is asked; told has an error of each question, nil where the answer is its own.
func asked(ctx context.Context, refused string) (l *ledger, do func(lane, item string), told chan error) {
	l = &ledger{proceed: make(chan struct{}), sizes: map[string][]int{}, refused: refused}
	batches := service.NewBatches(ctx, service.Bounds{Most: 6, Timeout: time.Minute}, l.ask)
	told = make(chan error, 100)
	return l, func(lane, item string) {
		go func() {
			answer, err := batches.Do(ctx, lane, item)
			if err == nil && answer != "answer to "+item {
				err = errors.New(answer)
			}
			told <- err
		}()
	}, told
}

func TestWhatComesMeanwhileGoesTogether(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l, do, told := asked(t.Context(), "")
		for n := range 20 {
			do(fmt.Sprint("w", n%2), fmt.Sprint(n))
		}
		synctest.Wait()
		require.Empty(t, told, "nobody goes before there is an answer")
		for range 6 {
			l.proceed <- struct{}{}
			synctest.Wait()
		}
		require.Len(t, told, 20)
		for range 20 {
			require.NoError(t, <-told)
		}
		require.Equal(t, map[string][]int{"w0": {1, 6, 3}, "w1": {1, 6, 3}}, l.sizes, "no more than the bound at a time")
		do("w0", "alone")
		l.proceed <- struct{}{}
		require.NoError(t, <-told, "what was idle goes at once again")
	})
}

func TestAnItemThatIsRefusedIsToBlameAlone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l, do, told := asked(t.Context(), "3")
		do("w", "first")
		synctest.Wait()
		for n := range 6 {
			do("w", fmt.Sprint(n))
		}
		synctest.Wait()
		close(l.proceed)
		refused := 0
		for range 7 {
			if err := <-told; err != nil {
				require.ErrorIs(t, err, service.ErrRefused)
				refused++
			}
		}
		require.Equal(t, 1, refused)
	})
}

func TestWhoLeavesIsNotAskedFor(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := &ledger{proceed: make(chan struct{}), sizes: map[string][]int{}}
		batches := service.NewBatches(t.Context(), service.Bounds{Most: 6, Timeout: time.Minute}, l.ask)
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

func TestABatchEndsWithItsTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		_, do, told := asked(t.Context(), "")
		do("w", "item")
		require.ErrorIs(t, <-told, context.DeadlineExceeded)
	})
}
