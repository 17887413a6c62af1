package autopost

import (
	"encoding/json"
	"fmt"
	"maps"
	"time"
)

// Category states whether a retry can succeed.
type Category string

// The two categories of the error contract.
const (
	Transient Category = "TRANSIENT"
	Permanent Category = "PERMANENT"
)

// Scope is what a failure affects: one delivery, its channel, or the rate group of the channel.
type Scope string

// The three scopes of the error contract.
const (
	ScopeDelivery Scope = "delivery"
	ScopeChannel  Scope = "channel"
	ScopePlatform Scope = "platform"
)

// Codes that several platforms use.
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
	// CodeCredentialUnavailable: the credential can currently neither be read nor renewed.
	CodeCredentialUnavailable = "credential_unavailable"
)

// Error is the normalized failure of one call. It is data, not a Go error: the database decides about
// retry, pause and dead letter.
type Error struct {
	Category Category `json:"category"`
	Scope    Scope    `json:"scope"`
	// Code is a stable lower-case key, of the platform or of autopost.
	Code string `json:"code"`
	// Known is false if at least one byte of the request was sent and no readable final answer arrived:
	// the platform may have the post.
	Known bool `json:"known"`
	// RetryAfterMS is the platform's minimum wait in milliseconds; 0 if not stated.
	RetryAfterMS int64 `json:"retry_after_ms,omitempty"`
	// Moved is set if the chat has a new id. The database then updates the channels of that chat.
	Moved *Moved `json:"moved,omitempty"`
	// Message is for people. It never contains a secret or a URL with a token.
	Message string `json:"message"`
	// Raw is a part of the platform's answer, at most 2 KiB.
	Raw json.RawMessage `json:"raw,omitempty"`
}

// Moved is the new id of a chat.
type Moved struct {
	// From is the old chat id, To the new one, both without threads.
	From string `json:"from"`
	To   string `json:"to"`
}

func (e *Error) String() string {
	return fmt.Sprintf("%s/%s %s: %s", e.Category, e.Scope, e.Code, e.Message)
}

// Outcome is the result of one attempt. Exactly one of OK and Error is set.
type Outcome struct {
	OK bool `json:"ok"`
	// ProviderMessageID is the platform's id of the post; of its first message if there are several.
	// Required if OK.
	ProviderMessageID string `json:"provider_message_id,omitempty"`
	// SentAt is the platform's time of the post, if stated.
	SentAt *time.Time `json:"sent_at,omitempty"`
	// Raw holds all ids of a series, and other information, at most 8 KiB.
	Raw   json.RawMessage `json:"raw,omitempty"`
	Error *Error          `json:"error,omitempty"`
	// Used counts other priced uses of the platform by this attempt, also if it failed.
	Used Used `json:"used,omitempty"`
}

// Used counts the uses of a platform that have their own price, by the names in autopost.use_prices.
// Messages are not included. The database computes the cost.
type Used map[string]int

// Add adds n uses of one name and returns u, or a new map if u is nil.
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

// With returns the sum of both. It changes neither.
func (u Used) With(others Used) Used {
	sum := maps.Clone(u)
	for use, n := range others {
		sum = sum.Add(use, n)
	}
	return sum
}

// Sent returns the outcome of an acknowledged post.
func Sent(providerMessageID string, sentAt time.Time, raw json.RawMessage) Outcome {
	o := Outcome{OK: true, ProviderMessageID: providerMessageID, Raw: raw}
	if !sentAt.IsZero() {
		o.SentAt = &sentAt
	}
	return o
}

// Failed returns the outcome of a failed call.
func Failed(e Error) Outcome { return Outcome{Error: &e} }
