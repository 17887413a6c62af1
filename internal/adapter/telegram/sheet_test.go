package telegram_test

import (
	"testing"

	"autopost"
	"autopost/internal/adapter/adaptertest"
)

const (
	permanent = autopost.Permanent
	transient = autopost.Transient
	bad       = "Bad Request: "
)

func flood() adaptertest.Class {
	class := adaptertest.Channel(transient, "tg_429")
	class.RetryAfterMS = 37_000
	return class
}

// sheet holds a test for each row of the fact sheet's table of errors, in its order.
var sheet = []adaptertest.SheetRow{
	{Key: "429 | too many requests: retry after N", Answers: adaptertest.Says(429, flood(), "", "", "Too Many Requests: retry after 37"),
		Deviates: "note 1 of the sheet: the channel first; the database extends it to the group when two chats are limited"},
	{Key: "500/502/503/504, HTML body", Answers: adaptertest.Says(503, adaptertest.Group(transient, "tg_5xx"), "", "", "Service Unavailable", "Bad Gateway")},
	{Key: "400/401/403/404/407/451, body not of Telegram's form", Elsewhere: "TestPageOfAProxyIsNotTelegramsAnswer"},
	{Key: "network error/timeout before the request body was fully written", Elsewhere: "TestConformance/NothingWrittenIsKnown"},
	{Key: "timeout / reset after the request was written", Elsewhere: "TestConformance/LostAnswerIsNotARefusal"},
	{Key: "400 + parameters.migrate_to_chat_id | group chat was upgraded", // with the new id: TestMigrationNamesTheNewChat
		Answers: adaptertest.Says(400, adaptertest.Channel(transient, "tg_chat_migrated"), "", bad, "group chat was upgraded to a supergroup chat")},
	{Key: "400 | chat not found", Answers: adaptertest.Says(400, adaptertest.Channel(permanent, "tg_chat_not_found"), "", bad,
		"chat not found", "private chat not found", "PEER_ID_INVALID", "chat_id is empty", "chat identifier is not specified", "CHANNEL_PRIVATE",
		"CHANNEL_PUBLIC_GROUP_NA", "chat is not accessible", "can't access the chat", "have no access to the chat", "chat is deactivated")},
	{Key: "400 | not enough rights", Answers: adaptertest.Says(400, adaptertest.Channel(permanent, "tg_no_rights"), "", bad,
		"not enough rights to send text messages to the chat", "have no rights to send a message", "need administrator rights in the channel chat",
		"have no write access to the chat", "CHAT_WRITE_FORBIDDEN", "CHAT_ADMIN_REQUIRED", "CHAT_SEND_PHOTOS_FORBIDDEN", "CHAT_GUEST_SEND_FORBIDDEN",
		"USER_BANNED_IN_CHANNEL", "CHAT_RESTRICTED", "TOPIC_CLOSED", "member list is inaccessible")},
	{Key: "400 | message thread not found", Answers: adaptertest.Says(400, adaptertest.Channel(permanent, "tg_thread_missing"), "", bad,
		"message thread not found", "TOPIC_DELETED", "TOPIC_ID_INVALID")},
	{Key: "400 | frozen_method_invalid", Answers: adaptertest.Says(400, adaptertest.Channel(permanent, "tg_frozen"), "", bad, "FROZEN_METHOD_INVALID")},
	{Key: "403 | bot was kicked", Answers: adaptertest.Says(403, adaptertest.Channel(permanent, "tg_forbidden"), "", "Forbidden: ",
		"bot was kicked from the channel chat", "bot was kicked from the supergroup chat", "bot was kicked from the group chat", "bot is not a member of the channel chat",
		"bot was blocked by the user", "user is deactivated", "the group chat was deleted")},
	{Key: "401 | Unauthorized", Answers: adaptertest.Says(401, adaptertest.Channel(permanent, "tg_unauthorized"), "", "", "Unauthorized", "Unauthorized: invalid token specified")},
	{Key: "404 | Not Found", Answers: adaptertest.Says(404, adaptertest.Channel(permanent, "tg_bad_token_or_method"), "", "", "Not Found", "Not Found: method not found")},
	{Key: "400 | message is too long", Answers: adaptertest.Says(400, adaptertest.Delivery(permanent, "message_too_long"), "", bad,
		"message is too long", "message caption is too long", "text is too long", "MESSAGE_TOO_LONG", "MEDIA_CAPTION_TOO_LONG")},
	{Key: "400 | can't parse entities", Answers: adaptertest.Says(400, adaptertest.Delivery(permanent, "validation_failed"), "", bad,
		`can't parse entities: Unsupported start tag "x" at byte offset 0`, `can't parse entities: Unsupported start tag "chat_write_forbidden" at byte offset 0`,
		"unsupported parse_mode", "entity begins in the middle of a character", "something new")},
	{Key: "400 | message text is empty", Answers: adaptertest.Says(400, adaptertest.Delivery(permanent, "validation_failed"), "", bad,
		"message text is empty", "text must be non-empty", "strings must be encoded in UTF-8",
		"parameter show_caption_above_media must be the same for all messages", "document can't be mixed with other media types", "too many messages to send as an album")},
	{Key: "400 | group send failed", Answers: sendFailed()},
	{Key: `400 | with the error message "too many requests: retry after N"`, Elsewhere: "TestRateLimitInsideAnAlbumIsUnknown"},
	{Key: "400 | wrong file_id", Answers: adaptertest.Says(400, adaptertest.Delivery(transient, "media_expired"), "", bad,
		"wrong file_id or the file is temporarily unavailable", "wrong file identifier/HTTP URL specified", "wrong remote file identifier specified", "FILE_REFERENCE_EXPIRED")},
	{Key: "400 | failed to get http url content", Answers: adaptertest.Says(400, adaptertest.Delivery(transient, "media_url_fetch"), "", bad,
		"failed to get HTTP URL content", "wrong type of the web page content", "wrong HTTP URL specified")},
	{Key: "400 | photo_invalid_dimensions", Answers: adaptertest.Says(400, adaptertest.Delivery(permanent, "media_rejected"), "", bad,
		"PHOTO_INVALID_DIMENSIONS", "IMAGE_PROCESS_FAILED", "file is too big", "can't use the media of the specified type in the album", "MEDIA_EMPTY", "MEDIA_INVALID",
		"width of the photo is too big", "dimensions of the photo are too big", "photo has unsupported extension", "PHOTO_EXT_INVALID", "PHOTO_SAVE_FILE_INVALID",
		"VIDEO_CONTENT_TYPE_INVALID")},
	{Key: "400 | message to be replied not found", Answers: adaptertest.Says(400, adaptertest.Delivery(permanent, "tg_reply_missing"), "", bad,
		"message to be replied not found")},
	{Key: "400 | message is not modified (edit)", Elsewhere: "TestConformance/ChangeErrorTable"},
	{Key: "400 | message to delete not found", Answers: append(adaptertest.Says(400, adaptertest.Delivery(permanent, "tg_delete"), "", bad, "message can't be deleted"),
		adaptertest.Says(400, adaptertest.Delivery(permanent, "tg_in_effect"), "", bad, "message to delete not found")...),
		Deviates: "a delete of a missing message succeeds; the adapter recognises it by its own code"},
	{Key: "409 | Conflict", Answers: adaptertest.Says(409, adaptertest.Group(permanent, "tg_conflict"), "", "Conflict: ",
		"can't use getUpdates method while webhook is active", "terminated by other getUpdates request")},
	{Key: "413 | request entity too large", Answers: adaptertest.Says(413, adaptertest.Delivery(permanent, "media_too_large"), "", "", "Request Entity Too Large")},
	{Key: "500 | sent message was immediately deleted", Answers: adaptertest.Says(500, adaptertest.Delivery(permanent, "tg_sent_deleted"), "", "Internal Server Error: ",
		"sent message was immediately deleted and can't be returned"), Deviates: "an Outcome without an id is not a success; a permanent failure prevents a second send"},
}

// sendFailed are the answers of which the adapter itself sets the wait.
func sendFailed() []adaptertest.Row {
	rows := adaptertest.Says(400, adaptertest.Channel(transient, "tg_send_failed"), "", bad, "group send failed", "failed to upload file")
	for i := range rows {
		rows[i].Want.RetryAfterMS = 10_000
	}
	return rows
}

func TestErrorsOfTheFactSheet(t *testing.T) { adaptertest.CompareSheet(t, "telegram.md", sheet) }
