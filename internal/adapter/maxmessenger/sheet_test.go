package maxmessenger_test

import (
	"testing"

	"autopost"
	"autopost/internal/adapter/adaptertest"
)

const (
	permanent = autopost.Permanent
	transient = autopost.Transient
	payload   = "proto.payload"
)

// says is one answer, with the minimum wait of its error.
func says(status int, class adaptertest.Class, waitMS int64, code, message string) []adaptertest.Row {
	rows := adaptertest.Says(status, class, code, "", message)
	rows[0].Want.RetryAfterMS = waitMS
	return rows
}

func all(groups ...[]adaptertest.Row) []adaptertest.Row {
	var rows []adaptertest.Row
	for _, group := range groups {
		rows = append(rows, group...)
	}
	return rows
}

// sheet holds a test for each row of the fact sheet's table of errors, in its order.
var sheet = []adaptertest.SheetRow{
	{Key: "400 | attachment.not.ready", Answers: says(400, adaptertest.Delivery(transient, "attachment.not.ready"), 1000, "attachment.not.ready", "Key: errors.process.attachment.file.not.processed")},
	{Key: "400 | errors.process.attachment.video.not.supported",
		Answers: adaptertest.Says(400, adaptertest.Delivery(permanent, "media_rejected"), payload, "", "errors.process.attachment.video.not.supported")},
	{Key: `400 | proto.payload + "Invalid … token"`, Answers: adaptertest.Says(400, adaptertest.Delivery(transient, "media_expired"), payload, "",
		"Invalid video token provided: abc", "Invalid photo token provided: abc", "Invalid file token provided: abc", "Invalid audio token provided: abc")},
	{Key: "400 | proto.payload + .not.owner", Answers: says(400, adaptertest.Delivery(transient, "media_expired"), 600_000, payload,
		"Key: errors.process.attachment.movie.not.owner")},
	{Key: "400 | proto.payload + Field 'text' size",
		Answers: adaptertest.Says(400, adaptertest.Delivery(permanent, "message_too_long"), payload, "", "Field 'text' size (4001) must be at most 4000")},
	{Key: "400 | other proto.payload", Answers: adaptertest.Says(400, adaptertest.Delivery(permanent, "validation_failed"), payload, "",
		"Must be only one file attachment in message", "Must have only http/https links format in buttons", "Missing required parameter: text", "errors.maxRows")},
	{Key: "400 | proto.payload about chat_id", Answers: adaptertest.Says(400, adaptertest.Channel(permanent, "max_chat_invalid"), payload, "", "Invalid chat_id: 5")},
	{Key: `401 | verify.token "Invalid access_token"`, Answers: all(
		adaptertest.Says(401, adaptertest.Channel(permanent, "max_unauthorized"), "verify.token", "", "Invalid access_token"),
		adaptertest.Says(403, adaptertest.Channel(permanent, "max_unauthorized"), "verify.token", "", "Invalid access_token"))},
	{Key: "403 | chat.denied", Answers: adaptertest.Says(403, adaptertest.Channel(permanent, "max_chat_denied"), "chat.denied", "",
		"error.dialog.suspended", "chat.send.msg.no.permission.because.not.admin")},
	{Key: "403 | access.denied", Answers: adaptertest.Says(403, adaptertest.Channel(permanent, "max_access_denied"), "access.denied", "", "Access denied")},
	{Key: "403 | account.blocked", Answers: says(403, adaptertest.Group(transient, "max_account_blocked"), 600_000, "account.blocked", "Account is blocked")},
	{Key: "404 | chat.not.found", Answers: all(
		adaptertest.Says(404, adaptertest.Channel(permanent, "max_not_found"), "chat.not.found", "", "Chat not found"),
		adaptertest.Says(404, adaptertest.Channel(permanent, "max_not_found"), "not.found", "", "Not found"),
		adaptertest.Says(404, adaptertest.Channel(permanent, "max_not_found"), "error.dialog.notfound", "", "Dialog not found"))},
	{Key: "405 | method not allowed", Answers: adaptertest.Says(405, adaptertest.Group(permanent, "max_method"), "method.not.allowed", "", "Method not allowed")},
	{Key: "400/401/403/404/407/451, body not of MAX's form", Elsewhere: "TestPageOfAProxyIsNotMAXsAnswer"},
	{Key: "413/415 on the upload host", Elsewhere: "TestFailedUploadIsDefinite"},
	{Key: "429 | too.many.requests", Answers: adaptertest.Says(429, adaptertest.Channel(transient, "max_429"), "too.many.requests", "", "Too many requests"),
		Deviates: "MAX states no scope: the channel first; the database extends it to the group when two chats are limited"},
	{Key: "500/503/502/504 | internal.error, service.unavailable", Answers: all(
		adaptertest.Says(500, adaptertest.Group(transient, "max_5xx"), "internal.error", "", "Internal error"),
		adaptertest.Says(503, adaptertest.Group(transient, "max_5xx"), "service.unavailable", "", "Service unavailable"))},
	{Key: `200 with {"success":false`, Elsewhere: "TestErrorsOfStatus200"},
	{Key: "TLS unknown authority", Elsewhere: "TestConformance/UntrustedCertificateIsPermanent"},
	{Key: "timeout after request written", Elsewhere: "TestConformance/LostAnswerIsNotARefusal"},
}

func TestErrorsOfTheFactSheet(t *testing.T) { adaptertest.CompareSheet(t, "max.md", sheet) }
