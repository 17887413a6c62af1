// Package item makes the items of a poll from the entries of a source: it cleans text, computes a stable reference,
// applies template and filters, and adds a cursor to each item.
package item

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"net/url"
	"strings"
	"time"

	"autopost/internal/ingest/pull"
)

// maxRef is the longest source_ref in bytes. The database limits it in characters, so this is stricter.
const maxRef = 512

// Entry is one entry of a source in plain text.
type Entry struct {
	// ID is the id in the source; "" if it has none.
	ID         string
	Title      string
	Text       string
	Link       string
	Author     string
	Categories []string
	Media      []pull.Media
	// Published is nil if the source has no plausible time.
	Published *time.Time
	// After is the value of the cursor column; only rows of a database have it.
	After string
}

// Ref returns the same text for the same entry at every poll: its id, else its address and time, else a hash of its
// text.
func (e Entry) Ref() string {
	when := ""
	if e.Published != nil {
		when = e.Published.UTC().Format(time.RFC3339)
	}
	ref := cmp.Or(Clean(e.ID), strings.TrimSpace(e.Link+" "+when))
	if e.ID == "" && e.Link == "" {
		ref = "sha256:" + Hash(cmp.Or(e.Title, e.Text)+"\n"+when)
	}
	if len(ref) > maxRef {
		return "sha256:" + Hash(ref)
	}
	return ref
}

// Hash returns the SHA-256 of s in hexadecimal.
func Hash(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:])
}

// Absolute resolves a reference. It returns "" if the result is not an http or https address of at most MaxAddress
// bytes. It removes user information, which would be published.
func Absolute(base *url.URL, reference string) string {
	if len(reference) > MaxAddress {
		return ""
	}
	reference = strings.TrimSpace(strings.Map(DropControl, reference))
	if reference == "" {
		return ""
	}
	u, err := base.Parse(reference)
	if err != nil || !Web(u) {
		return ""
	}
	u.User = nil
	if address := u.String(); len(address) <= MaxAddress {
		return address
	}
	return ""
}

// Web reports whether u is an absolute http or https address.
func Web(u *url.URL) bool { return u.Host != "" && (u.Scheme == "http" || u.Scheme == "https") }
