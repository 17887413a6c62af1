package monitor_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"autopost"
	"autopost/internal/monitor"
)

func (s *store) CheckAlerts(ctx context.Context, workspace string) (monitor.AlertChange, error) {
	n, err := s.ask(ctx, "alerts "+workspace)
	return monitor.AlertChange{Raised: n, Open: n}, err
}

func (s *store) CheckInstallation(ctx context.Context) (monitor.AlertChange, error) {
	n, err := s.ask(ctx, "installation")
	return monitor.AlertChange{Ended: n}, err
}

func (s *store) ClaimNotices(ctx context.Context, workspace string, _ int) ([]autopost.Notice, error) {
	_, err := s.ask(ctx, "notices "+workspace)
	return []autopost.Notice{{MessageID: workspace + "-1"}, {MessageID: workspace + "-2"}}, err
}

func (s *store) Send(ctx context.Context, workspace string, notice autopost.Notice) *autopost.Error {
	if _, err := s.ask(ctx, "notify "+notice.MessageID); err != nil {
		return &autopost.Error{Code: "unreachable", Message: err.Error()}
	}
	return nil
}

func (s *store) FinishNotice(ctx context.Context, _, messageID, _ string, failure *autopost.Error) error {
	what := "finish " + messageID
	if failure != nil {
		what += " " + failure.Code
	}
	_, err := s.ask(ctx, what)
	return err
}

func (s *store) ReportDuty(ctx context.Context, report monitor.DutyReport) error {
	what := "report " + report.Duty
	if report.Err != "" {
		what += ": " + report.Err
	}
	_, err := s.ask(ctx, what)
	return err
}

func TestAlertsSendNotices(t *testing.T) {
	s := newStore()
	s.found = 2
	watch(t, s, 2*time.Minute-time.Second)
	require.Equal(t, 2, s.count("installation"))
	require.Equal(t, 2, s.count("alerts paused"), "a paused workspace is checked, too")
	require.GreaterOrEqual(t, s.count("finish zeta-2"), 2)
	require.Contains(t, s.logged(), `"msg":"monitor.alerts","raised":6,"ended":2,"open":6`)
	require.Contains(t, s.logged(), `"msg":"monitor.notices","messages":6`)
}

func TestNewAlertsSendNoticesAtOnce(t *testing.T) {
	s := newStore()
	s.found = 1
	s.hangs["alerts acme"] = true // so that the check ends half a minute after the first notice
	watch(t, s, 45*time.Second)
	require.Equal(t, 2, s.count("finish zeta-2"))
}

func TestAHangingTargetDelaysNoOther(t *testing.T) {
	s := newStore()
	s.hangs["notify acme-1"], s.fails["notify zeta-1"] = true, true
	watch(t, s, 45*time.Second)
	require.Equal(t, 1, s.count("finish acme-1 unreachable"), "the failure is recorded in time")
	require.Equal(t, 1, s.count("finish acme-2"))
	require.Equal(t, 1, s.count("finish zeta-1 unreachable"))
	require.Equal(t, 1, s.count("report tell"), "an unreachable target does not fail the duty")
}

// A duty reports each failure and the first success after it. The check for alerts reports every time.
func TestDutiesReportFailuresAndTheFirstSuccess(t *testing.T) {
	s := newStore()
	s.fails["flood acme"], s.fails["report leases"] = true, true
	watch(t, s, 10*time.Minute-time.Second)
	require.Equal(t, 1, s.count("report credentials"))
	require.Equal(t, 1, s.count("report clock"))
	require.Equal(t, 10, s.count("report floods: close ingress floods ws=acme: "+errGone.Error()))
	require.Equal(t, 10, s.count("report watch"))
	require.Equal(t, 10, s.count("report leases"), "until the database takes the report")
}

// Concurrent duties share one list of workspaces.
func TestWorkspacesAreListedOnceForAllDuties(t *testing.T) {
	s := newStore()
	watch(t, s, 10*time.Minute-time.Second)
	require.LessOrEqual(t, s.count("list"), 20)
	require.Equal(t, 10, s.count("sending acme"))
	require.Equal(t, 20, s.count("gates acme"))
}

func TestEachDutyReportsItsResult(t *testing.T) {
	s := newStore()
	s.fails["gates acme"], s.fails["disks"] = true, true
	watch(t, s, 5*time.Minute+time.Second)
	for _, duty := range []string{"leases", "auth_lost", "floods", "credentials", "partitions", "retention", "media", "tell", "stray_media", "integrity"} {
		require.Equal(t, 1, s.count("report "+duty), duty)
	}
	require.Equal(t, 6, s.count("report watch"), "each result is a sign of life")
	require.Equal(t, 11, s.count("report gates: rearm gates ws=acme: "+errGone.Error()))
	require.Equal(t, 6, s.count("report disks: "+errGone.Error()))
}
