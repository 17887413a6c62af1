package crash

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"autopost/internal/failpoint"
	"autopost/internal/testing/pgtest"
	"autopost/test/harness"
)

// The daemon dies after it committed a decision and before it answered. The decision stands and is taken once: a repeat
// with the same Idempotency-Key gets the first answer, another one learns who decided, and an approved post arrives once.
func TestKilledBeforeADecisionIsAnswered(t *testing.T) {
	t.Parallel()
	h := harness.New(t, harness.WithFailpoints)
	station(h, 1, harness.Channel{})
	h.Exec(`update autopost.workspace_endpoints set moderated = true`)
	h.Exec(`select autopost.create_api_key('news', '{"name": "chief", "role": "approver"}', encode(sha256('key'), 'hex'), 'ann', 'r')`)
	for _, c := range []struct{ decision, status, other string }{{"approve", "enqueued", "reject"}, {"reject", "rejected", "approve"}} {
		d := h.Serve(append(quick, "AUTOPOST_FAILPOINT="+string(failpoint.ActCommitted))...)
		id := h.Push(d, "secret-cms", harness.Post("text", "Post to "+c.decision)).Text("submission_id")
		require.NotEmpty(t, id)
		decide := func(d *harness.Daemon, decision, once string) (*http.Response, map[string]any) {
			request, err := http.NewRequestWithContext(context.WithoutCancel(t.Context()), http.MethodPost, d.URL+"/api/v1/submissions/"+id+"/"+decision, strings.NewReader(`{"reason": "seen"}`))
			require.NoError(t, err)
			request.Header.Set("Authorization", "Bearer key")
			request.Header.Set("Content-Type", "application/json")
			request.Header.Set("Idempotency-Key", once)
			answer, err := http.DefaultClient.Do(request)
			if err != nil {
				return nil, nil
			}
			defer func() { _ = answer.Body.Close() }()
			raw, err := io.ReadAll(answer.Body)
			require.NoError(t, err)
			var body map[string]any
			require.NoError(t, json.Unmarshal(raw, &body))
			return answer, body
		}
		lost, _ := decide(d, c.decision, "once "+c.decision)
		require.Nil(t, lost, "the answer is lost")
		require.True(t, d.Died())

		d = h.Serve(quick...)
		answer, body := decide(d, c.decision, "once "+c.decision)
		require.Equal(t, http.StatusOK, answer.StatusCode, body)
		require.Equal(t, "true", answer.Header.Get("Idempotent-Replayed"))
		require.Equal(t, c.status, body["status"])
		for _, decision := range []string{c.decision, c.other} {
			answer, body = decide(d, decision, "later "+decision+id)
			require.Equal(t, http.StatusConflict, answer.StatusCode, body)
			require.Equal(t, c.decision, body["decision"].(map[string]any)["decision"])
		}
		require.Equal(t, 1, pgtest.Value[int](h.DB, `select count(*)::int from autopost.approvals where subject = 'submission:' || $1`, id))
		require.Equal(t, 1, pgtest.Value[int](h.DB, `select count(*)::int from autopost.admin_audit_log where action = $1`, c.decision+"_submission"))
		h.Drained("news")
		require.Zero(t, d.Stop())
	}
	require.Equal(t, harness.Totals{Deliveries: 1, Sent: 1}, h.Judge("news"))
	h.Verified()
}
