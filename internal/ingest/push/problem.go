package push

import (
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"time"
)

// kind is one way in which a request is refused. Its type never changes once
// published: integrators branch on it. docs/ingress.md lists them all.
type kind struct {
	status int
	// slug is the last part of the type.
	slug, title string
}

var (
	wrongMethod        = kind{http.StatusMethodNotAllowed, "wrong-method", "Wrong method"}
	unknownSecret      = kind{http.StatusUnauthorized, "unknown-secret", "No endpoint has this secret"}
	signatureMissing   = kind{http.StatusUnauthorized, "signature-missing", "Signature header missing"}
	signatureMalformed = kind{http.StatusUnauthorized, "signature-malformed", "Signature header malformed"}
	signatureMismatch  = kind{http.StatusUnauthorized, "signature-mismatch", "No signature matches"}
	clockSkew          = kind{http.StatusUnauthorized, "clock-skew", "Timestamp too far from this clock"}
	wrongEncoding      = kind{http.StatusUnsupportedMediaType, "wrong-encoding", "Compressed body"}
	wrongContentType   = kind{http.StatusUnsupportedMediaType, "wrong-content-type", "Not JSON by its content type"}
	bodyCut            = kind{http.StatusBadRequest, "body-cut", "Body incomplete"}
	bodyNotJSON        = kind{http.StatusBadRequest, "not-json", "Body is not JSON"}
	bodyTooLarge       = kind{http.StatusRequestEntityTooLarge, "too-large", "Body too large"}
	wrongBody          = kind{http.StatusUnprocessableEntity, "wrong-body", "Neither a post nor an array of posts"}
	wrongPost          = kind{http.StatusUnprocessableEntity, "wrong-post", "Post of the wrong form"}
	overRate           = kind{http.StatusTooManyRequests, "over-rate", "Over the rate of the endpoint"}
	notTaken           = kind{http.StatusServiceUnavailable, "unavailable", "Cannot take posts now"}
	noRoom             = kind{http.StatusInsufficientStorage, "no-room", "No room for posts"}
)

// problem is an answer by RFC 9457.
type problem struct {
	Type    string  `json:"type"`
	Title   string  `json:"title"`
	Status  int     `json:"status"`
	Detail  string  `json:"detail"`
	Errors  []fault `json:"errors,omitempty"`
	Results []any   `json:"results,omitempty"`
}

func (k kind) says(format string, args ...any) *problem {
	return &problem{Type: "urn:autopost:problem:" + k.slug, Title: k.title, Status: k.status, Detail: fmt.Sprintf(format, args...)}
}

func writeProblem(w http.ResponseWriter, p *problem) {
	writeJSON(w, "application/problem+json", p.Status, p)
}

func writeJSON(w http.ResponseWriter, contentType string, status int, body any) {
	w.Header().Set("Content-Type", contentType)
	w.WriteHeader(status)
	// A source that is gone cannot be told so.
	_ = json.NewEncoder(w).Encode(body)
}

// retryAfter is in whole seconds, rounded up: never less than what was asked for.
func retryAfter(w http.ResponseWriter, wait time.Duration) int {
	seconds := max(1, int(math.Ceil(wait.Seconds())))
	w.Header().Set("Retry-After", strconv.Itoa(seconds))
	return seconds
}
