package monitor

import (
	"context"
	"errors"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"autopost/internal/worker"
)

// Renewer renews a credential. If several daemons try it, one renews it and the others wait.
type Renewer interface {
	Refresh(ctx context.Context, workspace, authRef string) error
}

const (
	// renewalsPerSweep bounds the renewals of a workspace in one sweep.
	renewalsPerSweep = 100
	// maxRenewals bounds the concurrent calls to platforms.
	maxRenewals = 8
)

// renewCredentials renews credentials that expire soon, and warns of those without automatic renewal.
func (m *Monitor) renewCredentials(ctx context.Context) error {
	renewed, err := m.sweep(ctx, "list due refreshes", func(query context.Context, workspace string) (int, error) {
		due, err := m.deps.Store.ListDueRefreshes(query, workspace, renewalsPerSweep)
		if err != nil {
			return 0, err
		}
		return m.renewAll(ctx, workspace, due), nil
	})
	warned, warnErr := m.sweep(ctx, "warn expiring", m.deps.Store.WarnExpiring)
	m.done(renewed+warned > 0, "monitor.credentials", "renewed", renewed, "warned", warned)
	return errors.Join(err, warnErr)
}

// renewAll returns the number of renewed credentials. A failed renewal does not stop the others.
func (m *Monitor) renewAll(ctx context.Context, workspace string, due []string) int {
	var renewed atomic.Int64
	var group errgroup.Group
	group.SetLimit(maxRenewals)
	for _, authRef := range due {
		group.Go(worker.Contained(ctx, func() error {
			err := m.deps.Renewer.Refresh(ctx, workspace, authRef)
			if err == nil {
				renewed.Add(1)
			} else if ctx.Err() == nil {
				m.deps.Log.Warn("monitor.credential_not_renewed", "workspace_id", workspace, "auth_ref", authRef, "error", err)
			}
			return nil
		}))
	}
	_ = group.Wait() // a panic was reported
	return int(renewed.Load())
}

// expireAuthLost ends deliveries that have waited too long for a refused credential.
func (m *Monitor) expireAuthLost(ctx context.Context) error {
	ended, err := m.sweep(ctx, "expire auth lost", m.deps.Store.ExpireAuthLost)
	m.done(ended > 0, "monitor.auth_lost_expired", "deliveries", ended)
	return err
}
