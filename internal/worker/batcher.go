package worker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"
)

// ErrRefused marks an error that repeats if the same call is made again: the database refused its arguments. Any other
// error is a failure of the database itself.
var ErrRefused = errors.New("refused by the database")

// Batcher merges calls with the same batch key. A call runs at once if no other with its key is running; those that
// arrive meanwhile run together after it. Only one batch of a key runs at a time: two smaller ones would cost the
// database more and wait for each other's row locks. With a Rest a key pauses after each batch, until enough
// questions wait. Make it with NewBatcher; it is safe for concurrent use.
type Batcher[K comparable, Q, A any] struct {
	// life ends every call.
	life   context.Context
	bounds Bounds
	ask    func(ctx context.Context, key K, items []Q) ([]A, error)

	mu sync.Mutex
	// waiting has an entry for each key with a running call or a pause after it.
	waiting map[K]*line[Q, A]
	// open counts the questions without an answer.
	open map[K]int
}

// Bounds limit one call.
type Bounds struct {
	// Most is the number of items.
	Most    int
	Timeout time.Duration
	// Rest is the pause of a key after a call; none by default. It is for calls that are not urgent.
	Rest Rest
	// Enough is the number of waiting items that ends a pause. Default Most.
	Enough int
}

// line has the questions of a key that wait for the next batch.
type line[Q, A any] struct {
	questions []*question[Q, A]
	// full holds one hint that they are enough for a batch.
	full chan struct{}
}

type question[Q, A any] struct {
	item   Q
	answer chan answer[A] // holds one
}

type answer[A any] struct {
	value A
	err   error
}

// NewBatcher makes a Batcher of a call that answers in the order of its items. The end of life cancels all calls.
func NewBatcher[K comparable, Q, A any](
	life context.Context, bounds Bounds, ask func(ctx context.Context, key K, items []Q) ([]A, error),
) *Batcher[K, Q, A] {
	bounds.Enough = cmp.Or(bounds.Enough, bounds.Most)
	return &Batcher[K, Q, A]{life: life, bounds: bounds, ask: ask, waiting: map[K]*line[Q, A]{}, open: map[K]int{}}
}

// Do asks for one item. If ctx ends first, the item is not asked for, or its answer is lost.
func (b *Batcher[K, Q, A]) Do(ctx context.Context, key K, item Q) (A, error) {
	q := &question[Q, A]{item: item, answer: make(chan answer[A], 1)}
	b.count(key, 1)
	defer b.count(key, -1)
	if b.join(key, q) {
		go Task(b.life, func() { b.serve(key, []*question[Q, A]{q}) })()
	}
	select {
	case a := <-q.answer:
		return a.value, a.err
	case <-ctx.Done():
		b.leave(key, q)
		return *new(A), ctx.Err()
	}
}

func (b *Batcher[K, Q, A]) count(key K, n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.open[key] += n; b.open[key] == 0 {
		delete(b.open, key)
	}
}

// Unanswered counts the questions of a key without an answer.
func (b *Batcher[K, Q, A]) Unanswered(key K) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.open[key]
}

// join reports whether no call is running; otherwise q waits for the next batch.
func (b *Batcher[K, Q, A]) join(key K, q *question[Q, A]) (first bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	queue := b.waiting[key]
	if queue == nil {
		b.waiting[key] = &line[Q, A]{full: make(chan struct{}, 1)}
		return true
	}
	queue.questions = append(queue.questions, q)
	if len(queue.questions) >= b.bounds.Enough {
		Wake(queue.full)
	}
	return false
}

func (b *Batcher[K, Q, A]) leave(key K, q *question[Q, A]) {
	b.mu.Lock()
	defer b.mu.Unlock()
	queue := b.waiting[key]
	if queue == nil {
		return
	}
	if at := slices.Index(queue.questions, q); at >= 0 {
		queue.questions = slices.Delete(queue.questions, at, at+1)
	}
}

// next takes the waiting questions. If there are none, the key has no running call any more.
func (b *Batcher[K, Q, A]) next(key K) []*question[Q, A] {
	b.mu.Lock()
	defer b.mu.Unlock()
	queue := b.waiting[key]
	if len(queue.questions) == 0 {
		delete(b.waiting, key)
		return nil
	}
	n := min(len(queue.questions), b.bounds.Most)
	batch := queue.questions[:n:n]
	queue.questions = slices.Clone(queue.questions[n:])
	return batch
}

func (b *Batcher[K, Q, A]) serve(key K, batch []*question[Q, A]) {
	for ; len(batch) > 0; batch = b.next(key) {
		began := time.Now()
		b.put(key, batch)
		b.rest(key, b.bounds.Rest.After(time.Since(began)))
	}
}

// rest waits, unless enough questions are waiting.
func (b *Batcher[K, Q, A]) rest(key K, pause time.Duration) {
	if pause <= 0 {
		return
	}
	b.mu.Lock()
	queue := b.waiting[key]
	select { // the hint may be about the last batch
	case <-queue.full:
	default:
	}
	full := len(queue.questions) >= b.bounds.Enough
	b.mu.Unlock()
	if full {
		return
	}
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-queue.full:
	case <-b.life.Done():
	}
}

// put asks for a batch. It splits a refused batch into halves until the wrong item is alone.
func (b *Batcher[K, Q, A]) put(key K, batch []*question[Q, A]) {
	items := make([]Q, 0, len(batch))
	for _, q := range batch {
		items = append(items, q.item)
	}
	ctx, cancel := context.WithTimeout(b.life, b.bounds.Timeout)
	var answers []A
	err := Contained(b.life, func() (err error) {
		answers, err = b.ask(ctx, key, items)
		return err
	})()
	cancel()
	if err == nil && len(answers) != len(batch) {
		err = fmt.Errorf("%d questions got %d answers", len(batch), len(answers))
	}
	if errors.Is(err, ErrRefused) && len(batch) > 1 {
		b.put(key, batch[:len(batch)/2])
		b.put(key, batch[len(batch)/2:])
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
