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

// Push is one attempt to deliver an update to a subscriber.
type Push struct {
	At       time.Time `json:"at"`
	Platform string    `json:"platform"`
	// Kind is the platform's name of the update type.
	Kind string `json:"kind"`
	// Attempt counts from 1.
	Attempt int `json:"attempt"`
	// Status is the HTTP status of the answer, 0 without an answer.
	Status int `json:"status"`
}

// pushTimeout bounds one attempt.
const pushTimeout = 30 * time.Second

// rememberedPushes is the number of attempts that Pushes returns at most.
const rememberedPushes = 10_000

// Task delivers one update. It is repeated after wait until it is done.
type Task func(ctx context.Context) (wait time.Duration, done bool)

// WebhookSender delivers the platforms' updates to subscribers. The tasks of one key run one after
// another. It is safe for concurrent use; Close it.
type WebhookSender struct {
	client *http.Client
	ctx    context.Context //nolint:containedctx // it outlives the calls of Send and ends with Close
	stop   context.CancelFunc
	done   sync.WaitGroup

	mu     sync.Mutex
	queues map[string]*queue
	pushes []Push
}

type queue struct {
	tasks  []Task
	nudged chan struct{}
}

// NewWebhookSender returns a sender without tasks.
func NewWebhookSender() *WebhookSender {
	ctx, stop := context.WithCancel(context.Background())
	return &WebhookSender{
		client: &http.Client{Timeout: pushTimeout, Transport: &http.Transport{DisableKeepAlives: true}},
		ctx:    ctx, stop: stop, queues: map[string]*queue{},
	}
}

// Close stops all tasks and waits for their end.
func (s *WebhookSender) Close() {
	s.stop()
	s.done.Wait()
}

// Send adds a task after those of the same key.
func (s *WebhookSender) Send(key string, task Task) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ctx.Err() != nil {
		return
	}
	q := s.queues[key]
	if q == nil {
		q = &queue{nudged: make(chan struct{}, 1)}
		s.queues[key] = q
		s.done.Go(func() { s.work(key, q) })
	}
	q.tasks = append(q.tasks, task)
}

// Nudge ends the current wait of a key's task.
func (s *WebhookSender) Nudge(key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if q := s.queues[key]; q != nil {
		select {
		case q.nudged <- struct{}{}:
		default:
		}
	}
}

func (s *WebhookSender) work(key string, q *queue) {
	for {
		s.mu.Lock()
		if len(q.tasks) == 0 || s.ctx.Err() != nil {
			delete(s.queues, key)
			s.mu.Unlock()
			return
		}
		next := q.tasks[0]
		q.tasks = q.tasks[1:]
		s.mu.Unlock()
		s.run(next, q)
	}
}

func (s *WebhookSender) run(task Task, q *queue) {
	for {
		wait, done := task(s.ctx)
		if done || s.ctx.Err() != nil {
			return
		}
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-q.nudged:
		case <-s.ctx.Done():
		}
		timer.Stop()
	}
}

// Deliver makes one attempt and records it. It returns the answer's status and Retry-After, or status
// 0 and an error without an answer.
func (s *WebhookSender) Deliver(ctx context.Context, p Push, url string, header http.Header, body []byte) (status int, retryAfter time.Duration, err error) {
	p.At = time.Now()
	defer func() {
		p.Status = status
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.pushes = append(s.pushes, p); len(s.pushes) > rememberedPushes {
			s.pushes = s.pushes[1:]
		}
	}()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return 0, 0, fmt.Errorf("make push: %w", err)
	}
	request.Header = header.Clone()
	request.Header.Set("Content-Type", "application/json")
	response, err := s.client.Do(request)
	if err != nil {
		return 0, 0, fmt.Errorf("push: %w", err)
	}
	defer func() { _ = response.Body.Close() }()
	if _, err := io.Copy(io.Discard, io.LimitReader(response.Body, 1<<20)); err != nil {
		return 0, 0, fmt.Errorf("read answer: %w", err)
	}
	// Any other form of Retry-After means no wait.
	seconds, _ := strconv.Atoi(response.Header.Get("Retry-After"))
	return response.StatusCode, time.Duration(seconds) * time.Second, nil
}

// Pushes returns the attempts so far, oldest first.
func (s *WebhookSender) Pushes() []Push {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Push(nil), s.pushes...)
}
