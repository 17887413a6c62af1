package e2e

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"autopost/internal/sim"
	"autopost/internal/testing/pgtest"
	"autopost/internal/testing/port"
	"autopost/test/harness"
)

// samples are what a scraper reads, by "name{labels}".
type samples map[string]float64

func fetch(t *testing.T, url string) (status int, body string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	require.NoError(t, err)
	response, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	return response.StatusCode, string(text)
}

// sum adds up the samples of a name whose labels hold all of these pairs.
func (s samples) sum(name string, pairs ...string) float64 {
	total := 0.0
next:
	for key, value := range s {
		if key != name && !strings.HasPrefix(key, name+"{") {
			continue
		}
		for _, pair := range pairs {
			if !strings.Contains(key, pair) {
				continue next
			}
		}
		total += value
	}
	return total
}

// The metrics of a run agree with the receivers' log and the database.
func TestMetricsAgreeWithTheReceivers(t *testing.T) {
	t.Parallel()
	h := harness.New(t, harness.AsEngine)
	h.Workspace("news")
	h.Endpoint("news", "cms", "secret-cms")
	for i := range 6 {
		c := harness.Channel{ID: fmt.Sprintf("channel-%d", i), Platform: harness.Telegram, Parallel: 4}
		if i%2 == 1 {
			c.Platform, c.Rate = harness.MAX, 20
		}
		h.Channel("news", c)
	}
	h.Channel("news", harness.Channel{ID: "rests", Platform: harness.Telegram, Group: "resting"})
	h.Exec(`update autopost.channels set paused_until = now() + interval '1 hour' where channel_id = 'rests'`)
	h.Fault(sim.Fault{Platform: harness.Telegram, Method: "sendMessage", To: 1, Effect: sim.EffectStatus, Status: 429, RetryAfter: 1})
	d := h.Serve()
	for i := range posts {
		require.Equal(t, 202, h.Push(d, "secret-cms", harness.Post("text", fmt.Sprintf("Post %d", i))).Status)
	}
	require.Equal(t, 401, h.Push(d, "guess", harness.Post("text", "no")).Status)
	h.UntilTrue(`select count(*) = $1 from autopost.deliveries where status = 'sent'`, posts*6)

	sends, accepted := h.Sends(), h.Accepted()
	require.Len(t, accepted, posts*6)
	var m samples
	h.Until("the last commit is counted", func() bool {
		m = samples(h.Metrics(d.URL))
		return m.sum("autopost_attempts_total", `outcome="sent"`) == posts*6
	})
	require.EqualValues(t, posts, m.sum("autopost_posts_total", `answer="enqueued"`))
	require.EqualValues(t, posts*7, m.sum("autopost_deliveries_total", `verdict="enqueued"`))
	require.EqualValues(t, posts, m.sum("autopost_http_requests_total", `area="push"`, `code="202"`))
	require.EqualValues(t, 1, m.sum("autopost_http_requests_total", `area="push"`, `code="401"`))
	require.EqualValues(t, len(sends), m.sum("autopost_attempts_total"), "each call that came to a receiver")
	require.EqualValues(t, len(sends)-len(accepted), m.sum("autopost_attempts_total", `platform="telegram"`, `outcome="retry"`, `failure="limited"`))
	for _, platform := range []string{harness.Telegram, harness.MAX} {
		label := fmt.Sprintf("platform=%q", platform)
		require.EqualValues(t, posts*3, m.sum("autopost_attempts_total", label, `outcome="sent"`, `failure="none"`))
		require.EqualValues(t, len(h.Sends(sim.Filter{Platform: platform})), m.sum("autopost_call_seconds_count", label))
		require.EqualValues(t, posts*3, m.sum("autopost_accept_to_first_byte_seconds_count", label), "each delivery once")
		// By the receivers' clock: from when the database took the post to its first request there.
		accepts := map[string]time.Time{}
		for _, row := range pgtest.Column[[]string](h.DB, `select array[payload ->> 'text', to_char(created_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.USZ')] from autopost.messages`) {
			at, err := time.Parse(time.RFC3339, row[1])
			require.NoError(t, err)
			accepts[row[0]] = at
		}
		seen, total := map[harness.Text]bool{}, 0.0
		for _, e := range h.Sends(sim.Filter{Platform: platform}) {
			if at := (harness.Text{Platform: platform, Chat: e.Chat, Text: e.Text}); !seen[at] {
				seen[at] = true
				total += e.Start.Sub(accepts[e.Text]).Seconds()
			}
		}
		started := pgtest.Value[float64](h.DB, `select sum(extract(epoch from e.at - m.created_at))::float8
			from (select e.workspace_id, e.message_id, e.channel_id, min(e.ts) as at from autopost.events e where e.action = 'send_attempt'
				group by e.workspace_id, e.message_id, e.channel_id) e
			join autopost.messages m using (workspace_id, message_id) join autopost.channels c using (workspace_id, channel_id) where c.platform = $1`, platform)
		measured := m.sum("autopost_accept_to_first_byte_seconds_sum", label)
		const precision = posts * 3 * .01
		require.GreaterOrEqual(t, measured, started-precision, "the first byte leaves after the start record")
		require.LessOrEqual(t, measured, total+precision, "and before it arrives")
	}
	slots := m.sum("autopost_slot_late_seconds_count")
	require.GreaterOrEqual(t, slots, float64(posts*3), "calls with a slot")
	require.LessOrEqual(t, slots, float64(posts*4), "and those of the channel that its platform limited")
	back := pgtest.Value[int](h.DB, `select count(*)::int from autopost.events where action = 'released'`)
	require.EqualValues(t, len(sends)+back, m.sum("autopost_batch_size_sum", `function="claim_deliveries"`), "claimed once for each call, and what was handed back again")
	require.EqualValues(t, len(sends), m.sum("autopost_batch_size_sum", `function="commit_outcome_batch"`), "and committed once")
	require.GreaterOrEqual(t, m.sum("autopost_starts_total", `answer="applied"`), float64(len(sends)))
	require.Zero(t, m.sum("autopost_senders_in_use"))
	require.Positive(t, m.sum("autopost_database_seconds_count", `function="commit_outcome`))
	require.Zero(t, m.sum("autopost_database_errors_total"))
	require.Positive(t, m.sum("go_goroutines"))
	require.Positive(t, m.sum("process_resident_memory_bytes"))

	resting := []string{`workspace="news"`, `platform="telegram"`, `rate_group="resting"`}
	require.EqualValues(t, posts, m.sum("autopost_queue_deliveries", resting...))
	require.EqualValues(t, posts, m.sum("autopost_queue_due_deliveries", resting...))
	require.Positive(t, m.sum("autopost_queue_oldest_due_seconds", resting...))
	require.EqualValues(t, 1, m.sum("autopost_queue_channels", `gate="channel_paused"`))
	require.Zero(t, m.sum("autopost_queue_unreadable"))
	for key := range m {
		require.NotContains(t, key, "channel-", "no label grows with channels")
		require.NotContains(t, key, "canary")
	}
	attemptsAreLogged(t, d.Log(), len(sends))
	require.Zero(t, d.Stop())
	h.Verified()
}

// attemptsAreLogged checks the one log line of each attempt.
func attemptsAreLogged(t *testing.T, log string, attempts int) {
	t.Helper()
	logged := 0
	for line := range strings.Lines(log) {
		var attempt map[string]any
		if !strings.Contains(line, `"delivery.attempted"`) || json.Unmarshal([]byte(line), &attempt) != nil {
			continue
		}
		logged++
		for _, key := range []string{
			"workspace_id", "delivery_id", "channel_id", "trace_id", "run_id", "attempt", "outcome", "duration_ms", "slot_late_ms", "auth_ref", "rate_group",
			"queue_age_ms", "accept_to_first_byte_ms", "steps", "steps_done", "bytes", "batch", "unknown_outcomes",
		} {
			require.Contains(t, attempt, key)
		}
		require.Positive(t, attempt["bytes"])
		require.Positive(t, attempt["batch"])
	}
	require.Equal(t, attempts, logged)
}

// The metrics are served on the configured address only.
func TestMetricsHaveAListenerOfTheirOwn(t *testing.T) {
	t.Parallel()
	h, _, _ := newsroom(t)
	address := port.Free(t)
	d := h.Serve("AUTOPOST_METRICS_LISTEN=" + address)
	require.Positive(t, samples(h.Metrics("http://"+address)).sum("go_goroutines"))
	status, _ := fetch(t, d.URL+"/metrics")
	require.Equal(t, http.StatusNotFound, status)
	status, _ = fetch(t, "http://"+address+"/readyz")
	require.Equal(t, http.StatusNotFound, status)
}

// Ready says of each part whether it is there, and what to do about one that is not.
func TestReadinessMeansIt(t *testing.T) {
	t.Parallel()
	h, _, _ := newsroom(t)
	d := h.Serve()
	status, body := fetch(t, d.URL+"/readyz")
	require.Equal(t, http.StatusOK, status)
	require.JSONEq(t, `{"status": "ready", "checks": [{"name": "database", "ok": true}, {"name": "schema", "ok": true}, {"name": "room", "ok": true}, {"name": "clock", "ok": true},
		{"name": "storage", "ok": true}, {"name": "dispatcher", "ok": true}, {"name": "bot", "ok": true}]}`, body)
	h.Exec(`update autopost.installed_functions set digest = 'another'`)
	status, body = fetch(t, d.URL+"/readyz")
	require.Equal(t, http.StatusServiceUnavailable, status)
	require.Contains(t, body, `"detail":"Not ready: schema."`)
	require.Contains(t, body, `{"name":"schema","ok":false,"detail":"the schema is of another version: run autopost migrate of the version of this program"}`)
	require.NotRegexp(t, regexp.MustCompile(`postgres://|/tmp/`), body)
	status, _ = fetch(t, d.URL+"/healthz")
	require.Equal(t, http.StatusOK, status, "a restart would not cure it")
}

// The doctor sees the daemon that runs, and what is missing when none does.
func TestDoctorChecksTheInstallation(t *testing.T) {
	t.Parallel()
	h, _, _ := newsroom(t, harness.AsEngine)
	diagnosis := func(env ...string) map[string]diagnosed { return diagnose(t, h, env...) }
	d := h.Serve()
	h.UntilTrue(`select count(*) = 1 from autopost.dispatch_runs`)
	well := diagnosis("AUTOPOST_PUBLIC_URL=" + d.URL)
	for _, name := range []string{
		"version", "isolation", "autovacuum", "statement timeout", "connections", "daemon role", "clock", "schema", "media origin",
		"master key", "credential news/telegram", "credential news/max", "daemons", "daemon settings", "duties", "queue", "public URL", "disk",
	} {
		require.True(t, well[name].OK, "%s: %+v", name, well[name])
	}
	require.Equal(t, "1 alive", well["daemons"].Found)
	require.Zero(t, d.Stop())

	ok(t, h, "post", "--text", "Nobody is there")
	h.Exec(`update autopost.dispatch_runs set seen_at = now() - interval '1 minute'`)
	h.Exec(`update autopost.deliveries set not_before = now() - interval '3 minutes'`)
	ill := diagnosis("AUTOPOST_PUBLIC_URL=" + d.URL)
	require.Contains(t, ill["daemons"].Found, "0 alive, the last one was active at")
	require.Contains(t, ill["daemons"].Remedy, "run autopost serve: 2 deliveries are due")
	require.Contains(t, ill["queue"].Found, "deliveries of 2 channels are due")
	require.False(t, ill["public URL"].OK)
	h.Exec(`update autopost.dispatch_runs set seen_at = now(), ended_at = null`)
	h.Exec(`insert into autopost.dispatch_runs (run_id) values ('another')`)
	h.Exec(`insert into autopost.monitor_duties (run_id, duty, reported_at, skew_ms, config, failures) values ('another', 'retention', now(), 0, 'other', 3)`)
	ill = diagnosis()
	require.Equal(t, "2 configurations", ill["daemon settings"].Found)
	require.Equal(t, "retention of run another", ill["duties"].Found)
}

// diagnose asks the doctor: what is not well has a remedy, and it and warnings alone.
func diagnose(t *testing.T, h *harness.Harness, env ...string) map[string]diagnosed {
	t.Helper()
	result := h.Run(env, "doctor", "--json")
	found, ill := map[string]diagnosed{}, false
	for _, c := range items[diagnosed](t, result.Stdout) {
		found[c.Check] = c
		ill = ill || !c.OK
		warning := strings.HasPrefix(c.Check, "rate of ")
		require.Equal(t, c.OK && !warning, c.Remedy == "", c)
	}
	require.Equal(t, ill, result.Code == 1)
	return found
}

type diagnosed struct {
	Check, Found, Remedy string
	OK                   bool
}

// A forecast says when a queue will have gone, and it has gone then.
func TestForecastKeepsItsWord(t *testing.T) {
	t.Parallel()
	h := harness.New(t, harness.AsEngine)
	h.Workspace("news")
	h.Endpoint("news", "cms", "secret-cms")
	h.Channel("news", harness.Channel{ID: "slow", Platform: harness.Telegram, Rate: 5})
	for i := range posts {
		ok(t, h, "post", "--text", fmt.Sprintf("Post %d", i))
	}
	require.Regexp(t, `slow.*telegram.*25.*channel rate`, ok(t, h, "forecast", "--wide"))
	forecast := decode[struct {
		AsOf     time.Time `json:"as_of"`
		DrainsAt time.Time `json:"drains_at"`
	}](t, ok(t, h, "forecast", "--json"))
	require.InDelta(t, (posts-1)/5.0, forecast.DrainsAt.Sub(forecast.AsOf).Seconds(), .001)
	h.Serve()
	h.Drained("news")
	sends := h.Sends()
	require.Len(t, sends, posts)
	h.WithinRate("the channel", sends, 5)
	slots := h.Slots(sends)
	require.GreaterOrEqual(t, slots[posts-1].Sub(slots[0]).Seconds(), forecast.DrainsAt.Sub(forecast.AsOf).Seconds()-.001)
}

// Traces go to the collector that is named, under the ids of the posts; one that is away holds up nothing.
func TestTracesGoToTheCollector(t *testing.T) {
	t.Parallel()
	h, _, _ := newsroom(t)
	var mu sync.Mutex
	var received bytes.Buffer
	collector := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		if r.URL.Path != "/v1/traces" {
			w.WriteHeader(http.StatusNotFound)
		}
		_, _ = io.Copy(&received, r.Body)
	}))
	d := h.Serve("OTEL_EXPORTER_OTLP_ENDPOINT=" + collector.URL)
	answer := h.Push(d, "secret-cms", harness.Post("text", "traced"))
	h.Drained("news")
	require.Zero(t, d.Stop(), "what is left is sent")
	collector.Close()
	id, err := hex.DecodeString(strings.ReplaceAll(answer.Text("trace_id"), "-", ""))
	require.NoError(t, err)
	mu.Lock()
	defer mu.Unlock()
	require.Equal(t, 2+2*5, bytes.Count(received.Bytes(), id), "receive and enqueue, and five spans of each attempt")
	require.NotContains(t, received.String(), "canary")

	away := h.Serve("OTEL_EXPORTER_OTLP_ENDPOINT=" + collector.URL)
	require.Equal(t, 202, h.Push(away, "secret-cms", harness.Post("text", "untraced")).Status)
	h.UntilTrue(`select count(*) = 4 from autopost.deliveries where status = 'sent'`)
	require.Zero(t, away.Stop())
	refused := h.Run([]string{"OTEL_EXPORTER_OTLP_ENDPOINT=collector"}, "doctor")
	require.Equal(t, 2, refused.Code)
	require.Contains(t, refused.Stderr, "OTEL_EXPORTER_OTLP_ENDPOINT")
}
