package nth

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
	"autopost/internal/pg"
	"autopost/internal/pgtest"
	"autopost/test/house"
)

// alerts are the calls of who tells people what is wrong.
type alerts struct{ *calls }

func (a alerts) CheckAlerts(ctx context.Context, workspace string) (monitor.AlertChange, error) {
	return through(a.calls, "check_alerts", func() (monitor.AlertChange, error) {
		change, err := a.db.CheckAlerts(ctx, workspace)
		return monitor.AlertChange(change), err
	})
}

func (a alerts) CheckInstallation(ctx context.Context) (monitor.AlertChange, error) {
	return through(a.calls, "check_installation", func() (monitor.AlertChange, error) {
		change, err := a.db.CheckInstallation(ctx)
		return monitor.AlertChange(change), err
	})
}

func (a alerts) ClaimNotices(ctx context.Context, workspace string, limit int) ([]monitor.Notice, error) {
	return through(a.calls, "claim_notices", func() ([]monitor.Notice, error) {
		list, err := a.db.ClaimNotices(ctx, workspace, limit)
		return convert(list, func(x pg.Notice) monitor.Notice { return monitor.Notice(x) }), err
	})
}

func (a alerts) FinishNotice(ctx context.Context, workspace, messageID, token string, failure *autopost.Error) error {
	return done(a.calls, "finish_notice", func() error { return a.db.FinishNotice(ctx, workspace, messageID, token, failure) })
}

// ReportDuty is about all duties, of which most are not told of here: it does not fail.
func (a alerts) ReportDuty(ctx context.Context, r monitor.DutyReport) error {
	return a.db.ReportDuty(ctx, pg.DutyReport(r))
}

// idle is what the monitor's other duties find: nothing to do.
type idle struct {
	monitor.BotRecords
	monitor.Retention
	monitor.Removals
	monitor.Bucket
}

func (idle) ListDueSubscriptions(context.Context, string, int) ([]monitor.Bot, error) {
	return nil, nil
}
func (idle) ListUnaskedChats(context.Context, string, int) ([]monitor.Chat, error) { return nil, nil }
func (idle) ListAllWorkspaces(context.Context) ([]string, error)                   { return nil, nil }
func (idle) ListMediaRemovals(context.Context, int) ([]string, error)              { return nil, nil }
func (idle) Low() error                                                            { return nil }
func (idle) Refresh(context.Context, string, string) error                         { return nil }

func (idle) Objects(context.Context, time.Time, func([]media.Object) error) error { return nil }

func (idle) Temporary(context.Context, time.Time, bool) (int, int64, error) { return 0, 0, nil }

// people get messages.
type people struct {
	mu  sync.Mutex
	got map[string]int
}

func (p *people) Tell(_ context.Context, _ string, n monitor.Notice) *autopost.Error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.got[n.MessageID]++
	return nil
}

// People are told of what is wrong and when it is over, whichever call fails, and twice at
// most, where nobody knew whether they were.
func TestTheNthCallOfAlertsFails(t *testing.T) {
	t.Parallel()
	everyCall(t, 6, func(t *testing.T, h *house.House, c *calls) (doubts int) {
		for n := range 3 {
			h.Channel("news", house.Channel{ID: fmt.Sprint("channel-", n), Platform: house.Telegram})
		}
		h.Exec(`update autopost.settings set value = '1' where key in ('alert_lease_seconds', 'alert_paused_channels', 'alert_calm_seconds')`)
		require.Equal(t, "true", pgtest.Value[string](h.DB, `select autopost.put_alert_target('news', 'ops', '{"kind": "email", "address": "ops@example.org"}', 'ann', 'test', false) ->> 'applied'`))
		h.Exec(`update autopost.channels set paused_until = now() + interval '1 hour'`)
		told := &people{got: map[string]int{}}
		watcher, err := monitor.New(monitor.Config{Interval: 200 * time.Millisecond, RunID: "monitor"}, monitor.Deps{
			Workspaces: c.db, Clock: c.db, Leases: c.db, AuthLost: c.db, Floods: c.db, Gates: c.db, Tables: c.db, Retention: c.db, Intake: c.db, Archive: c.db,
			Integrity: c.db, Media: &monitor.MediaSweep{Workspaces: idle{}, Removals: idle{}, Bucket: idle{}}, Expiry: c.db, Renewer: idle{},
			Bots: &monitor.BotKeeper{Records: idle{}}, Alerts: alerts{c}, Disks: idle{}, Teller: told, Log: slog.New(slog.DiscardHandler),
		})
		require.NoError(t, err)
		end := serve(t, watcher.Run)
		const notices = `select count(*) = 1 from autopost.alert_notices n join autopost.alerts a using (workspace_id, alert_id)
			where a.kind = 'paused_channels' and n.resolved = $1 and not exists (select 1 from autopost.alert_messages m where m.status in ('pending', 'sending'))`
		h.UntilTrue(patience, notices, false)
		h.Exec(`update autopost.channels set paused_until = null`)
		h.UntilTrue(patience, notices, true)
		end()
		messages := pgtest.Column[map[string]any](h.DB, `select jsonb_build_object('id', message_id, 'status', status, 'calls', attempt) from autopost.alert_messages`)
		require.Len(t, told.got, len(messages))
		for _, m := range messages {
			copies := told.got[m["id"].(string)]
			require.Equal(t, "sent", m["status"])
			require.GreaterOrEqual(t, copies, 1)
			require.LessOrEqual(t, copies, int(m["calls"].(float64)), "copies of a message are calls that were recorded")
			require.LessOrEqual(t, copies, 2)
			doubts += copies - 1
		}
		h.Verified()
		return doubts
	})
}
