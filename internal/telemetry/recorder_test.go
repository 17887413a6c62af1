package telemetry

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/stretchr/testify/require"

	"autopost"
)

const traceID = "01a201fa-9e5d-7ecc-87c6-2f753db39052"

func scraped(t *testing.T, w *Recorder) string {
	t.Helper()
	answer := httptest.NewRecorder()
	w.Handler().ServeHTTP(answer, httptest.NewRequestWithContext(t.Context(), "GET", "/metrics", nil))
	text, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	require.Equal(t, 200, answer.Code, string(text))
	return string(text)
}

func TestANilRecorderIgnoresEvents(t *testing.T) {
	t.Parallel()
	var w *Recorder
	w.Poll()
	w.Batch("claim_deliveries", 1)
	w.Started(true, "", nil)
	w.InFlight()()
	w.Recovered("sending", 1)
	w.Polled("rss", "items")
	w.Submitted("enqueued")
	w.Query("plan", time.Second, false)
	w.Pushed(t.Context(), Push{})
	w.Attempted(&Attempt{})
	require.NoError(t, (*Traces)(nil).Close(t.Context()))
}

func TestScrapesReadTheQueueAtMostEveryFifteenSeconds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		reads := 0
		var gone error
		due := time.Now().Add(-time.Minute)
		q := newQueue(func(context.Context) ([]QueueLine, error) {
			reads++
			return []QueueLine{
				{WorkspaceID: "w", Platform: "telegram", RateGroup: "g", Gate: "ready", Channels: 2, Waiting: 5, Due: 4, OldestDueAt: &due},
				{WorkspaceID: "w", Platform: "telegram", RateGroup: "g", Gate: "window", Channels: 1, Waiting: 3},
			}, gone
		})
		w := NewRecorder(nil)
		w.registry.MustRegister(q)
		require.Zero(t, reads, "only a scrape reads the queue")
		text := scraped(t, w)
		scraped(t, w)
		require.Equal(t, 1, reads)
		require.Contains(t, text, `autopost_queue_deliveries{platform="telegram",rate_group="g",workspace="w"} 8`)
		require.Contains(t, text, `autopost_queue_oldest_due_seconds{platform="telegram",rate_group="g",workspace="w"} 60`)
		require.Contains(t, text, `autopost_queue_channels{gate="window",platform="telegram"} 1`)
		<-time.After(queueMaxAge)
		gone = errors.New("gone")
		text = scraped(t, w)
		require.Equal(t, 2, reads)
		require.Contains(t, text, "autopost_queue_unreadable 1")
		require.NotContains(t, text, "autopost_queue_deliveries{", "old values are not reported as new")
	})
}

func TestEachAttemptHasOneOutcomeAndOneClassOfFailure(t *testing.T) {
	t.Parallel()
	failed := func(e autopost.Error) autopost.Outcome { return autopost.Failed(e) }
	for _, c := range []struct {
		outcome autopost.Outcome
		status  string
		applied bool
		err     error
		labels  string
	}{
		{autopost.Sent("1", time.Now(), nil), "sent", true, nil, `failure="none",outcome="sent"`},
		{failed(autopost.Error{Category: autopost.Transient, Scope: autopost.ScopeDelivery, Code: "x"}), "retry", true, nil, `failure="unknown",outcome="retry"`},
		{failed(autopost.Error{Category: autopost.Transient, Scope: autopost.ScopeChannel, Known: true, RetryAfterMS: 5}), "retry", true, nil, `failure="limited",outcome="retry"`},
		{failed(autopost.Error{Category: autopost.Transient, Scope: autopost.ScopePlatform, Known: true}), "dead", true, nil, `failure="transient_platform",outcome="dead"`},
		{failed(autopost.Error{Category: autopost.Permanent, Scope: autopost.ScopeChannel, Known: true}), "failed_permanent", true, nil, `failure="permanent_channel",outcome="failed_permanent"`},
		{autopost.Sent("1", time.Now(), nil), "", false, nil, `failure="none",outcome="stale"`},
		{autopost.Sent("1", time.Now(), nil), "", false, errors.New("gone"), `failure="none",outcome="uncommitted"`},
	} {
		w := NewRecorder(nil)
		var a Attempt
		a.Ended(autopost.Delivery{Platform: autopost.Telegram, TraceID: traceID}, c.outcome, c.status, c.applied, c.err)
		w.Attempted(&a)
		require.Contains(t, scraped(t, w), "autopost_attempts_total{"+c.labels+`,platform="telegram"} 1`)
	}
}

func TestLatencyCountsFromTheAcceptanceOrTheScheduledTime(t *testing.T) {
	t.Parallel()
	accepted := time.UnixMilli(0x01a201fa9e5d)
	a := &Attempt{Claimed: accepted.Add(3 * time.Second), Began: accepted.Add(4 * time.Second)}
	a.TraceID, a.DueAt = traceID, accepted.Add(time.Second)
	d, ok := a.since(a.Began)
	require.True(t, ok)
	require.Equal(t, 4*time.Second, d)
	require.Equal(t, 2*time.Second, a.Waited())
	later := accepted.Add(3 * time.Second)
	a.ScheduledFor = &later
	d, _ = a.since(a.Began)
	require.Equal(t, time.Second, d)
	for _, foreign := range []string{"", "x", "9a1d0a5e-3b62-4f55-9e0b-2f1a33333333"} {
		a := &Attempt{Began: accepted}
		a.TraceID = foreign
		_, ok = a.since(a.Began)
		require.False(t, ok, foreign)
	}
}

func TestRefusedSpansAreLogged(t *testing.T) {
	t.Parallel()
	collector := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadRequest) }))
	defer collector.Close()
	var logged bytes.Buffer
	traces, err := OpenTraces(t.Context(), collector.URL, slog.New(slog.NewJSONHandler(&logged, nil)))
	require.NoError(t, err)
	NewRecorder(traces).Pushed(t.Context(), Push{Began: time.Now(), WorkspaceID: "w", Posts: []Post{{Status: "enqueued", TraceID: traceID, Enqueued: 1}}})
	_ = traces.Close(t.Context())
	require.Contains(t, logged.String(), `"level":"WARN","msg":"traces.not_sent","error":`)
}

// Two daemons write to one trace, from the push to the platform, without knowledge of each other.
func TestATraceHasTheIDOfThePost(t *testing.T) {
	t.Parallel()
	kept := tracetest.NewInMemoryExporter()
	receiver, sender := NewRecorder(newTraces(sdktrace.WithSyncer(kept))), NewRecorder(newTraces(sdktrace.WithSyncer(kept)))
	now := time.Now().Add(-time.Second)
	at := func(ms int) time.Time { return now.Add(time.Duration(ms) * time.Millisecond) }
	receiver.Pushed(t.Context(), Push{Began: at(0), Asked: at(1), Answered: at(5), WorkspaceID: "w", Posts: []Post{
		{Status: "enqueued", TraceID: traceID, Enqueued: 1}, {Status: "duplicate", TraceID: traceID}, {Status: "rejected"},
	}})
	a := &Attempt{Claimed: at(10), Asked: at(11)}
	a.Called(at(14), time.Millisecond, true)
	a.Ended(autopost.Delivery{TraceID: traceID, DueAt: at(5), Platform: autopost.MAX, Attempt: 1}, autopost.Failed(autopost.Error{Code: "http_502"}), "retry", true, nil)
	sender.Attempted(a)

	spans := map[string]tracetest.SpanStub{}
	for _, s := range kept.GetSpans() {
		require.Equal(t, strings.ReplaceAll(traceID, "-", ""), s.SpanContext.TraceID().String())
		spans[s.Name] = s
	}
	require.Len(t, kept.GetSpans(), 7)
	require.False(t, spans["receive"].Parent.IsValid(), "it is the root span")
	for name, parent := range map[string]string{"enqueue": "receive", "attempt": "receive", "claim": "attempt", "start": "attempt", "call": "attempt", "commit": "attempt"} {
		require.Equal(t, spans[parent].SpanContext.SpanID(), spans[name].Parent.SpanID(), name)
		require.False(t, spans[name].EndTime.Before(spans[name].StartTime), name)
	}
	require.True(t, spans["claim"].StartTime.Equal(at(5)), "it starts when the delivery is due")
	require.True(t, spans["start"].EndTime.Equal(at(14)))
	require.Equal(t, "http_502", spans["attempt"].Status.Description)
}
