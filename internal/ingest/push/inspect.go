package push

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"autopost"
)

// Inspected is one post of a body. Wrong is the error in its syntax; "" if there is none.
type Inspected struct {
	Raw   json.RawMessage
	Wrong string
}

// Inspect splits a body into posts as the handlers do, without a database. The error is the detail with which the
// handlers would refuse the whole body.
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

// SignedAt returns the timestamp of a signed request.
func SignedAt(header http.Header) (time.Time, error) {
	claim, refusal := readSignature(header)
	if refusal != nil {
		return time.Time{}, errors.New(refusal.Detail)
	}
	return claim.at, nil
}

// CheckSignature checks the signature of a captured request as the handler does, but not its age.
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
		return fmt.Errorf("no signature matches this body of %d bytes and one of the %d keys of the endpoint: check the key, and that the body is exactly the signed one", len(body), len(good))
	}
	return nil
}
