package monitor

import (
	"context"
	"sync/atomic"

	"golang.org/x/sync/errgroup"
)

// Expiry knows which credentials expire.
type Expiry interface {
	// ListDueRefreshes names credentials of a workspace that are to be renewed now.
	ListDueRefreshes(ctx context.Context, workspace string, limit int) ([]string, error)
	// WarnExpiring warns of those that nobody renews; it returns of how many.
	WarnExpiring(ctx context.Context, workspace string) (int, error)
	// PurgeSealedSecrets removes secrets that were replaced long enough ago, some a call.
	PurgeSealedSecrets(ctx context.Context, workspace string) (purged int, more bool, err error)
}

// Renewer renews a credential; of several who try it at once, one does.
type Renewer interface {
	Refresh(ctx context.Context, workspace, authRef string) error
}

const (
	// renewalsPerSweep bounds how many credentials of a workspace one sweep renews.
	renewalsPerSweep = 100
	// renewalsAtOnce bounds the calls to platforms that run at once.
	renewalsAtOnce = 8
)

// renewCredentials renews what expires soon, so that no post has to wait for it, and
// warns of what nobody renews. One that cannot be renewed holds up no other.
func (m *Monitor) renewCredentials(ctx context.Context) bool {
	renewed, ok := m.sweep(ctx, "list due refreshes", func(query context.Context, workspace string) (int, error) {
		due, err := m.deps.Expiry.ListDueRefreshes(query, workspace, renewalsPerSweep)
		if err != nil {
			return 0, err
		}
		return m.renewAll(ctx, workspace, due), nil
	})
	warned, fine := m.sweep(ctx, "warn expiring", m.deps.Expiry.WarnExpiring)
	m.done(renewed+warned > 0, "monitor.credentials", "renewed", renewed, "warned", warned)
	return ok && fine
}

// renewAll returns how many were renewed.
func (m *Monitor) renewAll(ctx context.Context, workspace string, due []string) int {
	var renewed atomic.Int64
	var group errgroup.Group
	group.SetLimit(renewalsAtOnce)
	for _, authRef := range due {
		group.Go(func() error {
			err := m.deps.Renewer.Refresh(ctx, workspace, authRef)
			if err == nil {
				renewed.Add(1)
			} else if ctx.Err() == nil {
				m.deps.Log.Warn("monitor.credential_not_renewed", "workspace_id", workspace, "auth_ref", authRef, "error", err)
			}
			return nil
		})
	}
	_ = group.Wait() // each has told its own failure
	return int(renewed.Load())
}

// AuthLost ends deliveries that have waited too long for a credential that the
// platform refuses; it returns how many there were.
type AuthLost interface {
	ExpireAuthLost(ctx context.Context, workspace string) (int, error)
}

func (m *Monitor) expireAuthLost(ctx context.Context) bool {
	ended, ok := m.sweep(ctx, "expire auth lost", m.deps.AuthLost.ExpireAuthLost)
	m.done(ended > 0, "monitor.auth_lost_expired", "deliveries", ended)
	return ok
}
