package monitor

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"autopost"
)

// Alerts decides what people must look at, and who is told of it when.
type Alerts interface {
	// CheckAlerts looks at a workspace, CheckInstallation at what concerns all; they raise
	// what is new, and end what is over.
	CheckAlerts(ctx context.Context, workspace string) (AlertChange, error)
	CheckInstallation(ctx context.Context) (AlertChange, error)
	// ClaimNotices leases messages of a workspace to the caller, who sends them; FinishNotice
	// tells what became of one, nil when it went out.
	ClaimNotices(ctx context.Context, workspace string, limit int) ([]Notice, error)
	FinishNotice(ctx context.Context, workspace, messageID, token string, failure *autopost.Error) error
	// ReportDuty records what a duty came to: each failure, the first success after one, and of a duty that is a sign of life every success.
	ReportDuty(ctx context.Context, report DutyReport) error
}

// Teller sends a message to a target, once. The error is data, nil when it went out.
type Teller interface {
	Tell(ctx context.Context, workspace string, notice Notice) *autopost.Error
}

// Disks are those that this daemon can see of what it and its database write on.
type Disks interface {
	// Low says which of them are nearly full, in words for people; nil when none is.
	Low() error
}

// AlertChange counts what a look raised and ended, and what is open after it.
type AlertChange struct{ Raised, Ended, Open int }

// Notice is a message to a target of alerts, under a lease.
type Notice struct {
	MessageID string
	Token     string
	TargetID  string
	// Kind is telegram, max, email or webhook.
	Kind    string
	Address string
	// AuthRef names the credential; "" where none is needed.
	AuthRef string
	Subject string
	// Text is plain, at most 4000 characters.
	Text string
	// Body says the same for programs, a JSON object.
	Body    json.RawMessage
	Attempt int
}

// DutyReport says how a duty went: Err is "" when it could be done. At is this
// machine's clock, Config a digest of what all daemons should agree on.
type DutyReport struct {
	RunID  string
	Duty   string
	At     time.Time
	Config string
	Err    string
}

const (
	// noticesPerSweep bounds how many messages of a workspace go out in one sweep.
	noticesPerSweep = 100
	// noticesAtOnce bounds those that go out at the same time.
	noticesAtOnce = 8
	// noticeTimeout bounds one message; it ends well inside the lease of 120 s.
	noticeTimeout = 30 * time.Second
)

// watch looks for what people must look at: in every workspace, also in those that rest.
func (m *Monitor) watch(ctx context.Context) bool {
	query, cancel := context.WithTimeout(ctx, queryTimeout)
	change, err := m.deps.Alerts.CheckInstallation(query)
	cancel()
	if err != nil {
		m.fail(ctx, "watch", err)
	}
	_, ok := m.sweepOf(ctx, &m.all, "check alerts", func(ctx context.Context, workspace string) (int, error) {
		seen, err := m.deps.Alerts.CheckAlerts(ctx, workspace)
		change.Raised, change.Ended, change.Open = change.Raised+seen.Raised, change.Ended+seen.Ended, change.Open+seen.Open
		return 0, err
	})
	if change.Raised+change.Ended > 0 {
		select {
		case m.cfg.News <- struct{}{}:
		default: // it is known already
		}
	}
	m.done(change.Raised+change.Ended > 0, "monitor.alerts", "raised", change.Raised, "ended", change.Ended, "open", change.Open)
	return ok && err == nil
}

// watchDisks reports which disks are nearly full; the report is an alert of its own.
func (m *Monitor) watchDisks(ctx context.Context) bool {
	err := m.deps.Disks.Low()
	if err != nil {
		m.fail(ctx, "disks", err)
	}
	return err == nil
}

// tell sends what targets are to be told. One that cannot be reached is the database's
// to remember: it holds up no other, and the duty has been done.
func (m *Monitor) tell(ctx context.Context) bool {
	told, ok := m.sweepOf(ctx, &m.all, "claim notices", func(query context.Context, workspace string) (int, error) {
		notices, err := m.deps.Alerts.ClaimNotices(query, workspace, noticesPerSweep)
		if err != nil {
			return 0, err
		}
		return len(notices), m.tellAll(ctx, workspace, notices)
	})
	m.done(told > 0, "monitor.notices", "messages", told)
	return ok
}

func (m *Monitor) tellAll(ctx context.Context, workspace string, notices []Notice) error {
	var group errgroup.Group
	group.SetLimit(noticesAtOnce)
	for _, notice := range notices {
		group.Go(func() error {
			send, cancel := context.WithTimeout(ctx, noticeTimeout)
			failure := m.deps.Teller.Tell(send, workspace, notice)
			cancel()
			if failure != nil {
				m.deps.Log.Warn("monitor.notice_failed", "workspace_id", workspace, "target_id", notice.TargetID, "code", failure.Code, "error", failure.Message)
			}
			// What was sent is recorded though the daemon is about to stop.
			record, cancel := context.WithTimeout(context.WithoutCancel(ctx), queryTimeout/3)
			defer cancel()
			return m.deps.Alerts.FinishNotice(record, workspace, notice.MessageID, notice.Token, failure)
		})
	}
	if err := group.Wait(); err != nil {
		return fmt.Errorf("finish a notice: %w", err)
	}
	return nil
}

// troubles are the failures of a duty that is being done, the first of them.
type troubles struct {
	mu    sync.Mutex
	first string
}

type troublesKey struct{}

// note remembers a failure for the report of the duty that ctx belongs to.
func note(ctx context.Context, err error) {
	t, ok := ctx.Value(troublesKey{}).(*troubles)
	if !ok {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.first == "" {
		t.first = err.Error()
	}
}

// perform does a duty. It returns what went wrong, "" where it could be done.
func (m *Monitor) perform(ctx context.Context, d duty) (problem string) {
	var met troubles
	if d.once(context.WithValue(ctx, troublesKey{}, &met)) {
		return ""
	}
	return cmp.Or(met.first, "it could not be done")
}

// tellHow reports how a duty went, so that one that cannot be done for a while is an alert.
func (m *Monitor) tellHow(ctx context.Context, d duty, problem string) (told bool) {
	if ctx.Err() != nil {
		return false
	}
	query, cancel := context.WithTimeout(ctx, queryTimeout)
	defer cancel()
	err := m.deps.Alerts.ReportDuty(query, DutyReport{RunID: m.cfg.RunID, Duty: d.name, At: time.Now(), Config: m.cfg.Fingerprint, Err: problem})
	if err != nil {
		m.fail(ctx, "report "+d.name, err)
	}
	return err == nil
}
