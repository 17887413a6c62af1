package monitor

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"autopost"
	"autopost/internal/worker"
)

// Moderator makes one call to a chat in which people decide about posts. The failure is data.
type Moderator interface {
	Moderate(ctx context.Context, workspace string, call autopost.ModerationCall) autopost.Outcome
}

const (
	// moderatedWorkspaces bounds the workspaces of one pass.
	moderatedWorkspaces = 1000
	// maxModeration bounds the calls to moderators' chats in flight. A slow chat does not delay the others.
	maxModeration = 32
	// moderationPause is the pause until the next pass while there is work. A chat takes at most one message a second.
	moderationPause = 500 * time.Millisecond
)

// moderation holds the calls to moderators' chats in flight.
type moderation struct {
	slots   chan struct{}
	running sync.WaitGroup
	// found says that the last pass had work.
	found atomic.Bool
}

func newModeration() *moderation { return &moderation{slots: make(chan struct{}, maxModeration)} }

// next is the pause until the next pass; 0 if none is needed before a wake-up.
func (d *moderation) next() time.Duration {
	if d.found.Load() || len(d.slots) > 0 {
		return moderationPause
	}
	return 0
}

// callModerators starts the due calls to moderators' chats, as many as there is capacity for. An unreachable chat does
// not fail the duty: the database schedules its retry.
func (m *Monitor) callModerators(ctx context.Context) error {
	query, cancel := context.WithTimeout(ctx, queryTimeout)
	workspaces, err := m.deps.Store.ReadyModerationWorkspaces(query, moderatedWorkspaces)
	cancel()
	calls := 0
	for _, workspace := range workspaces {
		free := maxModeration - len(m.moderation.slots)
		if free == 0 || ctx.Err() != nil {
			break
		}
		n, failure := m.startModeration(ctx, workspace, free)
		calls += n
		if failure != nil {
			err = cmp.Or(err, fmt.Errorf("call moderators ws=%s: %w", workspace, failure))
		}
	}
	m.moderation.found.Store(calls > 0)
	m.done(calls > 0, "monitor.moderation", "calls", calls)
	return err
}

// startModeration claims up to limit calls of a workspace and makes them in the background.
func (m *Monitor) startModeration(ctx context.Context, workspace string, limit int) (int, error) {
	query, cancel := context.WithTimeout(ctx, queryTimeout)
	defer cancel()
	calls, err := m.deps.Store.ClaimModeration(query, workspace, limit)
	if err != nil {
		return 0, err
	}
	for _, call := range calls {
		m.moderation.slots <- struct{}{} // free: only this duty takes slots
		m.moderation.running.Go(worker.Task(ctx, func() {
			defer func() { <-m.moderation.slots }()
			m.callModerator(ctx, workspace, call)
		}))
	}
	return len(calls), nil
}

// callModerator makes a call and records its outcome. Without a record the lease of the call expires.
func (m *Monitor) callModerator(ctx context.Context, workspace string, call autopost.ModerationCall) {
	send, cancel := context.WithTimeout(ctx, noticeTimeout)
	outcome := m.deps.Moderator.Moderate(send, workspace, call)
	cancel()
	if outcome.Error != nil {
		m.deps.Log.Warn("monitor.moderation_failed", "workspace_id", workspace, "chat_id", call.ChatID, "kind", call.Kind,
			"code", outcome.Error.Code, "error", outcome.Error.Message)
	}
	// The result is recorded although the daemon may be stopping.
	record, cancel := context.WithTimeout(context.WithoutCancel(ctx), queryTimeout/3)
	defer cancel()
	if err := m.deps.Store.FinishModeration(record, workspace, call, outcome); err != nil {
		m.deps.Log.Error("monitor.moderation_not_recorded", "workspace_id", workspace, "chat_id", call.ChatID, "kind", call.Kind, "error", err)
	}
}
