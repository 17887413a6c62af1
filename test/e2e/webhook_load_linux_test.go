package e2e

import (
	"encoding/base64"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"autopost/internal/sim"
	"autopost/internal/testing/pgtest"
	"autopost/test/harness"
)

const (
	// mostWebhooks is the number of webhooks of the loud workspace in the last block.
	mostWebhooks = 60
	// webhookResident is what the daemon may take with them, in KiB.
	webhookResident = 200 << 10
	longWebhookLoad = 10 * time.Minute
)

// webhookLoad is a workspace with many result webhooks, each with a key of its own, and a calm workspace next to it.
type webhookLoad struct {
	*harness.Harness
	t        *testing.T
	daemon   *harness.Daemon
	webhooks int
	posts    int
}

func hookKey(n int) string {
	return "whsec_" + base64.StdEncoding.EncodeToString([]byte(strings.Repeat(fmt.Sprintf("key-%02d.", n), 4)))
}

// newWebhookLoad starts the daemon. Its long run has the connections that a daemon has by default, because with two
// of them the delay of a post is the wait for a connection.
func newWebhookLoad(t *testing.T) *webhookLoad {
	options := []harness.Option{harness.WithLogSize(1_000_000)}
	if pgtest.Long() {
		options = append(options, harness.WithConnections(16))
	}
	w := &webhookLoad{Harness: harness.New(t, options...), t: t}
	w.Exec(`update autopost.settings set value = '1' where key = 'webhook_overlap_seconds'`)
	for _, name := range []string{"loud", "calm"} {
		w.Workspace(name)
		w.Endpoint(name, name+"-in", "secret-"+name)
		w.Channel(name, harness.Channel{ID: name + "-tg", Platform: harness.Telegram, Parallel: 4})
	}
	variables := []string{}
	for n := range mostWebhooks {
		variables = append(variables, fmt.Sprintf("HOOK_KEY_%d=%s", n, hookKey(n)))
	}
	w.daemon = w.Serve(variables...)
	return w
}

// add makes the loud workspace have that many webhooks.
func (w *webhookLoad) add(most int) {
	for ; w.webhooks < most; w.webhooks++ {
		name := fmt.Sprint("hook-", w.webhooks)
		require.NoError(w.t, w.World.Webhook.AddEndpoint(name, hookKey(w.webhooks)))
		w.Exec(`insert into autopost.credential_bindings (workspace_id, auth_ref, platform, secret_ref) values ('loud', $1, 'webhook', 'env:HOOK_KEY_' || $2::int)`, name, w.webhooks)
		w.Exec(`select autopost.put_webhook('loud', $1, jsonb_build_object('url', $2::text, 'signing_ref', $1::text), 'test', 'load', false)`, name, w.WorldURL+"/webhook/"+name)
	}
}

// run pushes two posts a second to each of the workspaces and returns the delays until the calls of the calm one.
func (w *webhookLoad) run(lasts time.Duration, workspaces ...string) (delays []time.Duration) {
	pushed := map[string]time.Time{}
	tick := time.NewTicker(500 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(lasts); time.Now().Before(end); <-tick.C {
		for _, name := range workspaces {
			text := fmt.Sprintf("%s post %d", name, w.posts)
			if name == "calm" {
				pushed[text] = time.Now()
			}
			require.Equal(w.t, 202, w.Push(w.daemon, "secret-"+name, harness.Post("text", text)).Status)
		}
		w.posts++
	}
	w.Drained("calm")
	w.Drained("loud")
	w.UntilTrue(allReported, "loud")
	for _, e := range w.Accepted(sim.Filter{Platform: harness.Telegram}) {
		if at, ok := pushed[e.Text]; ok {
			delays = append(delays, e.Start.Sub(at))
		}
	}
	slices.Sort(delays)
	return delays
}

func (w *webhookLoad) resident() int {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", w.daemon.PID()))
	require.NoError(w.t, err)
	kib, err := strconv.Atoi(highWater.FindStringSubmatch(string(status))[1])
	require.NoError(w.t, err)
	return kib
}

// p99 is the 99th percentile of sorted delays.
func p99(delays []time.Duration) time.Duration { return delays[len(delays)*99/100] }

func loadAverage(t *testing.T) string {
	load, err := os.ReadFile("/proc/loadavg")
	require.NoError(t, err)
	return strings.TrimSpace(string(load))
}

// Up to sixty result webhooks in one workspace end neither the daemon nor the pace of others: quiet and loud blocks
// alternate, so that both see the same machine. A sample sends a few posts to all webhooks at once.
func TestManyWebhooksOfOneWorkspace(t *testing.T) {
	t.Parallel()
	block, blocks := time.Second, 1
	if pgtest.Long() {
		blocks = 6
		block = min(longWebhookLoad, time.Until(pgtest.Until(0))) / time.Duration(2*blocks)
	}
	w := newWebhookLoad(t)
	var quiet, loud []time.Duration
	for n := range blocks {
		w.add(mostWebhooks * (n + 1) / blocks)
		alone, beside := w.run(block, "calm"), w.run(block, "calm", "loud")
		t.Logf("%d webhooks: p99 %s quiet, %s loud; load %s", w.webhooks, p99(alone), p99(beside), loadAverage(t))
		quiet, loud = append(quiet, alone...), append(loud, beside...)
	}
	slices.Sort(quiet)
	slices.Sort(loud)
	resident := w.resident()
	calls := len(w.Sends(sim.Filter{Platform: "webhook"}))
	t.Logf("%d webhooks, %d calls of them; calm posts %d quiet, %d loud: p50 %s, %s; p99 %s, %s; at most %d MiB resident; load %s",
		w.webhooks, calls, len(quiet), len(loud), quiet[len(quiet)/2], loud[len(loud)/2], p99(quiet), p99(loud), resident>>10, loadAverage(t))
	require.GreaterOrEqual(t, calls, mostWebhooks*2)
	require.Less(t, resident, webhookResident, "KiB")
	for n := range mostWebhooks {
		require.NotEmpty(t, w.World.Webhook.Events(fmt.Sprint("hook-", n)), "signed with its own key")
	}
	require.Zero(t, w.daemon.Stop(), "it lived until now")
	if pgtest.Long() {
		require.Less(t, p99(loud), 2*p99(quiet))
	}
}
