package service

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"
)

// ErrRefused marks the error of a batch that the database refused for what is in
// it: asked again, it would refuse it again. Any other error is the database's own.
var ErrRefused = errors.New("refused by the database")

// Batches makes few calls of many: one goes at once when no other of its lane is
// under way; those that come meanwhile go together when it returns. A lane is what
// goes together. One batch of a lane at a time: two smaller ones cost the database
// more, and wait for each other at the same rows. Make it by NewBatches; it is safe
// for concurrent use.
type Batches[L comparable, Q, A any] struct {
	// life ends every call.
	life   context.Context
	bounds Bounds
	ask    func(ctx context.Context, lane L, items []Q) ([]A, error)

	mu sync.Mutex
	// waiting has an entry for each lane with a call under way.
	waiting map[L][]*question[Q, A]
	// open counts the questions without an answer.
	open map[L]int
}

// Bounds are those of one call.
type Bounds struct {
	// Most is how many items go together.
	Most    int
	Timeout time.Duration
}

type question[Q, A any] struct {
	item   Q
	answer chan answer[A] // holds one
}

type answer[A any] struct {
	value A
	err   error
}

// NewBatches makes Batches of a call that answers in the order of the items. What life ends, is not asked again.
func NewBatches[L comparable, Q, A any](life context.Context, bounds Bounds, ask func(ctx context.Context, lane L, items []Q) ([]A, error)) *Batches[L, Q, A] {
	return &Batches[L, Q, A]{life: life, bounds: bounds, ask: ask, waiting: map[L][]*question[Q, A]{}, open: map[L]int{}}
}

// Do asks for one item. When ctx ends first, it is not asked for, or the answer is lost.
func (b *Batches[L, Q, A]) Do(ctx context.Context, in L, item Q) (A, error) {
	q := &question[Q, A]{item: item, answer: make(chan answer[A], 1)}
	b.count(in, 1)
	defer b.count(in, -1)
	if b.join(in, q) {
		go b.serve(in, []*question[Q, A]{q})
	}
	select {
	case a := <-q.answer:
		return a.value, a.err
	case <-ctx.Done():
		b.leave(in, q)
		return *new(A), ctx.Err()
	}
}

func (b *Batches[L, Q, A]) count(in L, n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.open[in] += n; b.open[in] == 0 {
		delete(b.open, in)
	}
}

// Unanswered is how many questions of a lane have no answer yet.
func (b *Batches[L, Q, A]) Unanswered(in L) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.open[in]
}

// join reports whether nothing is under way; otherwise q waits until it is taken along.
func (b *Batches[L, Q, A]) join(in L, q *question[Q, A]) (first bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	queue, busy := b.waiting[in]
	if !busy {
		b.waiting[in] = nil
		return true
	}
	b.waiting[in] = append(queue, q)
	return false
}

func (b *Batches[L, Q, A]) leave(in L, q *question[Q, A]) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if at := slices.Index(b.waiting[in], q); at >= 0 {
		b.waiting[in] = slices.Delete(b.waiting[in], at, at+1)
	}
}

// next takes those that wait; when none does, nothing is under way any more.
func (b *Batches[L, Q, A]) next(in L) []*question[Q, A] {
	b.mu.Lock()
	defer b.mu.Unlock()
	queue := b.waiting[in]
	if len(queue) == 0 {
		delete(b.waiting, in)
		return nil
	}
	n := min(len(queue), b.bounds.Most)
	b.waiting[in] = slices.Clone(queue[n:])
	return queue[:n:n]
}

func (b *Batches[L, Q, A]) serve(in L, batch []*question[Q, A]) {
	for ; len(batch) > 0; batch = b.next(in) {
		b.put(in, batch)
	}
}

// put asks for a batch. One that is refused for what is in it is asked for by
// halves, until the item that is to blame stands alone.
func (b *Batches[L, Q, A]) put(in L, batch []*question[Q, A]) {
	items := make([]Q, 0, len(batch))
	for _, q := range batch {
		items = append(items, q.item)
	}
	ctx, cancel := context.WithTimeout(b.life, b.bounds.Timeout)
	answers, err := b.ask(ctx, in, items)
	cancel()
	if err == nil && len(answers) != len(batch) {
		err = fmt.Errorf("%d questions got %d answers", len(batch), len(answers))
	}
	if errors.Is(err, ErrRefused) && len(batch) > 1 {
		b.put(in, batch[:len(batch)/2])
		b.put(in, batch[len(batch)/2:])
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
