package adaptertest

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"autopost"
	"autopost/internal/sim"
)

// thread returns a thread of three parts with pictures and a first comment.
func (b *bench) thread() autopost.Delivery {
	d := b.delivery(
		autopost.Step{Name: "media-1", Text: true, Items: []int{0}},
		autopost.Step{Name: "part-2.media-1", Part: 2, Text: true, Body: b.said("<b>Two</b>"), Items: []int{1, 2}, ReplyTo: "media-1"},
		autopost.Step{Name: "part-3.text", Part: 3, Text: true, Body: "Three", ReplyTo: "part-2.media-1"},
		autopost.Step{Name: "comment", Comment: true, Text: true, Body: "Look", ReplyTo: "media-1"})
	d.RenderMeta.Buttons = [][]autopost.Button{{{Text: "Open", URL: "https://example.org/a"}}}
	return b.withMedia(d, autopost.MediaImage, autopost.MediaImage, autopost.MediaImage)
}

// replies checks the texts, the order and the parents of a thread.
func (b *bench) replies(t *testing.T, d autopost.Delivery) {
	t.Helper()
	posts := b.accepted()
	require.Len(t, posts, 4)
	texts := make([]string, len(posts))
	for i, post := range posts {
		texts[i] = post.Text
		require.Equal(t, b.NoMarkup || i > 0, len(post.Buttons) == 0, "the buttons belong to part 1")
		require.Empty(t, post.Notes)
	}
	require.Equal(t, []string{"News & more", "Two", "Three", "Look"}, texts)
	for i, medium := range d.Payload.Media[1:] {
		require.Equal(t, medium.BlobRef, "sha256:"+posts[1].Media[i].Digest)
	}
	for child, parent := range map[int]int{1: 0, 2: 1, 3: 0} {
		require.Equal(t, posts[parent].MessageIDs[0], posts[child].ReplyTo, "message %d", child)
	}
}

func testThread(t *testing.T, h Harness) {
	t.Run("in one attempt", func(t *testing.T) {
		b := newBench(t, h)
		d := b.thread()
		o := b.send(t, d)
		require.True(t, o.OK, "%v", o.Error)
		b.replies(t, d)
		require.Len(t, b.emitted, 3)
	})
	for cut := 1; cut < 4; cut++ {
		t.Run("cut", func(t *testing.T) {
			b := newBench(t, h)
			d := b.thread()
			whole := d.RenderMeta.Steps
			d.RenderMeta.Steps = whole[:cut]
			require.True(t, b.send(t, d).OK)
			d.RenderMeta.Steps = whole
			d.RenderMeta.Progress.Steps = map[string][]string{}
			for i, post := range b.accepted() {
				d.RenderMeta.Progress.Steps[whole[i].Name] = post.MessageIDs
			}
			o := b.send(t, d)
			require.True(t, o.OK, "%v", o.Error)
			b.replies(t, d)
		})
	}
}

// testThreadChanges: a change reaches each message of a thread.
func testThreadChanges(t *testing.T, h Harness) {
	for kind := range h.Changes {
		t.Run(string(kind), func(t *testing.T) {
			b := newBench(t, h)
			d := b.sent(t, b.thread())
			d.RenderMeta.Steps = slices.Clone(d.RenderMeta.Steps)
			for i := range d.RenderMeta.Steps[1:] {
				d.RenderMeta.Steps[i+1].Body += ", corrected"
			}
			if kind == autopost.ChangeUnpin {
				require.Nil(t, b.change(t, autopost.ChangePin, d))
			}
			before := len(b.core.Log.Entries())
			require.Nil(t, b.change(t, kind, d))
			entries := b.core.Log.Entries()[before:]
			want := d.MessageIDs()
			switch kind {
			case autopost.ChangeEdit: // the caption of an album is that of its first item
				want = nil
				for _, step := range d.RenderMeta.Steps {
					want = append(want, d.RenderMeta.Progress.Steps[step.Name][0])
				}
				texts := []string{}
				for _, e := range entries {
					texts = append(texts, e.Text)
				}
				require.Equal(t, []string{"News, corrected", "Two, corrected", "Three, corrected", "Look, corrected"}, texts)
			case autopost.ChangePin, autopost.ChangeUnpin:
				want = d.PartIDs()
				if h.OnePin {
					want = want[:1]
				}
				require.Equal(t, want[0], lastPinned(entries), "part 1 is on top")
			}
			require.ElementsMatch(t, want, touched(kind, entries))
		})
	}
}

// lastPinned returns the message of the last entry that pinned or unpinned one.
func lastPinned(entries []sim.Entry) string {
	last := ""
	for _, e := range entries {
		for _, id := range slices.Concat(e.Pinned, e.Unpinned) {
			last = id
		}
	}
	return last
}
