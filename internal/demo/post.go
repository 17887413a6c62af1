package demo

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"time"

	"autopost/internal/pg"
	"autopost/internal/sim"
)

// post is the part of the webhook payload that the demo uses.
type post struct {
	SourceRef string       `json:"source_ref,omitempty"`
	Text      string       `json:"text,omitempty"`
	ParseMode string       `json:"parse_mode,omitempty"`
	Link      string       `json:"link,omitempty"`
	Media     []media      `json:"media,omitempty"`
	Tags      []string     `json:"tags,omitempty"`
	Routing   *demoRouting `json:"routing,omitempty"`
}

type media struct {
	Type string `json:"type"`
	URL  string `json:"url"`
}

type demoRouting struct {
	IncludeChannels []string `json:"include_channels"`
}

// demoAnswer is the answer of the webhook.
type demoAnswer struct {
	Status    string
	MessageID string `json:"message_id"`
	Enqueued  int
	Deduped   int
	Invalid   int
	Skipped   int

	// code is the HTTP status.
	code int
	// sentAt is the start of the request, answeredAt the end of its answer.
	sentAt, answeredAt time.Time
}

// only returns a post for the named channels.
func only(ref, text string, channels ...string) post {
	return post{SourceRef: ref, Text: text, Routing: &demoRouting{IncludeChannels: channels}}
}

// push sends a post to the webhook. An answer other than 2xx is an error.
func (h *installation) push(ctx context.Context, post post) (demoAnswer, error) {
	var a demoAnswer
	body, err := json.Marshal(post)
	if err != nil {
		return a, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+h.daemon.Addr()+"/hooks/push", bytes.NewReader(body))
	if err != nil {
		return a, err
	}
	request.Header.Set("Authorization", "Bearer "+endpointSecret)
	request.Header.Set("Content-Type", "application/json")
	a.sentAt = time.Now()
	response, err := h.client.Do(request)
	if err != nil {
		return a, fmt.Errorf("post %s: %w", post.SourceRef, err)
	}
	defer func() { _ = response.Body.Close() }()
	answer, err := io.ReadAll(response.Body)
	if err != nil {
		return a, fmt.Errorf("post %s: %w", post.SourceRef, err)
	}
	a.code, a.answeredAt = response.StatusCode, time.Now()
	if a.code/100 != 2 {
		return a, fmt.Errorf("post %s: the webhook answered %d: %s", post.SourceRef, a.code, answer)
	}
	if err := json.Unmarshal(answer, &a); err != nil {
		return a, fmt.Errorf("post %s: read the answer: %w", post.SourceRef, err)
	}
	return a, nil
}

// demoTimeout limits the wait for one condition.
const demoTimeout = 30 * time.Second

// await polls every 25 ms until done returns true, at most for demoTimeout. The error
// contains the name of the condition.
func await(ctx context.Context, condition string, done func(context.Context) (bool, error)) error {
	ctx, cancel := context.WithTimeout(ctx, demoTimeout)
	defer cancel()
	return poll(ctx, 25*time.Millisecond, condition, done)
}

// poll calls done in this interval until it returns true or ctx ends.
func poll(ctx context.Context, interval time.Duration, condition string, done func(context.Context) (bool, error)) error {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		ok, err := done(ctx)
		if ok && err == nil {
			return nil
		}
		if err != nil && ctx.Err() == nil {
			return err
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			if errors.Is(ctx.Err(), context.DeadlineExceeded) {
				return fmt.Errorf("timeout while waiting: %s", condition)
			}
			return ctx.Err()
		}
	}
}

// settled reports whether a delivery has a final status.
func settled(d pg.DeliveryRow) bool {
	return slices.Contains([]string{"sent", "deduped", "failed_permanent", "dead"}, d.Status)
}

// awaitMessage waits until the deliveries of a message to the channels are settled. It
// returns them by channel.
func (h *installation) awaitMessage(ctx context.Context, messageID string, channels ...string) (map[string]pg.DeliveryRow, error) {
	byChannel := map[string]pg.DeliveryRow{}
	err := await(ctx, fmt.Sprintf("message %s is settled in %v", messageID, channels), func(ctx context.Context) (bool, error) {
		rows, err := h.store.ListDeliveries(ctx, workspaceID, pg.DeliveryFilter{MessageID: messageID}, 1000)
		for _, row := range rows {
			byChannel[row.ChannelID] = row
		}
		return err == nil && !slices.ContainsFunc(channels, func(id string) bool { return !settled(byChannel[id]) }), err
	})
	return byChannel, err
}

// channel returns the row of a channel.
func (h *installation) channel(ctx context.Context, id string) (pg.ChannelRow, error) {
	rows, err := h.store.ListChannels(ctx, workspaceID, 10_000)
	if err != nil {
		return pg.ChannelRow{}, err
	}
	i := slices.IndexFunc(rows, func(c pg.ChannelRow) bool { return c.ChannelID == id })
	if i < 0 {
		return pg.ChannelRow{}, fmt.Errorf("unknown channel %s", id)
	}
	return rows[i], nil
}

// received returns the messages that a channel's chat got since an instant.
func (h *installation) received(c pg.ChannelRow, since time.Time) []sim.Entry {
	entries := h.sims.Log.Entries(sim.Filter{Platform: c.Platform, Chat: c.TargetID})
	return slices.DeleteFunc(entries, func(e sim.Entry) bool { return e.Items == 0 || e.Start.Before(since) })
}

// events returns the events of a filter, oldest first.
func (h *installation) events(ctx context.Context, filter pg.EventFilter) ([]pg.EventRow, error) {
	rows, err := h.store.ListEvents(ctx, workspaceID, filter, 10_000)
	slices.Reverse(rows)
	return rows, err
}

func newRunID() string {
	raw := make([]byte, 3)
	_, _ = rand.Read(raw) // never fails
	return hex.EncodeToString(raw)
}
