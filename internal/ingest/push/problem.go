package push

import (
	"net/http"

	"autopost/internal/problem"
)

// The kinds of refusals. docs/ingress.md lists them all.
var (
	wrongMethod        = problem.Kind{Status: http.StatusMethodNotAllowed, Slug: "wrong-method", Title: "Wrong method"}
	unknownSecret      = problem.Kind{Status: http.StatusUnauthorized, Slug: "unknown-secret", Title: "No endpoint has this secret"}
	signatureMissing   = problem.Kind{Status: http.StatusUnauthorized, Slug: "signature-missing", Title: "Signature header missing"}
	signatureMalformed = problem.Kind{Status: http.StatusUnauthorized, Slug: "signature-malformed", Title: "Signature header malformed"}
	signatureMismatch  = problem.Kind{Status: http.StatusUnauthorized, Slug: "signature-mismatch", Title: "No signature matches"}
	clockSkew          = problem.Kind{Status: http.StatusUnauthorized, Slug: "clock-skew", Title: "Timestamp too far from this clock"}
	wrongEncoding      = problem.Kind{Status: http.StatusUnsupportedMediaType, Slug: "wrong-encoding", Title: "Compressed body"}
	wrongContentType   = problem.Kind{Status: http.StatusUnsupportedMediaType, Slug: "wrong-content-type", Title: "Not JSON by its content type"}
	bodyCut            = problem.Kind{Status: http.StatusBadRequest, Slug: "body-cut", Title: "Body incomplete"}
	bodyNotJSON        = problem.Kind{Status: http.StatusBadRequest, Slug: "not-json", Title: "Body is not JSON"}
	bodyTooLarge       = problem.Kind{Status: http.StatusRequestEntityTooLarge, Slug: "too-large", Title: "Body too large"}
	wrongBody          = problem.Kind{Status: http.StatusUnprocessableEntity, Slug: "wrong-body", Title: "Neither a post nor an array of posts"}
	wrongPost          = problem.Kind{Status: http.StatusUnprocessableEntity, Slug: "wrong-post", Title: "Post of the wrong form"}
	overRate           = problem.Kind{Status: http.StatusTooManyRequests, Slug: "over-rate", Title: "Over the rate of the endpoint"}
	notTaken           = problem.Kind{Status: http.StatusServiceUnavailable, Slug: "unavailable", Title: "Cannot take posts now"}
	noRoom             = problem.Kind{Status: http.StatusInsufficientStorage, Slug: "no-room", Title: "No room for posts"}
)

// refusedArray is the problem of an array in which no post is valid, with one result per post.
type refusedArray struct {
	*problem.Problem

	Results []any `json:"results"`
}
