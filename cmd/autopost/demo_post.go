package main

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

// demoPost is the raw payload of a webhook, as far as the demo uses it.
type demoPost struct {
	SourceRef string       `json:"source_ref,omitempty"`
	Text      string       `json:"text,omitempty"`
	ParseMode string       `json:"parse_mode,omitempty"`
	Link      string       `json:"link,omitempty"`
	Media     []demoMedia  `json:"media,omitempty"`
	Tags      []string     `json:"tags,omitempty"`
	Routing   *demoRouting `json:"routing,omitempty"`
}

type demoMedia struct {
	Type string `json:"type"`
	URL  string `json:"url"`
}

type demoRouting struct {
	IncludeChannels []string `json:"include_channels"`
}

// demoAnswer is what the webhook said.
type demoAnswer struct {
	Status    string
	MessageID string `json:"message_id"`
	Enqueued  int
	Deduped   int
	Invalid   int
	Skipped   int

	// code is the HTTP status, sentAt when the request began, answeredAt when its answer was read.
	code               int
	sentAt, answeredAt time.Time
}

// only is a post for the named channels alone.
func only(ref, text string, channels ...string) demoPost {
	return demoPost{SourceRef: ref, Text: text, Routing: &demoRouting{IncludeChannels: channels}}
}

// push posts by webhook. An answer other than 2xx is an error.
func (h *demoHouse) push(ctx context.Context, post demoPost) (demoAnswer, error) {
	var a demoAnswer
	body, err := json.Marshal(post)
	if err != nil {
		return a, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+h.daemon.Addr()+"/hooks/push", bytes.NewReader(body))
	if err != nil {
		return a, err
	}
	request.Header.Set("Authorization", "Bearer "+demoSecret)
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

// demoPatience is how long the demo waits for one thing to happen.
const demoPatience = 30 * time.Second

// await asks again every 25 ms until done says so, for as long as demoPatience; what stands in the error.
func await(ctx context.Context, what string, done func(context.Context) (bool, error)) error {
	ctx, cancel := context.WithTimeout(ctx, demoPatience)
	defer cancel()
	return poll(ctx, 25*time.Millisecond, what, done)
}

// poll asks again in this interval until done says so, for as long as ctx allows.
func poll(ctx context.Context, every time.Duration, what string, done func(context.Context) (bool, error)) error {
	ticker := time.NewTicker(every)
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
				return fmt.Errorf("this did not happen in time: %s", what)
			}
			return ctx.Err()
		}
	}
}

// settled reports whether a delivery needs no more work by itself.
func settled(d pg.DeliveryRow) bool {
	return slices.Contains([]string{"sent", "deduped", "failed_permanent", "dead"}, d.Status)
}

// awaitMessage waits until the deliveries of a message to the named channels are settled, and returns them by channel.
func (h *demoHouse) awaitMessage(ctx context.Context, messageID string, channels ...string) (map[string]pg.DeliveryRow, error) {
	byChannel := map[string]pg.DeliveryRow{}
	err := await(ctx, fmt.Sprintf("message %s is settled in %v", messageID, channels), func(ctx context.Context) (bool, error) {
		rows, err := h.store.ListDeliveries(ctx, demoWorkspace, pg.DeliveryFilter{MessageID: messageID}, 1000)
		for _, row := range rows {
			byChannel[row.ChannelID] = row
		}
		return err == nil && !slices.ContainsFunc(channels, func(id string) bool { return !settled(byChannel[id]) }), err
	})
	return byChannel, err
}

// channel returns the row of a channel.
func (h *demoHouse) channel(ctx context.Context, id string) (pg.ChannelRow, error) {
	rows, err := h.store.ListChannels(ctx, demoWorkspace, 10_000)
	if err != nil {
		return pg.ChannelRow{}, err
	}
	i := slices.IndexFunc(rows, func(c pg.ChannelRow) bool { return c.ChannelID == id })
	if i < 0 {
		return pg.ChannelRow{}, fmt.Errorf("there is no channel %s", id)
	}
	return rows[i], nil
}

// received returns what reached a channel's chat since an instant, sends only.
func (h *demoHouse) received(c pg.ChannelRow, since time.Time) []sim.Entry {
	entries := h.sims.Log.Entries(sim.Filter{Platform: c.Platform, Chat: c.TargetID})
	return slices.DeleteFunc(entries, func(e sim.Entry) bool { return e.Items == 0 || e.Start.Before(since) })
}

// events returns the events that fit, oldest first.
func (h *demoHouse) events(ctx context.Context, filter pg.EventFilter) ([]pg.EventRow, error) {
	rows, err := h.store.ListEvents(ctx, demoWorkspace, filter, 10_000)
	slices.Reverse(rows)
	return rows, err
}

func demoRunID() string {
	raw := make([]byte, 3)
	_, _ = rand.Read(raw) // never fails
	return hex.EncodeToString(raw)
}
