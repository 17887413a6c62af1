package youtube_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"autopost"
	"autopost/internal/sim"
	simyoutube "autopost/internal/sim/youtube"
	"autopost/internal/testing/wait"
)

func TestAVideoWithAllExtras(t *testing.T) {
	b := newBench(t)
	d := b.with(b.with(b.show(600*kib), "thumbnail", autopost.MediaImage), "captions", autopost.MediaFile)
	d.RenderMeta.Video = &autopost.Video{
		Privacy: "unlisted", Tags: []string{"news", "the show"}, CategoryID: "25", MadeForKids: true, SyntheticMedia: true,
		Captions: map[string]autopost.CaptionTrack{"captions": {Language: "pt-BR", Name: "Brazil"}},
	}
	o := b.send(d)
	require.True(t, o.OK, "%v", o.Error)
	v := b.only(d)
	require.Equal(t, v.ID, o.ProviderMessageID)
	require.WithinDuration(t, time.Now(), *o.SentAt, 5*time.Second)
	require.Equal(t, []any{"News", "A news show", []string{"news", "the show"}, "unlisted", true, []string{"pt-BR Brazil"}},
		[]any{v.Title, v.Description, v.Tags, v.Privacy, v.Synthetic, v.Captions})
	require.Equal(t, d.Payload.Media[1].BlobRef, "sha256:"+v.Thumbnail.Digest)
	require.Equal(t, []string{
		start, bytesTo, bytesTo, bytesTo, "POST /upload/youtube/v3/thumbnails/set", "POST /upload/youtube/v3/captions", "GET /youtube/v3/videos",
	}, b.methods())
	for _, e := range b.core.Log.Entries() {
		require.Empty(t, e.Notes)
		require.True(t, e.Accepted)
	}
	require.Equal(t, 2, b.renewals, "after each part except the last")
	require.Len(t, b.progress, 3, "the outcome has the last step")
	require.Equal(t, []string{v.ID}, b.progress["video"])
	b.keepsSecrets(b.progress)
	stored := b.stored(o)
	require.Equal(t, []string{v.ID}, stored.IDs)
	require.Equal(t, []string{"captions", "thumbnail", "video"}, sorted(stored.Steps))
	require.Equal(t, []string{"https://www.youtube.com/watch?v=" + v.ID, "processed", "succeeded", "unlisted"}, []string{stored.URL, stored.UploadStatus, stored.Processing, stored.Privacy})
	require.Empty(t, stored.Refused)
}

func TestNoByteIsSentBeforeTheSessionIsRecorded(t *testing.T) {
	b := newBench(t)
	d := b.show(300 * kib)
	b.emit = func(string) error { return errors.New("the lease is over") }
	b.failed(b.send(d), "TRANSIENT/delivery not_recorded")
	require.Zero(t, b.count(bytesTo))
	b.emit = nil
	require.True(t, b.send(d).OK)
	require.Equal(t, 2, b.count(start))
	b.only(d)
}

func TestAPartlyAcceptedPartIsContinued(t *testing.T) {
	b := newBench(t)
	b.cfg.PartBytes = 1024 * kib
	b.connect(b.base)
	b.server.SetTakeAtMost(256 * kib)
	d := b.show(1100 * kib)
	require.True(t, b.send(d).OK)
	b.only(d)
	require.Equal(t, 5, b.count(bytesTo))
}

func TestAfterABrokenConnectionTheSessionIsAsked(t *testing.T) {
	for _, effect := range []sim.Effect{sim.EffectResetMidBody, sim.EffectReset, sim.EffectResetBeforeBody, sim.EffectAcceptThenDrop} {
		for part := 1; part <= 3; part++ { // the second of them is the question after the first
			t.Run(string(effect), func(t *testing.T) {
				b := newBench(t)
				d := b.show(700 * kib)
				b.fault(sim.Fault{Method: bytesTo, Effect: effect, From: part, To: part})
				o := b.send(d)
				require.True(t, o.OK, "%v", o.Error)
				require.Equal(t, b.only(d).ID, o.ProviderMessageID)
				require.Equal(t, 1, b.count(start))
			})
		}
	}
}

func TestAStalledUploadEnds(t *testing.T) {
	b := newBench(t)
	b.fault(sim.Fault{Method: bytesTo, Effect: sim.EffectResetBeforeBody, From: 1, To: 1})
	b.fault(sim.Fault{Method: bytesTo, Effect: sim.EffectReset, From: 2})
	b.failed(b.send(b.show(300*kib)), "TRANSIENT/delivery yt_interrupted")
}

func TestTheNextAttemptContinuesAnInterruptedUpload(t *testing.T) {
	b := newBench(t)
	d := b.show(900 * kib)
	b.fault(sim.Fault{Method: bytesTo, Effect: sim.EffectHang, From: 3, To: 3})
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		_ = b.core.Log.WaitFor(ctx, func([]sim.Entry) bool { return b.count(bytesTo) == 3 })
		cancel()
	}()
	b.failed(b.sendContext(ctx, d), "TRANSIENT/delivery yt_interrupted")
	require.Empty(t, b.server.Videos(channelID))
	b.connect(b.base)
	o := b.send(d)
	require.True(t, o.OK, "%v", o.Error)
	b.only(d)
	require.Equal(t, 1, b.count(start))
	entries := b.core.Log.Entries(sim.Filter{Method: bytesTo})
	require.Zero(t, entries[3].BytesIn, "the progress is requested first")
	var sent int64
	for _, e := range entries[3:] {
		sent += e.BytesIn
	}
	require.EqualValues(t, (900-512)*kib, sent, "then the rest is sent")
}

func TestALostLastAnswerCreatesNoSecondVideo(t *testing.T) {
	b := newBench(t)
	d := b.show(300 * kib)
	b.cutOff(d)
	o := b.send(d)
	require.True(t, o.OK, "%v", o.Error)
	require.Equal(t, b.only(d).ID, o.ProviderMessageID)
	require.Equal(t, 1, b.count(start))
}

func TestALostSessionWithoutItsLastByteIsReplaced(t *testing.T) {
	for name, gone := range map[string]bool{"404": false, "410": true} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			d := b.show(900 * kib)
			expired := false
			b.reverse(func(_ http.ResponseWriter, r *http.Request) bool {
				if !expired && strings.HasPrefix(r.Header.Get("Content-Range"), "bytes 262144-") {
					expired = true
					b.server.ExpireSessions(gone)
				}
				return false
			})
			o := b.send(d)
			require.True(t, o.OK, "%v", o.Error)
			b.only(d)
			require.Equal(t, 2, b.count(start))
			require.Zero(t, b.count("GET /youtube/v3/playlistItems"))
			require.Equal(t, []string{"session", "session-2"}, sorted(b.progress))
		})
	}
}

func TestASecondLossOfASessionWaits(t *testing.T) {
	b := newBench(t)
	b.reverse(func(_ http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodPut {
			b.server.ExpireSessions(false)
		}
		return false
	})
	b.failed(b.send(b.show(900*kib)), "TRANSIENT/delivery yt_session_lost")
	require.Equal(t, 2, b.count(start))
}

// cutOff uploads a whole video and loses the last answer.
func (b *bench) cutOff(d autopost.Delivery) {
	b.t.Helper()
	b.fault(sim.Fault{Method: bytesTo, Effect: sim.EffectAcceptThenDrop, From: 2, To: 2})
	b.fault(sim.Fault{Method: bytesTo, Effect: sim.EffectStatus, Status: 503, Code: "backendError", From: 3, To: 3})
	b.failed(b.send(d), "TRANSIENT/delivery yt_interrupted")
}

func TestTheVideoOfALostSessionIsFoundInTheUploads(t *testing.T) {
	b := newBench(t)
	older := b.show(280 * kib)
	older.RenderMeta.Title = "Another"
	require.True(t, b.send(older).OK)
	b.progress = map[string][]string{}
	b.core.Faults.Clear()
	d := b.show(300 * kib)
	b.cutOff(d)
	b.server.ExpireSessions(true)
	o := b.send(d)
	require.True(t, o.OK, "%v", o.Error)
	videos := b.server.Videos(channelID)
	require.Len(t, videos, 2)
	require.Equal(t, videos[1].ID, o.ProviderMessageID)
}

func TestALaggingListOfUploadsDelaysTheDecision(t *testing.T) {
	b := newBench(t)
	b.cfg.Settle = 300 * time.Millisecond
	b.connect(b.base)
	b.server.SetLags(simyoutube.Lags{Listed: 200 * time.Millisecond})
	d := b.show(300 * kib)
	b.cutOff(d)
	b.server.ExpireSessions(true)
	o := b.send(d)
	b.failed(o, "TRANSIENT/delivery yt_session_lost")
	require.Equal(t, int64(300), o.Error.RetryAfterMS)
	require.Contains(t, b.progress, "session-lost")
	require.Eventually(t, func() bool { return b.send(d).OK }, wait.Bound, 50*time.Millisecond)
	b.only(d)
	require.Equal(t, 1, b.count(start))
}

func TestALostSessionWithoutAVideoIsReplacedAfterTheDelay(t *testing.T) {
	b := newBench(t)
	b.cfg.Settle = 50 * time.Millisecond
	b.connect(b.base)
	d := b.show(300 * kib)
	b.fault(sim.Fault{Method: bytesTo, Effect: sim.EffectStatus, Status: 503, Code: "backendError", From: 1, To: 1})
	b.failed(b.send(d), "TRANSIENT/platform yt_5xx")
	b.server.ExpireSessions(false)
	b.failed(b.send(d), "TRANSIENT/delivery yt_session_lost")
	require.Eventually(t, func() bool { return b.send(d).OK }, wait.Bound, 20*time.Millisecond)
	b.only(d)
	require.Equal(t, []string{"session", "session-2", "session-lost"}, sorted(b.progress))
}

func TestASessionSealedByAnotherCredentialIsLost(t *testing.T) {
	b := newBench(t)
	d := b.show(300 * kib)
	b.cutOff(d)
	b.grant(simyoutube.ScopeAll)
	questions := b.count(bytesTo)
	o := b.send(d)
	require.True(t, o.OK, "%v", o.Error)
	require.Equal(t, b.only(d).ID, o.ProviderMessageID)
	require.Equal(t, questions, b.count(bytesTo))
}

func TestSeveralMatchingVideosLeaveTheOutcomeUnknown(t *testing.T) {
	b := newBench(t)
	d := b.show(300 * kib)
	for range 2 {
		b.progress = map[string][]string{}
		require.True(t, b.send(d).OK)
	}
	b.progress = map[string][]string{}
	b.core.Faults.Clear()
	b.cutOff(d)
	b.server.ExpireSessions(true)
	o := b.send(d)
	require.NotNil(t, o.Error)
	require.False(t, o.Error.Known)
	require.Len(t, b.server.Videos(channelID), 3)
}

func TestOutcomesNeverContainTheSessionAddress(t *testing.T) {
	const address = "/upload/youtube/v3/videos?upload_id=canary-upload-id"
	for _, status := range []int{200, 204, 307, 308, 400, 401, 403, 429, 500, 503} {
		b := newBench(t)
		platform := b.base
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			switch {
			case r.URL.Query().Has("upload_id"):
				w.WriteHeader(status)
				_, _ = w.Write([]byte(`{"error":{"message":"` + r.URL.String() + ` ` + r.Header.Get("Authorization") + `","errors":[{"reason":"x"}]}}`))
			case r.Method == http.MethodPost && strings.HasPrefix(r.URL.Path, "/upload"):
				w.Header().Set("Location", "http://"+r.Host+address)
			default:
				http.Redirect(w, r, platform, http.StatusTeapot)
			}
		}))
		t.Cleanup(server.Close)
		b.secret = `{"client_id":"c","client_secret":"hush-hush-client","refresh_token":"` + b.refresh + `","access_token":"ya29.canary"}`
		b.reverse(func(w http.ResponseWriter, r *http.Request) bool {
			if !strings.HasPrefix(r.URL.Path, "/upload") {
				if r.URL.Path == "/youtube/v3/channels" {
					_, _ = w.Write([]byte(`{"items":[{"id":"` + channelID + `"}]}`))
					return true
				}
				return false
			}
			server.Config.Handler.ServeHTTP(w, r)
			return true
		})
		o := b.send(b.show(300 * kib))
		require.False(t, o.OK)
		text := o.Error.String() + string(o.Error.Raw) + string(o.Raw)
		require.NotContains(t, text, "canary")
		b.keepsSecrets(b.progress)
	}
}
