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

// sheet is the table of errors of the fact sheet, row by row.
var sheet = []adaptertest.SheetRow{
	{Key: "429 | too many requests: retry after N", Answers: adaptertest.Says(429, flood(), "", "", "Too Many Requests: retry after 37"),
		Deviates: "the sheet's first note: the channel's first; two chats make it the group's, which is for the database to see"},
	{Key: "500/502/503/504, HTML body", Answers: adaptertest.Says(503, adaptertest.Group(transient, "tg_5xx"), "", "", "Service Unavailable", "Bad Gateway")},
	{Key: "network error/timeout before the request body was fully written", Elsewhere: "TestConformance/NothingWrittenIsKnown"},
	{Key: "timeout / reset after the request was written", Elsewhere: "TestConformance/LostAnswerIsNeverTakenForARefusal"},
	{Key: "400 + parameters.migrate_to_chat_id | group chat was upgraded", // with the new id: TestMigrationTellsTheNewChat
		Answers: adaptertest.Says(400, adaptertest.Channel(transient, "tg_chat_migrated"), "", bad, "group chat was upgraded to a supergroup chat")},
	{Key: "400 | chat not found", Answers: adaptertest.Says(400, adaptertest.Channel(permanent, "tg_chat_not_found"), "", bad,
		"chat not found", "private chat not found", "PEER_ID_INVALID", "chat_id is empty", "chat identifier is not specified")},
	{Key: "400 | not enough rights", Answers: adaptertest.Says(400, adaptertest.Channel(permanent, "tg_no_rights"), "", bad,
		"not enough rights to send text messages to the chat", "have no rights to send a message", "need administrator rights in the channel chat", "CHAT_WRITE_FORBIDDEN",
		"CHAT_ADMIN_REQUIRED", "CHAT_SEND_PHOTOS_FORBIDDEN", "CHAT_RESTRICTED", "TOPIC_CLOSED")},
	{Key: "403 | bot was kicked", Answers: adaptertest.Says(403, adaptertest.Channel(permanent, "tg_forbidden"), "", "Forbidden: ",
		"bot was kicked from the channel chat", "bot was kicked from the supergroup chat", "bot was kicked from the group chat", "bot is not a member of the channel chat",
		"bot was blocked by the user", "user is deactivated", "the group chat was deleted")},
	{Key: "401 | Unauthorized", Answers: adaptertest.Says(401, adaptertest.Channel(permanent, "tg_unauthorized"), "", "", "Unauthorized", "Unauthorized: invalid token specified")},
	{Key: "404 | Not Found", Answers: adaptertest.Says(404, adaptertest.Channel(permanent, "tg_bad_token_or_method"), "", "", "Not Found", "Not Found: method not found")},
	{Key: "400 | message is too long", Answers: adaptertest.Says(400, adaptertest.Delivery(permanent, "message_too_long"), "", bad,
		"message is too long", "message caption is too long", "text is too long")},
	{Key: "400 | can't parse entities", Answers: adaptertest.Says(400, adaptertest.Delivery(permanent, "validation_failed"), "", bad,
		`can't parse entities: Unsupported start tag "x" at byte offset 0`, "unsupported parse_mode", "entity begins in the middle of a character", "something new")},
	{Key: "400 | message text is empty", Answers: adaptertest.Says(400, adaptertest.Delivery(permanent, "validation_failed"), "", bad,
		"message text is empty", "text must be non-empty", "strings must be encoded in UTF-8")},
	{Key: "400 | wrong file_id", Answers: adaptertest.Says(400, adaptertest.Delivery(transient, "media_expired"), "", bad,
		"wrong file_id or the file is temporarily unavailable", "wrong file identifier/HTTP URL specified", "wrong remote file identifier specified", "FILE_REFERENCE_EXPIRED")},
	{Key: "400 | failed to get http url content", Answers: adaptertest.Says(400, adaptertest.Delivery(transient, "media_url_fetch"), "", bad,
		"failed to get HTTP URL content", "wrong type of the web page content", "wrong HTTP URL specified")},
	{Key: "400 | photo_invalid_dimensions", Answers: adaptertest.Says(400, adaptertest.Delivery(permanent, "media_rejected"), "", bad,
		"PHOTO_INVALID_DIMENSIONS", "IMAGE_PROCESS_FAILED", "file is too big", "can't use the media of the specified type in the album", "MEDIA_EMPTY")},
	{Key: "400 | message thread not found", Answers: adaptertest.Says(400, adaptertest.Delivery(permanent, "tg_thread_missing"), "", bad,
		"message thread not found", "message to be replied not found")},
	{Key: "400 | message is not modified (edit)", Elsewhere: "TestConformance: what an edit asks for stands already"},
	{Key: "400 | message to delete not found", Answers: append(adaptertest.Says(400, adaptertest.Delivery(permanent, "tg_delete"), "", bad, "message can't be deleted"),
		adaptertest.Says(400, adaptertest.Delivery(permanent, "tg_stands"), "", bad, "message to delete not found")...),
		Deviates: "what is to be deleted and is not there is as it was asked for, which a deletion tells by a code of its own"},
	{Key: "409 | Conflict", Answers: adaptertest.Says(409, adaptertest.Group(permanent, "tg_conflict"), "", "Conflict: ",
		"can't use getUpdates method while webhook is active", "terminated by other getUpdates request")},
	{Key: "413 | request entity too large", Answers: adaptertest.Says(413, adaptertest.Delivery(permanent, "media_too_large"), "", "", "Request Entity Too Large")},
	{Key: "500 | sent message was immediately deleted", Answers: adaptertest.Says(500, adaptertest.Delivery(permanent, "tg_sent_deleted"), "", "Internal Server Error: ",
		"sent message was immediately deleted and can't be returned"), Deviates: "a success without an id is no success here: permanent, so that it is not sent again"},
}

func TestTheSheetsErrorsAreCovered(t *testing.T) { adaptertest.CompareSheet(t, "telegram.md", sheet) }
