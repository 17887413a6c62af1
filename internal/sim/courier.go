package sim

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"sync"
	"time"
)

// Push is one attempt to bring an update to a subscriber.
type Push struct {
	At       time.Time `json:"at"`
	Platform string    `json:"platform"`
	// Kind is the platform's name of the update's type.
	Kind string `json:"kind"`
	// Attempt counts from 1.
	Attempt int `json:"attempt"`
	// Status is the subscriber's answer, 0 when there was none.
	Status int `json:"status"`
}

// pushTimeout is how long a subscriber may take to answer.
const pushTimeout = 30 * time.Second

// rememberedPushes is how many attempts a courier can tell of.
const rememberedPushes = 10_000

// Errand is one thing to be brought. It is run again after wait until it is done.
type Errand func(ctx context.Context) (wait time.Duration, done bool)

// Courier brings what platforms tell by themselves: for each key one errand after
// the other. It is safe for concurrent use; Close it.
type Courier struct {
	client *http.Client
	ctx    context.Context //nolint:containedctx // it outlives the call that sent for it, and ends with Close
	stop   context.CancelFunc
	done   sync.WaitGroup

	mu     sync.Mutex
	queues map[string]*queue
	pushes []Push
}

type queue struct {
	errands []Errand
	nudged  chan struct{}
}

// NewCourier returns a courier without errands.
func NewCourier() *Courier {
	ctx, stop := context.WithCancel(context.Background())
	return &Courier{client: &http.Client{Timeout: pushTimeout, Transport: &http.Transport{DisableKeepAlives: true}}, ctx: ctx, stop: stop, queues: map[string]*queue{}}
}

// Close ends all errands where they are.
func (c *Courier) Close() {
	c.stop()
	c.done.Wait()
}

// Send has an errand run after those of the same key.
func (c *Courier) Send(key string, e Errand) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ctx.Err() != nil {
		return
	}
	q := c.queues[key]
	if q == nil {
		q = &queue{nudged: make(chan struct{}, 1)}
		c.queues[key] = q
		c.done.Go(func() { c.work(key, q) })
	}
	q.errands = append(q.errands, e)
}

// Nudge ends the wait of the errand that is under way for a key.
func (c *Courier) Nudge(key string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if q := c.queues[key]; q != nil {
		select {
		case q.nudged <- struct{}{}:
		default:
		}
	}
}

func (c *Courier) work(key string, q *queue) {
	for {
		c.mu.Lock()
		if len(q.errands) == 0 || c.ctx.Err() != nil {
			delete(c.queues, key)
			c.mu.Unlock()
			return
		}
		next := q.errands[0]
		q.errands = q.errands[1:]
		c.mu.Unlock()
		c.run(next, q)
	}
}

func (c *Courier) run(e Errand, q *queue) {
	for {
		wait, done := e(c.ctx)
		if done || c.ctx.Err() != nil {
			return
		}
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-q.nudged:
		case <-c.ctx.Done():
		}
		timer.Stop()
	}
}

// Deliver pushes once and notes that it did. It returns the answer's status, 0 with
// why there was none, and its Retry-After.
func (c *Courier) Deliver(ctx context.Context, p Push, url string, header http.Header, body []byte) (status int, retryAfter time.Duration, err error) {
	p.At = time.Now()
	defer func() {
		p.Status = status
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.pushes = append(c.pushes, p); len(c.pushes) > rememberedPushes {
			c.pushes = c.pushes[1:]
		}
	}()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return 0, 0, fmt.Errorf("make push: %w", err)
	}
	request.Header = header.Clone()
	request.Header.Set("Content-Type", "application/json")
	response, err := c.client.Do(request)
	if err != nil {
		return 0, 0, fmt.Errorf("push: %w", err)
	}
	defer func() { _ = response.Body.Close() }()
	if _, err := io.Copy(io.Discard, io.LimitReader(response.Body, 1<<20)); err != nil {
		return 0, 0, fmt.Errorf("read answer: %w", err)
	}
	// What is no number of seconds asks for nothing.
	seconds, _ := strconv.Atoi(response.Header.Get("Retry-After"))
	return response.StatusCode, time.Duration(seconds) * time.Second, nil
}

// Pushes returns the attempts so far, oldest first.
func (c *Courier) Pushes() []Push {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]Push(nil), c.pushes...)
}
