package push

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"hash"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"autopost"
	"autopost/internal/problem"
)

// The headers of the Standard Webhooks specification.
const (
	headerID        = "webhook-id"
	headerTimestamp = "webhook-timestamp"
	headerSignature = "webhook-signature"
)

const (
	keyPrefix = "whsec_"
	// maxID is the longest id that the database stores, in bytes.
	maxID = 256
	// maxSignatures is the most signatures of a header: one per valid key, and some more.
	maxSignatures = 16
	// lastTimestamp is the end of the year 9999.
	lastTimestamp = 253402300799
)

// signature is the content of the headers of a signed request.
type signature struct {
	id, timestamp string
	at            time.Time
	// offered are the signatures of version v1.
	offered [][]byte
}

// readSignature reads the three headers. Its refusals do not depend on the endpoint, so they do not reveal whether it
// exists.
func readSignature(header http.Header) (signature, *problem.Problem) {
	s := signature{id: header.Get(headerID), timestamp: header.Get(headerTimestamp)}
	var missing []string
	for _, name := range []string{headerID, headerTimestamp, headerSignature} {
		if header.Get(name) == "" {
			missing = append(missing, name)
		}
	}
	if len(missing) > 0 {
		return s, problem.SignatureMissing.Says("A request to this path must be signed by the Standard Webhooks specification. This one has no %s.", strings.Join(missing, ", no "))
	}
	if len(s.id) > maxID || !storableText(s.id) {
		return s, problem.SignatureMalformed.Says("%s must be UTF-8 of up to %d bytes.", headerID, maxID)
	}
	seconds, err := strconv.ParseInt(s.timestamp, 10, 64)
	if err != nil || seconds < 0 || seconds > lastTimestamp {
		return s, problem.SignatureMalformed.Says("%s must be a whole number of seconds since 1970.", headerTimestamp)
	}
	s.at = time.Unix(seconds, 0)
	var refusal *problem.Problem
	s.offered, refusal = readOffered(header.Get(headerSignature))
	return s, refusal
}

// storableText reports whether PostgreSQL can store a text.
func storableText(text string) bool {
	return utf8.ValidString(text) && !strings.ContainsRune(text, 0)
}

func readOffered(header string) (offered [][]byte, _ *problem.Problem) {
	for part := range strings.FieldsSeq(header) {
		version, encoded, found := strings.Cut(part, ",")
		if !found || version != "v1" {
			continue // of another version
		}
		sum, err := base64.StdEncoding.DecodeString(encoded)
		if err != nil || len(sum) != sha256.Size {
			return nil, problem.SignatureMalformed.Says("%s has a v1 signature that is not the base64 of %d bytes.", headerSignature, sha256.Size)
		}
		if offered = append(offered, sum); len(offered) > maxSignatures {
			return nil, problem.SignatureMalformed.Says("%s has more than %d signatures.", headerSignature, maxSignatures)
		}
	}
	if len(offered) == 0 {
		return nil, problem.SignatureMalformed.Says(`%s has no signature of version 1. Send "v1," and the base64 of the HMAC-SHA256.`, headerSignature)
	}
	return offered, nil
}

// readKey decodes a signing secret.
func readKey(secret autopost.Secret) ([]byte, error) {
	encoded, found := strings.CutPrefix(strings.TrimSpace(secret.Reveal()), keyPrefix)
	key, err := base64.StdEncoding.DecodeString(encoded)
	if !found || err != nil || len(key) == 0 {
		return nil, errors.New("a signing key must be " + keyPrefix + " and base64")
	}
	return key, nil
}

// verifier hashes a body with each valid key while it is read.
type verifier struct {
	signature

	macs []hash.Hash
}

func (s signature) verifier(keys [][]byte) *verifier {
	v := &verifier{signature: s}
	for _, key := range keys {
		mac := hmac.New(sha256.New, key)
		_, _ = io.WriteString(mac, s.id+"."+s.timestamp+".") // a hash takes everything
		v.macs = append(v.macs, mac)
	}
	return v
}

// Write adds to the body; it never fails.
func (v *verifier) Write(p []byte) (int, error) {
	for _, mac := range v.macs {
		_, _ = mac.Write(p)
	}
	return len(p), nil
}

// good reports whether one of the signatures matches the body and one of the keys. It takes constant time.
func (v *verifier) good() bool {
	found := false
	for _, mac := range v.macs {
		sum := mac.Sum(nil)
		for _, offered := range v.offered {
			if hmac.Equal(sum, offered) {
				found = true
			}
		}
	}
	return found
}
