package monitor

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"autopost"
	"autopost/internal/worker"
)

// Notifier sends a notice once. The error is data; nil means that the notice was sent.
type Notifier interface {
	Send(ctx context.Context, workspace string, notice autopost.Notice) *autopost.Error
}

// Disks are the disks of the daemon and its database that this machine can see.
type Disks interface {
	// Low returns the disks that are nearly full, in words for an operator; nil if none is.
	Low() error
}

const (
	// noticesPerSweep bounds the notices of a workspace in one sweep.
	noticesPerSweep = 100
	// maxNotices bounds the notices that are sent concurrently.
	maxNotices = 8
	// noticeTimeout bounds one notice. It ends well before the lease of 120 s.
	noticeTimeout = 30 * time.Second
)

// checkAlerts raises and ends alerts, in paused workspaces, too.
func (m *Monitor) checkAlerts(ctx context.Context) error {
	query, cancel := context.WithTimeout(ctx, queryTimeout)
	change, err := m.deps.Store.CheckInstallation(query)
	cancel()
	_, sweepErr := m.sweepAll(ctx, "check alerts", func(ctx context.Context, workspace string) (int, error) {
		seen, err := m.deps.Store.CheckAlerts(ctx, workspace)
		change.Raised, change.Ended, change.Open = change.Raised+seen.Raised, change.Ended+seen.Ended, change.Open+seen.Open
		return 0, err
	})
	if change.Raised+change.Ended > 0 {
		worker.Wake(m.cfg.AlertWake)
	}
	m.done(change.Raised+change.Ended > 0, "monitor.alerts", "raised", change.Raised, "ended", change.Ended, "open", change.Open)
	return errors.Join(err, sweepErr)
}

// checkDisks fails if a disk is nearly full: the failed duty becomes an alert.
func (m *Monitor) checkDisks(context.Context) error { return m.deps.Disks.Low() }

// sendNotices sends due notices. An unreachable target does not fail the duty: the database schedules its retry.
func (m *Monitor) sendNotices(ctx context.Context) error {
	sent, err := m.sweepAll(ctx, "claim notices", func(query context.Context, workspace string) (int, error) {
		notices, err := m.deps.Store.ClaimNotices(query, workspace, noticesPerSweep)
		if err != nil {
			return 0, err
		}
		return len(notices), m.sendAll(ctx, workspace, notices)
	})
	m.done(sent > 0, "monitor.notices", "messages", sent)
	return err
}

func (m *Monitor) sendAll(ctx context.Context, workspace string, notices []autopost.Notice) error {
	var group errgroup.Group
	group.SetLimit(maxNotices)
	for _, notice := range notices {
		group.Go(worker.Contained(ctx, func() error {
			send, cancel := context.WithTimeout(ctx, noticeTimeout)
			failure := m.deps.Notifier.Send(send, workspace, notice)
			cancel()
			m.deps.Recorder.Noticed(failure)
			if failure != nil {
				m.deps.Log.Warn("monitor.notice_failed", "workspace_id", workspace, "target_id", notice.TargetID, "code", failure.Code, "error", failure.Message)
			}
			// The result is recorded although the daemon may be stopping.
			record, cancel := context.WithTimeout(context.WithoutCancel(ctx), queryTimeout/3)
			defer cancel()
			return m.deps.Store.FinishNotice(record, workspace, notice.MessageID, notice.Token, failure)
		}))
	}
	if err := group.Wait(); err != nil {
		return fmt.Errorf("finish notice: %w", err)
	}
	return nil
}
