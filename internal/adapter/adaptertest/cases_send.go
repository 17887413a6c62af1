package adaptertest

import (
	"encoding/json"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"autopost"
)

func testText(t *testing.T, h Harness) {
	b := newBench(t, h)
	before := time.Now().Add(-2 * time.Second)
	d := b.delivery(textStep)
	o := b.send(t, d)
	requireOnePost(t, b, o, h.TextMethod)
	require.Equal(t, "News & more", b.posts()[0].Text)
	require.Equal(t, h.NoMarkup, len(b.posts()[0].Marks) == 0)
	require.NotNil(t, o.SentAt)
	require.WithinRange(t, *o.SentAt, before, time.Now().Add(2*time.Second))
	require.Empty(t, b.emitted, "the only step is got by the outcome")
	steps, ids := AcknowledgedIDs(t, d, o)
	require.Equal(t, b.posts()[0].MessageIDs, ids)
	require.Equal(t, ids, steps["text"])
}

func testPlain(t *testing.T, h Harness) {
	b := newBench(t, h)
	d := b.delivery(textStep)
	d.RenderMeta.ParseMode, d.RenderedText = "", "1 < 2 & <b>3</b>"
	requireOnePost(t, b, b.send(t, d), h.TextMethod)
	require.Equal(t, d.RenderedText, b.posts()[0].Text)
}

func testKinds(t *testing.T, h Harness) {
	for _, kind := range h.kinds() {
		t.Run(string(kind), func(t *testing.T) {
			b := newBench(t, h)
			step := mediaStep("media-1", 0)
			step.Text = true
			o := b.send(t, b.withMedia(b.delivery(step), kind))
			requireOnePost(t, b, o, h.MediaMethods[kind])
			post := b.posts()[0]
			require.Equal(t, "News & more", post.Text)
			require.Len(t, post.Media, 1)
			require.Equal(t, b.media.digests()[0], post.Media[0].Digest)
		})
	}
}

func testAlbum(t *testing.T, h Harness) {
	b := newBench(t, h)
	second := "<i>two</i>"
	kinds := h.Album
	if kinds == nil {
		kinds = []autopost.MediaKind{autopost.MediaImage, autopost.MediaImage, autopost.MediaVideo}
	}
	step := mediaStep("media-1", 0, 1, 2)
	step.Captions = []*string{nil, &second, nil}
	step.Text = true
	d := b.withMedia(b.delivery(step), kinds...)
	o := b.send(t, d)
	requireOnePost(t, b, o, h.AlbumMethod)
	post := b.posts()[0]
	require.Equal(t, "News & more", post.Text)
	require.Len(t, post.Media, 3)
	for i, medium := range d.Payload.Media {
		require.Equal(t, medium.BlobRef, "sha256:"+post.Media[i].Digest, "order")
	}
	_, ids := AcknowledgedIDs(t, d, o)
	require.Equal(t, post.MessageIDs, ids)
}

func testSplit(t *testing.T, h Harness) {
	b := newBench(t, h)
	d := b.delivery(autopost.Step{Name: "text-1", Text: true, Body: b.said("<b>First</b>")}, autopost.Step{Name: "text-2", Text: true, Body: b.said("1 &lt; <i>2</i>")})
	d.RenderMeta.Buttons = [][]autopost.Button{{{Text: "Open", URL: "https://example.org/a"}}}
	o := b.send(t, d)
	require.True(t, o.OK, "%v", o.Error)
	posts := b.accepted()
	require.Len(t, posts, 2)
	require.Equal(t, []string{"First", "1 < 2"}, []string{posts[0].Text, posts[1].Text})
	require.Equal(t, h.NoMarkup, len(posts[1].Marks) == 0)
	require.Equal(t, posts[0].MessageIDs[0], o.ProviderMessageID)
	require.Empty(t, posts[0].Buttons)
	require.Equal(t, h.NoMarkup, len(posts[1].Buttons) == 0, "below the end of the text")
	require.Empty(t, posts[1].ReplyTo)
}

func testReply(t *testing.T, h Harness) {
	for name, acknowledged := range map[string]bool{"in one attempt": false, "after the first was sent": true} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, h)
			media := mediaStep("media-1", 0)
			media.Text, media.Body = true, b.said("<b>Begins</b>")
			d := b.withMedia(b.delivery(media, autopost.Step{Name: "text-1", Text: true, Body: "and continues", ReplyTo: "media-1"}), autopost.MediaImage)
			if acknowledged {
				first := d
				first.RenderMeta.Steps = first.RenderMeta.Steps[:1]
				require.True(t, b.send(t, first).OK)
				d.RenderMeta.Progress.Steps = map[string][]string{"media-1": b.accepted()[0].MessageIDs}
			}
			o := b.send(t, d)
			require.True(t, o.OK, "%v", o.Error)
			posts := b.accepted()
			require.Len(t, posts, 2)
			require.Equal(t, []string{"Begins", "and continues"}, []string{posts[0].Text, posts[1].Text})
			if h.NoReplies {
				require.Empty(t, posts[1].ReplyTo)
			} else {
				require.Equal(t, posts[0].MessageIDs[0], posts[1].ReplyTo)
			}
		})
	}
}

func testPartialSeries(t *testing.T, h Harness) {
	b := newBench(t, h)
	d := b.withMedia(b.delivery(textStep, mediaStep("media-1", 0), mediaStep("media-2", 1)), autopost.MediaImage, h.notPicture())
	bad := b.Definite5xx.fault(h.MediaMethods[h.notPicture()])
	bad.From, bad.To = 1, 1
	if h.MediaMethods[h.notPicture()] == h.TextMethod {
		bad.From, bad.To = 3, 3
	}
	b.fault(t, bad)

	o := b.send(t, d)
	requireClass(t, o, b.Definite5xx.Want)
	require.Len(t, b.emitted, 2)
	require.Equal(t, "text", b.emitted[0].Step)
	require.Equal(t, []int{0}, b.emitted[1].Items)
	require.Len(t, b.accepted(), 2)

	d.RenderMeta.Progress.Steps = map[string][]string{}
	for _, ack := range b.emitted {
		d.RenderMeta.Progress.Steps[ack.Step] = ack.IDs
	}
	first := b.emitted[0].IDs[0]
	o = b.send(t, d)
	require.True(t, o.OK, "%v", o.Error)
	require.Equal(t, first, o.ProviderMessageID, "the first message of the series")
	require.Len(t, b.accepted(), 3, "only the missing steps")
	require.Len(t, b.emitted, 2, "the last step is got by the outcome")
	_, ids := AcknowledgedIDs(t, d, o)
	var all []string
	for _, e := range b.accepted() {
		all = append(all, e.MessageIDs...)
	}
	require.Equal(t, all, ids)
}

func testReuse(t *testing.T, h Harness) {
	for _, kind := range h.kinds() {
		t.Run(string(kind), func(t *testing.T) {
			b := newBench(t, h)
			d := b.withMedia(b.delivery(mediaStep("media-1", 0)), kind)
			require.True(t, b.send(t, d).OK)
			id, ok, err := b.media.Cached(t.Context(), d.Payload.Media[0].BlobRef, h.FileKinds[kind])
			require.NoError(t, err)
			require.True(t, ok, "kept under %s", h.FileKinds[kind])
			requests := len(b.core.Log.Entries())

			b.media.Lose(d.Payload.Media[0].BlobRef)
			o := b.send(t, d)
			require.True(t, o.OK, "%v", o.Error)
			require.Len(t, b.core.Log.Entries(), requests+1, "one call, nothing uploaded")
			again := b.accepted()[1].Media[0]
			require.Equal(t, id, again.ID)
			require.False(t, again.Uploaded)
		})
	}
}

func testOptions(t *testing.T, h Harness) {
	b := newBench(t, h)
	d := b.withMedia(b.delivery(textStep, mediaStep("media-1", 0)), autopost.MediaImage)
	d.RenderMeta.DisablePreview = true
	d.RenderMeta.Buttons = [][]autopost.Button{{{Text: "Open", URL: "https://example.org/a"}}, {{Text: "More", URL: "https://example.org/b"}}}
	d.Settings = json.RawMessage(`{"disable_notification":true,"protect_content":true,"unknown":1}`)
	o := b.send(t, d)
	require.True(t, o.OK, "%v", o.Error)
	posts := b.accepted()
	if !h.NoMarkup {
		require.Len(t, posts[0].Buttons, 2)
		require.Equal(t, "https://example.org/a", posts[0].Buttons[0][0].URL)
	}
	require.Empty(t, posts[1].Buttons, "only below the text")
	for _, e := range posts {
		require.Empty(t, e.Notes)
	}
}

func testConcurrent(t *testing.T, h Harness) {
	b := newBench(t, h)
	d := b.withMedia(b.delivery(mediaStep("media-1", 0)), autopost.MediaImage)
	if h.Plain != nil {
		d = b.plain()
	}
	outcomes := make([]autopost.Outcome, 8)
	var group sync.WaitGroup
	for i := range outcomes {
		own := d
		own.DeliveryID = fmt.Sprintf("d-%d", i)
		group.Go(func() { outcomes[i] = b.adapter.Send(t.Context(), b.call(own)) })
	}
	group.Wait()
	ids := map[string]bool{}
	for _, o := range outcomes {
		require.True(t, o.OK, "%v", o.Error)
		ids[o.ProviderMessageID] = true
	}
	require.Len(t, ids, len(outcomes))
	require.Len(t, b.accepted(), len(outcomes))
}

// testNames: a file has the name of its post, also if its content was uploaded under another name.
func testNames(t *testing.T, h Harness) {
	for kind, extension := range map[autopost.MediaKind]string{autopost.MediaFile: ".pdf", autopost.MediaAudio: ".mp3"} {
		if h.FileKinds[kind] == "" {
			continue
		}
		t.Run(string(kind), func(t *testing.T) {
			b := newBench(t, h)
			d := b.withMedia(b.delivery(mediaStep("media-1", 0)), kind)
			for _, name := range []string{"", "price \"list\" цены" + extension, "other" + extension, "other" + extension} {
				d.Payload.Media[0].Meta.Filename = name
				require.True(t, b.send(t, d).OK)
			}
			posts := b.accepted()
			require.NotEmpty(t, posts[0].Media[0].Filename, "a name of ours")
			require.Equal(t, "price \"list\" цены"+extension, posts[1].Media[0].Filename)
			require.Equal(t, "other"+extension, posts[2].Media[0].Filename)
			require.Equal(t, posts[2].Media[0].Digest, posts[3].Media[0].Digest)
			require.Equal(t, "other"+extension, posts[3].Media[0].Filename, "the upload of this name is used again")
			b.media.Lose(d.Payload.Media[0].BlobRef)
			require.True(t, b.send(t, d).OK)
		})
	}
}
