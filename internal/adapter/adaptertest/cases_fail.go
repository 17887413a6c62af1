package adaptertest

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"autopost"
	"autopost/internal/adapter"
	"autopost/internal/sim"
)

// goneID is an id of a medium that no simulator knows. It has the form that every platform takes.
const goneID = "1840404040404040404"

func testExpired(t *testing.T, h Harness) {
	for _, kind := range h.kinds() {
		t.Run(string(kind), func(t *testing.T) {
			b := newBench(t, h)
			d := b.withMedia(b.delivery(mediaStep("media-1", 0)), kind)
			ref := d.Payload.Media[0].BlobRef
			require.NoError(t, b.media.Keep(t.Context(), ref, h.FileKinds[kind], goneID, noExpiry))
			o := b.send(t, d)
			require.True(t, o.OK, "%v", o.Error)
			require.Equal(t, []string{ref + " " + h.FileKinds[kind]}, b.media.Forgets())
			require.Len(t, b.posts(), 2)
			require.Len(t, b.accepted(), 1)
			id, ok, err := b.media.Cached(t.Context(), ref, h.FileKinds[kind])
			require.NoError(t, err)
			require.True(t, ok)
			require.NotEqual(t, goneID, id)
		})
	}
}

func testExpiredTwice(t *testing.T, h Harness) {
	b := newBench(t, h)
	d := b.withMedia(b.delivery(mediaStep("media-1", 0)), autopost.MediaImage)
	require.NoError(t, b.media.Keep(t.Context(), d.Payload.Media[0].BlobRef, h.FileKinds[autopost.MediaImage], goneID, noExpiry))
	b.fault(t, h.Expired.fault(h.MediaMethods[autopost.MediaImage]))
	requireClass(t, b.send(t, d), h.Expired.Want)
	require.Len(t, b.posts(), 2)
}

func testMissingOrigin(t *testing.T, h Harness) {
	want := Class{autopost.Permanent, autopost.ScopeDelivery, autopost.CodeMediaMissingOrigin, 0}
	b := newBench(t, h)
	d := b.withMedia(b.delivery(mediaStep("media-1", 0)), autopost.MediaImage)
	if h.Plain != nil {
		d = b.plain()
	}
	b.media.Lose(d.Payload.Media[0].BlobRef)
	requireClass(t, b.send(t, d), want)

	d.Payload.Media[0] = autopost.Media{Type: d.Payload.Media[0].Type, URL: "https://example.org/a"}
	requireClass(t, b.send(t, d), want)
	require.Empty(t, b.posts())
}

func testMissingSecret(t *testing.T, h Harness) {
	b := newBench(t, h)
	o := b.adapter.Send(t.Context(), autopost.Call{Delivery: b.plain(), Media: b.media})
	requireClass(t, o, Class{autopost.Permanent, autopost.ScopeChannel, autopost.CodeCredentialMissing, 0})
	require.Empty(t, b.core.Log.Entries())
}

func testRows(t *testing.T, h Harness) {
	for _, row := range h.Rows {
		t.Run(fmt.Sprintf("%d %s %s", row.Status, row.Code, row.Description), func(t *testing.T) {
			b := newBench(t, h)
			row.Description += " " + h.Secret
			b.fault(t, row.fault(h.TextMethod))
			o := b.send(t, b.plain())
			requireClass(t, o, row.Want)
			require.Contains(t, string(o.Error.Raw), "[redacted]", "the answer is kept without the secret")
			require.Len(t, b.posts(), 1)
		})
	}
}

func testNothingWritten(t *testing.T, h Harness) {
	b := newBench(t, h)
	b.connect(t, closedAddress(t))
	requireClass(t, b.send(t, b.plain()), Class{autopost.Transient, h.hostScope(), autopost.CodeNetConnect, 0})
}

func testUntrusted(t *testing.T, h Harness) {
	b := newBench(t, h)
	b.connect(t, untrustedServer(t))
	requireClass(t, b.send(t, b.plain()), Class{autopost.Permanent, h.hostScope(), autopost.CodeTLSUntrusted, 0})
}

func testLostAnswer(t *testing.T, h Harness) {
	for _, effect := range []sim.Effect{
		sim.EffectAcceptThenDrop, sim.EffectReset, sim.EffectResetBeforeBody, sim.EffectResetMidBody, sim.EffectGarbage,
	} {
		t.Run(string(effect), func(t *testing.T) {
			b := newBench(t, h)
			// The first call opens a connection: net/http may repeat a request on a reused connection.
			require.True(t, b.send(t, b.plain()).OK)
			b.fault(t, sim.Fault{Method: h.TextMethod, Effect: effect})
			b.requireLost(t, b.send(t, b.another()))
			require.Len(t, b.posts(), 2, "no hidden retry")
			taken := 1
			if effect == sim.EffectAcceptThenDrop {
				taken = 2
			}
			require.Len(t, b.accepted(), taken)
		})
	}
}

func testDefinite5xx(t *testing.T, h Harness) {
	b := newBench(t, h)
	b.fault(t, h.Definite5xx.fault(h.TextMethod))
	requireClass(t, b.send(t, b.plain()), h.Definite5xx.Want)
}

func testCancelWaiting(t *testing.T, h Harness) {
	b := newBench(t, h)
	b.fault(t, sim.Fault{Method: h.TextMethod, Effect: sim.EffectHang})
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		_ = b.core.Log.WaitFor(ctx, func([]sim.Entry) bool { return len(b.posts()) > 0 })
		cancel()
	}()
	b.requireLost(t, b.sendContext(ctx, t, b.plain()))
	require.Len(t, b.posts(), 1)
}

func testCancelBefore(t *testing.T, h Harness) {
	b := newBench(t, h)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	requireClass(t, b.sendContext(ctx, t, b.plain()), Class{autopost.Transient, autopost.ScopeDelivery, adapter.CodeNotStarted, 0})
	require.Empty(t, b.core.Log.Entries())
}

func testGarbage(t *testing.T, h Harness) {
	for _, body := range []string{"", "<html>ok</html>", "{}", `{"ok":true}`, `{"success":true}`, `{"data":{}}`, `{"ok":true,"result":{"message_id":`} {
		for _, status := range []int{200, 201, 204, 302, 502} {
			b := newBench(t, h)
			server := httptest.NewServer(answer(status, body))
			t.Cleanup(server.Close)
			b.connect(t, server.URL)
			require.Equal(t, h.AnyBody && status < 300, b.send(t, b.plain()).OK, "%d %s", status, body)
		}
	}
}

// testGateway answers each call of each operation with the HTML page of a proxy. Only an answer in the
// platform's own form may be a permanent failure.
func testGateway(t *testing.T, h Harness) {
	for name, run := range newBench(t, h).operations() {
		t.Run(name, func(t *testing.T) {
			calls, _ := probe(t, h, run, fault{within: patient})
			require.Positive(t, calls)
			for at := 1; at <= calls; at++ {
				for _, status := range []int{401, 403, 404, 407} {
					_, got := probe(t, h, run, fault{at, answer(status, "<html><body>Access denied</body></html>"), patient})
					for _, failure := range got.failures() {
						require.Equal(t, autopost.Transient, failure.Category, "call %d, status %d: %s", at, status, &failure)
					}
				}
			}
		})
	}
	for kind := range h.Changes {
		b := newBench(t, h)
		d := b.prepared(t, kind)
		server := httptest.NewServer(answer(http.StatusForbidden, "<html><body>Access denied</body></html>"))
		t.Cleanup(server.Close)
		b.connect(t, server.URL)
		failure := b.change(t, kind, d)
		require.NotNil(t, failure, kind)
		require.Equal(t, autopost.Transient, failure.Category, "%s: %s", kind, failure)
	}
}

func testRedirect(t *testing.T, h Harness) {
	for _, status := range []int{301, 302, 303, 307, 308} {
		var requests, elsewhere atomic.Int64
		other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { elsewhere.Add(1) }))
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			requests.Add(1)
			http.Redirect(w, r, other.URL+"/elsewhere", status)
		}))
		b := newBench(t, h)
		b.connect(t, server.URL)
		o := b.send(t, b.plain())
		require.Equal(t, h.hostScope(), o.Error.Scope)
		require.True(t, o.Error.Known)
		for _, run := range b.operations() {
			run(t.Context(), b, &results{})
		}
		server.Close()
		other.Close()
		require.LessOrEqual(t, requests.Load(), int64(1+len(b.operations())), "one call each")
		require.Zero(t, elsewhere.Load(), "the credential is sent to its own host only")
	}
}

func testRetryAfter(t *testing.T, h Harness) {
	b := newBench(t, h)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "7")
		w.WriteHeader(http.StatusTooManyRequests)
	}))
	defer server.Close()
	b.connect(t, server.URL)
	o := b.send(t, b.plain())
	require.Equal(t, autopost.Transient, o.Error.Category)
	require.GreaterOrEqual(t, o.Error.RetryAfterMS, int64(7000))
}

// testStalled ends the context before the last byte of a medium was sent.
func testStalled(t *testing.T, h Harness) {
	b := newBench(t, h)
	d := b.withMedia(b.delivery(mediaStep("media-1", 0)), h.notPicture())
	if h.Plain != nil {
		d = b.plain()
	}
	ctx, cancel := context.WithTimeout(t.Context(), quick)
	defer cancel()
	b.media.Stall(ctx)
	o := b.sendContext(ctx, t, d)
	require.NotNil(t, o.Error)
	require.Equal(t, autopost.Transient, o.Error.Category)
	if !h.Asks {
		require.Empty(t, b.accepted())
		require.True(t, !o.Error.Known || len(b.posts()) == 0, "a started call may have been executed: %s", o.Error)
	}
	require.Zero(t, b.media.OpenContents())
}

// testLookup reconciles a call whose answer was lost.
func testLookup(t *testing.T, h Harness) {
	for name, c := range map[string]struct {
		lost, asked sim.Fault
		want        func(v autopost.Verdict) bool
	}{
		"found":   {sim.Fault{Method: h.TextMethod, Effect: sim.EffectAcceptThenDrop, To: 1}, sim.Fault{Method: "none", Effect: sim.EffectReset}, func(v autopost.Verdict) bool { return v.Found && !v.Absent }},
		"absent":  {sim.Fault{Method: h.TextMethod, Effect: sim.EffectReset, To: 1}, sim.Fault{Method: "none", Effect: sim.EffectReset}, func(v autopost.Verdict) bool { return v.Absent && !v.Found }},
		"unknown": {sim.Fault{Method: h.TextMethod, Effect: sim.EffectAcceptThenDrop, To: 1}, sim.Fault{Effect: sim.EffectReset}, func(v autopost.Verdict) bool { return !v.Found && !v.Absent && v.Error != nil }},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, h)
			b.fault(t, c.lost)
			d, at := b.plain(), time.Now()
			b.requireLost(t, b.send(t, d))
			b.fault(t, c.asked)
			d.LastCallAt, d.UnknownOutcomes = &at, 1
			posts := len(b.posts())
			verdict := b.adapter.(autopost.Reconciler).Reconcile(t.Context(), b.call(d))
			require.True(t, c.want(verdict), "%+v", verdict)
			if verdict.Found {
				require.Equal(t, b.accepted()[0].MessageIDs[0], verdict.ProviderMessageID)
			}
			require.Len(t, b.posts(), posts, "it changes nothing")
		})
	}
}

// testLongest sends the longest allowed text, and one with another letter.
func testLongest(t *testing.T, h Harness) {
	h.Schema = nil // the database rejects longer texts
	b := newBench(t, h)
	d := b.plain()
	d.RenderMeta.ParseMode, d.RenderedText = "", h.Longest
	require.True(t, b.send(t, d).OK)
	d.DeliveryID, d.RenderedText = "d-2", h.Longest+"x"
	o := b.send(t, d)
	require.NotNil(t, o.Error)
	require.Equal(t, []any{autopost.Permanent, autopost.ScopeDelivery}, []any{o.Error.Category, o.Error.Scope}, "%s", o.Error)
	require.Len(t, b.accepted(), 1)
}

func testBadStep(t *testing.T, h Harness) {
	b := newBench(t, h)
	want := Class{autopost.Permanent, autopost.ScopeDelivery, autopost.CodeValidationFailed, 0}
	requireClass(t, b.send(t, b.delivery(mediaStep("media-1", 0))), want)
	requireClass(t, b.send(t, b.delivery()), want)
	d := b.delivery(mediaStep("media-1", 0))
	d.Payload.Media = []autopost.Media{{Type: "hologram", BlobRef: b.media.Add(autopost.MediaFile)}}
	requireClass(t, b.send(t, d), want)
	require.Empty(t, b.core.Log.Entries())
}

func testBadSettings(t *testing.T, h Harness) {
	b := newBench(t, h)
	d := b.delivery(textStep)
	d.Settings = json.RawMessage(cmp.Or(h.BadSettings, `{"disable_notification":"yes"}`))
	requireClass(t, b.send(t, d), Class{autopost.Permanent, autopost.ScopeChannel, autopost.CodeValidationFailed, 0})
	require.Empty(t, b.core.Log.Entries())
}

func testBadTarget(t *testing.T, h Harness) {
	b := newBench(t, h)
	for _, target := range []string{"", "no chat", "-100:x"} {
		d := b.plain()
		d.TargetID = target
		o := b.send(t, d)
		require.NotNil(t, o.Error)
		require.Equal(t, autopost.ScopeChannel, o.Error.Scope)
		require.Equal(t, autopost.Permanent, o.Error.Category)
	}
	require.Empty(t, b.core.Log.Entries())
}

func testContentClosed(t *testing.T, h Harness) {
	for name, fault := range map[string]sim.Fault{
		"sent":    {Method: "none", Effect: sim.EffectReset},
		"reset":   {Effect: sim.EffectReset},
		"refused": h.Definite5xx.fault(""),
		"garbage": {Effect: sim.EffectGarbage},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, h)
			b.fault(t, fault)
			d := b.withMedia(b.delivery(mediaStep("media-1", 0, 1)), autopost.MediaImage, autopost.MediaVideo)
			if h.Plain != nil {
				d = b.plain()
			}
			b.send(t, d)
			require.Zero(t, b.media.OpenContents())
		})
	}
}
