package telegram_test

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"autopost"
	"autopost/internal/adapter/adaptertest"
	"autopost/internal/sim"
	simulator "autopost/internal/sim/telegram"
)

const (
	image     = autopost.MediaImage
	video     = autopost.MediaVideo
	animation = autopost.MediaAnimation
	audio     = autopost.MediaAudio
	document  = autopost.MediaFile
)

// arrived returns the log entry of the only call that posted a message.
func (b *bench) arrived(t *testing.T) sim.Entry {
	t.Helper()
	sends := slices.DeleteFunc(b.core.Log.Entries(), func(e sim.Entry) bool { return e.Items == 0 })
	require.Len(t, sends, 1)
	require.Empty(t, sends[0].Notes)
	return sends[0]
}

// Each setting of a channel is sent with all kinds of messages that can have it, and with no other.
func TestSettingsOfAChannelAreSent(t *testing.T) {
	t.Parallel()
	all := `{"disable_notification": true, "protect_content": true, "has_spoiler": true, "show_caption_above_media": true,
		"link_preview_options": {"prefer_large_media": true, "show_above_text": true}}`
	for name, c := range map[string]struct {
		text  string
		kinds []autopost.MediaKind
		quiet bool
		want  []string
	}{
		"text":                {"a https://example.org/a", nil, false, []string{"large preview", "preview above", "protected", "silent"}},
		"text without URL":    {"a", nil, false, []string{"preview above", "protected", "silent"}},
		"text, no preview":    {"a", nil, true, []string{"no preview", "protected", "silent"}},
		"picture":             {"a", []autopost.MediaKind{image}, false, []string{"silent", "protected", "spoiler", "caption above"}},
		"picture, no caption": {"", []autopost.MediaKind{image}, false, []string{"silent", "protected", "spoiler"}},
		"video":               {"a", []autopost.MediaKind{video}, false, []string{"silent", "protected", "spoiler", "caption above"}},
		"animation":           {"a", []autopost.MediaKind{animation}, false, []string{"silent", "protected", "spoiler", "caption above"}},
		"audio":               {"a", []autopost.MediaKind{audio}, false, []string{"silent", "protected"}},
		"document":            {"a", []autopost.MediaKind{document}, false, []string{"silent", "protected"}},
		"album":               {"a", []autopost.MediaKind{image, video}, false, []string{"silent", "protected", "spoiler 1", "caption above 1", "spoiler 2", "caption above 2"}},
		"documents":           {"a", []autopost.MediaKind{document, document}, false, []string{"silent", "protected"}},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, channelID)
			d := b.post(c.text, c.kinds...)
			d.Settings, d.RenderMeta.DisablePreview = json.RawMessage(all), c.quiet
			b.posted(t, token, d)
			require.Equal(t, c.want, b.arrived(t).Badges)
		})
	}
}

// Each legal mix of media is sent as one album with the caption on the first item.
func TestEveryLegalAlbum(t *testing.T) {
	t.Parallel()
	for name, kinds := range map[string][]autopost.MediaKind{
		"pictures": {image, image}, "videos": {video, video}, "pictures and videos": {image, video, image}, "ten": slices.Repeat([]autopost.MediaKind{image, video}, 5),
		"documents": {document, document}, "music": {audio, audio, audio},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, supergroupID)
			b.server.AddChat(simulator.Chat{ID: supergroupID, Type: "supergroup", Threads: []int64{77}})
			d := b.post("<b>Together</b>", kinds...)
			d.TargetID += ":77"
			o := b.send(t, token, d)
			require.True(t, o.OK, "%v", o.Error)
			messages := b.server.Messages(supergroupID)
			require.Len(t, messages, len(kinds))
			for i, m := range messages {
				require.NotEmpty(t, m.MediaGroupID)
				require.Equal(t, messages[0].MediaGroupID, m.MediaGroupID)
				require.EqualValues(t, 77, m.ThreadID, "in the topic of the target")
				require.Equal(t, i == 0, m.Text == "Together")
			}
			require.Equal(t, "sendMediaGroup", b.arrived(t).Method)
		})
	}
}

// An edit repeats how the post looks, for Telegram drops all else.
func TestEditKeepsTheLookOfThePost(t *testing.T) {
	t.Parallel()
	settings := json.RawMessage(`{"show_caption_above_media": true, "link_preview_options": {"prefer_small_media": true, "show_above_text": true}}`)
	for name, kinds := range map[string][]autopost.MediaKind{"text": nil, "picture": {image}, "album": {video, image}, "document": {document}} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, channelID)
			d := b.post(`<a href="https://example.org/?a=1&amp;b=2">News</a>`, kinds...)
			d.Settings = settings
			o := b.send(t, token, d)
			require.True(t, o.OK, "%v", o.Error)
			before := b.server.Messages(channelID)
			d.RenderMeta.Progress.Steps, _ = adaptertest.AcknowledgedIDs(t, d, o)
			d.RenderedText = `<a href="https://example.org/?a=1&amp;b=2">News</a>, corrected`
			require.Nil(t, b.adapter.Edit(t.Context(), autopost.Call{Delivery: d, Secret: autopost.NewSecret(token)}))
			after := b.server.Messages(channelID)
			require.Equal(t, "News, corrected", after[0].Text)
			require.Equal(t, before[0].Preview, after[0].Preview)
			require.Equal(t, before[0].CaptionAbove, after[0].CaptionAbove)
			require.Equal(t, name == "picture" || name == "album", after[0].CaptionAbove)
			if kinds == nil {
				require.Equal(t, simulator.LinkPreview{URL: "https://example.org/?a=1&b=2", PreferSmall: true, Above: true}, after[0].Preview)
			}
		})
	}
}

func TestPreviewNamesTheLinkOfThePost(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ text, mode, link, want string }{
		{"See https://a.example/1 and https://b.example/2.", "", "https://b.example/2", "https://b.example/2"},
		{"See https://a.example/1, https://b.example/2", "", "https://c.example/", "https://a.example/1"},
		{`<b>1 &lt; 2</b> <a href="tg://resolve">x</a> (https://a.example/?x&amp;y)`, "HTML", "", "https://a.example/?x&y"},
		{"nothing", "", "https://c.example/", ""},
	} {
		b := newBench(t, channelID)
		d := b.post(c.text)
		d.RenderMeta.ParseMode, d.Payload.Link, d.Settings = c.mode, c.link, json.RawMessage(`{"link_preview_options": {"prefer_large_media": true}}`)
		b.posted(t, token, d)
		require.Equal(t, simulator.LinkPreview{URL: c.want, PreferLarge: c.want != ""}, b.server.Messages(channelID)[0].Preview, c.text)
		require.Empty(t, b.arrived(t).Notes)
	}
}

// film is an MP4 file of 20 MB that states its size: 720 by 1280 on its side, 7 seconds.
func film() []byte {
	word := func(values ...uint32) (out []byte) {
		for _, v := range values {
			out = binary.BigEndian.AppendUint32(out, v)
		}
		return out
	}
	box := func(kind string, bodies ...[]byte) []byte {
		body := bytes.Join(bodies, nil)
		return slices.Concat(word(uint32(8+len(body))), []byte(kind), body)
	}
	header := box("tkhd", make([]byte, 40), word(0, 1<<16, 0, 1<<16, 0, 0, 0, 0, 1<<30, 1280<<16, 720<<16))
	track := box("trak", header, box("mdia", box("hdlr", make([]byte, 8), []byte("vide"), make([]byte, 12))))
	return slices.Concat(box("ftyp", []byte("isom")), box("mdat", make([]byte, 20<<20)), box("moov", box("mvhd", word(0, 0, 0, 1000, 7000)), track))
}

// Telegram shows a large video without its size as a square.
func TestVideosAreSentWithTheirSize(t *testing.T) {
	t.Parallel()
	for name, kinds := range map[string][]autopost.MediaKind{"video": {video}, "animation": {animation}, "album": {video, image}} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, channelID)
			d := b.post("a", kinds...)
			d.Payload.Media[0].BlobRef = b.media.Put(film(), "video/mp4")
			b.posted(t, token, d)
			b.arrived(t)
			require.Equal(t, &simulator.Video{Width: 720, Height: 1280, Duration: 7, Streaming: name != "animation"}, b.server.Messages(channelID)[0].Video)
			require.Zero(t, b.media.OpenContents())
		})
	}
}

// Telegram posts a video to a large chat later and answers message_id 0.
func TestScheduledMessageIsSent(t *testing.T) {
	t.Parallel()
	for name, kinds := range map[string][]autopost.MediaKind{"video": {video}, "album": {image, video}} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, channelID)
			b.server.ScheduleVideos()
			d := b.post("a", kinds...)
			d.DeliveryID = "0190"
			o := b.send(t, token, d)
			require.True(t, o.OK, "%v", o.Error)
			require.Equal(t, "scheduled-0190-one-0", o.ProviderMessageID)
			d.RenderMeta.Progress.Steps, _ = adaptertest.AcknowledgedIDs(t, d, o)
			require.Len(t, d.RenderMeta.Progress.Steps["one"], len(kinds))
			failure := b.adapter.Delete(t.Context(), autopost.Call{Delivery: d, Secret: autopost.NewSecret(token)})
			require.Equal(t, "tg_id_unknown", failure.Code)
			require.Equal(t, autopost.Permanent, failure.Category)
		})
	}
}
