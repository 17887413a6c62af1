package telegram

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"time"

	"autopost"
	"autopost/internal/adapter"
)

const (
	codeBadToken   = "tg_bad_token_or_method"
	codeForbidden  = "tg_forbidden"
	codeFrozen     = "tg_frozen"
	codeNoChat     = "tg_chat_not_found"
	codeNoRights   = "tg_no_rights"
	codeNoThread   = "tg_thread_missing"
	codeSendFailed = "tg_send_failed"
	codeURLFetch   = "media_url_fetch"
	codeDelete     = "tg_delete"
	// codeInEffect: the requested change is already in effect.
	codeInEffect = "tg_in_effect"
	// The next two answer a forward, which Reconcile uses to read messages.
	codeNoMessage      = "tg_message_missing"
	codeNotForwardable = "tg_not_forwardable"
)

// sendFailedWait is the minimum wait after tg_send_failed, for which Telegram states none.
const sendFailedWait = 10 * time.Second

// rules map Telegram's error texts to classes, for the methods that this adapter calls. The texts are
// those of the server's source (tdlib/telegram-bot-api, tdlib/td), in lower case.
//
// The first matching row wins. An album's error wraps the text of one item, so that a text may match
// two rows; the order is therefore: credential, channel, delivery. A missing chat and missing rights
// have status 400.
var rules = []adapter.Rule{
	// These errors quote our text, which may contain any phrase of this table.
	{Status: 400, Contains: []string{"can't parse entities"},
		Category: autopost.Permanent, Scope: autopost.ScopeDelivery, Code: autopost.CodeValidationFailed},

	{Status: 400, Contains: []string{"frozen_method_invalid"},
		Category: autopost.Permanent, Scope: autopost.ScopeChannel, Code: codeFrozen},
	{Status: 401, Category: autopost.Permanent, Scope: autopost.ScopeChannel, Code: "tg_unauthorized"},
	{Status: 404, Category: autopost.Permanent, Scope: autopost.ScopeChannel, Code: codeBadToken},
	{Status: 409, Category: autopost.Permanent, Scope: autopost.ScopePlatform, Code: "tg_conflict"},

	{Status: 403, Category: autopost.Permanent, Scope: autopost.ScopeChannel, Code: codeForbidden},
	{Status: 400, Contains: []string{"group chat was upgraded to a supergroup chat"},
		Category: autopost.Transient, Scope: autopost.ScopeChannel, Code: "tg_chat_migrated"},
	{Status: 400, Contains: []string{"chat not found", "peer_id_invalid", "chat_id is empty", "chat identifier", "channel_private",
		"channel_public_group_na", "chat is not accessible", "can't access the chat", "have no access to the chat", "chat is deactivated"},
		Category: autopost.Permanent, Scope: autopost.ScopeChannel, Code: codeNoChat},
	{Status: 400, Contains: []string{"not enough rights", "have no rights to send", "need administrator rights", "have no write access to the chat",
		"chat_write_forbidden", "chat_admin_required", "chat_send_", "chat_guest_send_forbidden", "user_banned_in_channel", "chat_restricted",
		"topic_closed", "member list is inaccessible"},
		Category: autopost.Permanent, Scope: autopost.ScopeChannel, Code: codeNoRights},
	{Status: 400, Contains: []string{"message thread not found", "topic_deleted", "topic_id_invalid", "message_thread_id"},
		Category: autopost.Permanent, Scope: autopost.ScopeChannel, Code: codeNoThread},
	{Status: 400, Contains: []string{"group send failed", "failed to upload file"},
		Category: autopost.Transient, Scope: autopost.ScopeChannel, Code: codeSendFailed},

	// The texts about pins are from memory.
	{Status: 400, Contains: []string{"message is not modified", "message to delete not found", "message to unpin not found", "chat_not_modified"},
		Category: autopost.Permanent, Scope: autopost.ScopeDelivery, Code: codeInEffect},
	{Status: 400, Contains: []string{"message can't be deleted"},
		Category: autopost.Permanent, Scope: autopost.ScopeDelivery, Code: codeDelete},
	{Status: 400, Contains: []string{"message to edit not found", "message can't be edited"},
		Category: autopost.Permanent, Scope: autopost.ScopeDelivery, Code: "tg_edit"},
	{Status: 400, Contains: []string{"message to pin not found"},
		Category: autopost.Permanent, Scope: autopost.ScopeDelivery, Code: "tg_pin"},
	{Status: 400, Contains: []string{"message to forward not found"},
		Category: autopost.Permanent, Scope: autopost.ScopeDelivery, Code: codeNoMessage},
	{Status: 400, Contains: []string{"message can't be forwarded"},
		Category: autopost.Permanent, Scope: autopost.ScopeDelivery, Code: codeNotForwardable},
	{Status: 400, Contains: []string{"message to be replied not found"},
		Category: autopost.Permanent, Scope: autopost.ScopeDelivery, Code: "tg_reply_missing"},
	{Status: 400, Contains: []string{"message is too long", "message caption is too long", "text is too long", "message_too_long", "media_caption_too_long"},
		Category: autopost.Permanent, Scope: autopost.ScopeDelivery, Code: autopost.CodeMessageTooLong},
	{Status: 400, Contains: []string{"photo_invalid_dimensions", "image_process_failed", "file is too big", "can't use the media of the specified type",
		"media_empty", "media_invalid", "of the photo is too big", "of the photo are too big", "photo has unsupported extension", "photo_ext_invalid",
		"photo_save_file_invalid", "video_content_type_invalid"},
		Category: autopost.Permanent, Scope: autopost.ScopeDelivery, Code: autopost.CodeMediaRejected},
	{Status: 400, Contains: []string{"wrong file_id", "wrong file identifier", "wrong remote file identifier", "file_reference_expired"},
		Category: autopost.Transient, Scope: autopost.ScopeDelivery, Code: autopost.CodeMediaExpired},
	{Status: 400, Contains: []string{"failed to get http url content", "wrong type of the web page content", "wrong http url specified"},
		Category: autopost.Transient, Scope: autopost.ScopeDelivery, Code: codeURLFetch},
	{Status: 400, Category: autopost.Permanent, Scope: autopost.ScopeDelivery, Code: autopost.CodeValidationFailed},
	// Telegram posted the message and deleted it at once. A second send would post it again.
	{Status: 500, Contains: []string{"sent message was immediately deleted"},
		Category: autopost.Permanent, Scope: autopost.ScopeDelivery, Code: "tg_sent_deleted"},
}

// nestedFlood matches an album's error 400 that wraps a rate limit. Its group is the wait in seconds.
var nestedFlood = regexp.MustCompile(`(?i)with the error message "too many requests: retry after (\d{1,9})`)

// reply is the form of each answer.
type reply struct {
	OK          *bool           `json:"ok"`
	Result      json.RawMessage `json:"result"`
	ErrorCode   int             `json:"error_code"`
	Description string          `json:"description"`
	Parameters  struct {
		RetryAfter int64 `json:"retry_after"`
		MigrateTo  int64 `json:"migrate_to_chat_id"`
	} `json:"parameters"`
}

// read returns the messages of an answer, at least one.
func read(answer adapter.Answer, hide adapter.Redactor) ([]message, *autopost.Error) {
	result, failure := result(answer, hide)
	if failure != nil {
		return nil, failure
	}
	return messages(answer, result, hide)
}

// result returns the result of a call. Only a JSON object with a boolean "ok" is Telegram's answer. An
// error in this form is definite, also with status 5xx. Without it, the outcome of a status 2xx or 5xx
// is unknown, and a status 4xx comes from a proxy that did not pass the request on.
func result(answer adapter.Answer, hide adapter.Redactor) (json.RawMessage, *autopost.Error) {
	var r reply
	own := json.Unmarshal(answer.Body, &r) == nil && r.OK != nil
	switch {
	case own && *r.OK && answer.Status < 300:
		return r.Result, nil
	case own && !*r.OK:
		return nil, refused(answer, r, hide)
	case answer.Status >= 300 && answer.Status < 500:
		return nil, adapter.Gateway("tg", answer.Status).Error(answer, fmt.Sprintf("status %d without an answer of Telegram's form", answer.Status), hide)
	default:
		return nil, unreadable(answer, hide)
	}
}

// refused classifies Telegram's own error answer.
func refused(answer adapter.Answer, r reply, hide adapter.Redactor) *autopost.Error {
	status := cmp.Or(r.ErrorCode, answer.Status)
	failure := adapter.Classify(rules, "tg", status, r.Description).Error(answer, r.Description, hide)
	if flood := nestedFlood.FindStringSubmatch(r.Description); status == http.StatusBadRequest && flood != nil {
		// Other items of the album may be posted.
		seconds, _ := strconv.ParseInt(flood[1], 10, 64) // digits
		failure.Category, failure.Scope, failure.Code = autopost.Transient, autopost.ScopeChannel, autopost.CodeUnknownOutcome
		failure.Known, failure.RetryAfterMS = false, seconds*1000
	}
	if failure.Code == codeSendFailed {
		failure.RetryAfterMS = max(failure.RetryAfterMS, sendFailedWait.Milliseconds())
	}
	if r.Parameters.RetryAfter > 0 {
		failure.RetryAfterMS = r.Parameters.RetryAfter * 1000
	}
	if to := r.Parameters.MigrateTo; to != 0 {
		failure.Moved = &autopost.Moved{To: strconv.FormatInt(to, 10)}
	}
	return failure
}

// messages decodes a result that is a message or a list of messages.
func messages(answer adapter.Answer, result json.RawMessage, hide adapter.Redactor) ([]message, *autopost.Error) {
	var list []message
	if err := json.Unmarshal(result, &list); err != nil {
		list = make([]message, 1)
		if err := json.Unmarshal(result, &list[0]); err != nil {
			return nil, unreadable(answer, hide)
		}
	}
	withoutID := func(m message) bool { return m.MessageID == nil }
	if len(list) == 0 || slices.ContainsFunc(list, withoutID) {
		return nil, unreadable(answer, hide)
	}
	return list, nil
}

// unreadable is the unknown outcome after an answer that is not of Telegram's form.
func unreadable(answer adapter.Answer, hide adapter.Redactor) *autopost.Error {
	failure := adapter.Unknown(fmt.Sprintf("status %d without an answer of Telegram's form", answer.Status))
	failure.Raw = hide.Raw(answer.Body)
	return failure
}
