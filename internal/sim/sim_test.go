package sim_test

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"autopost/internal/sim"
)

// platform is a minimal simulator: it accepts every POST to /<chat>.
func platform(core *sim.Core) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		chat := strings.TrimPrefix(r.URL.Path, "/")
		x := core.Begin(w, r, sim.Entry{Platform: "toy", Method: "send", Credential: sim.CredentialHash(r.Header.Get("Authorization"))})
		if x.Cut() {
			return
		}
		_, _ = io.Copy(io.Discard, x.Body())
		x.Entry().Chat = chat
		x.Arrive()
		x.Answer(func() sim.Reply {
			return sim.Reply{Status: http.StatusOK, Body: []byte("done"), Accepted: true, MessageIDs: []string{"1"}}
		}, func(f sim.Fault) sim.Reply {
			return sim.Reply{Status: f.Status, Body: []byte(f.Description), Reason: f.Description, RetryAfter: f.RetryAfter}
		})
	})
}

func serve(t *testing.T) (*sim.Core, string) {
	t.Helper()
	core := sim.NewCore(0)
	server := httptest.NewServer(platform(core))
	t.Cleanup(server.Close)
	return core, server.URL
}

func post(ctx context.Context, t *testing.T, url, body string) (int, string, error) {
	t.Helper()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(body))
	require.NoError(t, err)
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	response, err := client.Do(request)
	if err != nil {
		return 0, "", err
	}
	defer func() { _ = response.Body.Close() }()
	got, err := io.ReadAll(response.Body)
	return response.StatusCode, string(got), err
}

func ended(n int) func([]sim.Entry) bool {
	return func(entries []sim.Entry) bool {
		over := 0
		for _, e := range entries {
			if !e.End.IsZero() {
				over++
			}
		}
		return over >= n
	}
}

func TestFaultEffects(t *testing.T) {
	for _, c := range []struct {
		name     string
		fault    sim.Fault
		status   int
		breaks   bool
		accepted bool
		wholeIn  bool
	}{
		{"status", sim.Fault{Effect: sim.EffectStatus, Status: 503, Description: "tired"}, 503, false, false, true},
		{"slow", sim.Fault{Effect: sim.EffectSlow, DelayMS: 1}, 200, false, true, true},
		{"garbage", sim.Fault{Effect: sim.EffectGarbage}, 502, false, false, true},
		{"garbage of another status", sim.Fault{Effect: sim.EffectGarbage, Status: 401}, 401, false, false, true},
		{"reset before body", sim.Fault{Effect: sim.EffectResetBeforeBody}, 0, true, false, false},
		{"reset mid body", sim.Fault{Effect: sim.EffectResetMidBody}, 0, true, false, false},
		{"reset", sim.Fault{Effect: sim.EffectReset}, 0, true, false, true},
		{"early reset of one chat", sim.Fault{Effect: sim.EffectResetBeforeBody, Chat: "a"}, 0, true, false, true},
		{"accept then drop", sim.Fault{Effect: sim.EffectAcceptThenDrop}, 0, true, true, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			core, url := serve(t)
			require.NoError(t, core.Faults.Add(c.fault))
			body := strings.Repeat("x", 4<<20)
			status, _, err := post(t.Context(), t, url+"/a", body)
			require.Equal(t, c.breaks, err != nil, "%v", err)
			require.Equal(t, c.status, status)
			require.NoError(t, core.Log.WaitFor(t.Context(), ended(1)))
			e := core.Log.Entries()[0]
			require.Equal(t, c.accepted, e.Accepted)
			require.Equal(t, c.fault.Effect, e.Fault)
			require.Equal(t, !c.breaks, e.ReplyDelivered)
			require.Equal(t, c.wholeIn, e.BytesIn == int64(len(body)), "%d bytes", e.BytesIn)
			if c.fault.Effect == sim.EffectResetMidBody {
				require.Equal(t, int64(len(body)/2), e.BytesIn)
			}
		})
	}
}

func TestHangEndsWhenTheClientDisconnects(t *testing.T) {
	core, url := serve(t)
	require.NoError(t, core.Faults.Add(sim.Fault{Effect: sim.EffectHang}))
	ctx, cancel := context.WithCancel(t.Context())
	failed := make(chan error, 1)
	go func() {
		_, _, err := post(ctx, t, url+"/a", "x")
		failed <- err
	}()
	require.NoError(t, core.Log.WaitFor(t.Context(), func(entries []sim.Entry) bool { return len(entries) == 1 }))
	require.True(t, core.Log.Entries()[0].End.IsZero(), "the request still runs")
	cancel()
	require.ErrorIs(t, <-failed, context.Canceled)
	require.NoError(t, core.Log.WaitFor(t.Context(), ended(1)))
	e := core.Log.Entries()[0]
	require.False(t, e.Accepted)
	require.False(t, e.ReplyDelivered)
}

func TestSlowAcceptsBeforeItAnswers(t *testing.T) {
	core, url := serve(t)
	require.NoError(t, core.Faults.Add(sim.Fault{Effect: sim.EffectSlow, DelayMS: time.Hour.Milliseconds()}))
	ctx, cancel := context.WithCancel(t.Context())
	failed := make(chan error, 1)
	go func() {
		_, _, err := post(ctx, t, url+"/a", "x")
		failed <- err
	}()
	require.NoError(t, core.Log.WaitFor(t.Context(), func(entries []sim.Entry) bool {
		return len(entries) == 1 && entries[0].Accepted
	}))
	cancel()
	require.ErrorIs(t, <-failed, context.Canceled)
	require.NoError(t, core.Log.WaitFor(t.Context(), ended(1)))
	require.False(t, core.Log.Entries()[0].ReplyDelivered)
}

func TestFaultWindowCountsMatchingCallsOnly(t *testing.T) {
	core, url := serve(t)
	require.NoError(t, core.Faults.Add(sim.Fault{Chat: "a", From: 2, To: 3, Effect: sim.EffectStatus, Status: 500}))
	var got []int
	for _, chat := range []string{"a", "b", "a", "b", "a", "a"} {
		status, _, err := post(t.Context(), t, url+"/"+chat, "x")
		require.NoError(t, err)
		got = append(got, status)
	}
	require.Equal(t, []int{200, 200, 500, 200, 500, 200}, got)
	rule := core.Faults.List()[0]
	require.Equal(t, 4, rule.Matched)
	require.Equal(t, 2, rule.Applied)
}

func TestFaultSelectors(t *testing.T) {
	core, url := serve(t)
	for _, f := range []sim.Fault{{Platform: "other"}, {Method: "other"}, {Credential: sim.CredentialHash("other")}} {
		f.Effect, f.Status = sim.EffectStatus, 500
		require.NoError(t, core.Faults.Add(f))
	}
	status, _, err := post(t.Context(), t, url+"/a", "x")
	require.NoError(t, err)
	require.Equal(t, 200, status)

	require.NoError(t, core.Faults.Add(sim.Fault{Method: "SEND", Effect: sim.EffectStatus, Status: 418}))
	status, _, err = post(t.Context(), t, url+"/a", "x")
	require.NoError(t, err)
	require.Equal(t, 418, status)

	require.True(t, core.Faults.Remove(4))
	require.False(t, core.Faults.Remove(4))
	core.Faults.Clear()
	require.Empty(t, core.Faults.List())
}

func TestFaultValidation(t *testing.T) {
	for name, f := range map[string]sim.Fault{
		"no effect":        {},
		"unknown effect":   {Effect: "explode"},
		"success status":   {Effect: sim.EffectStatus, Status: 200},
		"slow without end": {Effect: sim.EffectSlow},
		"empty window":     {Effect: sim.EffectHang, From: 3, To: 2},
		"negative window":  {Effect: sim.EffectHang, From: -1},
	} {
		t.Run(name, func(t *testing.T) {
			require.Error(t, new(sim.Faults).Add(f))
		})
	}
}

func TestLogKeepsTheNewestAndCountsAll(t *testing.T) {
	core := sim.NewCore(2)
	server := httptest.NewServer(platform(core))
	t.Cleanup(server.Close)
	for _, chat := range []string{"a", "b", "a"} {
		_, _, err := post(t.Context(), t, server.URL+"/"+chat, "x")
		require.NoError(t, err)
	}
	entries := core.Log.Entries()
	require.Len(t, entries, 2)
	require.Equal(t, []int64{2, 3}, []int64{entries[0].Seq, entries[1].Seq})
	require.Equal(t, 2, entries[1].N, "the second call to chat a")
	require.Len(t, core.Log.Entries(sim.Filter{Chat: "a"}), 1)
	require.Empty(t, core.Log.Entries(sim.Filter{Platform: "other"}))
	require.Equal(t, sim.Totals{Requests: 3, Accepted: 3, Messages: 3}, core.Log.Totals())
	core.Log.Reset()
	require.Empty(t, core.Log.Entries())
	require.Zero(t, core.Log.Totals())
}

func TestLogNeverContainsTheToken(t *testing.T) {
	core, url := serve(t)
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url+"/a", bytes.NewReader(nil))
	require.NoError(t, err)
	request.Header.Set("Authorization", "canary-token")
	response, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	e := core.Log.Entries()[0]
	require.Equal(t, sim.CredentialHash("canary-token"), e.Credential)
	require.Len(t, e.Credential, 12)
	require.NotContains(t, e.Credential, "canary")
}

func TestWaitForEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err := sim.NewLog(0).WaitFor(ctx, func([]sim.Entry) bool { return false })
	require.ErrorIs(t, err, context.Canceled)
}

func TestBuckets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b sim.Buckets
		limit := sim.Claim{Key: "k", Rate: sim.Rate{PerSecond: 2, Burst: 3}}
		for range 3 {
			require.Zero(t, b.Take(1, limit))
		}
		require.Equal(t, 500*time.Millisecond, b.Take(1, limit))
		<-time.After(499 * time.Millisecond)
		require.InDelta(t, time.Millisecond, b.Take(1, limit), float64(time.Microsecond), "a refused call costs nothing")
		<-time.After(time.Millisecond)
		require.Zero(t, b.Take(1, limit))

		<-time.After(time.Hour)
		require.Zero(t, b.Take(10, limit), "a full bucket grants a large cost")
		require.Equal(t, 4*time.Second, b.Take(1, limit), "its level is negative then")

		other := sim.Claim{Key: "o", Rate: sim.Rate{PerSecond: 1}}
		require.Equal(t, 4*time.Second, b.Take(1, limit, other))
		require.Zero(t, b.Take(1, other), "all claims or none")
		require.Zero(t, b.Take(100, sim.Claim{Key: "k"}), "without a rate there is no limit")
		b.Reset()
		require.Zero(t, b.Take(1, limit, other))
	})
}
