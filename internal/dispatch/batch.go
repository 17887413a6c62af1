package dispatch

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"autopost"
)

// mostAtOnce bounds a batch, and with it how long its rows stay locked and how many
// deliveries go on at one moment, before those of others that are ready as well.
const mostAtOnce = 60

// batches makes few calls of many: one goes at once when no other of its lane is
// under way; those that come meanwhile go together when it returns.
type batches[Q, A any] struct {
	// life ends every call, and so does timeout.
	life    context.Context
	timeout time.Duration
	ask     func(ctx context.Context, lane lane, items []Q) ([]A, error)

	mu sync.Mutex
	// waiting has an entry for each lane with a call under way.
	waiting map[lane][]*question[Q, A]
	// open counts the questions without an answer.
	open map[Part]int
}

// lane is what goes together: a batch is of one workspace and platform, and of one
// thing there, where only the like goes together. One batch of a lane at a time: two smaller
// ones cost the database more, and wait for each other at the same rows.
type lane struct {
	Part
	of string
}

func laneOf(d autopost.Delivery) lane { return lane{Part: partOf(d)} }

func partOf(d autopost.Delivery) Part { return Part{d.WorkspaceID, d.Platform} }

type question[Q, A any] struct {
	item   Q
	answer chan answer[A] // holds one
}

type answer[A any] struct {
	value A
	err   error
}

func newBatches[Q, A any](life context.Context, timeout time.Duration, ask func(context.Context, lane, []Q) ([]A, error)) *batches[Q, A] {
	return &batches[Q, A]{life: life, timeout: timeout, ask: ask, waiting: map[lane][]*question[Q, A]{}, open: map[Part]int{}}
}

// do asks for one item. When ctx ends first, it is not asked for, or the answer is lost.
func (b *batches[Q, A]) do(ctx context.Context, in lane, item Q) (A, error) {
	q := &question[Q, A]{item: item, answer: make(chan answer[A], 1)}
	b.count(in.Part, 1)
	defer b.count(in.Part, -1)
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

func (b *batches[Q, A]) count(part Part, n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.open[part] += n; b.open[part] == 0 {
		delete(b.open, part)
	}
}

// unanswered is how many questions of a part have no answer yet.
func (b *batches[Q, A]) unanswered(part Part) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.open[part]
}

// join reports whether nothing is under way; otherwise q waits until it is taken along.
func (b *batches[Q, A]) join(in lane, q *question[Q, A]) (first bool) {
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

func (b *batches[Q, A]) leave(in lane, q *question[Q, A]) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if at := slices.Index(b.waiting[in], q); at >= 0 {
		b.waiting[in] = slices.Delete(b.waiting[in], at, at+1)
	}
}

// next takes those that wait; when none does, nothing is under way any more.
func (b *batches[Q, A]) next(in lane) []*question[Q, A] {
	b.mu.Lock()
	defer b.mu.Unlock()
	queue := b.waiting[in]
	if len(queue) == 0 {
		delete(b.waiting, in)
		return nil
	}
	n := min(len(queue), mostAtOnce)
	b.waiting[in] = slices.Clone(queue[n:])
	return queue[:n:n]
}

func (b *batches[Q, A]) serve(in lane, batch []*question[Q, A]) {
	for ; len(batch) > 0; batch = b.next(in) {
		b.put(in, batch)
	}
}

// put asks for a batch. One that is refused for what is in it is asked for by
// halves, until the item that is to blame stands alone.
func (b *batches[Q, A]) put(in lane, batch []*question[Q, A]) {
	items := make([]Q, 0, len(batch))
	for _, q := range batch {
		items = append(items, q.item)
	}
	ctx, cancel := context.WithTimeout(b.life, b.timeout)
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
