package webhook

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	"autopost"
	"autopost/internal/adapter"
	"autopost/internal/outbound"
)

// step makes one call.
func (s *sender) step(ctx context.Context, step autopost.Step, replyTo string) (adapter.Receipt, *autopost.Error) {
	e, failure := s.event(ctx, step, replyTo)
	if failure != nil {
		return adapter.Receipt{}, failure
	}
	body, err := json.Marshal(e)
	if err != nil {
		panic("webhook: encode an event: " + err.Error()) // the type has no value that JSON cannot represent
	}
	req, err := outbound.SignedRequest(ctx, s.call.Delivery.TargetID, e.ID, body, s.key)
	if err != nil {
		return adapter.Receipt{}, misconfigured("webhook_target_invalid", "the target is not a valid URL")
	}
	answer, failure := adapter.Exchange(s.client, req, s.hide)
	if failure == nil {
		failure = refused(answer, s.hide)
	}
	if failure != nil {
		if failure.Scope == autopost.ScopePlatform {
			// Each channel has its own host, so a failure of the host affects only that channel.
			failure.Scope = autopost.ScopeChannel
		}
		return adapter.Receipt{}, failure
	}
	return receipt(e.ID, answer, s.hide), nil
}

// receipt returns the receiver's id of the post, or else the event's id.
func receipt(id string, answer adapter.Answer, hide adapter.Redactor) adapter.Receipt {
	var reply struct {
		ID string `json:"id"`
	}
	if json.Unmarshal(answer.Body, &reply) == nil && reply.ID != "" {
		id = hide.Text(reply.ID)
	}
	// The time is zero if the receiver did not state it.
	at, _ := http.ParseTime(answer.Header.Get("Date"))
	return adapter.Receipt{IDs: []string{id}, SentAt: at}
}

// rules are the exceptions from adapter.Baseline.
var rules = []adapter.Rule{
	// Not "unauthorized": the secret may be valid for other receivers and stays in use there.
	{Status: http.StatusUnauthorized, Category: autopost.Permanent, Scope: autopost.ScopeChannel, Code: "webhook_denied"},
	{Status: http.StatusForbidden, Category: autopost.Permanent, Scope: autopost.ScopeChannel, Code: "webhook_denied"},
	{Status: http.StatusGone, Category: autopost.Permanent, Scope: autopost.ScopeChannel, Code: "webhook_gone"},
}

// refused classifies an answer; nil for a 2xx, which accepts the post. A 503 with Retry-After is the
// receiver's own refusal. Any other 5xx may come from a proxy that lost the real answer.
func refused(answer adapter.Answer, hide adapter.Redactor) *autopost.Error {
	words := fmt.Sprintf("the receiver answered %d", answer.Status)
	own := answer.Status == http.StatusServiceUnavailable && answer.Header.Get("Retry-After") != ""
	switch {
	case answer.Status < 300:
		return nil
	case answer.Status < 500 || own:
		return adapter.Classify(rules, "webhook", answer.Status, "").Error(answer, words, hide)
	}
	failure := adapter.Unknown(words)
	failure.Raw = hide.Raw(answer.Body)
	return failure
}
