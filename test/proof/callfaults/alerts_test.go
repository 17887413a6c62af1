package callfaults

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"autopost"
	"autopost/internal/media"
	"autopost/internal/monitor"
	"autopost/internal/testing/pgtest"
	"autopost/test/harness"
)

// idle is a media store without objects and a renewer without work.
type idle struct{ monitor.Bucket }

func (idle) Low() error { return nil }

func (idle) Refresh(context.Context, string, string) error { return nil }

func (idle) Objects(context.Context, time.Time, func([]media.Object) error) error { return nil }

func (idle) Temporary(context.Context, time.Time, bool) (int, int64, error) { return 0, 0, nil }
func (idle) SweepRaw(context.Context, string, bool) (int, int64, error)     { return 0, 0, nil }

// operators counts the notices that it receives.
type operators struct {
	mu  sync.Mutex
	got map[string]int
}

func (o *operators) Send(_ context.Context, _ string, n autopost.Notice) *autopost.Error {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.got[n.MessageID]++
	return nil
}

var alertCalls = []string{"check_alerts", "check_installation", "claim_notices", "finish_notice"}

// Operators get a notice when an alert is raised and when it ends, and a copy only after an unknown outcome.
func TestAlertsSurviveAnyFailedCall(t *testing.T) {
	t.Parallel()
	everyCall(t, 6, alertCalls, func(t *testing.T, h *harness.Harness, c *calls) (unknown int) {
		for n := range 3 {
			h.Channel("news", harness.Channel{ID: fmt.Sprint("channel-", n), Platform: harness.Telegram})
		}
		h.Exec(`update autopost.settings set value = '1' where key in ('alert_lease_seconds', 'alert_paused_channels', 'alert_calm_seconds')`)
		require.Equal(t, "true", pgtest.Value[string](h.DB, `select autopost.put_alert_target('news', 'ops', '{"kind": "email", "address": "ops@example.org"}', 'ann', 'test', false) ->> 'applied'`))
		h.DB.Exec(`update autopost.alert_targets set confirmed_at = now()`)
		h.Exec(`update autopost.channels set paused_until = now() + interval '1 hour'`)
		received := &operators{got: map[string]int{}}
		m, err := monitor.New(monitor.Config{Interval: 200 * time.Millisecond, RunID: "monitor"}, monitor.Deps{
			Store: c.db, Bucket: idle{}, Renewer: idle{}, Disks: idle{}, Notifier: received, Log: slog.New(slog.DiscardHandler),
		})
		require.NoError(t, err)
		end := serve(t, m.Run)
		const notices = `select count(*) = 1 from autopost.alert_notices n join autopost.alerts a using (workspace_id, alert_id)
			where a.kind = 'paused_channels' and n.resolved = $1 and not exists (select 1 from autopost.alert_messages m where m.status in ('pending', 'sending'))`
		h.UntilTrue(notices, false)
		h.Exec(`update autopost.channels set paused_until = null`)
		h.UntilTrue(notices, true)
		end()
		messages := pgtest.Column[map[string]any](h.DB, `select jsonb_build_object('id', message_id, 'status', status, 'calls', attempt) from autopost.alert_messages`)
		require.Len(t, received.got, len(messages))
		for _, m := range messages {
			copies := received.got[m["id"].(string)]
			require.Equal(t, "sent", m["status"])
			require.GreaterOrEqual(t, copies, 1)
			require.LessOrEqual(t, copies, int(m["calls"].(float64)), "copies of a message are calls that were recorded")
			require.LessOrEqual(t, copies, 2)
			unknown += copies - 1
		}
		h.Verified()
		return unknown
	})
}
