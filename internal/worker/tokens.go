package worker

import (
	"maps"
	"slices"
	"sync"
)

// Tokens are the claim tokens in flight, by workspace. The zero value is empty and ready. It is safe for concurrent use.
type Tokens struct {
	mu   sync.Mutex
	held map[string]map[string]bool
}

// Hold adds a token.
func (t *Tokens) Hold(workspace, token string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.held == nil {
		t.held = map[string]map[string]bool{}
	}
	if t.held[workspace] == nil {
		t.held[workspace] = map[string]bool{}
	}
	t.held[workspace][token] = true
}

// Drop removes a token. An unknown token is ignored.
func (t *Tokens) Drop(workspace, token string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.held[workspace], token)
	if len(t.held[workspace]) == 0 {
		delete(t.held, workspace)
	}
}

// Known returns the tokens of a workspace, in no order.
func (t *Tokens) Known(workspace string) []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Collect(maps.Keys(t.held[workspace]))
}
