package maxmessenger_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"autopost"
	"autopost/internal/adapter"
	"autopost/internal/adapter/adaptertest"
	"autopost/internal/adapter/adaptertest/published"
	"autopost/internal/adapter/maxmessenger"
	"autopost/internal/sim"
	simmax "autopost/internal/sim/maxmessenger"
)

const (
	token  = "f9LHod-canary-TOKEN_that_must_not_leak"
	target = "-70801090403050"
	chatID = -70801090403050
)

func TestConformance(t *testing.T) { adaptertest.Run(t, harness(t)) }

func newSimulator(t *testing.T) (*sim.Core, http.Handler) {
	core, server := platform(t)
	return core, server
}

func platform(t *testing.T) (*sim.Core, *simmax.Server) {
	t.Helper()
	core := sim.NewCore(0)
	server := simmax.New(core, simmax.Options{Limits: &simmax.Limits{}})
	require.NoError(t, server.AddBot(token))
	server.AddChat(simmax.Chat{ID: chatID})
	return core, server
}

func harness(t *testing.T) adaptertest.Harness {
	methods := map[autopost.MediaKind]string{}
	for _, kind := range []autopost.MediaKind{
		autopost.MediaImage, autopost.MediaVideo, autopost.MediaAnimation, autopost.MediaAudio, autopost.MediaFile,
	} {
		methods[kind] = "POST /messages"
	}
	return adaptertest.Harness{
		Secret: token, Target: target, Simulator: newSimulator, Schema: published.MAX(t),
		New: func(baseURL string, client adapter.Doer) (autopost.Adapter, error) {
			return maxmessenger.New(maxmessenger.Config{BaseURL: baseURL, Client: client})
		},
		Longest:    strings.Repeat("😀", 2000), // UTF-16 units
		Lookup:     true,
		TextMethod: "POST /messages", AlbumMethod: "POST /messages", MediaMethods: methods,
		FileKinds: map[autopost.MediaKind]string{
			autopost.MediaImage: "image", autopost.MediaVideo: "video", autopost.MediaAnimation: "video",
			autopost.MediaAudio: "audio", autopost.MediaFile: "file",
		},
		Expired:     row(400, "proto.payload", "Invalid photo token provided: x", autopost.Transient, autopost.ScopeDelivery, "media_expired"),
		Definite5xx: row(500, "internal.error", "Internal error", autopost.Transient, autopost.ScopePlatform, "max_5xx"),
		Rows:        append(adaptertest.Answers(sheet), row(418, "teapot", "something new", permanent, autopost.ScopeDelivery, "max_418")),
		OnePin:      true,
		Changes: map[autopost.ChangeKind]string{
			autopost.ChangeEdit: "PUT /messages", autopost.ChangeDelete: "DELETE /messages", autopost.ChangePin: "PUT /chats/{id}/pin", autopost.ChangeUnpin: "DELETE /chats/{id}/pin",
		},
		ChangeRows: actRows(),
	}
}

func row(status int, code, message string, category autopost.Category, scope autopost.Scope, want string) adaptertest.Row {
	return adaptertest.Row{
		Status: status, Code: code, Description: message,
		Want: adaptertest.Class{Category: category, Scope: scope, Code: want},
	}
}

func actRows() map[autopost.ChangeKind][]adaptertest.Row {
	const permanent, delivery, channel = autopost.Permanent, autopost.ScopeDelivery, autopost.ScopeChannel
	all := []adaptertest.Row{
		row(429, "too.many.requests", "Too many requests", autopost.Transient, channel, "max_429"),
		row(401, "verify.token", "Invalid access_token", permanent, channel, "max_unauthorized"),
		row(403, "chat.denied", "chat.send.msg.no.permission.because.not.admin", permanent, channel, "max_chat_denied"),
		row(503, "service.unavailable", "Service unavailable", autopost.Transient, autopost.ScopePlatform, "max_5xx"),
	}
	gone := row(404, "not.found", "Message not found", permanent, delivery, "max_not_found")
	return map[autopost.ChangeKind][]adaptertest.Row{
		autopost.ChangeEdit:   append(all, gone, row(400, "proto.payload", "Field 'text' size (4001) must be at most 4000", permanent, delivery, "message_too_long")),
		autopost.ChangeDelete: append(all, adaptertest.Row{Status: 404, Code: "not.found", Description: "Message not found"}),
		autopost.ChangePin:    append(all, gone),
		autopost.ChangeUnpin:  all,
	}
}
