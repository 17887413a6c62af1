package youtube_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"autopost"
	"autopost/internal/adapter/youtube"
	"autopost/internal/sim"
	simyoutube "autopost/internal/sim/youtube"
)

func TestAnExpiredTokenIsExchangedWhereverItIs(t *testing.T) {
	for _, at := range []string{start, bytesTo, "POST /upload/youtube/v3/thumbnails/set", "POST /upload/youtube/v3/captions", "GET /youtube/v3/videos"} {
		t.Run(at, func(t *testing.T) {
			b := newBench(t)
			d := b.with(b.with(b.show(300*kib), "thumbnail", autopost.MediaImage), "captions", autopost.MediaFile)
			d.RenderMeta.Video.Captions = map[string]autopost.CaptionTrack{"captions": {Language: "en"}}
			expired := false
			b.reverse(func(_ http.ResponseWriter, r *http.Request) bool {
				if !expired && at == r.Method+" "+r.URL.Path {
					expired = true
					b.server.ExpireTokens()
				}
				return false
			})
			o := b.send(d)
			require.True(t, o.OK, "%v", o.Error)
			require.Empty(t, b.told(o).Unread)
			b.only(d)
			require.Equal(t, 2, b.count("POST /token"))
		})
	}
}

func TestATokenThatIsRefusedTwiceIsLost(t *testing.T) {
	b := newBench(t)
	b.fault(sim.Fault{Method: start, Effect: sim.EffectStatus, Status: 401, Code: "authError"})
	b.failed(b.send(b.show(300*kib)), "PERMANENT/channel yt_unauthorized")
	require.Equal(t, 2, b.count(start))
	require.Equal(t, 2, b.count("POST /token"))
}

func TestARefusedGrantIsLost(t *testing.T) {
	b := newBench(t)
	b.server.Disconnect(channelID)
	b.failed(b.send(b.show(300*kib)), "PERMANENT/channel yt_invalid_grant")
	require.Empty(t, b.methods())
}

func TestFailuresOfTheTokenEndpoint(t *testing.T) {
	for _, c := range []struct {
		status     int
		code, want string
		effect     sim.Effect
	}{
		{400, "invalid_grant", "PERMANENT/channel yt_invalid_grant", sim.EffectStatus},
		{401, "invalid_client", "PERMANENT/channel yt_unauthorized", sim.EffectStatus},
		{401, "unauthorized_client", "PERMANENT/channel yt_unauthorized", sim.EffectStatus},
		{400, "invalid_request", "PERMANENT/channel yt_unauthorized", sim.EffectStatus},
		{429, "rate_limited", "TRANSIENT/platform yt_token_unavailable", sim.EffectStatus},
		{503, "internal_failure", "TRANSIENT/platform yt_token_unavailable", sim.EffectStatus},
		{0, "", "TRANSIENT/platform yt_token_unavailable", sim.EffectReset},
		{0, "", "TRANSIENT/platform yt_token_unavailable", sim.EffectGarbage},
	} {
		t.Run(fmt.Sprint(c.status, c.code, c.effect), func(t *testing.T) {
			b := newBench(t)
			b.fault(sim.Fault{Method: "POST /token", Effect: c.effect, Status: c.status, Code: c.code})
			b.failed(b.send(b.show(300*kib)), c.want)
			require.Equal(t, 1, b.count("POST /token"))
		})
	}
}

func TestOneExchangeForManyDeliveries(t *testing.T) {
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
	require.Equal(t, 1, b.count("POST /token"))
	require.Len(t, b.server.Videos(channelID), len(calls))
}

func TestAnAccessTokenIsUsedUntilItIsRefused(t *testing.T) {
	b := newBench(t)
	b.secret = `{"access_token":"ya29.unknown"}`
	b.failed(b.send(b.show(300*kib)), "PERMANENT/channel yt_unauthorized")
	require.Zero(t, b.count("POST /token"))
}

// Who refreshes elsewhere gives the newest access token with the credential: it is used, and nothing exchanged.
func TestAnAccessTokenThatIsGivenGoesBeforeOurs(t *testing.T) {
	b := newBench(t)
	require.True(t, b.send(b.show(300*kib)).OK)
	b.progress = map[string][]string{}
	ours := b.core.Log.Entries(sim.Filter{Method: start})[0].Credential
	fresh := b.exchanged()
	b.secret = strings.TrimSuffix(b.secret, "}") + `,"access_token":"` + fresh + `"}`
	require.True(t, b.send(b.show(310*kib)).OK)
	starts := b.core.Log.Entries(sim.Filter{Method: start})
	require.Equal(t, sim.CredentialHash(fresh), starts[1].Credential)
	require.NotEqual(t, ours, starts[1].Credential)
	require.Equal(t, 2, b.count("POST /token"), "ours, and that of the test")
	require.Equal(t, 1, b.count("GET /youtube/v3/channels"), "it is the same account")
}

// exchanged is an access token that somebody else got.
func (b *bench) exchanged() string {
	b.t.Helper()
	answer, err := http.PostForm(b.base+"/google/token", url.Values{
		"grant_type": {"refresh_token"}, "client_id": {"client"}, "client_secret": {"hush-hush-client"}, "refresh_token": {b.refresh},
	})
	require.NoError(b.t, err)
	defer func() { _ = answer.Body.Close() }()
	var got struct {
		AccessToken string `json:"access_token"`
	}
	require.NoError(b.t, json.NewDecoder(answer.Body).Decode(&got))
	return got.AccessToken
}

func TestCredentialsThatAreNone(t *testing.T) {
	for _, secret := range []string{"a token", `[]`, `{}`, `{"client_id":"c","client_secret":"s"}`, `{"refresh_token":1}`, `{"access_token":"a b"}`} {
		b := newBench(t)
		b.secret = secret
		call := b.call(b.show(300 * kib))
		o := b.adapter.Send(t.Context(), call)
		b.failed(o, "PERMANENT/channel yt_unauthorized")
		require.Empty(t, b.core.Log.Entries())
	}
}

func TestACredentialOfAnotherChannelUploadsNothing(t *testing.T) {
	b := newBench(t)
	d := b.show(300 * kib)
	d.TargetID = "UCmore-channel"
	b.failed(b.send(d), "PERMANENT/channel yt_wrong_channel")
	require.Zero(t, b.count(start))
}

func TestTheRightToUploadIsEnough(t *testing.T) {
	b := newBench(t)
	b.grant(simyoutube.ScopeUpload)
	d := b.show(300 * kib)
	o := b.send(d)
	require.True(t, o.OK, "%v", o.Error)
	b.only(d)
	require.Equal(t, "yt_insufficient_permissions", b.told(o).Unread)
	require.Equal(t, "public", b.told(o).Privacy, "as the end of the upload told")
}

func TestQuotasRestUntilTheirDayTurns(t *testing.T) {
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
			require.Equal(t, name == "units", len(b.server.Videos(channelID)) == 2, "uploads have a quota of their own")
		})
	}
}

func TestAddressesAreChecked(t *testing.T) {
	for _, cfg := range []youtube.Config{{BaseURL: "ftp://a"}, {BaseURL: "x"}, {TokenURL: "/token"}, {PartBytes: 1000}} {
		_, err := youtube.New(cfg)
		require.Error(t, err)
	}
	_, err := youtube.New(youtube.Config{})
	require.NoError(t, err)
}
