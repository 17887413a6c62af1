package telegram_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"autopost"
	"autopost/internal/adapter"
	"autopost/internal/adapter/adaptertest"
	"autopost/internal/adapter/telegram"
	"autopost/internal/sim"
	simtelegram "autopost/internal/sim/telegram"
)

const (
	token  = "123456789:AAcanary-TOKEN_of-thirty-five-chars"
	chatID = -1001234567890
)

func TestConformance(t *testing.T) { adaptertest.Run(t, harness(t)) }

func world(t *testing.T) (*sim.Core, http.Handler) {
	core := sim.NewCore(0)
	server := simtelegram.New(core, simtelegram.Options{Limits: &simtelegram.Limits{}})
	require.NoError(t, server.AddBot(token))
	server.AddChat(simtelegram.Chat{ID: chatID})
	return core, server
}

func harness(t *testing.T) adaptertest.Harness {
	return adaptertest.Harness{
		Secret: token, Target: "-1001234567890", World: world, Schema: adaptertest.TelegramSchema(t),
		New: func(baseURL string, client adapter.Doer) (autopost.Adapter, error) {
			return telegram.New(telegram.Config{BaseURL: baseURL, Client: client})
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
	}
}

func row(status int, description string, category autopost.Category, scope autopost.Scope, code string) adaptertest.Row {
	return adaptertest.Row{Status: status, Description: description, Want: adaptertest.Class{Category: category, Scope: scope, Code: code}}
}
