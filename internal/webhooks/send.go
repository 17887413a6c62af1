package webhooks

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode"

	"autopost/internal/outbound"
)

const (
	// MaxAnswer caps the bytes that are read of an answer. The content is only shown after a failure.
	MaxAnswer = 64 << 10
	// maxShown bounds the characters of a failed answer that are stored.
	maxShown = 200
)

// send makes a call and commits its outcome. If the commit fails, the call is retried after its lease.
func (s *Sender) send(ctx context.Context, workspace string, call Call, keys func() []outbound.SigningKey) {
	outcome := s.call(ctx, call, keys)
	if ctx.Err() != nil {
		return // the sender was stopped, which says nothing about the receiver
	}
	if _, err := s.outcomes.Do(ctx, workspace, Result{call.WebhookID, call.EventID, call.ClaimToken, outcome}); err != nil {
		s.cfg.Log.ErrorContext(ctx, "webhooks.not_committed", "workspace_id", workspace, "webhook_id", call.WebhookID, "event_id", call.EventID, "error", err)
	}
}

func (s *Sender) commit(ctx context.Context, workspace string, results []Result) ([]struct{}, error) {
	return make([]struct{}, len(results)), s.cfg.Store.CommitWebhookBatch(ctx, workspace, results)
}

func (s *Sender) call(ctx context.Context, call Call, open func() []outbound.SigningKey) Outcome {
	keys := open()
	if len(keys) == 0 {
		return Outcome{Error: "no signing key is available: bind signing_ref to a credential of platform webhook"}
	}
	timeout := time.Duration(call.TimeoutMS) * time.Millisecond
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	req, err := outbound.SignedRequest(ctx, call.URL, call.EventID, []byte(call.Body), keys...)
	if err != nil {
		return Outcome{Error: "no request can be made for the address"}
	}
	resp, err := s.cfg.Client.Do(req)
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return Outcome{Error: fmt.Sprintf("no answer within %s", timeout)}
	case err != nil:
		return Outcome{Error: err.Error()}
	}
	defer func() { _ = resp.Body.Close() }()
	body, _ := outbound.ReadAll(resp.Body, MaxAnswer) // only the status counts
	outcome := Outcome{HTTPStatus: resp.StatusCode, RetryAfterMS: outbound.RetryAfter(resp.Header).Milliseconds()}
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		outcome.Error = strings.TrimSpace(fmt.Sprintf("%d %s", resp.StatusCode, readable(body)))
	}
	return outcome
}

// keys opens the signing keys of a call. An unavailable key leaves the others.
func (s *Sender) keys(ctx context.Context, workspace string, call Call) []outbound.SigningKey {
	var keys []outbound.SigningKey
	for i, ref := range call.AuthRefs {
		secret, err := s.cfg.Keys.OpenBound(workspace, ref, call.Bound[i])
		if err == nil {
			var key outbound.SigningKey
			if key, err = outbound.ReadSigningKey(secret); err == nil {
				keys = append(keys, key)
			}
		}
		if err != nil {
			s.cfg.Log.ErrorContext(ctx, "webhooks.signing_key_unavailable", "workspace_id", workspace, "webhook_id", call.WebhookID, "auth_ref", ref, "error", err)
		}
	}
	return keys
}

// readable returns the start of a receiver's answer as one printable line.
func readable(body []byte) string {
	text := strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) && r != unicode.ReplacementChar {
			return r
		}
		return ' '
	}, string(body))
	runes := []rune(strings.Join(strings.Fields(text), " "))
	return string(runes[:min(len(runes), maxShown)])
}
