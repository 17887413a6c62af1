package crash

import (
	"testing"

	"github.com/stretchr/testify/require"

	"autopost/internal/testing/pgtest"
	"autopost/test/harness"
)

// A panic in the dispatcher ends no daemon and no other work: its delivery is repeated after the lease, and operators
// get an alert.
func TestAPanicEndsNoDaemon(t *testing.T) {
	t.Parallel()
	h := harness.New(t, harness.WithFailpoints)
	station(h, 3, harness.Channel{Parallel: 2})
	h.Exec(`update autopost.channels set on_unknown = 'reconcile'`)
	d := h.Serve("SENDING_LEASE_SECONDS=8", "MONITOR_INTERVAL_SECONDS=1", "ADAPTER_TIMEOUT_MS=4000", "AUTOPOST_FAILPOINT=P10:2:panic")
	s := newSource(h, d)
	s.wait(s.pushAll(t.Context(), 0, 4))
	h.UntilTrue(`select count(*) = 1 from autopost.alerts where kind = 'stage_panicked' and subject = 'stage:dispatch' and ended_at is null`)
	require.InDelta(t, 1, h.Metrics(d.URL)[`autopost_stage_panics_total{stage="dispatch"}`], 0)
	h.Drained("news")
	require.Equal(t, 12, pgtest.Value[int](h.DB, `select count(*)::int from autopost.deliveries where status = 'sent'`))
	require.Contains(t, d.Log(), "stage.panicked")
	require.Zero(t, d.Stop(), "it lived until now")
	h.Verified()
}
