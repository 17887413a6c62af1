package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"autopost/internal/sim"
	"autopost/internal/sim/feeds"
	"autopost/internal/testing/pgtest"
	"autopost/test/harness"
)

func pictures(h *harness.Harness, n int) []any {
	var list []any
	for i := range n {
		list = append(list, picture(h, fmt.Sprintf("photo-%d.png", i+1))...)
	}
	return list
}

func numeric(t *testing.T, chat string) int64 {
	t.Helper()
	id, err := strconv.ParseInt(chat, 10, 64)
	require.NoError(t, err)
	return id
}

// uploads counts the contents that a platform was handed.
func uploads(h *harness.Harness, platform string) int {
	n := 0
	for _, e := range h.World.Log.Entries(sim.Filter{Platform: platform}) {
		for _, m := range e.Media {
			if m.Uploaded {
				n++
			}
		}
	}
	return n
}

// An album arrives as one post with the text as the caption of its first picture,
// and its pictures are handed to a platform once, however often they are shown.
func TestAlbumAndReuseOfUploads(t *testing.T) {
	t.Parallel()
	h, telegramChat, maxChat := newsroom(t)
	d := h.Serve()
	answer := h.Push(d, "secret-cms", harness.Post("text", "First show", "media", pictures(h, 3)))
	require.Equal(t, "accepted", answer.Text("status"))
	h.UntilTrue(`select count(*) = 2 from autopost.deliveries where status = 'sent'`)

	album := h.Accepted(sim.Filter{Platform: harness.Telegram})
	require.Len(t, album, 1)
	require.Equal(t, "sendMediaGroup", album[0].Method)
	require.Equal(t, telegramChat, album[0].Chat)
	require.Len(t, album[0].MessageIDs, 3)
	shown := h.World.Telegram.Messages(numeric(t, telegramChat))
	require.Len(t, shown, 3)
	require.Equal(t, []string{"First show", "", ""}, []string{shown[0].Text, shown[1].Text, shown[2].Text})
	post := h.Accepted(sim.Filter{Platform: harness.MAX})
	require.Len(t, post, 1)
	require.Equal(t, maxChat, post[0].Chat)
	require.Equal(t, "First show", post[0].Text)
	for i := range 3 {
		_, content, _ := feeds.Generate(fmt.Sprintf("photo-%d.png", i+1))
		require.Equal(t, sim.Digest(content), album[0].Media[i].Digest, "the very bytes, in their order")
		require.Equal(t, sim.Digest(content), post[0].Media[i].Digest)
	}
	handed := map[string]int{harness.Telegram: uploads(h, harness.Telegram), harness.MAX: uploads(h, harness.MAX)}
	require.Equal(t, map[string]int{harness.Telegram: 3, harness.MAX: 3}, handed)

	h.Push(d, "secret-cms", harness.Post("text", "Second show", "media", pictures(h, 3)))
	h.UntilTrue(`select count(*) = 4 from autopost.deliveries where status = 'sent'`)
	require.Equal(t, handed, map[string]int{harness.Telegram: uploads(h, harness.Telegram), harness.MAX: uploads(h, harness.MAX)})
	require.Len(t, h.Accepted(), 4)
}

// A text that is too long for a caption goes ahead of the picture as a post of its own.
func TestTextTooLongForACaption(t *testing.T) {
	t.Parallel()
	h, telegramChat, maxChat := newsroom(t)
	d := h.Serve()
	text := ""
	for len(text) < 1100 {
		text += fmt.Sprintf("word %d, ", len(text))
	}
	h.Push(d, "secret-cms", harness.Post("text", text+"end", "media", pictures(h, 1)))
	h.UntilTrue(`select count(*) = 2 from autopost.deliveries where status = 'sent'`)
	sends := h.Accepted(sim.Filter{Chat: telegramChat})
	require.Len(t, sends, 2)
	require.Equal(t, []string{"sendMessage", "sendPhoto"}, []string{sends[0].Method, sends[1].Method})
	require.Equal(t, text+"end", sends[0].Text)
	require.Empty(t, sends[1].Text)
	require.Len(t, h.Accepted(sim.Filter{Chat: maxChat}), 1, "MAX takes it as one")
}

// The upload policy lets MAX fetch a picture itself. A file keeps its name on both platforms. Neither address is stored.
func TestSourceURLAndNameOfAMedium(t *testing.T) {
	t.Parallel()
	h, _, _ := newsroom(t)
	ok(t, h, "setting", "set", "upload_policy_max", `{"image": "url_allowed"}`, because)
	saved := filepath.Join(t.TempDir(), "saved.yaml")
	require.NoError(t, os.WriteFile(saved, []byte(ok(t, h, "config", "export")), 0o600))
	ok(t, h, "setting", "set", "upload_policy_max", "{}", because)
	require.Contains(t, h.Run(nil, "config", "diff", saved).Stdout, "upload_policy_max")
	ok(t, h, "config", "apply", saved, "--yes", because)
	d := h.Serve()
	h.Push(d, "secret-cms", harness.Post("text", "Fetched by MAX", "media", picture(h, "photo-1.png")))
	h.UntilTrue(`select count(*) = 2 from autopost.deliveries where status = 'sent'`)
	require.Equal(t, h.WorldURL+"/files/photo-1.png", h.Accepted(sim.Filter{Platform: harness.MAX})[0].Media[0].URL)
	require.Zero(t, uploads(h, harness.MAX))
	require.Equal(t, 1, uploads(h, harness.Telegram))

	h.Push(d, "secret-cms", harness.Post("text", "A file", "media", []any{map[string]any{"type": "file", "url": h.WorldURL + "/files/document-1.pdf?signature=s"}}))
	h.UntilTrue(`select count(*) = 4 from autopost.deliveries where status = 'sent'`)
	for _, platform := range []string{harness.MAX, harness.Telegram} {
		require.Equal(t, "document-1.pdf", h.Accepted(sim.Filter{Platform: platform})[1].Media[0].Filename, platform)
	}
	require.Zero(t, pgtest.Value[int](h.DB, `select (select count(*) from autopost.messages m where m.payload::text like '%/files/%')::int
		+ (select count(*) from autopost.submissions s where s.raw_payload::text like '%/files/%')::int`))
	h.Verified()
}
