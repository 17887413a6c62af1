package sim

import (
	"errors"
	"fmt"
	"strings"
	"sync"
)

// Effect is the effect of a fault on a request.
type Effect string

// The effects of faults.
const (
	// EffectStatus answers with Status, Code, Description and RetryAfter in the platform's error form.
	// Nothing is stored.
	EffectStatus Effect = "status"
	// EffectSlow handles the request at once and answers after DelayMS.
	EffectSlow Effect = "slow"
	// EffectHang stores nothing and never answers. It ends when the client closes the connection.
	EffectHang Effect = "hang"
	// EffectResetBeforeBody resets the connection after the headers.
	EffectResetBeforeBody Effect = "reset_before_body"
	// EffectResetMidBody resets the connection after half of the body.
	EffectResetMidBody Effect = "reset_mid_body"
	// EffectReset reads the whole request, stores nothing and resets the connection.
	EffectReset Effect = "reset"
	// EffectAcceptThenDrop handles the request and closes the connection without an answer.
	EffectAcceptThenDrop Effect = "accept_then_drop"
	// EffectGarbage stores nothing and answers Status (502 if 0) with the HTML page of a proxy.
	EffectGarbage Effect = "garbage"
)

// Fault is a rule: it selects calls and has one effect on them. An empty selector selects every call.
// The rules apply in the order in which they were added; the first one whose window contains the call
// wins.
//
// A rule that names a chat can act only when the chat is known. For Telegram that needs the body, so
// the two early resets act like EffectReset.
type Fault struct {
	// ID is assigned by Add.
	ID       int    `json:"id"`
	Platform string `json:"platform,omitempty"`
	Chat     string `json:"chat,omitempty"`
	// Method is compared without case ("sendMessage", "POST /messages").
	Method string `json:"method,omitempty"`
	// Credential is a CredentialHash.
	Credential string `json:"credential,omitempty"`
	// From and To are the first and last selected call that the rule affects, counted from 1. From 0
	// means 1, To 0 means no end.
	From int `json:"from,omitempty"`
	To   int `json:"to,omitempty"`

	Effect Effect `json:"effect"`
	// Status is an HTTP status, 400 to 599, for EffectStatus and EffectGarbage.
	Status int `json:"status,omitempty"`
	// Code is the platform's error key, if it has one (MAX, X, YouTube).
	Code        string `json:"code,omitempty"`
	Description string `json:"description,omitempty"`
	// RetryAfter is in seconds.
	RetryAfter int `json:"retry_after,omitempty"`
	// MigrateTo becomes Telegram's parameters.migrate_to_chat_id.
	MigrateTo int64 `json:"migrate_to_chat_id,omitempty"`
	// DelayMS is for EffectSlow, in milliseconds.
	DelayMS int64 `json:"delay_ms,omitempty"`

	// Matched counts the selected calls, Applied the affected ones.
	Matched int `json:"matched"`
	Applied int `json:"applied"`
}

// Validate returns an error if the rule is invalid.
func (f Fault) Validate() error {
	switch f.Effect {
	case EffectStatus:
		if f.Status < 400 || f.Status > 599 {
			return fmt.Errorf("status must be 400 to 599, got %d", f.Status)
		}
	case EffectSlow:
		if f.DelayMS <= 0 {
			return errors.New("delay_ms must be positive for effect slow")
		}
	case EffectGarbage:
		if f.Status != 0 && (f.Status < 400 || f.Status > 599) {
			return fmt.Errorf("status %d is not an error status", f.Status)
		}
	case EffectHang, EffectResetBeforeBody, EffectResetMidBody, EffectReset, EffectAcceptThenDrop:
	default:
		return fmt.Errorf("unknown effect %q", f.Effect)
	}
	if f.From < 0 || f.To < 0 || (f.To > 0 && f.To < f.From) {
		return fmt.Errorf("from must not be greater than to, got %d and %d", f.From, f.To)
	}
	return nil
}

func (f Fault) early() bool {
	return f.Effect == EffectResetBeforeBody || f.Effect == EffectResetMidBody
}

func (f Fault) selects(e Entry) bool {
	return (f.Platform == "" || f.Platform == e.Platform) &&
		(f.Chat == "" || f.Chat == e.Chat) &&
		(f.Method == "" || strings.EqualFold(f.Method, e.Method)) &&
		(f.Credential == "" || f.Credential == e.Credential)
}

// Faults is a list of fault rules. The zero value is empty and ready. It is safe for concurrent use.
type Faults struct {
	mu    sync.Mutex
	last  int
	rules []*Fault
}

// Add appends a rule with new counters. The error is that of Validate.
func (s *Faults) Add(f Fault) error {
	if err := f.Validate(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last++
	f.ID, f.Matched, f.Applied = s.last, 0, 0
	s.rules = append(s.rules, &f)
	return nil
}

// List returns the rules with their counters, oldest first.
func (s *Faults) List() []Fault {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make([]Fault, len(s.rules))
	for i, f := range s.rules {
		out[i] = *f
	}
	return out
}

// Remove removes a rule and reports whether it existed.
func (s *Faults) Remove(id int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, f := range s.rules {
		if f.ID == id {
			s.rules = append(s.rules[:i:i], s.rules[i+1:]...)
			return true
		}
	}
	return false
}

// Clear removes all rules.
func (s *Faults) Clear() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rules = nil
}

// match counts the call for every rule that selects it and is not in asked. It returns the first rule
// that acts. With headersOnly it considers only the early effects.
func (s *Faults) match(e Entry, asked map[int]bool, headersOnly bool) (Fault, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var found *Fault
	for _, f := range s.rules {
		if asked[f.ID] || (headersOnly && !f.early()) || !f.selects(e) {
			continue
		}
		asked[f.ID] = true
		f.Matched++
		if found == nil && f.Matched >= f.From && (f.To == 0 || f.Matched <= f.To) {
			f.Applied++
			found = f
		}
	}
	if found == nil {
		return Fault{}, false
	}
	return *found, true
}
