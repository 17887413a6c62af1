package crash

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"autopost/internal/failpoint"
	"autopost/internal/testing/pgtest"
	"autopost/test/harness"
)

// The daemon dies after it committed a write of the API and before it answered. A repeat with the
// same Idempotency-Key gets the first answer and changes nothing.
func TestKilledBeforeAWriteIsAnswered(t *testing.T) {
	t.Parallel()
	h := harness.New(t, harness.WithFailpoints)
	station(h, 1, harness.Channel{})
	made := h.Run(nil, "apikey", "add", "--workspace", "news", "--name", "crash", "--role", "operator", "--json")
	require.Zero(t, made.Code, made.Stderr)
	var key struct{ Key string }
	require.NoError(t, json.Unmarshal([]byte(made.Stdout), &key))
	pause := func(d *harness.Daemon) (*http.Response, error) {
		request, err := http.NewRequestWithContext(context.WithoutCancel(t.Context()), http.MethodPost,
			d.URL+"/api/v1/channels/channel-00/pause", strings.NewReader(`{"seconds": 3600, "reason": "crash"}`))
		require.NoError(t, err)
		request.Header.Set("Authorization", "Bearer "+key.Key)
		request.Header.Set("Content-Type", "application/json")
		request.Header.Set("Idempotency-Key", "once")
		return http.DefaultClient.Do(request)
	}
	d := h.Serve(append(quick, "AUTOPOST_FAILPOINT="+string(failpoint.ActCommitted))...)
	_, err := pause(d)
	require.Error(t, err)
	require.True(t, d.Died())
	until := pgtest.Value[time.Time](h.DB, `select paused_until from autopost.channels`)

	answer, err := pause(h.Serve(quick...))
	require.NoError(t, err)
	defer func() { _ = answer.Body.Close() }()
	raw, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, answer.StatusCode, string(raw))
	require.Equal(t, "true", answer.Header.Get("Idempotent-Replayed"))
	require.Equal(t, until, pgtest.Value[time.Time](h.DB, `select paused_until from autopost.channels`))
	require.Equal(t, 1, pgtest.Value[int](h.DB, `select count(*)::int from autopost.admin_audit_log where action = 'pause_channel'`))
	h.Verified()
}
