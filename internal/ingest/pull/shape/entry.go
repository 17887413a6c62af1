// Package shape makes items of what sources of any kind tell: plain words, a
// stable reference, the template filled in, filters applied, a cursor behind each.
package shape

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"net/url"
	"strings"
	"time"

	"autopost/internal/ingest/pull"
)

// maxRef is the longest source_ref that the database takes, in bytes here, which is stricter.
const maxRef = 512

// Entry is one thing that a source tells, in plain words.
type Entry struct {
	// ID is the source's own, empty when it gives none.
	ID         string
	Title      string
	Text       string
	Link       string
	Author     string
	Categories []string
	Media      []pull.Media
	// Published is nil where the source gives no time that can be.
	Published *time.Time
	// After is the value of the cursor column of a row; other kinds have none.
	After string
}

// Ref is the same for the same entry at every poll: its id, else its address and
// time, else what it says.
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

// Hash is the SHA-256 of s in hexadecimal.
func Hash(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:])
}

// Absolute resolves a reference; "" for what is no http or https address. User
// information is dropped: it would be published.
func Absolute(base *url.URL, reference string) string {
	reference = strings.TrimSpace(strings.Map(DropControl, reference))
	if reference == "" {
		return ""
	}
	u, err := base.Parse(reference)
	if err != nil || !Web(u) {
		return ""
	}
	u.User = nil
	return u.String()
}

// Web reports whether u is a whole http or https address.
func Web(u *url.URL) bool { return u.Host != "" && (u.Scheme == "http" || u.Scheme == "https") }
