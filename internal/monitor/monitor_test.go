package monitor_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"autopost/internal/monitor"
	"autopost/internal/worker"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var errGone = errors.New("connection refused")

// store counts its calls and fails as configured.
type store struct {
	mu    sync.Mutex
	asked map[string]int
	fails map[string]bool
	hangs map[string]bool
	// panics has the calls that panic; panicked counts their reports.
	panics   map[string]bool
	panicked atomic.Int64
	more     map[string]int // function -> how many times it returns more
	order    []string
	found    int
	// inDefault is the number of events in the default partition.
	inDefault int
	// jumped is the clock jump that every observation but the first returns.
	jumped time.Duration
	logs   bytes.Buffer
	bots
}

func newStore() *store {
	return &store{asked: map[string]int{}, fails: map[string]bool{}, hangs: map[string]bool{}}
}

func (s *store) ask(ctx context.Context, what string) (int, error) {
	s.mu.Lock()
	s.asked[what]++
	s.order = append(s.order, what)
	fails, hangs, found := s.fails[what], s.hangs[what], s.found
	panics := s.panics[what]
	s.mu.Unlock()
	if panics {
		panic(what)
	}
	if hangs {
		<-ctx.Done()
		return 0, ctx.Err()
	}
	if fails {
		return 0, errGone
	}
	return found, nil
}

func (s *store) Low() error {
	_, err := s.ask(context.Background(), "disks")
	return err
}

func (s *store) count(what string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asked[what]
}

func (s *store) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.logs.Write(p)
}

func (s *store) logged() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.logs.String()
}

func (s *store) ListServedWorkspaces(ctx context.Context, all bool) ([]string, error) {
	if all {
		_, err := s.ask(ctx, "list all")
		return []string{"acme", "paused", "zeta"}, err
	}
	_, err := s.ask(ctx, "list")
	return []string{"acme", "zeta"}, err
}

func (s *store) RecoverSendingLeases(ctx context.Context, workspace string) (int, error) {
	return s.ask(ctx, "sending "+workspace)
}

func (s *store) RecoverClaimedLeases(ctx context.Context, workspace string) (int, error) {
	return s.ask(ctx, "claimed "+workspace)
}

func (s *store) RearmGates(ctx context.Context, workspace string) (int, error) {
	return s.ask(ctx, "gates "+workspace)
}

func (s *store) ListDueRefreshes(ctx context.Context, workspace string, _ int) ([]string, error) {
	_, err := s.ask(ctx, "due "+workspace)
	return []string{"x1", "x2"}, err
}

func (s *store) Refresh(ctx context.Context, workspace, authRef string) error {
	_, err := s.ask(ctx, "refresh "+workspace+" "+authRef)
	return err
}

func (s *store) WarnExpiring(ctx context.Context, workspace string) (int, error) {
	return s.ask(ctx, "warn "+workspace)
}

func (s *store) ExpireSubmissions(ctx context.Context, workspace string) (int, error) {
	return s.ask(ctx, "expire submissions "+workspace)
}

func (s *store) ExpireAuthLost(ctx context.Context, workspace string) (int, error) {
	return s.ask(ctx, "auth "+workspace)
}

func (s *store) CloseIngressFloods(ctx context.Context, workspace string) (int, error) {
	return s.ask(ctx, "flood "+workspace)
}

func (s *store) ObserveClock(ctx context.Context, observer string, elapsed *time.Duration) (time.Duration, error) {
	s.mu.Lock()
	jumped := s.jumped
	s.mu.Unlock()
	if elapsed == nil {
		jumped = 0
	}
	_, err := s.ask(ctx, "clock "+observer)
	return jumped, err
}

func (s *store) EnsureEventPartitions(ctx context.Context) error {
	_, err := s.ask(ctx, "partitions")
	return err
}

func (s *store) RefreshStatistics(ctx context.Context) ([]string, error) {
	_, err := s.ask(ctx, "statistics")
	return nil, err
}

// watch runs a monitor for d on a fake clock.
func watch(t *testing.T, s *store, d time.Duration) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		m, err := monitor.New(monitor.Config{RunID: "run"}, monitor.Deps{
			Store: s, Bucket: s, Disks: s, Notifier: s, Moderator: s, Renewer: s, Bots: s.bots.deps(), Log: slog.New(slog.NewJSONHandler(s, nil)),
		})
		require.NoError(t, err)
		ctx, cancel := context.WithTimeout(worker.ReportPanics(t.Context(), func(*worker.Panic) { s.panicked.Add(1) }), d)
		defer cancel()
		require.NoError(t, m.Run(ctx))
	})
}

func TestEachDutyRunsAtItsOwnPace(t *testing.T) {
	s := newStore()
	watch(t, s, 25*time.Hour-time.Second)
	require.Equal(t, 25*60, s.count("sending acme"))
	require.Equal(t, 25*60, s.count("claimed zeta"))
	require.Equal(t, 25*60, s.count("auth zeta"))
	require.Equal(t, 25*60, s.count("flood zeta"))
	require.Equal(t, 25*60, s.count("refresh zeta x2"))
	require.Equal(t, 25*60, s.count("warn zeta"))
	require.Equal(t, 25*120, s.count("gates zeta"))
	require.Equal(t, 2, s.count("partitions"))
}

// A start leaves the processor and the database to what waits for it. What can wait comes in later minutes, one duty after another.
func TestAStartDelaysWhatCanWait(t *testing.T) {
	later := map[string]int{"drop": 2, "receipts acme": 2, "orphans acme": 5}
	for minute := 1; minute <= 5; minute++ {
		s := newStore()
		watch(t, s, time.Duration(minute)*time.Minute+time.Second)
		for what, first := range later {
			require.Equal(t, minute >= first, s.count(what) == 1, "%s in minute %d", what, minute)
		}
	}
	start := newStore()
	watch(t, start, time.Minute-time.Second)
	for _, what := range []string{"sending acme", "claimed acme", "gates acme", "partitions", "due acme", "statistics", "alerts acme", "installation"} {
		require.NotZero(t, start.count(what), what)
	}
}

func TestOneFailureStopsNothingElse(t *testing.T) {
	for _, fails := range []string{"sending acme", "claimed acme", "auth acme", "flood acme", "gates acme", "partitions", "due acme", "refresh acme x1", "warn acme"} {
		t.Run(fails, func(t *testing.T) {
			s := newStore()
			s.fails[fails] = true
			watch(t, s, 10*time.Second)
			for _, what := range []string{"sending acme", "sending zeta", "claimed acme", "claimed zeta", "gates acme", "gates zeta", "partitions", "due zeta", "refresh zeta x1", "refresh zeta x2", "warn zeta"} {
				require.Equal(t, 1, s.count(what), what)
			}
			require.Contains(t, s.logged(), errGone.Error())
		})
	}
}

func TestAHangingDutyStopsNothingElse(t *testing.T) {
	s := newStore()
	s.hangs["sending acme"] = true
	watch(t, s, 45*time.Second)
	require.Equal(t, 1, s.count("sending zeta"))
	require.Equal(t, 1, s.count("claimed acme"))
	require.Equal(t, 2, s.count("gates acme"))
}

func TestAFailedDutyIsRepeatedSoon(t *testing.T) {
	s := newStore()
	s.fails["partitions"] = true
	watch(t, s, 150*time.Second)
	require.Equal(t, 3, s.count("partitions"))
}

func TestEachDutyLogsWhatItDid(t *testing.T) {
	s := newStore()
	s.found = 2
	watch(t, s, time.Second)
	require.Contains(t, s.logged(), `"msg":"monitor.leases_recovered","sending":4,"claimed":4`)
	require.Contains(t, s.logged(), `"msg":"monitor.gates_rearmed","gates":4`)

	quiet := newStore()
	watch(t, quiet, time.Second)
	require.NotContains(t, quiet.logged(), "leases_recovered")
}

// A jump of the clock is logged.
func TestLeasesEndOnlyByAComparedClock(t *testing.T) {
	away := newStore()
	away.fails["clock run"] = true
	watch(t, away, 29*time.Second)
	require.Zero(t, away.count("sending acme"))
	require.Equal(t, 1, away.count("gates acme"))

	jumping := newStore()
	jumping.jumped = -24 * time.Hour
	watch(t, jumping, 20*time.Second)
	require.Contains(t, jumping.logged(), `"msg":"monitor.clock_jumped","seconds":-86400`)
}

func TestANegativePeriodIsRejected(t *testing.T) {
	_, err := monitor.New(monitor.Config{RunID: "run", Interval: -1}, monitor.Deps{})
	require.ErrorContains(t, err, "monitor config")
}

// A duty that panics is repeated as a failed one; a panic in one renewal or notice ends nothing else.
func TestAPanicStopsNothingElse(t *testing.T) {
	s := newStore()
	s.panics = map[string]bool{"gates acme": true, "refresh zeta x1": true, "notify acme-1": true}
	watch(t, s, 10*time.Minute-time.Second)
	require.Equal(t, 10, s.count("sending acme"))
	require.Equal(t, 20, s.count("gates acme"))
	require.Equal(t, 20, s.count("report gates: panic: string"))
	require.Equal(t, 10, s.count("refresh zeta x2"))
	require.GreaterOrEqual(t, s.count("finish acme-2"), 10)
	require.Zero(t, s.count("finish acme-1"), "its lease ends, so that it is sent again")
	require.GreaterOrEqual(t, int(s.panicked.Load()), 20+10+10)
}
