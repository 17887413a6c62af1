package autopost

import (
	"fmt"
	"log/slog"
)

const redacted = "[redacted]"

// Secret holds a credential and prints as "[redacted]" by every formatter,
// encoder and logger. Only Reveal gives it away.
type Secret struct{ value string }

// NewSecret wraps a credential.
func NewSecret(value string) Secret { return Secret{value: value} }

// Reveal returns the credential itself; call it where the request is built and nowhere else.
func (s Secret) Reveal() string { return s.value }

// IsZero reports whether there is no credential.
func (s Secret) IsZero() bool { return s.value == "" }

// String implements fmt.Stringer.
func (Secret) String() string { return redacted }

// Format implements fmt.Formatter, so that %#v and %x do not print the value either.
func (Secret) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(redacted)) }

// MarshalText implements encoding.TextMarshaler.
func (Secret) MarshalText() ([]byte, error) { return []byte(redacted), nil }

// LogValue implements slog.LogValuer.
func (Secret) LogValue() slog.Value { return slog.StringValue(redacted) }
