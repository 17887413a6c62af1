package youtube_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"autopost"
	"autopost/internal/sim"
	simyoutube "autopost/internal/sim/youtube"
)

const (
	comments     = "POST /youtube/v3/commentThreads"
	readComments = "GET /youtube/v3/commentThreads"
)

// discussed is a video with a first comment.
func (b *bench) discussed() autopost.Delivery {
	d := b.show(300 * kib)
	d.RenderMeta.Steps = append(d.RenderMeta.Steps, autopost.Step{Name: "comment", Comment: true, Aside: true, Text: true, Body: "Links <here> & there"})
	return d
}

func TestFirstComment(t *testing.T) {
	b := newBench(t)
	d := b.discussed()
	o := b.send(d)
	require.True(t, o.OK, "%v", o.Error)
	v := b.only(d)
	require.Equal(t, []string{"Links <here> & there"}, v.Comments)
	require.Equal(t, v.ID, o.ProviderMessageID)
	require.Len(t, b.stored(o).Steps["comment"], 1)
	require.Zero(t, b.count(readComments), "the first attempt does not search")
}

// A comment whose answer was lost is found and not repeated. The video stays the same.
func TestFirstCommentIsNotRepeated(t *testing.T) {
	for _, fault := range []sim.Fault{
		{Effect: sim.EffectAcceptThenDrop}, {Effect: sim.EffectReset}, {Effect: sim.EffectStatus, Status: 404, Code: "videoNotFound"},
		{Effect: sim.EffectStatus, Status: 503, Code: "backendError"}, {Effect: sim.EffectStatus, Status: 403, Code: "quotaExceeded"},
	} {
		b := newBench(t)
		fault.Method, fault.To = comments, 1
		b.fault(fault)
		d := b.discussed()
		o := b.send(d)
		require.False(t, o.OK)
		require.True(t, o.Error.Known, "%v", o.Error)
		require.Equal(t, autopost.Transient, o.Error.Category, "%v", o.Error)
		d.Attempt = 2
		o = b.send(d)
		require.True(t, o.OK, "%v", o.Error)
		require.Equal(t, []string{"Links <here> & there"}, b.only(d).Comments)
		require.Equal(t, 1, b.count(start))
	}
}

func TestRefusedFirstCommentFailsAloneAfterTheVideo(t *testing.T) {
	for _, c := range []struct {
		status       int
		reason, want string
	}{
		{403, "commentsDisabled", "PERMANENT/delivery yt_comments_disabled"},
		{403, "ineligibleAccount", "PERMANENT/delivery yt_ineligible_account"},
		{403, "insufficientPermissions", "PERMANENT/channel yt_insufficient_permissions"},
		{400, "commentTextTooLong", "PERMANENT/delivery message_too_long"},
		{400, "commentTextRequired", "PERMANENT/delivery validation_failed"},
		{400, "invalidCommentThreadMetadata", "PERMANENT/delivery validation_failed"},
		{400, "channelOrVideoIdMissing", "PERMANENT/delivery validation_failed"},
	} {
		t.Run(c.reason, func(t *testing.T) {
			b := newBench(t)
			b.fault(sim.Fault{Method: comments, Effect: sim.EffectStatus, Status: c.status, Code: c.reason})
			d := b.discussed()
			o := b.send(d)
			b.failed(o, c.want)
			stored := b.stored(o)
			require.Equal(t, []string{b.only(d).ID}, stored.Steps["video"])
			require.NotContains(t, stored.Steps, "comment")
			require.Equal(t, "https://www.youtube.com/watch?v="+b.only(d).ID, stored.URL)
		})
	}
}

// A video that YouTube keeps private has no comments. The failure is that of the video.
func TestFirstCommentOfAVideoThatYouTubeKeepsPrivate(t *testing.T) {
	b := newBench(t, simyoutube.Project{Unaudited: true})
	b.failed(b.send(b.discussed()), "PERMANENT/delivery degraded_private")
}
