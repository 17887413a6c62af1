// Package sim contains the shared parts of the platform simulators: the request log, scripted faults,
// rate limits, and the processing of one request.
//
// The simulators are strict: they refuse requests that the real platforms refuse, with the same words.
// They share no code with the adapters and import only the standard library and golang.org/x/text.
//
// A simulator handles a request in this order:
//
//	core.Begin      the headers have arrived
//	x.Cut           faults that break the connection before the body is read
//	x.Body          the body, counted
//	x.Arrive        the request is parsed and logged
//	x.Answer        a fault, or the platform's own answer
package sim

import (
	"crypto/sha256"
	"encoding/hex"
)

// Core is the state that simulators share. It is safe for concurrent use.
type Core struct {
	Log    *Log
	Faults *Faults
	Pace   *Pace
}

// NewCore returns a log of at most logSize entries (10,000 if not positive), without faults, with the
// platforms' own pace.
func NewCore(logSize int) *Core {
	return &Core{Log: NewLog(logSize), Faults: &Faults{}, Pace: &Pace{}}
}

// CredentialHash names a credential in the log and in fault rules: the first 12 hexadecimal digits of
// its SHA-256; "" without a credential.
func CredentialHash(token string) string {
	if token == "" {
		return ""
	}
	return Digest([]byte(token))[:12]
}

// Digest is the lower-case hexadecimal SHA-256 of content.
func Digest(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}
