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
		Longest:    strings.Repeat("😀", 4096), // code points
		TextMethod: "sendMessage", AlbumMethod: "sendMediaGroup",
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
		Rows:        rows(),
		Acts: map[autopost.ActKind]string{
			autopost.ActEdit: "editMessageText", autopost.ActDelete: "deleteMessage", autopost.ActPin: "pinChatMessage", autopost.ActUnpin: "unpinChatMessage",
		},
		ActRows: actRows(),
	}
}

func actRows() map[autopost.ActKind][]adaptertest.Row {
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
	stands := func(description string) adaptertest.Row {
		return adaptertest.Row{Status: 400, Description: "Bad Request: " + description}
	}
	return map[autopost.ActKind][]adaptertest.Row{
		autopost.ActEdit: append(all, stands("message is not modified: specified new message content and reply markup are exactly the same as a current content and reply markup of the message"),
			row(400, "Bad Request: message to edit not found", permanent, delivery, "tg_edit"),
			row(400, "Bad Request: message can't be edited", permanent, delivery, "tg_edit"),
			row(400, "Bad Request: message is too long", permanent, delivery, "message_too_long")),
		autopost.ActDelete: append(all, stands("message to delete not found"), row(400, "Bad Request: message can't be deleted", permanent, delivery, "tg_delete")),
		autopost.ActPin: append(all, stands("CHAT_NOT_MODIFIED"), row(400, "Bad Request: message to pin not found", permanent, delivery, "tg_pin"),
			row(400, "Bad Request: not enough rights to manage pinned messages in the chat", permanent, channel, "tg_no_rights")),
		autopost.ActUnpin: append(all, stands("message to unpin not found")),
	}
}

func row(status int, description string, category autopost.Category, scope autopost.Scope, code string) adaptertest.Row {
	return adaptertest.Row{Status: status, Description: description, Want: adaptertest.Class{Category: category, Scope: scope, Code: code}}
}

func rows() []adaptertest.Row {
	flood := row(429, "Too Many Requests: retry after 37", autopost.Transient, autopost.ScopeChannel, "tg_429")
	flood.RetryAfter, flood.Want.RetryAfterMS = 37, 37_000
	out := []adaptertest.Row{
		flood,
		row(400, "Bad Request: group chat was upgraded to a supergroup chat", autopost.Transient, autopost.ScopeChannel, "tg_chat_migrated"),
		row(500, "Internal Server Error: sent message was immediately deleted and can't be returned", autopost.Permanent, autopost.ScopeDelivery, "tg_sent_deleted"),
		row(503, "Service Unavailable", autopost.Transient, autopost.ScopePlatform, "tg_5xx"),
		row(401, "Unauthorized", autopost.Permanent, autopost.ScopeChannel, "tg_unauthorized"),
		row(401, "Unauthorized: invalid token specified", autopost.Permanent, autopost.ScopeChannel, "tg_unauthorized"),
		row(404, "Not Found", autopost.Permanent, autopost.ScopeChannel, "tg_bad_token_or_method"),
		row(404, "Not Found: method not found", autopost.Permanent, autopost.ScopeChannel, "tg_bad_token_or_method"),
		row(409, "Conflict: can't use getUpdates method while webhook is active", autopost.Permanent, autopost.ScopePlatform, "tg_conflict"),
		row(413, "Request Entity Too Large", autopost.Permanent, autopost.ScopeDelivery, "media_too_large"),
		row(418, "something new", autopost.Permanent, autopost.ScopeDelivery, "tg_418"),
	}
	for text, code := range map[string]string{
		"chat not found": "tg_chat_not_found", "private chat not found": "tg_chat_not_found",
		"PEER_ID_INVALID": "tg_chat_not_found", "chat_id is empty": "tg_chat_not_found",
		"not enough rights to send text messages to the chat": "tg_no_rights", "have no rights to send a message": "tg_no_rights",
		"need administrator rights in the channel chat": "tg_no_rights", "CHAT_WRITE_FORBIDDEN": "tg_no_rights",
		"CHAT_ADMIN_REQUIRED": "tg_no_rights", "CHAT_SEND_PHOTOS_FORBIDDEN": "tg_no_rights",
		"CHAT_RESTRICTED": "tg_no_rights", "TOPIC_CLOSED": "tg_no_rights",
	} {
		out = append(out, row(400, "Bad Request: "+text, autopost.Permanent, autopost.ScopeChannel, code))
	}
	for _, text := range []string{
		"bot was kicked from the channel chat", "bot is not a member of the channel chat",
		"bot was blocked by the user", "user is deactivated", "the group chat was deleted",
	} {
		out = append(out, row(403, "Forbidden: "+text, autopost.Permanent, autopost.ScopeChannel, "tg_forbidden"))
	}
	for text, code := range map[string]string{
		"message is too long": "message_too_long", "message caption is too long": "message_too_long", "text is too long": "message_too_long",
		"can't parse entities: Unsupported start tag \"x\" at byte offset 0": "validation_failed",
		"unsupported parse_mode": "validation_failed", "message text is empty": "validation_failed",
		"text must be non-empty": "validation_failed", "strings must be encoded in UTF-8": "validation_failed",
		"PHOTO_INVALID_DIMENSIONS": "media_rejected", "IMAGE_PROCESS_FAILED": "media_rejected", "file is too big": "media_rejected",
		"can't use the media of the specified type in the album": "media_rejected", "MEDIA_EMPTY": "media_rejected",
		"message thread not found": "tg_thread_missing", "message to be replied not found": "tg_thread_missing",
		"something new": "validation_failed",
	} {
		out = append(out, row(400, "Bad Request: "+text, autopost.Permanent, autopost.ScopeDelivery, code))
	}
	for text, code := range map[string]string{
		"wrong file identifier/HTTP URL specified": "media_expired", "wrong remote file identifier specified": "media_expired",
		"FILE_REFERENCE_EXPIRED": "media_expired", "failed to get HTTP URL content": "media_url_fetch",
		"wrong type of the web page content": "media_url_fetch", "wrong HTTP URL specified": "media_url_fetch",
	} {
		out = append(out, row(400, "Bad Request: "+text, autopost.Transient, autopost.ScopeDelivery, code))
	}
	return out
}
