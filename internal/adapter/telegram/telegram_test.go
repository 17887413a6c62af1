package telegram_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"autopost"
	"autopost/internal/adapter/adaptertest"
	"autopost/internal/adapter/adaptertest/published"
	"autopost/internal/adapter/telegram"
	"autopost/internal/outbound"
)

// exchange sends a delivery to a server with a fixed answer. It returns the body of the request.
func exchange(t *testing.T, d autopost.Delivery, answer http.HandlerFunc) (autopost.Outcome, []byte) {
	t.Helper()
	return exchangeWith(t, adaptertest.NewMediaAccess(), d, answer)
}

func exchangeWith(t *testing.T, media autopost.MediaAccess, d autopost.Delivery, answer http.HandlerFunc) (autopost.Outcome, []byte) {
	t.Helper()
	var body []byte
	server := httptest.NewServer(published.Inspect(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ = io.ReadAll(r.Body)
		r.Body = io.NopCloser(bytes.NewReader(body))
		answer(w, r)
	}), published.Telegram(t)))
	defer server.Close()
	client, err := outbound.Operator(outbound.OperatorConfig{})
	require.NoError(t, err)
	adapter, err := telegram.New(telegram.Config{BaseURL: server.URL + "/proxy/", Client: client})
	require.NoError(t, err)
	o := adapter.Send(t.Context(), autopost.Call{Delivery: d, Secret: autopost.NewSecret(token), Media: media})
	adaptertest.RequireSound(t, o, token)
	client.CloseIdleConnections()
	return o, body
}

func reply(status int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

const posted = `{"ok":true,"result":{"message_id":4711,"date":1795000000}}`

func text(targetID string) autopost.Delivery {
	return autopost.Delivery{
		TargetID: targetID, RenderedText: "<b>a</b>",
		RenderMeta: autopost.RenderMeta{ParseMode: "HTML", Steps: []autopost.Step{{Name: "text", Text: true}}},
	}
}

func TestMessageBody(t *testing.T) {
	d := text("-1001234567890:77")
	d.RenderMeta.DisablePreview = true
	d.RenderMeta.Buttons = [][]autopost.Button{{{Text: "Open", URL: "https://example.org"}}}
	d.Settings = json.RawMessage(`{"disable_notification":true,"protect_content":true}`)
	o, body := exchange(t, d, func(w http.ResponseWriter, r *http.Request) {
		require.Equal(t, "/proxy/bot"+token+"/sendMessage", r.URL.Path)
		reply(200, posted)(w, r)
	})
	require.Equal(t, "4711", o.ProviderMessageID)
	require.EqualValues(t, 1795000000, o.SentAt.Unix())
	require.JSONEq(t, `{"chat_id":-1001234567890,"message_thread_id":77,"text":"<b>a</b>","parse_mode":"HTML",
		"link_preview_options":{"is_disabled":true},"disable_notification":true,"protect_content":true,
		"reply_markup":{"inline_keyboard":[[{"text":"Open","url":"https://example.org"}]]}}`, string(body))
}

func TestTargetByName(t *testing.T) {
	_, body := exchange(t, text("@demo_shop"), reply(200, posted))
	require.JSONEq(t, `{"chat_id":"@demo_shop","text":"<b>a</b>","parse_mode":"HTML"}`, string(body))
}

func TestAlbumOfKnownIDs(t *testing.T) {
	second := "two"
	d := text("5")
	d.RenderMeta.ParseMode = ""
	d.RenderMeta.Steps = []autopost.Step{{Name: "album", Text: true, Items: []int{1, 0}, Captions: []*string{nil, &second}}}
	d.RenderMeta.Buttons = [][]autopost.Button{{{Text: "Open", URL: "https://example.org"}}}
	d.Payload.Media = []autopost.Media{{Type: autopost.MediaImage, FileID: "P"}, {Type: autopost.MediaVideo, FileID: "V"}}
	o, body := exchange(t, d, reply(200, `{"ok":true,"result":[{"message_id":8,"date":1},{"message_id":9,"date":1}]}`))
	require.Equal(t, "8", o.ProviderMessageID)
	require.JSONEq(t, `{"ids":["8","9"],"steps":{"album":["8","9"]}}`, string(o.Raw))
	require.JSONEq(t, `{"chat_id":5,"media":[{"type":"video","media":"V","caption":"<b>a</b>"},{"type":"photo","media":"P","caption":"two"}]}`, string(body))
}

func TestRefusedFileIDWithoutContent(t *testing.T) {
	d := text("5")
	d.RenderMeta.Steps = []autopost.Step{{Name: "media-1", Items: []int{0}}}
	d.Payload.Media = []autopost.Media{{Type: autopost.MediaImage, FileID: "P"}}
	o, _ := exchange(t, d, reply(400, `{"ok":false,"error_code":400,"description":"Bad Request: wrong file identifier/HTTP URL specified"}`))
	require.Equal(t, autopost.CodeMediaMissingOrigin, o.Error.Code)
}

func TestUnusualAnswers(t *testing.T) {
	for name, c := range map[string]struct {
		answer http.HandlerFunc
		code   string
		known  bool
		wait   int64
	}{
		"200 without an id":       {reply(200, `{"ok":true,"result":{}}`), autopost.CodeUnknownOutcome, false, 0},
		"200 without a message":   {reply(200, `{"ok":true,"result":[]}`), autopost.CodeUnknownOutcome, false, 0},
		"200 of a bare true":      {reply(200, `{"ok":true,"result":true}`), autopost.CodeUnknownOutcome, false, 0},
		"200 html":                {reply(200, `<html>`), autopost.CodeUnknownOutcome, false, 0},
		"200 with an error":       {reply(200, `{"ok":false,"error_code":403,"description":"Forbidden: x"}`), "tg_forbidden", true, 0},
		"500 with a message":      {reply(500, posted), autopost.CodeUnknownOutcome, false, 0},
		"504 of a gateway's json": {reply(504, `{"error":"timeout"}`), autopost.CodeUnknownOutcome, false, 0},
		"413 of a gateway":        {reply(413, `<html>`), autopost.CodeMediaTooLarge, true, 0},
		"429 of a gateway": {func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Retry-After", "12")
			reply(429, "<html>")(w, r)
		}, "tg_429", true, 12_000},
	} {
		t.Run(name, func(t *testing.T) {
			o, _ := exchange(t, text("5"), c.answer)
			require.NotNil(t, o.Error)
			require.Equal(t, c.code, o.Error.Code)
			require.Equal(t, c.known, o.Error.Known)
			require.Equal(t, c.wait, o.Error.RetryAfterMS)
		})
	}
}

// Only Telegram's own form may stop a bot or a channel.
func TestPageOfAProxyIsNotTelegramsAnswer(t *testing.T) {
	for _, status := range []int{400, 401, 403, 404, 405, 407, 451} {
		for _, body := range []string{"<html>chat not found</html>", "", `{"error":"Unauthorized"}`, `{"ok":"false","error_code":401,"description":"Unauthorized"}`} {
			o, _ := exchange(t, text("5"), reply(status, body))
			require.Equal(t, "TRANSIENT/platform tg_gateway", fmt.Sprintf("%s/%s %s", o.Error.Category, o.Error.Scope, o.Error.Code), "%d %s", status, body)
			require.True(t, o.Error.Known, "nothing was sent")
		}
	}
}

// An album fails with the error of one item; other items may be posted.
func TestRateLimitInsideAnAlbumIsUnknown(t *testing.T) {
	o, _ := exchange(t, text("5"), reply(400, `{"ok":false,"error_code":400,"description":"Bad Request: failed to send message #2 with the error message \"Too Many Requests: retry after 14\""}`))
	require.Equal(t, autopost.CodeUnknownOutcome, o.Error.Code)
	require.Equal(t, autopost.Transient, o.Error.Category)
	require.Equal(t, autopost.ScopeChannel, o.Error.Scope)
	require.False(t, o.Error.Known)
	require.EqualValues(t, 14_000, o.Error.RetryAfterMS)
}

// An error may match two rows, for it may wrap or quote another text.
func TestTheMostSevereReasonWins(t *testing.T) {
	for description, code := range map[string]string{
		`failed to send message #1 with the error message \"CHAT_WRITE_FORBIDDEN\"`:                                "tg_no_rights",
		`failed to send message #1 with the error message \"CHANNEL_PRIVATE: wrong file_id\"`:                      "tg_chat_not_found",
		`failed to send message #3 with the error message \"FROZEN_METHOD_INVALID\": not enough rights`:            "tg_frozen",
		`message to be replied not found: have no write access to the chat`:                                        "tg_no_rights",
		`failed to send message #2 with the error message \"MEDIA_INVALID\", wrong file_id`:                        "media_rejected",
		`can't parse entities: Unsupported start tag \"frozen_method_invalid\" at byte offset 0 in chat not found`: "validation_failed",
	} {
		o, _ := exchange(t, text("5"), reply(400, `{"ok":false,"error_code":400,"description":"Bad Request: `+description+`"}`))
		require.Equal(t, code, o.Error.Code, description)
	}
}

func TestMigrationNamesTheNewChat(t *testing.T) {
	o, _ := exchange(t, text("5"), reply(400, `{"ok":false,"error_code":400,"description":"Bad Request: group chat was upgraded to a supergroup chat","parameters":{"migrate_to_chat_id":-1009876543210}}`))
	require.Equal(t, "tg_chat_migrated", o.Error.Code)
	var raw struct {
		Parameters struct {
			MigrateTo int64 `json:"migrate_to_chat_id"`
		} `json:"parameters"`
	}
	require.NoError(t, json.Unmarshal(o.Error.Raw, &raw))
	require.EqualValues(t, -1009876543210, raw.Parameters.MigrateTo)
}

func TestNewRejectsInvalidURLs(t *testing.T) {
	for _, base := range []string{"api.telegram.org", "ftp://api.telegram.org", "http://", ":"} {
		_, err := telegram.New(telegram.Config{BaseURL: base})
		require.Error(t, err, base)
	}
}

func TestSizesOfAPostAreSent(t *testing.T) {
	for kind, want := range map[autopost.MediaKind][]string{
		autopost.MediaVideo: {"width", "height", "duration", "supports_streaming"}, autopost.MediaAudio: {"duration"}, autopost.MediaImage: nil,
	} {
		store, d := adaptertest.NewMediaAccess(), text("5")
		d.Payload.Media = []autopost.Media{{Type: kind, BlobRef: store.Add(kind), Meta: autopost.MediaMeta{Width: 720, Height: 1280, Duration: 7.2}}}
		d.RenderMeta.Steps = []autopost.Step{{Name: "media-1", Items: []int{0}}}
		given := map[string]string{"width": "720", "height": "1280", "duration": "8", "supports_streaming": "true"}
		o, _ := exchangeWith(t, store, d, func(w http.ResponseWriter, r *http.Request) {
			require.NoError(t, r.ParseMultipartForm(1<<20))
			for name, value := range given {
				if !slices.Contains(want, name) {
					value = ""
				}
				require.Equal(t, value, r.FormValue(name), "%s of %s", name, kind)
			}
			reply(200, posted)(w, r)
		})
		require.True(t, o.OK, "%v", o.Error)
	}
}
