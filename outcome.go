package autopost

import (
	"encoding/json"
	"fmt"
	"maps"
	"time"
)

// Category says whether trying again can help.
type Category string

// The two categories of the error contract.
const (
	Transient Category = "TRANSIENT"
	Permanent Category = "PERMANENT"
)

// Scope says how far a failure reaches: one delivery, its channel, or the rate
// group (credential) that the channel shares with others.
type Scope string

// The three scopes of the error contract.
const (
	ScopeDelivery Scope = "delivery"
	ScopeChannel  Scope = "channel"
	ScopePlatform Scope = "platform"
)

// Codes that more than one platform uses.
const (
	CodeValidationFailed   = "validation_failed"
	CodeMessageTooLong     = "message_too_long"
	CodeMediaExpired       = "media_expired"
	CodeMediaMissingOrigin = "media_missing_origin"
	CodeMediaRejected      = "media_rejected"
	CodeMediaTooLarge      = "media_too_large"
	CodeUnknownOutcome     = "unknown_outcome"
	CodeNetConnect         = "net_connect"
	CodeTLSUntrusted       = "tls_untrusted"
	CodeCredentialMissing  = "credential_missing"
	// CodeCredentialUnavailable: it can neither be looked up nor renewed at the moment.
	CodeCredentialUnavailable = "credential_unavailable"
)

// Error is the normalised failure of one call. It is data, not a Go error:
// what becomes of it (retry, pause, dead letter) is decided in SQL.
type Error struct {
	Category Category `json:"category"`
	Scope    Scope    `json:"scope"`
	// Code is the platform's or our own stable key, lower case.
	Code string `json:"code"`
	// Known is false when at least one byte of the request was written and no
	// readable final answer came back: the platform may have taken the post.
	Known bool `json:"known"`
	// RetryAfterMS is the platform's own minimum wait in milliseconds; 0 = none given.
	RetryAfterMS int64 `json:"retry_after_ms,omitempty"`
	// Moved is set when the chat has another id now; the database has the channels
	// that post there follow it.
	Moved *Moved `json:"moved,omitempty"`
	// Message is for people. It never holds a secret or a URL with a token.
	Message string `json:"message"`
	// Raw is a short snippet of the platform's answer, at most 2 KiB.
	Raw json.RawMessage `json:"raw,omitempty"`
}

// Moved says that a chat has another id.
type Moved struct {
	// From is the id that was called, To the one to call: chats, without threads.
	From string `json:"from"`
	To   string `json:"to"`
}

func (e *Error) String() string {
	return fmt.Sprintf("%s/%s %s: %s", e.Category, e.Scope, e.Code, e.Message)
}

// Outcome is what one attempt came to. Exactly one of OK and Error is set.
type Outcome struct {
	OK bool `json:"ok"`
	// ProviderMessageID is the platform's id of the post, of its first message
	// where there are several. Required when OK.
	ProviderMessageID string `json:"provider_message_id,omitempty"`
	// SentAt is the platform's own time of the post, if it tells.
	SentAt *time.Time `json:"sent_at,omitempty"`
	// Raw holds all ids of a series and what else is worth keeping, at most 8 KiB.
	Raw   json.RawMessage `json:"raw,omitempty"`
	Error *Error          `json:"error,omitempty"`
	// Used is what else of the platform the attempt took, whatever came of it.
	Used Used `json:"used,omitempty"`
}

// Used counts the uses of a platform that have a price of their own, besides the
// messages of a delivery: by the names in autopost.use_prices. What they cost is
// reckoned in SQL.
type Used map[string]int

// Add counts n more uses of one name, and returns u, made if it was nil.
func (u Used) Add(use string, n int) Used {
	if n == 0 {
		return u
	}
	if u == nil {
		u = Used{}
	}
	u[use] += n
	return u
}

// With is u and what others add to it; both stay as they are.
func (u Used) With(others Used) Used {
	sum := maps.Clone(u)
	for use, n := range others {
		sum = sum.Add(use, n)
	}
	return sum
}

// Sent is the outcome of a post that the platform acknowledged.
func Sent(providerMessageID string, sentAt time.Time, raw json.RawMessage) Outcome {
	o := Outcome{OK: true, ProviderMessageID: providerMessageID, Raw: raw}
	if !sentAt.IsZero() {
		o.SentAt = &sentAt
	}
	return o
}

// Failed is the outcome of a call that came to e.
func Failed(e Error) Outcome { return Outcome{Error: &e} }
