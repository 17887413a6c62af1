package webhook

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	"autopost"
	"autopost/internal/adapter"
	"autopost/internal/outbound/signed"
)

// step makes one call.
func (s *sender) step(ctx context.Context, step autopost.Step, answers string) (adapter.Receipt, *autopost.Error) {
	e, failure := s.event(ctx, step, answers)
	if failure != nil {
		return adapter.Receipt{}, failure
	}
	body, err := json.Marshal(e)
	if err != nil {
		panic("webhook: encode an event: " + err.Error()) // the type has no value that JSON lacks
	}
	req, err := signed.Request(ctx, s.call.Delivery.TargetID, e.ID, body, s.key)
	if err != nil {
		return adapter.Receipt{}, misconfigured("webhook_target_invalid", "no request can be made for the target")
	}
	answer, failure := adapter.Exchange(s.client, req, s.hide)
	if failure == nil {
		failure = refused(answer, s.hide)
	}
	if failure != nil {
		if failure.Scope == autopost.ScopePlatform {
			// Each channel has a host of its own: what fails there is nobody else's.
			failure.Scope = autopost.ScopeChannel
		}
		return adapter.Receipt{}, failure
	}
	return receipt(e.ID, answer, s.hide), nil
}

// receipt names the post as the receiver does, or else by the event's own id.
func receipt(id string, answer adapter.Answer, hide adapter.Redactor) adapter.Receipt {
	var told struct {
		ID string `json:"id"`
	}
	if json.Unmarshal(answer.Body, &told) == nil && told.ID != "" {
		id = hide.Text(told.ID)
	}
	// A zero time says that the receiver did not tell.
	at, _ := http.ParseTime(answer.Header.Get("Date"))
	return adapter.Receipt{IDs: []string{id}, SentAt: at}
}

// rules are where an answer means something else than the baseline says.
var rules = []adapter.Rule{
	// Not "unauthorized": the secret may be good at every other receiver, and goes on being used there.
	{Status: http.StatusUnauthorized, Category: autopost.Permanent, Scope: autopost.ScopeChannel, Code: "webhook_denied"},
	{Status: http.StatusForbidden, Category: autopost.Permanent, Scope: autopost.ScopeChannel, Code: "webhook_denied"},
	{Status: http.StatusGone, Category: autopost.Permanent, Scope: autopost.ScopeChannel, Code: "webhook_gone"},
}

// refused classifies an answer; nil when the post was taken, which any 2xx says. A 503
// with a Retry-After is the receiver's own no. Any other 5xx may come from a proxy that
// lost the real answer.
func refused(answer adapter.Answer, hide adapter.Redactor) *autopost.Error {
	words := fmt.Sprintf("the receiver answers %d", answer.Status)
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
