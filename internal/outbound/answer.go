package outbound

import (
	"context"
	"encoding/json"
	"sync"
)

// LastAnswer holds the last answer of a platform within a call, for the raw payload of a failed attempt.
type LastAnswer struct {
	mu   sync.Mutex
	show func() json.RawMessage
}

type lastAnswer struct{}

// WithLastAnswer makes the requests under ctx keep their last answer.
func WithLastAnswer(ctx context.Context) (context.Context, *LastAnswer) {
	kept := new(LastAnswer)
	return context.WithValue(ctx, lastAnswer{}, kept), kept
}

// KeepAnswer replaces the kept answer. show returns it as JSON without secrets; nil means that the last request has no
// answer. Without WithLastAnswer it does nothing.
func KeepAnswer(ctx context.Context, show func() json.RawMessage) {
	if kept, ok := ctx.Value(lastAnswer{}).(*LastAnswer); ok {
		kept.mu.Lock()
		defer kept.mu.Unlock()
		kept.show = show
	}
}

// Show returns a function that returns the kept answer as JSON without secrets; nil if there is none. A nil LastAnswer
// has none.
func (a *LastAnswer) Show() func() json.RawMessage {
	if a == nil {
		return nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.show
}
