package youtube_test

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"autopost"
	"autopost/internal/adapter/youtube"
	"autopost/internal/sim"
	simyoutube "autopost/internal/sim/youtube"
)

func TestARenewedTokenContinuesTheUpload(t *testing.T) {
	for _, c := range []struct {
		at          string
		nth, starts int
	}{
		{start, 1, 2}, {bytesTo, 1, 1}, {bytesTo, 2, 1}, {"POST /upload/youtube/v3/thumbnails/set", 1, 1}, {"POST /upload/youtube/v3/captions", 1, 1},
	} {
		t.Run(fmt.Sprint(c.at, c.nth), func(t *testing.T) {
			b := newBench(t)
			d := b.with(b.with(b.show(600*kib), "thumbnail", autopost.MediaImage), "captions", autopost.MediaFile)
			d.RenderMeta.Video.Captions = map[string]autopost.CaptionTrack{"captions": {Language: "en"}}
			tokens := b.count("POST /token")
			b.expireAt(c.at, c.nth)
			b.failed(b.send(d), "PERMANENT/channel yt_unauthorized")
			require.Equal(t, tokens, b.count("POST /token"), "the adapter does not renew tokens")
			b.renew()
			o := b.send(d)
			require.True(t, o.OK, "%v", o.Error)
			require.Empty(t, b.stored(o).Unread)
			v := b.only(d)
			require.NotEmpty(t, v.Thumbnail.Digest)
			require.Len(t, v.Captions, 1)
			require.Equal(t, c.starts, b.count(start))
			var sent int64
			for _, e := range b.core.Log.Entries(sim.Filter{Method: bytesTo}) {
				if e.Accepted {
					sent += e.BytesIn
				}
			}
			require.EqualValues(t, 600*kib, sent, "no byte is sent twice")
		})
	}
}

// expireAt expires all tokens at the nth call of a method from now.
func (b *bench) expireAt(method string, nth int) {
	b.t.Helper()
	b.reverse(func(_ http.ResponseWriter, r *http.Request) bool {
		if method == r.Method+" "+r.URL.Path {
			if nth--; nth == 0 {
				b.server.ExpireTokens()
			}
		}
		return false
	})
}

func TestATokenThatExpiresAfterTheUploadDoesNotFailThePost(t *testing.T) {
	b := newBench(t)
	d := b.show(300 * kib)
	b.expireAt("GET /youtube/v3/videos", 1)
	o := b.send(d)
	require.True(t, o.OK, "%v", o.Error)
	b.only(d)
	require.Equal(t, "yt_unauthorized", b.stored(o).Unread)
	require.Equal(t, "public", b.stored(o).Privacy, "from the last answer of the upload")
}

func TestARefusalAfterABrokenConnectionIsReported(t *testing.T) {
	b := newBench(t)
	d := b.show(300 * kib)
	b.fault(sim.Fault{Method: bytesTo, Effect: sim.EffectReset, To: 1})
	b.expireAt(bytesTo, 2)
	b.failed(b.send(d), "PERMANENT/channel yt_unauthorized")
	b.renew()
	require.True(t, b.send(d).OK)
	b.only(d)
	require.Equal(t, 1, b.count(start))
}

func TestTheAccountIsRequestedOncePerGrant(t *testing.T) {
	b := newBench(t)
	for n := range 3 {
		b.progress = map[string][]string{}
		require.True(t, b.send(b.show(300*kib+n)).OK)
		b.renew()
	}
	require.Equal(t, 1, b.count("GET /youtube/v3/channels"))
	b.grant(simyoutube.ScopeAll)
	b.progress = map[string][]string{}
	require.True(t, b.send(b.show(310*kib)).OK)
	require.Equal(t, 2, b.count("GET /youtube/v3/channels"), "another grant may belong to another channel")
}

func TestConcurrentDeliveries(t *testing.T) {
	b := newBench(t)
	calls := make([]autopost.Call, 8)
	for i := range calls {
		calls[i] = b.call(b.show(40*kib + i))
		calls[i].Emit = func(context.Context, autopost.Acknowledged) error { return nil }
		calls[i].Renew = func(context.Context) error { return nil }
	}
	var group sync.WaitGroup
	for _, call := range calls {
		group.Go(func() {
			if o := b.adapter.Send(t.Context(), call); !o.OK {
				t.Errorf("%v", o.Error)
			}
		})
	}
	group.Wait()
	require.Len(t, b.server.Videos(channelID), len(calls))
}

func TestInvalidCredentials(t *testing.T) {
	for _, secret := range []string{
		"a token", `[]`, `{}`, `{"client_id":"c","client_secret":"s","refresh_token":"r"}`, `{"access_token":1}`, `{"access_token":"a b"}`,
	} {
		b := newBench(t)
		b.core.Log.Reset()
		b.secret = secret
		call := b.call(b.show(300 * kib))
		o := b.adapter.Send(t.Context(), call)
		b.failed(o, "PERMANENT/channel yt_unauthorized")
		require.Empty(t, b.core.Log.Entries())
	}
}

func TestACredentialOfAnotherChannelIsRefusedBeforeTheUpload(t *testing.T) {
	b := newBench(t)
	d := b.show(300 * kib)
	d.TargetID = "UCmore-channel"
	b.failed(b.send(d), "PERMANENT/channel yt_wrong_channel")
	require.Zero(t, b.count(start))
}

func TestTheUploadScopeIsEnough(t *testing.T) {
	b := newBench(t)
	b.grant(simyoutube.ScopeUpload)
	d := b.show(300 * kib)
	o := b.send(d)
	require.True(t, o.OK, "%v", o.Error)
	b.only(d)
	require.Equal(t, "yt_insufficient_permissions", b.stored(o).Unread)
	require.Equal(t, "public", b.stored(o).Privacy, "from the last answer of the upload")
}

func TestQuotasWaitForTheirNextDay(t *testing.T) {
	for name, quotas := range map[string]simyoutube.Quotas{"uploads": {Units: 10_000, Uploads: 1}, "units": {Units: 1, Uploads: 100}} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.server.SetQuotas(quotas)
			first := b.send(b.show(300 * kib))
			require.True(t, first.OK, "%v", first.Error)
			b.progress = map[string][]string{}
			b.connect(b.base)
			o := b.send(b.with(b.show(310*kib), "thumbnail", autopost.MediaImage))
			b.failed(o, "TRANSIENT/platform yt_usage_capped")
			wait := time.Duration(o.Error.RetryAfterMS) * time.Millisecond
			zone, err := time.LoadLocation("America/Los_Angeles")
			require.NoError(t, err)
			turn := time.Now().Add(wait - time.Minute).In(zone)
			require.Equal(t, "00:00", turn.Add(5*time.Second).Format("15:04"))
			require.Less(t, wait, 26*time.Hour)
			require.Equal(t, name == "units", len(b.server.Videos(channelID)) == 2, "uploads have a separate quota")
		})
	}
}

func TestBaseURLsAreChecked(t *testing.T) {
	for _, cfg := range []youtube.Config{{BaseURL: "ftp://a"}, {BaseURL: "x"}, {PartBytes: 1000}} {
		_, err := youtube.New(cfg)
		require.Error(t, err)
	}
	_, err := youtube.New(youtube.Config{})
	require.NoError(t, err)
}
