// Package sim is the common ground of the simulated platforms: the receiver's
// log, scripted faults, rate limits, and the way of one request through them.
//
// The simulators contradict: they refuse what the real platforms refuse, in the
// same words. They share no line with the adapters they judge, and import the
// standard library and golang.org/x/text only.
//
// A simulator handles a request in this order:
//
//	core.Begin      the request's headers are here
//	x.Cut           faults that break the connection before the body is read
//	x.Body          the body, counted
//	x.Arrive        the request is understood as far as it goes, and logged
//	x.Answer        faults, else the platform's own answer
package sim

import (
	"crypto/sha256"
	"encoding/hex"
)

// Core is what the simulators of one world share. It is safe for concurrent use.
type Core struct {
	Log    *Log
	Faults *Faults
	Pace   *Pace
}

// NewCore returns an empty log of at most logSize entries (10,000 when not
// positive), no faults, and the platforms' own pace.
func NewCore(logSize int) *Core {
	return &Core{Log: NewLog(logSize), Faults: &Faults{}, Pace: &Pace{}}
}

// CredentialHash is how the log and the fault rules name a credential: the
// first 12 hexadecimal digits of its SHA-256. It is "" for no credential.
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
