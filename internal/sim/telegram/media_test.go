package telegram_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"autopost/internal/sim"
	"autopost/internal/sim/telegram"
)

var toChannel = map[string]string{"chat_id": "@demo_shop"}

func TestPhotoUploadAndReuse(t *testing.T) {
	f := newFixture(t, telegram.Limits{})
	content := picture(t, 640, 480)
	fields := map[string]string{"chat_id": "@demo_shop", "caption": "<b>New</b>", "parse_mode": "HTML"}
	m := f.upload(t, token, "sendPhoto", fields, map[string]string{"photo": content}).message(t)
	require.Equal(t, "New", m.Caption)
	require.Len(t, m.Photo, 2)
	require.Less(t, m.Photo[0].Width, m.Photo[1].Width, "sizes grow")
	id := m.Photo[1].FileID

	e := f.core.Log.Entries()[0]
	require.Equal(t, "New", e.Text)
	require.Equal(t, sim.Digest([]byte("<b>New</b>")), e.TextDigest)
	require.Len(t, e.Media, 1)
	require.Equal(t, sim.Digest([]byte(content)), e.Media[0].Digest)
	require.Equal(t, int64(len(content)), e.Media[0].Size)
	require.True(t, e.Media[0].Uploaded)
	require.Equal(t, []string{"1"}, e.MessageIDs)

	require.True(t, f.call(t, "sendPhoto", map[string]any{"chat_id": channel, "photo": id}).OK)
	reused := f.core.Log.Entries()[1].Media[0]
	require.False(t, reused.Uploaded)
	require.Equal(t, e.Media[0].Digest, reused.Digest)

	const gone = "Bad Request: wrong file_id or the file is temporarily unavailable"
	f.call(t, "sendDocument", map[string]any{"chat_id": channel, "document": id}).refused(t, 400, gone)
	f.upload(t, other, "sendPhoto", map[string]string{"chat_id": "@demo_shop", "photo": id}, nil).refused(t, 400, gone)
	f.ExpireFiles()
	f.call(t, "sendPhoto", map[string]any{"chat_id": channel, "photo": id}).refused(t, 400, gone)
}

func TestMediaRefusals(t *testing.T) {
	f := newFixture(t, telegram.Limits{})
	for _, c := range []struct {
		name, method string
		files        map[string]string
		description  string
	}{
		{"no medium", "sendPhoto", nil, "Bad Request: there is no photo in the request"},
		{"other part", "sendVideo", map[string]string{"photo": "x"}, "Bad Request: there is no video in the request"},
		{"empty", "sendDocument", map[string]string{"document": ""}, "Bad Request: file must be non-empty"},
		{"not a picture", "sendPhoto", map[string]string{"photo": "plain text"}, "Bad Request: IMAGE_PROCESS_FAILED"},
		{"too wide", "sendPhoto", map[string]string{"photo": picture(t, 210, 10)}, "Bad Request: PHOTO_INVALID_DIMENSIONS"},
		{"too many pixels", "sendPhoto", map[string]string{"photo": picture(t, 9600, 480)}, "Bad Request: PHOTO_INVALID_DIMENSIONS"},
		{"photo over 10 MiB", "sendPhoto", map[string]string{"photo": picture(t, 10, 10) + strings.Repeat("x", 10<<20)}, "Bad Request: file is too big"},
	} {
		t.Run(c.name, func(t *testing.T) {
			f.upload(t, token, c.method, toChannel, c.files).refused(t, 400, c.description)
		})
	}
	f.upload(t, token, "sendVideo", toChannel, map[string]string{"video": strings.Repeat("x", 50<<20+1)}).
		refused(t, http.StatusRequestEntityTooLarge, "Request Entity Too Large")
	f.call(t, "sendPhoto", map[string]any{"chat_id": channel, "photo": "ftp://e.org/x"}).refused(t, 400, "Bad Request: wrong HTTP URL specified")
	require.True(t, f.upload(t, token, "sendPhoto", toChannel, map[string]string{"photo": picture(t, 9500, 500)}).OK)
	require.Len(t, f.Messages(channel), 1)
}

func TestEveryKindHasItsFileID(t *testing.T) {
	f := newFixture(t, telegram.Limits{})
	for _, kind := range []string{"Video", "Animation", "Audio", "Document"} {
		name := strings.ToLower(kind)
		a := f.upload(t, token, "send"+kind, toChannel, map[string]string{name: "content of " + name})
		require.True(t, a.OK, a.Description)
		var result map[string]json.RawMessage
		require.NoError(t, json.Unmarshal(a.Result, &result))
		var file struct {
			FileID string `json:"file_id"`
		}
		require.NoError(t, json.Unmarshal(result[name], &file))
		require.NotEmpty(t, file.FileID)
		require.True(t, f.call(t, "send"+kind, map[string]any{"chat_id": channel, name: file.FileID}).OK)
		if kind == "Animation" {
			require.Contains(t, result, "document")
		}
	}
}

func TestAlbum(t *testing.T) {
	f := newFixture(t, telegram.Limits{})
	known := f.upload(t, token, "sendPhoto", toChannel, map[string]string{"photo": picture(t, 9, 9)}).message(t).Photo[0].FileID
	media := fmt.Sprintf(`[{"type":"photo","media":"attach://f0","caption":"<b>Two</b>","parse_mode":"HTML"},{"type":"photo","media":%q},{"type":"video","media":"attach://f1"}]`, known)
	sent := f.upload(t, token, "sendMediaGroup", map[string]string{"chat_id": "@demo_shop", "media": media},
		map[string]string{"f0": picture(t, 8, 8), "f1": "film"}).album(t)
	require.Len(t, sent, 3)
	require.Equal(t, []int64{2, 3, 4}, []int64{sent[0].MessageID, sent[1].MessageID, sent[2].MessageID})
	require.NotEmpty(t, sent[0].MediaGroupID)
	require.Equal(t, sent[0].MediaGroupID, sent[2].MediaGroupID)
	require.Equal(t, "Two", sent[0].Caption)
	require.NotNil(t, sent[2].Video)
	e := f.core.Log.Entries()[1]
	require.Equal(t, 3, e.Items)
	require.Equal(t, "Two", e.Text)
	require.Equal(t, []string{"2", "3", "4"}, e.MessageIDs)
	require.Equal(t, []string{"photo", "photo", "video"}, []string{e.Media[0].Kind, e.Media[1].Kind, e.Media[2].Kind})
}

func TestAlbumRefusals(t *testing.T) {
	f := newFixture(t, telegram.Limits{})
	item := func(kind string) map[string]any {
		return map[string]any{"type": kind, "media": "https://e.org/" + kind}
	}
	many := func(n int) (out []map[string]any) {
		for range n {
			out = append(out, item("photo"))
		}
		return out
	}
	for _, c := range []struct {
		name        string
		media       any
		description string
	}{
		{"absent", nil, `parameter "media" is required`},
		{"no JSON", "[{", "can't parse media JSON object"},
		{"empty", []any{}, "there are no messages to send"},
		{"eleven", many(11), "too many messages to send as an album"},
		{"document with photo", []any{item("photo"), item("document")}, "document can't be mixed with other media types"},
		{"audio with video", []any{item("audio"), item("video")}, "audio can't be mixed with other media types"},
		{"animation", []any{item("photo"), item("animation")}, "can't use the media of the specified type in the album"},
		{"unknown type", []any{item("hologram")}, `can't parse InputMedia: type "hologram" is unsupported`},
		{"not attached", []any{item("photo"), map[string]any{"type": "photo", "media": "attach://f9"}}, "can't parse InputMedia: media not found"},
		{"caption above one item", []any{map[string]any{"type": "photo", "media": "https://e.org/", "caption": "x", "show_caption_above_media": true}, item("video")},
			"parameter show_caption_above_media must be the same for all messages"},
		{"long caption", []any{map[string]any{"type": "photo", "media": "https://e.org/", "caption": strings.Repeat("x", 1025)}, item("photo")}, "message caption is too long"},
	} {
		t.Run(c.name, func(t *testing.T) {
			f.call(t, "sendMediaGroup", map[string]any{"chat_id": channel, "media": c.media}).refused(t, 400, "Bad Request: "+c.description)
		})
	}
	require.Empty(t, f.Messages(channel), "all items or none")
	require.Len(t, f.call(t, "sendMediaGroup", map[string]any{"chat_id": channel, "media": many(10)}).album(t), 10)
	single := f.call(t, "sendMediaGroup", map[string]any{"chat_id": channel, "media": many(1)}).album(t)
	require.Empty(t, single[0].MediaGroupID, "one item is a plain message")
}

func TestCaptionAboveAllOfAnAlbum(t *testing.T) {
	f := newFixture(t, telegram.Limits{})
	items := []any{
		map[string]any{"type": "photo", "media": "https://e.org/", "caption": "x", "show_caption_above_media": true},
		map[string]any{"type": "video", "media": "https://e.org/", "show_caption_above_media": true},
	}
	require.Len(t, f.call(t, "sendMediaGroup", map[string]any{"chat_id": channel, "media": items}).album(t), 2)
	for _, m := range f.Messages(channel) {
		require.True(t, m.CaptionAbove)
	}
	audio := []any{map[string]any{"type": "audio", "media": "https://e.org/", "show_caption_above_media": true}, map[string]any{"type": "audio", "media": "https://e.org/"}}
	require.Len(t, f.call(t, "sendMediaGroup", map[string]any{"chat_id": channel, "media": audio}).album(t), 2, "other kinds ignore it")
}

func TestDimensionsOfVideos(t *testing.T) {
	f := newFixture(t, telegram.Limits{})
	large := strings.Repeat("x", 10<<20+1)
	stated := map[string]string{"chat_id": "@demo_shop", "width": "720", "height": "1280", "duration": "7", "supports_streaming": "true"}
	for _, c := range []struct {
		fields                  map[string]string
		content                 string
		width, height, duration int
	}{
		{toChannel, large, 320, 320, 0}, {stated, large, 720, 1280, 7}, {stated, "film", 720, 1280, 7}, {toChannel, "film", 1, 1, 1},
		{map[string]string{"chat_id": "@demo_shop", "width": "720", "height": "1280"}, large, 320, 320, 0},
	} {
		m := f.upload(t, token, "sendVideo", c.fields, map[string]string{"video": c.content}).message(t)
		require.Equal(t, []int{c.width, c.height, c.duration}, []int{m.Video.Width, m.Video.Height, m.Video.Duration})
	}
	require.True(t, f.Messages(channel)[1].Video.Streaming)
	media := `[{"type":"video","media":"attach://a","width":64,"height":36,"duration":2},{"type":"video","media":"attach://b"}]`
	f.upload(t, token, "sendMediaGroup", map[string]string{"chat_id": "@demo_shop", "media": media}, map[string]string{"a": large, "b": large}).album(t)
	album := f.Messages(channel)[5:]
	require.Equal(t, &telegram.Video{Width: 64, Height: 36, Duration: 2}, album[0].Video)
	require.Equal(t, &telegram.Video{Width: 320, Height: 320}, album[1].Video)
}

func TestScheduledVideosHaveNoIDYet(t *testing.T) {
	f := newFixture(t, telegram.Limits{})
	f.ScheduleVideos()
	require.Zero(t, f.upload(t, token, "sendVideo", toChannel, map[string]string{"video": "film"}).message(t).MessageID)
	media := `[{"type":"photo","media":"https://e.org/"},{"type":"video","media":"https://e.org/"}]`
	for _, m := range f.call(t, "sendMediaGroup", map[string]any{"chat_id": channel, "media": media}).album(t) {
		require.Zero(t, m.MessageID)
	}
	require.NotZero(t, f.send(t, "x", "").message(t).MessageID)
	require.Len(t, f.Messages(channel), 4, "all are posted")
}

func TestEditDropsThePreviewAndTheCaptionPosition(t *testing.T) {
	f := newFixture(t, telegram.Limits{})
	const link = "https://e.org/a"
	wish := map[string]any{"prefer_large_media": true, "show_above_text": true}
	f.call(t, "sendMessage", map[string]any{"chat_id": channel, "text": link, "link_preview_options": wish}).message(t)
	require.Equal(t, telegram.LinkPreview{Above: true}, f.Messages(channel)[0].Preview, "a size needs a url")
	wish["url"] = link
	id := f.call(t, "sendMessage", map[string]any{"chat_id": channel, "text": link, "link_preview_options": wish}).message(t).MessageID
	full := telegram.LinkPreview{URL: link, PreferLarge: true, Above: true}
	require.Equal(t, full, f.Messages(channel)[1].Preview)
	edit := map[string]any{"chat_id": channel, "message_id": id, "text": link, "link_preview_options": wish}
	f.call(t, "editMessageText", edit).refused(t, 400, "Bad Request: message is not modified: specified new message content and reply markup are exactly the same as a current content and reply markup of the message")
	delete(edit, "link_preview_options")
	f.call(t, "editMessageText", edit).message(t)
	require.Zero(t, f.Messages(channel)[1].Preview)

	photo := f.upload(t, token, "sendPhoto", map[string]string{"chat_id": "@demo_shop", "caption": "x", "show_caption_above_media": "true"},
		map[string]string{"photo": picture(t, 9, 9)}).message(t).MessageID
	require.True(t, f.Messages(channel)[2].CaptionAbove)
	f.call(t, "editMessageCaption", map[string]any{"chat_id": channel, "message_id": photo, "caption": "x"}).message(t)
	require.False(t, f.Messages(channel)[2].CaptionAbove)
}

func TestEditAndDelete(t *testing.T) {
	f := newFixture(t, telegram.Limits{})
	id := f.send(t, "one", "").message(t).MessageID
	edit := func(method, name, text string, id int64) answer {
		return f.call(t, method, map[string]any{"chat_id": channel, "message_id": id, name: text})
	}
	require.Equal(t, "two", edit("editMessageText", "text", "two", id).message(t).Text)
	edit("editMessageText", "text", "two", id).refused(t, 400, "Bad Request: message is not modified: specified new message content and reply markup are exactly the same as a current content and reply markup of the message")
	edit("editMessageText", "text", "x", 99).refused(t, 400, "Bad Request: message to edit not found")
	edit("editMessageText", "text", "x", 0).refused(t, 400, "Bad Request: message identifier is not specified")
	edit("editMessageCaption", "caption", "x", id).refused(t, 400, "Bad Request: there is no caption in the message to edit")
	photo := f.upload(t, token, "sendPhoto", toChannel, map[string]string{"photo": picture(t, 9, 9)}).message(t).MessageID
	require.Equal(t, "x", edit("editMessageCaption", "caption", "x", photo).message(t).Caption)
	edit("editMessageText", "text", "x", photo).refused(t, 400, "Bad Request: there is no text in the message to edit")
	f.upload(t, other, "editMessageText", map[string]string{"chat_id": "@demo_shop", "message_id": "1", "text": "x"}, nil).
		refused(t, 400, "Bad Request: message can't be edited")

	remove := map[string]any{"chat_id": channel, "message_id": id}
	require.True(t, f.call(t, "deleteMessage", remove).OK)
	f.call(t, "deleteMessage", remove).refused(t, 400, "Bad Request: message to delete not found")
	f.SetAccess(channel, telegram.AccessMember)
	f.upload(t, other, "deleteMessage", map[string]string{"chat_id": "@demo_shop", "message_id": "2"}, nil).
		refused(t, 400, "Bad Request: message can't be deleted")
}

func TestDeleteManyAndTooLate(t *testing.T) {
	f := newFixture(t, telegram.Limits{})
	first, second := f.send(t, "one", "").message(t).MessageID, f.send(t, "two", "").message(t).MessageID
	remove := func(ids ...int64) answer {
		return f.call(t, "deleteMessages", map[string]any{"chat_id": channel, "message_ids": ids})
	}
	remove().refused(t, 400, "Bad Request: message identifiers are not specified")
	remove(make([]int64, 101)...).refused(t, 400, "Bad Request: too many message identifiers specified")
	require.True(t, remove(first, 99).OK, "missing messages are skipped")
	require.Len(t, f.Messages(channel), 1)
	require.NoError(t, f.core.Pace.Set(1e-6))
	f.SetAccess(channel, telegram.AccessMember)
	require.Eventually(t, func() bool { return time.Since(f.Messages(channel)[0].Date) > 48*time.Hour/1e6 }, patience, time.Millisecond)
	remove(second).refused(t, 400, "Bad Request: message can't be deleted")
	f.SetAccess(channel, telegram.AccessAdmin)
	require.True(t, remove(second).OK, "the right to delete has no time limit")
}

func TestPins(t *testing.T) {
	f := newFixture(t, telegram.Limits{})
	first, second := f.send(t, "one", "").message(t).MessageID, f.send(t, "two", "").message(t).MessageID
	pin := func(method string, id int64) answer {
		return f.call(t, method, map[string]any{"chat_id": channel, "message_id": id})
	}
	require.True(t, pin("pinChatMessage", first).OK)
	require.True(t, pin("pinChatMessage", second).OK)
	require.True(t, pin("pinChatMessage", first).OK, "again")
	require.Equal(t, []int64{first, second}, f.Pinned(channel))
	require.True(t, pin("unpinChatMessage", first).OK)
	require.True(t, pin("unpinChatMessage", first).OK, "again")
	require.True(t, f.call(t, "deleteMessage", map[string]any{"chat_id": channel, "message_id": second}).OK)
	require.Empty(t, f.Pinned(channel))
	pin("pinChatMessage", 99).refused(t, 400, "Bad Request: message to pin not found")
	f.SetAccess(channel, telegram.AccessMember)
	pin("pinChatMessage", first).refused(t, 400, "Bad Request: not enough rights to manage pinned messages in the chat")
}

func TestForwardShowsTheMessage(t *testing.T) {
	f := newFixture(t, telegram.Limits{})
	f.send(t, "<b>hello</b>", "HTML")
	forward := func(id int64) answer {
		return f.call(t, "forwardMessage", map[string]any{"chat_id": group, "from_chat_id": channel, "message_id": id})
	}
	m := forward(1).message(t)
	require.Equal(t, "hello", m.Text)
	require.Equal(t, "channel", m.Origin.Type)
	require.Equal(t, int64(1), m.Origin.MessageID)
	forward(2).refused(t, 400, "Bad Request: message to forward not found")
	f.AddChat(telegram.Chat{ID: channel, Protected: true})
	forward(1).refused(t, 400, "Bad Request: message can't be forwarded")
}

func TestScriptedFaults(t *testing.T) {
	f := newFixture(t, telegram.Limits{})
	for _, c := range []struct {
		fault       sim.Fault
		description string
	}{
		{sim.Fault{Status: 429, RetryAfter: 7}, "Too Many Requests: retry after 7"},
		{sim.Fault{Status: 403}, "Forbidden: bot was kicked from the channel chat"},
		{sim.Fault{Status: 400, Description: "Bad Request: CHAT_WRITE_FORBIDDEN"}, "Bad Request: CHAT_WRITE_FORBIDDEN"},
		{sim.Fault{Status: 400, MigrateTo: -100777}, "Bad Request: group chat was upgraded to a supergroup chat"},
		{sim.Fault{Status: 500}, "Internal Server Error"},
	} {
		t.Run(c.description, func(t *testing.T) {
			c.fault.Platform, c.fault.Chat, c.fault.Method = telegram.Platform, fmt.Sprint(channel), "sendMessage"
			c.fault.Effect = sim.EffectStatus
			require.NoError(t, f.core.Faults.Add(c.fault))
			a := f.call(t, "sendMessage", map[string]any{"chat_id": "@demo_shop", "text": "x"})
			a.refused(t, c.fault.Status, c.description)
			require.Equal(t, c.fault.RetryAfter, a.Parameters.RetryAfter)
			require.Equal(t, c.fault.MigrateTo, a.Parameters.MigrateTo)
			f.core.Faults.Clear()
		})
	}
	require.Empty(t, f.Messages(channel))

	require.NoError(t, f.core.Faults.Add(sim.Fault{Chat: fmt.Sprint(channel), Effect: sim.EffectAcceptThenDrop, To: 1}))
	_, err := http.Post(f.url+"/bot"+token+"/sendMessage", "application/json", strings.NewReader(`{"text":"x","chat_id":"@demo_shop"}`))
	require.Error(t, err)
	require.Len(t, f.Messages(channel), 1, "stored without an answer")
	last := f.core.Log.Entries()[len(f.core.Log.Entries())-1]
	require.True(t, last.Accepted)
	require.Equal(t, []string{"1"}, last.MessageIDs)
	require.False(t, last.ReplyDelivered)
}

func TestAnyBotAnyChat(t *testing.T) {
	core := sim.NewCore(0)
	s := telegram.New(core, telegram.Options{AnyBot: true, AnyChat: true, Limits: &telegram.Limits{}})
	f := fixture{Server: s, core: core, url: serveHTTP(t, s)}
	for _, id := range []any{-100500, -1002222222222, "@news", 5} {
		require.True(t, f.call(t, "sendMessage", map[string]any{"chat_id": id, "text": "x", "message_thread_id": 0}).OK)
	}
	f.RevokeBot(token)
	f.call(t, "getMe", nil).refused(t, 401, "Unauthorized")
	f.Reset()
	require.Empty(t, s.Messages(-100500))
}
