package telegram

import (
	"encoding/json"
	"fmt"

	"autopost"
	"autopost/internal/adapter"
)

const (
	codeBadToken = "tg_bad_token_or_method"
	codeURLFetch = "media_url_fetch"
	codeDelete   = "tg_delete"
	codeStands   = "tg_stands"
)

// rules are Telegram's error texts for the calls that this adapter makes, as its
// server's source has them (tdlib/telegram-bot-api, Client.cpp; tdlib/td). The first row that fits
// counts. A missing chat and missing rights come as 400: the status alone misleads.
var rules = []adapter.Rule{
	// What an act asks for stands already: the same text, the same pin, nothing there to delete. The texts about pins are from memory.
	{Status: 400, Contains: []string{"message is not modified", "message to delete not found", "message to unpin not found", "chat_not_modified"},
		Category: autopost.Permanent, Scope: autopost.ScopeDelivery, Code: codeStands},
	{Status: 400, Contains: []string{"message can't be deleted"},
		Category: autopost.Permanent, Scope: autopost.ScopeDelivery, Code: codeDelete},
	{Status: 400, Contains: []string{"message to edit not found", "message can't be edited"},
		Category: autopost.Permanent, Scope: autopost.ScopeDelivery, Code: "tg_edit"},
	{Status: 400, Contains: []string{"message to pin not found"},
		Category: autopost.Permanent, Scope: autopost.ScopeDelivery, Code: "tg_pin"},
	{Status: 400, Contains: []string{"group chat was upgraded to a supergroup chat"},
		Category: autopost.Transient, Scope: autopost.ScopeChannel, Code: "tg_chat_migrated"},
	{Status: 400, Contains: []string{"message thread not found", "message to be replied not found", "message_thread_id"},
		Category: autopost.Permanent, Scope: autopost.ScopeDelivery, Code: "tg_thread_missing"},
	{Status: 400, Contains: []string{"not enough rights", "have no rights to send", "need administrator rights", "chat_write_forbidden",
		"chat_admin_required", "chat_send_", "chat_restricted", "topic_closed"},
		Category: autopost.Permanent, Scope: autopost.ScopeChannel, Code: "tg_no_rights"},
	{Status: 400, Contains: []string{"chat not found", "peer_id_invalid", "chat_id is empty", "chat identifier"},
		Category: autopost.Permanent, Scope: autopost.ScopeChannel, Code: "tg_chat_not_found"},
	{Status: 400, Contains: []string{"message is too long", "message caption is too long", "text is too long"},
		Category: autopost.Permanent, Scope: autopost.ScopeDelivery, Code: autopost.CodeMessageTooLong},
	{Status: 400, Contains: []string{"wrong file_id", "wrong file identifier", "wrong remote file identifier", "file_reference_expired"},
		Category: autopost.Transient, Scope: autopost.ScopeDelivery, Code: autopost.CodeMediaExpired},
	{Status: 400, Contains: []string{"failed to get http url content", "wrong type of the web page content", "wrong http url specified"},
		Category: autopost.Transient, Scope: autopost.ScopeDelivery, Code: codeURLFetch},
	{Status: 400, Contains: []string{"photo_invalid_dimensions", "image_process_failed", "file is too big",
		"can't use the media of the specified type", "media_empty"},
		Category: autopost.Permanent, Scope: autopost.ScopeDelivery, Code: autopost.CodeMediaRejected},
	{Status: 400, Category: autopost.Permanent, Scope: autopost.ScopeDelivery, Code: autopost.CodeValidationFailed},
	{Status: 401, Category: autopost.Permanent, Scope: autopost.ScopeChannel, Code: "tg_unauthorized"},
	{Status: 403, Category: autopost.Permanent, Scope: autopost.ScopeChannel, Code: "tg_forbidden"},
	{Status: 404, Category: autopost.Permanent, Scope: autopost.ScopeChannel, Code: codeBadToken},
	{Status: 409, Category: autopost.Permanent, Scope: autopost.ScopePlatform, Code: "tg_conflict"},
	// Posted, and taken away again at once, without an id to state: to send it again would be wrong.
	{Status: 500, Contains: []string{"sent message was immediately deleted"},
		Category: autopost.Permanent, Scope: autopost.ScopeDelivery, Code: "tg_sent_deleted"},
}

// reply is the envelope of every answer.
type reply struct {
	OK          *bool           `json:"ok"`
	Result      json.RawMessage `json:"result"`
	ErrorCode   int             `json:"error_code"`
	Description string          `json:"description"`
	Parameters  struct {
		RetryAfter int64 `json:"retry_after"`
	} `json:"parameters"`
}

// read takes messages out of an answer.
func read(answer adapter.Answer, hide adapter.Redactor) ([]message, *autopost.Error) {
	result, failure := result(answer, hide)
	if failure != nil {
		return nil, failure
	}
	return made(answer, result, hide)
}

// result is what a call came to. Telegram's own error answer is definite, also with a
// status of 5xx; what a gateway says about a request that it passed on is not.
func result(answer adapter.Answer, hide adapter.Redactor) (json.RawMessage, *autopost.Error) {
	var r reply
	err := json.Unmarshal(answer.Body, &r)
	own := err == nil && r.OK != nil
	switch {
	case own && *r.OK && answer.Status < 300:
		return r.Result, nil
	case own && !*r.OK:
		return nil, refused(answer, r, hide)
	case answer.Status >= 300 && answer.Status < 500:
		return nil, adapter.Classify(rules, "tg", answer.Status, string(answer.Body)).
			Error(answer, fmt.Sprintf("status %d from something that is not Telegram's server", answer.Status), hide)
	default:
		return nil, unreadable(answer, hide)
	}
}

func refused(answer adapter.Answer, r reply, hide adapter.Redactor) *autopost.Error {
	status := r.ErrorCode
	if status == 0 {
		status = answer.Status
	}
	failure := adapter.Classify(rules, "tg", status, r.Description).Error(answer, r.Description, hide)
	if r.Parameters.RetryAfter > 0 {
		failure.RetryAfterMS = r.Parameters.RetryAfter * 1000
	}
	return failure
}

func made(answer adapter.Answer, result json.RawMessage, hide adapter.Redactor) ([]message, *autopost.Error) {
	var messages []message
	if err := json.Unmarshal(result, &messages); err != nil {
		messages = make([]message, 1)
		if err := json.Unmarshal(result, &messages[0]); err != nil {
			return nil, unreadable(answer, hide)
		}
	}
	for _, m := range messages {
		if m.MessageID == 0 {
			return nil, unreadable(answer, hide)
		}
	}
	if len(messages) == 0 {
		return nil, unreadable(answer, hide)
	}
	return messages, nil
}

func unreadable(answer adapter.Answer, hide adapter.Redactor) *autopost.Error {
	failure := adapter.Unknown(fmt.Sprintf("status %d without an answer of Telegram's form", answer.Status))
	failure.Raw = hide.Raw(answer.Body)
	return failure
}
