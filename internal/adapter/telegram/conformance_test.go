package telegram_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"autopost"
	"autopost/internal/adapter"
	"autopost/internal/adapter/adaptertest"
	"autopost/internal/adapter/adaptertest/published"
	"autopost/internal/adapter/telegram"
	"autopost/internal/sim"
	simtelegram "autopost/internal/sim/telegram"
)

const (
	token  = "123456789:AAcanary-TOKEN_of-thirty-five-chars"
	chatID = -1001234567890
)

func TestConformance(t *testing.T) { adaptertest.Run(t, harness(t)) }

func newSimulator(t *testing.T) (*sim.Core, http.Handler) {
	core := sim.NewCore(0)
	server := simtelegram.New(core, simtelegram.Options{Limits: &simtelegram.Limits{}})
	require.NoError(t, server.AddBot(token))
	server.AddChat(simtelegram.Chat{ID: chatID})
	return core, server
}

func harness(t *testing.T) adaptertest.Harness {
	return adaptertest.Harness{
		Secret: token, Target: "-1001234567890", Simulator: newSimulator, Schema: published.Telegram(t),
		New: func(baseURL string, client adapter.Doer) (autopost.Adapter, error) {
			a, err := telegram.New(telegram.Config{BaseURL: baseURL, Client: client})
			if err == nil {
				a.ShortenPauses()
			}
			return a, err
		},
		Longest:        strings.Repeat("😀", 4096), // code points
		LookupSettings: `{"service_chat_id": -1005550000001}`,
		TextMethod:     "sendMessage", AlbumMethod: "sendMediaGroup",
		MediaMethods: map[autopost.MediaKind]string{
			autopost.MediaImage: "sendPhoto", autopost.MediaVideo: "sendVideo", autopost.MediaAnimation: "sendAnimation",
			autopost.MediaAudio: "sendAudio", autopost.MediaFile: "sendDocument",
		},
		FileKinds: map[autopost.MediaKind]string{
			autopost.MediaImage: "photo", autopost.MediaVideo: "video", autopost.MediaAnimation: "animation",
			autopost.MediaAudio: "audio", autopost.MediaFile: "document",
		},
		Expired:     row(400, "Bad Request: wrong file_id or the file is temporarily unavailable", autopost.Transient, autopost.ScopeDelivery, "media_expired"),
		Definite5xx: row(500, "Internal Server Error", autopost.Transient, autopost.ScopePlatform, "tg_5xx"),
		Rows:        append(adaptertest.Answers(sheet), row(418, "something new", permanent, autopost.ScopeDelivery, "tg_418")),
		Changes: map[autopost.ChangeKind]string{
			autopost.ChangeEdit: "editMessageText", autopost.ChangeDelete: "deleteMessage", autopost.ChangePin: "pinChatMessage", autopost.ChangeUnpin: "unpinChatMessage",
		},
		ChangeRows: actRows(),
	}
}

func actRows() map[autopost.ChangeKind][]adaptertest.Row {
	const permanent, delivery, channel = autopost.Permanent, autopost.ScopeDelivery, autopost.ScopeChannel
	flood := row(429, "Too Many Requests: retry after 37", autopost.Transient, channel, "tg_429")
	flood.RetryAfter, flood.Want.RetryAfterMS = 37, 37_000
	all := []adaptertest.Row{
		flood,
		row(401, "Unauthorized", permanent, channel, "tg_unauthorized"),
		row(403, "Forbidden: bot was kicked from the channel chat", permanent, channel, "tg_forbidden"),
		row(400, "Bad Request: chat not found", permanent, channel, "tg_chat_not_found"),
		row(502, "Bad Gateway", autopost.Transient, autopost.ScopePlatform, "tg_5xx"),
	}
	inEffect := func(description string) adaptertest.Row {
		return adaptertest.Row{Status: 400, Description: "Bad Request: " + description}
	}
	return map[autopost.ChangeKind][]adaptertest.Row{
		autopost.ChangeEdit: append(all, inEffect("message is not modified: specified new message content and reply markup are exactly the same as a current content and reply markup of the message"),
			row(400, "Bad Request: message to edit not found", permanent, delivery, "tg_edit"),
			row(400, "Bad Request: message can't be edited", permanent, delivery, "tg_edit"),
			row(400, "Bad Request: message is too long", permanent, delivery, "message_too_long")),
		autopost.ChangeDelete: append(all, inEffect("message to delete not found"), row(400, "Bad Request: message can't be deleted", permanent, delivery, "tg_delete")),
		autopost.ChangePin: append(all, inEffect("CHAT_NOT_MODIFIED"), row(400, "Bad Request: message to pin not found", permanent, delivery, "tg_pin"),
			row(400, "Bad Request: not enough rights to manage pinned messages in the chat", permanent, channel, "tg_no_rights")),
		autopost.ChangeUnpin: append(all, inEffect("message to unpin not found")),
	}
}

func row(status int, description string, category autopost.Category, scope autopost.Scope, code string) adaptertest.Row {
	return adaptertest.Row{Status: status, Description: description, Want: adaptertest.Class{Category: category, Scope: scope, Code: code}}
}
