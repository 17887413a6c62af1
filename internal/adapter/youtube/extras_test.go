package youtube_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"autopost"
	"autopost/internal/sim"
	simyoutube "autopost/internal/sim/youtube"
)

const (
	thumbnails = "POST /upload/youtube/v3/thumbnails/set"
	captions   = "POST /upload/youtube/v3/captions"
)

func (b *bench) dressed() autopost.Delivery {
	d := b.with(b.with(b.show(300*kib), "thumbnail", autopost.MediaImage), "captions", autopost.MediaFile)
	d.RenderMeta.Video.Captions = map[string]autopost.CaptionTrack{"captions": {Language: "en"}}
	return d
}

func TestARefusedExtraIsAWarning(t *testing.T) {
	for _, c := range []struct {
		method, step, reason string
		status               int
		want                 string
	}{
		{thumbnails, "thumbnail", "forbidden", 403, "yt_forbidden"},
		{thumbnails, "thumbnail", "invalidImage", 400, "yt_invalid_image"},
		{thumbnails, "thumbnail", "imageFormatUnsupported", 400, "yt_image_format_unsupported"},
		{thumbnails, "thumbnail", "imageTooTall", 400, "yt_image_too_tall"},
		{thumbnails, "thumbnail", "imageTooWide", 400, "yt_image_too_wide"},
		{captions, "captions", "nameTooLong", 400, "validation_failed"},
	} {
		t.Run(c.reason, func(t *testing.T) {
			b := newBench(t)
			b.fault(sim.Fault{Method: c.method, Effect: sim.EffectStatus, Status: c.status, Code: c.reason})
			d := b.dressed()
			o := b.send(d)
			require.True(t, o.OK, "%v", o.Error)
			require.Equal(t, map[string]string{c.step: c.want}, b.stored(o).Refused)
			require.Equal(t, b.only(d).ID, o.ProviderMessageID)
			require.Equal(t, 1, b.count(c.method))
		})
	}
}

func TestALostImageIsAWarning(t *testing.T) {
	b := newBench(t)
	d := b.dressed()
	b.media.Lose(d.Payload.Media[1].BlobRef)
	o := b.send(d)
	require.True(t, o.OK, "%v", o.Error)
	require.Equal(t, map[string]string{"thumbnail": autopost.CodeMediaMissingOrigin}, b.stored(o).Refused)
	require.Len(t, b.only(d).Captions, 1)
}

func TestAnExtraNeverUploadsTheVideoAgain(t *testing.T) {
	for _, c := range []struct {
		method string
		fault  sim.Fault
		want   string
	}{
		{thumbnails, sim.Fault{Effect: sim.EffectStatus, Status: 404, Code: "videoNotFound"}, "TRANSIENT/delivery yt_video_not_found"},
		{captions, sim.Fault{Effect: sim.EffectStatus, Status: 404, Code: "videoNotFound"}, "TRANSIENT/delivery yt_video_not_found"},
		{thumbnails, sim.Fault{Effect: sim.EffectStatus, Status: 429, Code: "uploadRateLimitExceeded"}, "TRANSIENT/channel yt_upload_rate_limit_exceeded"},
		{captions, sim.Fault{Effect: sim.EffectStatus, Status: 403, Code: "quotaExceeded"}, "TRANSIENT/platform yt_usage_capped"},
		{thumbnails, sim.Fault{Effect: sim.EffectReset}, "TRANSIENT/delivery yt_interrupted"},
		{thumbnails, sim.Fault{Effect: sim.EffectAcceptThenDrop}, "TRANSIENT/delivery yt_interrupted"},
		{captions, sim.Fault{Effect: sim.EffectAcceptThenDrop}, "TRANSIENT/delivery yt_interrupted"}, // then they exist
		{captions, sim.Fault{Effect: sim.EffectGarbage}, "TRANSIENT/platform yt_5xx"},
	} {
		t.Run(c.method+" "+c.want, func(t *testing.T) {
			b := newBench(t)
			c.fault.Method, c.fault.To = c.method, 1
			b.fault(c.fault)
			d := b.dressed()
			o := b.send(d)
			b.failed(o, c.want)
			if c.want == "TRANSIENT/channel yt_upload_rate_limit_exceeded" {
				require.Equal(t, time.Hour.Milliseconds(), o.Error.RetryAfterMS)
			}
			parts := b.count(bytesTo)
			o = b.send(d)
			require.True(t, o.OK, "%v", o.Error)
			require.Equal(t, parts, b.count(bytesTo))
			v := b.only(d)
			require.Equal(t, v.ID, o.ProviderMessageID)
			require.Len(t, v.Captions, 1)
			require.NotEmpty(t, v.Thumbnail.Digest)
			require.Empty(t, b.stored(o).Refused)
		})
	}
}

func TestALostCredentialFailsThePost(t *testing.T) {
	b := newBench(t)
	b.fault(sim.Fault{Method: captions, Effect: sim.EffectStatus, Status: 401, Code: "authError"})
	b.failed(b.send(b.dressed()), "PERMANENT/channel yt_unauthorized")
}

func TestAVideoThatYouTubeKeepsPrivateFailsThePost(t *testing.T) {
	for _, video := range []autopost.Video{{Privacy: "public"}, {Privacy: "unlisted"}, {Privacy: "private", PublishAt: "2030-01-01T00:00:00Z"}} {
		b := newBench(t, simyoutube.Project{Unaudited: true})
		d := b.show(300 * kib)
		d.RenderMeta.Video = &video
		o := b.send(d)
		b.failed(o, "PERMANENT/delivery degraded_private")
		id := b.only(d).ID
		stored := b.stored(o)
		require.Equal(t, "private", stored.Privacy)
		require.Equal(t, "https://www.youtube.com/watch?v="+id, stored.URL)
		require.Contains(t, o.Error.Message, stored.URL)
		require.Equal(t, []string{id}, stored.Steps["video"], "no upload is repeated")

		// After the video becomes public, the requeued delivery succeeds.
		b.progress["video"] = stored.Steps["video"]
		require.NoError(t, b.server.AddProject(simyoutube.Project{ID: "p", ClientID: "client", ClientSecret: "hush-hush-client"}))
		b.reverse(released(b, id))
		o = b.send(d)
		require.True(t, o.OK, "%v", o.Error)
		require.Equal(t, id, o.ProviderMessageID)
		require.Equal(t, 1, b.count(start))
	}
}

func TestARequestedPrivateVideoIsASuccess(t *testing.T) {
	b := newBench(t, simyoutube.Project{Unaudited: true})
	d := b.show(300 * kib)
	d.RenderMeta.Video = &autopost.Video{Privacy: "private"}
	require.True(t, b.send(d).OK)
}

func TestAScheduledVideo(t *testing.T) {
	b := newBench(t)
	d := b.show(300 * kib)
	d.RenderMeta.Video = &autopost.Video{Privacy: "private", PublishAt: "2030-01-01T10:00:00+03:00"}
	o := b.send(d)
	require.True(t, o.OK, "%v", o.Error)
	require.Equal(t, "2030-01-01T07:00:00Z", b.stored(o).PublishAt)
	require.True(t, b.only(d).PublishAt.Equal(time.Date(2030, 1, 1, 7, 0, 0, 0, time.UTC)))
}

func TestProcessingIsPolled(t *testing.T) {
	for _, c := range []struct {
		processing, watch    time.Duration
		content              []byte
		state, after, reason string
	}{
		{0, time.Nanosecond, film(40 * kib), "processed", "succeeded", ""},
		{time.Minute, time.Nanosecond, film(40 * kib), "uploaded", "processing", ""},
		{time.Second / 2, 5 * time.Second, film(40 * kib), "processed", "succeeded", ""},
		{time.Second / 2, 5 * time.Second, make([]byte, 40*kib), "failed", "failed", "invalidFile"},
	} {
		t.Run(fmt.Sprint(c.processing, c.watch, c.state), func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			b.cfg.Watch = c.watch
			b.connect(b.base)
			b.server.SetLags(simyoutube.Lags{Processing: c.processing})
			d := b.show(40 * kib)
			d.Payload.Media[0].BlobRef = b.media.Put(c.content, "video/mp4")
			o := b.send(d)
			require.True(t, o.OK, "published is published: %v", o.Error)
			stored := b.stored(o)
			require.Equal(t, []string{c.state, c.after, c.reason}, []string{stored.UploadStatus, stored.Processing, stored.Reason})
		})
	}
}

func TestAnUnreadableStateIsReportedAsBefore(t *testing.T) {
	b := newBench(t)
	b.fault(sim.Fault{Method: "GET /youtube/v3/videos", Effect: sim.EffectStatus, Status: 403, Code: "quotaExceeded"})
	o := b.send(b.show(300 * kib))
	require.True(t, o.OK, "%v", o.Error)
	require.Equal(t, []string{"yt_usage_capped", "public"}, []string{b.stored(o).Unread, b.stored(o).Privacy})
}

func TestReconcile(t *testing.T) {
	for name, c := range map[string]struct {
		before func(b *bench, d autopost.Delivery)
		want   string
	}{
		"nothing was recorded":      {func(*bench, autopost.Delivery) {}, "absent"},
		"the session has the video": {(*bench).cutOff, "found"},
		"the list of uploads has the video": {func(b *bench, d autopost.Delivery) {
			b.cutOff(d)
			b.server.ExpireSessions(false)
		}, "found"},
		"the session waits": {func(b *bench, d autopost.Delivery) {
			b.fault(sim.Fault{Method: bytesTo, Effect: sim.EffectStatus, Status: 503, Code: "backendError", To: 1})
			b.failed(b.send(d), "TRANSIENT/platform yt_5xx")
		}, "absent"},
		"nothing came of a lost session": {func(b *bench, d autopost.Delivery) {
			b.fault(sim.Fault{Method: bytesTo, Effect: sim.EffectStatus, Status: 503, Code: "backendError", To: 1})
			b.failed(b.send(d), "TRANSIENT/platform yt_5xx")
			b.server.ExpireSessions(true)
		}, "absent"},
		"the platform is down": {func(b *bench, d autopost.Delivery) {
			b.fault(sim.Fault{Method: bytesTo, Effect: sim.EffectStatus, Status: 503, Code: "backendError"})
			b.failed(b.send(d), "TRANSIENT/platform yt_5xx")
		}, "error"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			d := b.show(300 * kib)
			c.before(b, d)
			starts := b.count(start)
			v := b.adapter.Reconcile(t.Context(), b.call(d))
			b.keepsSecrets(v)
			require.Equal(t, []bool{c.want == "found", c.want == "absent", c.want == "error"}, []bool{v.Found, v.Absent, v.Error != nil})
			if v.Found {
				require.Equal(t, b.only(d).ID, v.ProviderMessageID)
				require.True(t, json.Valid(v.Raw))
			}
			require.Equal(t, starts, b.count(start))
			require.Zero(t, b.media.OpenContents())
		})
	}
	b := newBench(t)
	require.Equal(t, autopost.Verdict{}, b.adapter.Reconcile(t.Context(), b.call(b.dressed())), "Send makes the steps after the video")
	require.Equal(t, 30*time.Second, b.adapter.SettleTime())
}

const playlists = "POST /youtube/v3/playlistItems"

// listed returns a delivery with all optional fields and a playlist.
func (b *bench) listed(playlist string) autopost.Delivery {
	d := b.show(300 * kib)
	d.Attempt = 1
	d.RenderMeta.Video = &autopost.Video{
		Privacy: "public", Language: "pt-BR", License: "creativeCommon", Embeddable: new(bool), NotifySubscribers: new(bool), PlaylistID: playlist,
	}
	d.RenderMeta.Steps = append(d.RenderMeta.Steps, autopost.Step{Name: "playlist", Aside: true})
	return d
}

func TestOptionalFieldsOfAVideo(t *testing.T) {
	b := newBench(t)
	d := b.listed("PLshow")
	require.True(t, b.send(d).OK)
	v := b.only(d)
	require.Equal(t, []any{"pt-BR", "creativeCommon", false, false, []string{"PLshow"}}, []any{v.Language, v.License, v.Embeddable, v.Notified, v.Playlists})

	b = newBench(t)
	d = b.show(300 * kib)
	require.True(t, b.send(d).OK)
	v = b.only(d)
	require.Equal(t, []any{true, true}, []any{v.Embeddable, v.Notified}, "without fields, the platform's defaults apply")
}

func TestAVideoIsAddedToItsPlaylistOnce(t *testing.T) {
	for effect, want := range map[sim.Effect]string{
		sim.EffectAcceptThenDrop: "TRANSIENT/delivery yt_interrupted", sim.EffectReset: "TRANSIENT/delivery yt_interrupted", sim.EffectGarbage: "TRANSIENT/platform yt_5xx",
	} {
		b := newBench(t)
		b.fault(sim.Fault{Method: playlists, Effect: effect, To: 1})
		d := b.listed("PLshow")
		b.failed(b.send(d), want)
		d.Attempt = 2
		o := b.send(d)
		require.True(t, o.OK, "%v", o.Error)
		require.Equal(t, []string{"PLshow"}, b.only(d).Playlists, effect)
		require.Equal(t, 1, b.count(start))
	}
	for reason, c := range map[string]struct {
		status int
		want   string
	}{
		"playlistNotFound": {404, "yt_playlist_not_found"}, "forbidden": {403, "yt_forbidden"}, "playlistContainsMaximumNumberOfVideos": {403, "yt_playlist_contains_maximum_number_of_videos"},
	} {
		b := newBench(t)
		b.fault(sim.Fault{Method: playlists, Effect: sim.EffectStatus, Status: c.status, Code: reason})
		d := b.listed("PLshow")
		o := b.send(d)
		require.True(t, o.OK, "%v", o.Error)
		require.Equal(t, map[string]string{"playlist": c.want}, b.stored(o).Refused)
	}
	b := newBench(t)
	d := b.listed("PLanother")
	o := b.send(d)
	require.True(t, o.OK, "%v", o.Error)
	require.Equal(t, map[string]string{"playlist": "yt_playlist_not_found"}, b.stored(o).Refused)
}

func TestReconcileFindsEveryVideoWhoseAnswerWasLost(t *testing.T) {
	b := newBench(t)
	const lost = 100
	for n := range lost {
		b.progress = map[string][]string{}
		d := b.show(300 * kib)
		d.RenderMeta.Title = fmt.Sprint("Video ", n)
		b.cutOff(d)
		b.core.Faults.Clear()
		if n%2 == 1 {
			b.server.ExpireSessions(true)
		}
		v := b.adapter.Reconcile(t.Context(), b.call(d))
		require.True(t, v.Found, "%v", v.Error)
		videos := b.server.Videos(channelID)
		require.Len(t, videos, n+1, "no video is duplicated")
		require.Equal(t, videos[n].ID, v.ProviderMessageID)
	}
	t.Logf("%d lost answers found, none wrong", lost)
}
