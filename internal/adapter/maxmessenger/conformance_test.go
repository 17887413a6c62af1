package maxmessenger_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"autopost"
	"autopost/internal/adapter"
	"autopost/internal/adapter/adaptertest"
	"autopost/internal/adapter/maxmessenger"
	"autopost/internal/sim"
	simmax "autopost/internal/sim/maxmessenger"
)

const (
	token  = "f9LHod-canary-TOKEN_that_must_stay_at_home"
	target = "-70801090403050"
	chatID = -70801090403050
)

func TestConformance(t *testing.T) { adaptertest.Run(t, harness(t)) }

func world(t *testing.T) (*sim.Core, http.Handler) {
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
		Secret: token, Target: target, World: world, Schema: adaptertest.MAXSchema(t),
		New: func(baseURL string, client adapter.Doer) (autopost.Adapter, error) {
			return maxmessenger.New(maxmessenger.Config{BaseURL: baseURL, Client: client})
		},
		Longest:    strings.Repeat("😀", 2000), // UTF-16 units
		TextMethod: "POST /messages", AlbumMethod: "POST /messages", MediaMethods: methods,
		FileKinds: map[autopost.MediaKind]string{
			autopost.MediaImage: "image", autopost.MediaVideo: "video", autopost.MediaAnimation: "video",
			autopost.MediaAudio: "audio", autopost.MediaFile: "file",
		},
		Expired:     row(400, "proto.payload", "Invalid photo token provided: x", autopost.Transient, autopost.ScopeDelivery, "media_expired"),
		Definite5xx: row(500, "internal.error", "Internal error", autopost.Transient, autopost.ScopePlatform, "max_5xx"),
		Rows:        rows(),
		Acts: map[autopost.ActKind]string{
			autopost.ActEdit: "PUT /messages", autopost.ActDelete: "DELETE /messages", autopost.ActPin: "PUT /chats/{id}/pin", autopost.ActUnpin: "DELETE /chats/{id}/pin",
		},
		ActRows: actRows(),
	}
}

func row(status int, code, message string, category autopost.Category, scope autopost.Scope, want string) adaptertest.Row {
	return adaptertest.Row{
		Status: status, Code: code, Description: message,
		Want: adaptertest.Class{Category: category, Scope: scope, Code: want},
	}
}

func rows() []adaptertest.Row {
	notReady := row(400, "attachment.not.ready", "Key: errors.process.attachment.file.not.processed",
		autopost.Transient, autopost.ScopeDelivery, "attachment.not.ready")
	notReady.Want.RetryAfterMS = 1000
	blocked := row(403, "account.blocked", "Account is blocked", autopost.Transient, autopost.ScopePlatform, "max_account_blocked")
	blocked.Want.RetryAfterMS = 600_000
	const permanent, transient = autopost.Permanent, autopost.Transient
	return []adaptertest.Row{
		notReady, blocked,
		row(400, "proto.payload", "errors.process.attachment.video.not.supported", permanent, autopost.ScopeDelivery, "media_rejected"),
		row(400, "proto.payload", "Invalid video token provided: abc", transient, autopost.ScopeDelivery, "media_expired"),
		row(400, "proto.payload", "Field 'text' size (4001) must be at most 4000", permanent, autopost.ScopeDelivery, "message_too_long"),
		row(400, "proto.payload", "Must be only one file attachment in message", permanent, autopost.ScopeDelivery, "validation_failed"),
		row(400, "proto.payload", "Must have only http/https links format in buttons", permanent, autopost.ScopeDelivery, "validation_failed"),
		row(400, "proto.payload", "Missing required parameter: text", permanent, autopost.ScopeDelivery, "validation_failed"),
		row(400, "proto.payload", "errors.maxRows", permanent, autopost.ScopeDelivery, "validation_failed"),
		row(400, "proto.payload", "Invalid chat_id: 5", permanent, autopost.ScopeChannel, "max_chat_invalid"),
		row(401, "verify.token", "Invalid access_token", permanent, autopost.ScopeChannel, "max_unauthorized"),
		row(403, "verify.token", "Invalid access_token", permanent, autopost.ScopeChannel, "max_unauthorized"),
		row(403, "chat.denied", "error.dialog.suspended", permanent, autopost.ScopeChannel, "max_chat_denied"),
		row(403, "chat.denied", "chat.send.msg.no.permission.because.not.admin", permanent, autopost.ScopeChannel, "max_chat_denied"),
		row(403, "access.denied", "Access denied", permanent, autopost.ScopeChannel, "max_access_denied"),
		row(404, "chat.not.found", "Chat not found", permanent, autopost.ScopeChannel, "max_not_found"),
		row(404, "not.found", "Not found", permanent, autopost.ScopeChannel, "max_not_found"),
		row(404, "error.dialog.notfound", "Dialog not found", permanent, autopost.ScopeChannel, "max_not_found"),
		row(405, "method.not.allowed", "Method not allowed", permanent, autopost.ScopePlatform, "max_method"),
		row(413, "proto.payload", "Request is too large", permanent, autopost.ScopeDelivery, "media_too_large"),
		row(415, "proto.payload", "File extension is forbidden", permanent, autopost.ScopeDelivery, "media_rejected"),
		row(418, "teapot", "something new", permanent, autopost.ScopeDelivery, "max_418"),
		row(429, "too.many.requests", "Too many requests", transient, autopost.ScopeChannel, "max_429"),
		row(500, "internal.error", "Internal error", transient, autopost.ScopePlatform, "max_5xx"),
		row(503, "service.unavailable", "Service unavailable", transient, autopost.ScopePlatform, "max_5xx"),
	}
}

func actRows() map[autopost.ActKind][]adaptertest.Row {
	const permanent, delivery, channel = autopost.Permanent, autopost.ScopeDelivery, autopost.ScopeChannel
	all := []adaptertest.Row{
		row(429, "too.many.requests", "Too many requests", autopost.Transient, channel, "max_429"),
		row(401, "verify.token", "Invalid access_token", permanent, channel, "max_unauthorized"),
		row(403, "chat.denied", "chat.send.msg.no.permission.because.not.admin", permanent, channel, "max_chat_denied"),
		row(503, "service.unavailable", "Service unavailable", autopost.Transient, autopost.ScopePlatform, "max_5xx"),
	}
	gone := row(404, "not.found", "Message not found", permanent, delivery, "max_not_found")
	return map[autopost.ActKind][]adaptertest.Row{
		autopost.ActEdit:   append(all, gone, row(400, "proto.payload", "Field 'text' size (4001) must be at most 4000", permanent, delivery, "message_too_long")),
		autopost.ActDelete: append(all, adaptertest.Row{Status: 404, Code: "not.found", Description: "Message not found"}),
		autopost.ActPin:    append(all, gone),
		autopost.ActUnpin:  all,
	}
}
