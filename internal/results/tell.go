package results

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"unicode"

	"autopost/internal/outbound"
	"autopost/internal/outbound/signed"
)

const (
	// MaxAnswer caps what is read of an answer, in bytes; nothing of it matters.
	MaxAnswer = 64 << 10
	// shownOfAnswer is how much of a refusal a person sees, in characters.
	shownOfAnswer = 200
)

// tell makes a call and commits what it came to. Where nobody hears of that, the call
// is made again when its lease is over.
func (t *Teller) tell(ctx context.Context, workspace string, call Call, keys func() []signed.Key) {
	outcome := t.call(ctx, call, keys)
	if ctx.Err() != nil {
		return // cut off by our own end, which says nothing about the receiver
	}
	if _, err := t.outcomes.Do(ctx, workspace, Told{call, outcome}); err != nil {
		t.cfg.Log.ErrorContext(ctx, "results.not_committed", "workspace_id", workspace, "webhook_id", call.WebhookID, "event_id", call.EventID, "error", err)
	}
}

// commit records what calls of a workspace came to.
func (t *Teller) commit(ctx context.Context, workspace string, told []Told) ([]struct{}, error) {
	return make([]struct{}, len(told)), t.cfg.Queue.CommitWebhooks(ctx, workspace, told)
}

func (t *Teller) call(ctx context.Context, call Call, open func() []signed.Key) Outcome {
	keys := open()
	if len(keys) == 0 {
		return Outcome{Error: "no signing key is at hand: bind signing_ref to a credential of platform webhook"}
	}
	ctx, cancel := context.WithTimeout(ctx, call.Timeout)
	defer cancel()
	req, err := signed.Request(ctx, call.URL, call.EventID, []byte(call.Body), keys...)
	if err != nil {
		return Outcome{Error: "no request can be made for the address"}
	}
	resp, err := t.cfg.Client.Do(req)
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return Outcome{Error: fmt.Sprintf("no answer within %s", call.Timeout)}
	case err != nil:
		return Outcome{Error: err.Error()}
	}
	defer func() { _ = resp.Body.Close() }()
	body, _ := outbound.ReadAll(resp.Body, MaxAnswer) // the status alone counts
	outcome := Outcome{HTTPStatus: resp.StatusCode, RetryAfter: outbound.RetryAfter(resp.Header)}
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		outcome.Error = strings.TrimSpace(fmt.Sprintf("%d %s", resp.StatusCode, readable(body)))
	}
	return outcome
}

// keys opens those that sign; one that is not at hand leaves the others.
func (t *Teller) keys(ctx context.Context, workspace string, call Call) []signed.Key {
	ctx, cancel := context.WithTimeout(ctx, queryTimeout)
	defer cancel()
	var keys []signed.Key
	for _, ref := range call.AuthRefs {
		secret, err := t.cfg.Keys.Open(ctx, workspace, ref)
		if err == nil {
			var key signed.Key
			if key, err = signed.ReadKey(secret); err == nil {
				keys = append(keys, key)
			}
		}
		if err != nil {
			t.cfg.Log.ErrorContext(ctx, "results.key_not_at_hand", "workspace_id", workspace, "webhook_id", call.WebhookID, "auth_ref", ref, "error", err)
		}
	}
	return keys
}

// readable is the beginning of what a stranger answered, in one line.
func readable(body []byte) string {
	text := strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) && r != unicode.ReplacementChar {
			return r
		}
		return ' '
	}, string(body))
	runes := []rune(strings.Join(strings.Fields(text), " "))
	return string(runes[:min(len(runes), shownOfAnswer)])
}
