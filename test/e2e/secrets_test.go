package e2e

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"autopost/internal/sim"
	"autopost/internal/testing/pgtest"
	"autopost/test/harness"
)

// A platform repeats the secrets in its refusals, in several forms. No table, log, answer of the API
// or output of a command shows them.
func TestSecretsInRefusalsAreShownNowhere(t *testing.T) {
	for platform, g := range grantors {
		t.Run(platform, func(t *testing.T) {
			t.Parallel()
			h := harness.New(t)
			secrets := withCredentials(t, h, platform, g, "lost")
			echo := thrownBack(secrets)
			d := h.Serve("AUTOPOST_LOG=debug", "MONITOR_INTERVAL_SECONDS=1", "SENDING_LEASE_SECONDS=20")
			statuses := []int{503, 429, 403, 400, 401}
			for n, status := range statuses {
				h.Fault(sim.Fault{Platform: platform, Effect: sim.EffectStatus, Status: status, Description: echo, From: 3*n + 1, To: 3*n + 3})
			}
			h.Fault(sim.Fault{Platform: platform, Effect: sim.EffectStatus, Status: 400, Description: echo, From: 3*len(statuses) + 1})
			for n := range 4 {
				for _, channel := range []string{"lost-1", "lost-2"} {
					require.Equal(t, http.StatusAccepted, h.Push(d, "e2e-secret", g.post(h, channel, n)).Status)
				}
			}
			h.UntilTrue(`select count(*) >= 3 from autopost.events where error is not null`)

			said := []string{}
			for _, args := range [][]string{
				{"credential", "check"}, {"credential", "list", "--json"}, {"credential", "show", "lost"}, {"credential", "relink", "lost", "--reason", "r"},
				{"channel", "check", "lost-1"}, {"deliveries", "list", "--json"}, {"doctor"},
				{"why", pgtest.Value[string](h.DB, `select delivery_id::text from autopost.deliveries where last_error is not null limit 1`)},
			} {
				run := h.Run(nil, args...)
				said = append(said, run.Stdout, run.Stderr)
			}
			key := apiKey(t, h, "acme")
			for _, path := range []string{"/deliveries", "/events", "/messages", "/queue", "/channels"} {
				answer, err := h.Get(d.URL+"/api/v1"+path, key)
				require.NoError(t, err)
				require.Equal(t, http.StatusOK, answer.Status, path)
				text, err := json.Marshal(answer.Body)
				require.NoError(t, err)
				said = append(said, string(text))
			}
			everything := strings.Join(append(said, d.Log()), "\n")
			require.Contains(t, everything, "[redacted]")
			showsNone(t, h, secrets, everything)
		})
	}
}

// thrownBack is what a platform says that gives secrets back.
func thrownBack(secrets []string) string {
	var parts []string
	for _, secret := range secrets {
		for _, part := range partsOf(secret) {
			parts = append(parts, part, url.QueryEscape(part), base64.StdEncoding.EncodeToString([]byte("client:"+part)))
		}
	}
	return strings.Join(parts, " ")
}

// partsOf returns the parts of a secret that must not be shown.
func partsOf(secret string) []string {
	var object map[string]string
	if json.Unmarshal([]byte(secret), &object) != nil {
		return []string{secret}
	}
	delete(object, "client_id")
	var parts []string
	for _, part := range object {
		parts = append(parts, part)
	}
	return parts
}
