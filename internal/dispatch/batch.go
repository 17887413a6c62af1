package dispatch

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
)

// mostAtOnce bounds a batch, and with it how long its rows stay locked.
const mostAtOnce = 500

// batches makes few calls of many: one goes at once when no other of its workspace
// is under way; those that come meanwhile go together when it returns.
type batches[Q, A any] struct {
	// life ends every call.
	life context.Context
	ask  func(ctx context.Context, workspace string, items []Q) ([]A, error)

	mu sync.Mutex
	// waiting has an entry for each workspace with a call under way.
	waiting map[string][]*question[Q, A]
}

type question[Q, A any] struct {
	item   Q
	answer chan answer[A] // holds one
}

type answer[A any] struct {
	value A
	err   error
}

func newBatches[Q, A any](life context.Context, ask func(context.Context, string, []Q) ([]A, error)) *batches[Q, A] {
	return &batches[Q, A]{life: life, ask: ask, waiting: map[string][]*question[Q, A]{}}
}

// do asks for one item. When ctx ends first, it is not asked for, or the answer is lost.
func (b *batches[Q, A]) do(ctx context.Context, workspace string, item Q) (A, error) {
	q := &question[Q, A]{item: item, answer: make(chan answer[A], 1)}
	if b.join(workspace, q) {
		go b.serve(workspace, []*question[Q, A]{q})
	}
	select {
	case a := <-q.answer:
		return a.value, a.err
	case <-ctx.Done():
		b.leave(workspace, q)
		return *new(A), ctx.Err()
	}
}

// join reports whether nothing is under way; otherwise q waits until it is taken along.
func (b *batches[Q, A]) join(workspace string, q *question[Q, A]) (first bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	queue, busy := b.waiting[workspace]
	if !busy {
		b.waiting[workspace] = nil
		return true
	}
	b.waiting[workspace] = append(queue, q)
	return false
}

func (b *batches[Q, A]) leave(workspace string, q *question[Q, A]) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if at := slices.Index(b.waiting[workspace], q); at >= 0 {
		b.waiting[workspace] = slices.Delete(b.waiting[workspace], at, at+1)
	}
}

// next takes those that wait; when none does, nothing is under way any more.
func (b *batches[Q, A]) next(workspace string) []*question[Q, A] {
	b.mu.Lock()
	defer b.mu.Unlock()
	queue := b.waiting[workspace]
	if len(queue) == 0 {
		delete(b.waiting, workspace)
		return nil
	}
	n := min(len(queue), mostAtOnce)
	b.waiting[workspace] = slices.Clone(queue[n:])
	return queue[:n:n]
}

func (b *batches[Q, A]) serve(workspace string, batch []*question[Q, A]) {
	for ; len(batch) > 0; batch = b.next(workspace) {
		b.put(workspace, batch)
	}
}

// put asks for a batch. One that is refused for what is in it is asked for by
// halves, until the item that is to blame stands alone.
func (b *batches[Q, A]) put(workspace string, batch []*question[Q, A]) {
	items := make([]Q, 0, len(batch))
	for _, q := range batch {
		items = append(items, q.item)
	}
	ctx, cancel := context.WithTimeout(b.life, queryTimeout)
	answers, err := b.ask(ctx, workspace, items)
	cancel()
	if err == nil && len(answers) != len(batch) {
		err = fmt.Errorf("%d questions got %d answers", len(batch), len(answers))
	}
	if errors.Is(err, ErrRefused) && len(batch) > 1 {
		b.put(workspace, batch[:len(batch)/2])
		b.put(workspace, batch[len(batch)/2:])
		return
	}
	for i, q := range batch {
		if err != nil {
			q.answer <- answer[A]{err: err}
			continue
		}
		q.answer <- answer[A]{value: answers[i]}
	}
}
