package maxmessenger

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"autopost"
	"autopost/internal/adapter"
)

const (
	codeNotReady     = "attachment.not.ready"
	codeUnauthorized = "max_unauthorized"
	codeBlocked      = "max_account_blocked"
	codeChatUnknown  = "max_chat_unknown"
	codeSimpleError  = "max_simple_error"
	codeNotFound     = "max_not_found"
	codeAccessDenied = "max_access_denied"
)

// waits are minimum waits for errors for which MAX states none. Uploads are ready within seconds. A
// blocked account needs a person.
var waits = map[string]time.Duration{
	codeNotReady: time.Second,
	codeBlocked:  10 * time.Minute,
}

// ownerWait is the minimum wait after notOwner, which may last for hours.
const ownerWait = 10 * time.Minute

// notOwner: MAX rejects a token as another bot's, also one that it issued a moment before.
const notOwner = ".not.owner"

// rules map MAX's error keys and texts to classes, for the methods that this adapter calls. Keys and
// statuses are those of the OpenAPI document of 2026-07, texts are from field reports. The first
// matching row wins; the order is: account, channel, delivery.
var rules = []adapter.Rule{
	{Contains: []string{"account.blocked"},
		Category: autopost.Transient, Scope: autopost.ScopePlatform, Code: codeBlocked},
	{Contains: []string{"verify.token"},
		Category: autopost.Permanent, Scope: autopost.ScopeChannel, Code: codeUnauthorized},
	{Status: 401, Category: autopost.Permanent, Scope: autopost.ScopeChannel, Code: codeUnauthorized},
	{Status: 429, Contains: []string{"too.many.requests"},
		Category: autopost.Transient, Scope: autopost.ScopeChannel, Code: "max_429"},
	{Status: 503, Contains: []string{"internal.error", "service.unavailable"},
		Category: autopost.Transient, Scope: autopost.ScopePlatform, Code: "max_5xx"},
	{Status: 403, Contains: []string{"chat.denied", "error.dialog.suspended", "no.permission"},
		Category: autopost.Permanent, Scope: autopost.ScopeChannel, Code: "max_chat_denied"},
	{Status: 403, Contains: []string{"access.denied"},
		Category: autopost.Permanent, Scope: autopost.ScopeChannel, Code: codeAccessDenied},
	{Status: 403, Category: autopost.Permanent, Scope: autopost.ScopeChannel, Code: codeAccessDenied},
	{Status: 404, Contains: []string{"not.found", "dialog.notfound"},
		Category: autopost.Permanent, Scope: autopost.ScopeChannel, Code: codeNotFound},
	{Status: 404, Category: autopost.Permanent, Scope: autopost.ScopeChannel, Code: codeNotFound},
	{Status: 400, Contains: []string{"chat_id", "chatid"},
		Category: autopost.Permanent, Scope: autopost.ScopeChannel, Code: "max_chat_invalid"},
	{Status: 405, Category: autopost.Permanent, Scope: autopost.ScopePlatform, Code: "max_method"},
	{Contains: []string{"attachment.not.ready", ".not.processed"},
		Category: autopost.Transient, Scope: autopost.ScopeDelivery, Code: codeNotReady},
	{Status: 400, Contains: []string{notOwner},
		Category: autopost.Transient, Scope: autopost.ScopeDelivery, Code: autopost.CodeMediaExpired},
	{Status: 400, Contains: []string{"errors.process.attachment."},
		Category: autopost.Permanent, Scope: autopost.ScopeDelivery, Code: autopost.CodeMediaRejected},
	{Status: 400, Contains: []string{"token provided", "invalid token", "invalid photo token", "invalid image token",
		"invalid video token", "invalid audio token", "invalid file token", "invalid attachment token"},
		Category: autopost.Transient, Scope: autopost.ScopeDelivery, Code: autopost.CodeMediaExpired},
	{Status: 400, Contains: []string{"field 'text' size"},
		Category: autopost.Permanent, Scope: autopost.ScopeDelivery, Code: autopost.CodeMessageTooLong},
	{Status: 400, Category: autopost.Permanent, Scope: autopost.ScopeDelivery, Code: autopost.CodeValidationFailed},
	{Status: 415, Category: autopost.Permanent, Scope: autopost.ScopeDelivery, Code: autopost.CodeMediaRejected},
}

// simpleRules classify {"success": false}, which has a text but neither a key nor an error status. A
// row of rules matches by its texts alone.
var simpleRules = func() []adapter.Rule {
	var byText []adapter.Rule
	for _, rule := range rules {
		if rule.Status = 0; len(rule.Contains) > 0 {
			byText = append(byText, rule)
		}
	}
	return append(byText, adapter.Rule{Category: autopost.Permanent, Scope: autopost.ScopeDelivery, Code: codeSimpleError})
}()

// reply is the form of each answer. Message is an object in a success and a text in an error.
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

// refusal reports whether the answer is an error of MAX's form.
func (r reply) refusal() bool { return r.Code != "" || (r.Success != nil && !*r.Success) }

// words returns the key and the text of an error.
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

// read returns the id of the message that POST /messages made. MAX's own error is definite, also with
// status 5xx. Without MAX's form, the outcome of a status 2xx or 5xx is unknown.
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

// refused classifies an answer after which MAX has no new message.
func refused(answer adapter.Answer, hide adapter.Redactor) *autopost.Error {
	r, ok := parse(answer)
	if !ok || !r.refusal() {
		return adapter.Gateway("max", answer.Status).Error(answer, fmt.Sprintf("status %d without an answer of MAX's form", answer.Status), hide)
	}
	table, words := rules, r.words()
	if answer.Status < 300 {
		table = simpleRules
	}
	failure := adapter.Classify(table, "max", answer.Status, words).Error(answer, words, hide)
	failure.RetryAfterMS = max(failure.RetryAfterMS, waits[failure.Code].Milliseconds())
	if failure.Code == autopost.CodeMediaExpired && strings.Contains(words, notOwner) {
		failure.RetryAfterMS = max(failure.RetryAfterMS, ownerWait.Milliseconds())
	}
	return failure
}
