package push

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"autopost"
)

// Inspected is one post of a body, and what is wrong with its form: "" if nothing is.
type Inspected struct {
	Raw   json.RawMessage
	Wrong string
}

// Inspect splits a body into its posts as the handlers do, without a database. The
// error of a body that they would refuse as a whole is what they would answer.
func Inspect(body []byte) ([]Inspected, error) {
	posts, refusal := parse(body)
	if refusal != nil {
		return nil, errors.New(refusal.Detail)
	}
	list := make([]Inspected, 0, len(posts.items))
	for _, it := range posts.items {
		one := Inspected{Raw: it.raw}
		if len(it.faults) > 0 {
			f := it.faults[0]
			one.Wrong = fmt.Sprintf("%s %s: %s", f.Field, f.Reason, f.Remedy)
		}
		list = append(list, one)
	}
	return list, nil
}

// SignedAt reads the instant at which a request says it was signed.
func SignedAt(header http.Header) (time.Time, error) {
	claim, refusal := readSignature(header)
	if refusal != nil {
		return time.Time{}, errors.New(refusal.Detail)
	}
	return claim.at, nil
}

// CheckSignature judges a captured request as the handler does, except for its age:
// nil if one of its signatures is that of the body by one of the keys.
func CheckSignature(header http.Header, body []byte, keys []autopost.Secret) error {
	claim, refusal := readSignature(header)
	if refusal != nil {
		return errors.New(refusal.Detail)
	}
	var good [][]byte
	for _, secret := range keys {
		key, err := readKey(secret)
		if err != nil {
			return err
		}
		good = append(good, key)
	}
	v := claim.verifier(good)
	_, _ = v.Write(body) // never fails
	if !v.good() {
		return fmt.Errorf("no signature is that of this body of %d bytes by one of the %d keys of the endpoint: check the key, and that the body is byte for byte what was signed", len(body), len(good))
	}
	return nil
}
