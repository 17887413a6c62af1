package maxmessenger

import (
	"encoding/json"
	"fmt"
	"time"

	"autopost"
	"autopost/internal/adapter"
)

const (
	codeNotReady     = "attachment.not.ready"
	codeUnauthorized = "max_unauthorized"
	codeBlocked      = "max_account_blocked"
	codeSimpleError  = "max_simple_error"
	codeNotFound     = "max_not_found"
)

// waits are the least pauses for failures to which MAX itself states none. Uploads
// are ready within seconds; a blocked account is a matter for people.
var waits = map[string]time.Duration{
	codeNotReady: time.Second,
	codeBlocked:  10 * time.Minute,
}

// rules are MAX's error keys and texts for the calls that this adapter makes: the
// OpenAPI of 2026-07 for keys and statuses, field reports for texts. The first row that fits counts.
var rules = []adapter.Rule{
	{Contains: []string{"attachment.not.ready", ".not.processed"},
		Category: autopost.Transient, Scope: autopost.ScopeDelivery, Code: codeNotReady},
	{Contains: []string{"account.blocked"},
		Category: autopost.Transient, Scope: autopost.ScopePlatform, Code: codeBlocked},
	{Contains: []string{"verify.token"},
		Category: autopost.Permanent, Scope: autopost.ScopeChannel, Code: codeUnauthorized},
	{Status: 400, Contains: []string{"errors.process.attachment."},
		Category: autopost.Permanent, Scope: autopost.ScopeDelivery, Code: autopost.CodeMediaRejected},
	{Status: 400, Contains: []string{"token provided", "invalid token", "invalid photo token", "invalid image token",
		"invalid video token", "invalid audio token", "invalid file token", "invalid attachment token"},
		Category: autopost.Transient, Scope: autopost.ScopeDelivery, Code: autopost.CodeMediaExpired},
	{Status: 400, Contains: []string{"field 'text' size"},
		Category: autopost.Permanent, Scope: autopost.ScopeDelivery, Code: autopost.CodeMessageTooLong},
	{Status: 400, Contains: []string{"chat_id", "chatid"},
		Category: autopost.Permanent, Scope: autopost.ScopeChannel, Code: "max_chat_invalid"},
	{Status: 400, Category: autopost.Permanent, Scope: autopost.ScopeDelivery, Code: autopost.CodeValidationFailed},
	{Status: 401, Category: autopost.Permanent, Scope: autopost.ScopeChannel, Code: codeUnauthorized},
	{Status: 403, Contains: []string{"chat.denied", "error.dialog.suspended", "no.permission"},
		Category: autopost.Permanent, Scope: autopost.ScopeChannel, Code: "max_chat_denied"},
	{Status: 403, Category: autopost.Permanent, Scope: autopost.ScopeChannel, Code: "max_access_denied"},
	{Status: 404, Category: autopost.Permanent, Scope: autopost.ScopeChannel, Code: codeNotFound},
	{Status: 405, Category: autopost.Permanent, Scope: autopost.ScopePlatform, Code: "max_method"},
	{Status: 415, Category: autopost.Permanent, Scope: autopost.ScopeDelivery, Code: autopost.CodeMediaRejected},
	// A refusal inside an answer of status 200, without a key.
	{Status: 200, Category: autopost.Permanent, Scope: autopost.ScopeDelivery, Code: codeSimpleError},
}

// reply is any answer of the API: message is an object in a success and a string in an error.
type reply struct {
	Message json.RawMessage `json:"message"`
	Code    string          `json:"code"`
	Error   string          `json:"error"`
	Success *bool           `json:"success"`
}

func parse(answer adapter.Answer) (reply, bool) {
	var r reply
	err := json.Unmarshal(answer.Body, &r)
	return r, err == nil
}

// refusal reports whether MAX itself says no, in its own form.
func (r reply) refusal() bool { return r.Code != "" || (r.Success != nil && !*r.Success) }

func (r reply) words() string {
	var message string
	if json.Unmarshal(r.Message, &message) != nil {
		message = ""
	}
	if message == "" {
		message = r.Error
	}
	if r.Code == "" {
		return message
	}
	return r.Code + ": " + message
}

// read takes the message's id out of an answer to POST /messages. MAX's own error
// answer is definite, also with a status of 5xx; a gateway's is not.
func read(answer adapter.Answer, hide adapter.Redactor) (adapter.Receipt, *autopost.Error) {
	r, ok := parse(answer)
	if answer.Status < 300 && ok && !r.refusal() {
		var made sent
		if json.Unmarshal(r.Message, &made) == nil && made.Body.MID != "" {
			return made.receipt(), nil
		}
	}
	if (ok && r.refusal()) || (answer.Status >= 300 && answer.Status < 500) {
		return adapter.Receipt{}, refused(answer, hide)
	}
	failure := adapter.Unknown(fmt.Sprintf("status %d without an answer of MAX's form", answer.Status))
	failure.Raw = hide.Raw(answer.Body)
	return adapter.Receipt{}, failure
}

// refused classifies an answer that made nothing.
func refused(answer adapter.Answer, hide adapter.Redactor) *autopost.Error {
	words := fmt.Sprintf("status %d from something that is not MAX", answer.Status)
	if r, ok := parse(answer); ok && r.refusal() {
		words = r.words()
	}
	status := answer.Status
	if status > 200 && status < 300 {
		status = 200
	}
	failure := adapter.Classify(rules, "max", status, words).Error(answer, words, hide)
	failure.RetryAfterMS = max(failure.RetryAfterMS, waits[failure.Code].Milliseconds())
	return failure
}
