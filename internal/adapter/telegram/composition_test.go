package telegram_test

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"autopost"
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

// arrived is the one call that posted something.
func (b *bench) arrived(t *testing.T) sim.Entry {
	t.Helper()
	sends := slices.DeleteFunc(b.core.Log.Entries(), func(e sim.Entry) bool { return e.Items == 0 })
	require.Len(t, sends, 1)
	require.Empty(t, sends[0].Notes)
	return sends[0]
}

// What a channel is set to arrives with every kind of message that can have it, and with no other.
func TestAChannelsSettingsArrive(t *testing.T) {
	t.Parallel()
	all := `{"disable_notification": true, "protect_content": true, "has_spoiler": true, "show_caption_above_media": true,
		"link_preview_options": {"prefer_large_media": true, "show_above_text": true}}`
	for name, c := range map[string]struct {
		text  string
		kinds []autopost.MediaKind
		quiet bool
		want  []string
	}{
		"text":                {"a", nil, false, []string{"large preview", "preview above", "protected", "silent"}},
		"text, no preview":    {"a", nil, true, []string{"no preview", "protected", "silent"}},
		"picture":             {"a", []autopost.MediaKind{image}, false, []string{"silent", "protected", "spoiler", "caption above"}},
		"picture, no caption": {"", []autopost.MediaKind{image}, false, []string{"silent", "protected", "spoiler"}},
		"video":               {"a", []autopost.MediaKind{video}, false, []string{"silent", "protected", "spoiler", "caption above"}},
		"animation":           {"a", []autopost.MediaKind{animation}, false, []string{"silent", "protected", "spoiler", "caption above"}},
		"audio":               {"a", []autopost.MediaKind{audio}, false, []string{"silent", "protected"}},
		"document":            {"a", []autopost.MediaKind{document}, false, []string{"silent", "protected"}},
		"album":               {"a", []autopost.MediaKind{image, video}, false, []string{"silent", "protected", "spoiler 1", "caption above 1", "spoiler 2"}},
		"documents":           {"a", []autopost.MediaKind{document, document}, false, []string{"silent", "protected"}},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, channelID)
			d := b.saying(c.text, c.kinds...)
			d.Settings, d.RenderMeta.DisablePreview = json.RawMessage(all), c.quiet
			b.posted(t, token, d)
			require.Equal(t, c.want, b.arrived(t).Badges)
		})
	}
}

// Every mix that an album may have goes as one, with its caption on the first.
func TestEveryLegalAlbum(t *testing.T) {
	t.Parallel()
	for name, kinds := range map[string][]autopost.MediaKind{
		"pictures": {image, image}, "videos": {video, video}, "pictures and videos": {image, video, image}, "ten": slices.Repeat([]autopost.MediaKind{image, video}, 5),
		"documents": {document, document}, "music": {audio, audio, audio},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, supergroupID)
			b.server.AddChat(simulator.Chat{ID: supergroupID, Type: "supergroup", Threads: []int64{77}})
			d := b.saying("<b>Together</b>", kinds...)
			d.TargetID += ":77"
			o := b.send(t, token, d)
			require.True(t, o.OK, "%v", o.Error)
			messages := b.server.Messages(supergroupID)
			require.Len(t, messages, len(kinds))
			for i, m := range messages {
				require.NotEmpty(t, m.MediaGroupID)
				require.Equal(t, messages[0].MediaGroupID, m.MediaGroupID)
				require.EqualValues(t, 77, m.ThreadID, "in its topic")
				require.Equal(t, i == 0, m.Text == "Together")
			}
			require.Equal(t, "sendMediaGroup", b.arrived(t).Method)
		})
	}
}
