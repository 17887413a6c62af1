package door

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"
)

const (
	// maxBody bounds the body of a request, in bytes; media have bounds of their own.
	maxBody = 1 << 20
	// requestTimeout bounds a request from its first byte to its answer; media have as long as bytes come.
	requestTimeout = 30 * time.Second
)

const (
	// MediaPath takes bodies that are no JSON and of any length.
	MediaPath = "/api/v1/media"
	// ProxyPath hands a medium to a platform before it answers.
	ProxyPath = MediaPath + "/proxy"
	// proxyTimeout bounds that, in place of requestTimeout: the largest media of a slow platform.
	proxyTimeout = time.Hour
)

type requestKey struct{}

// request is what an Idempotency-Key stands for.
type request struct{ digest string }

// RequestHash is what was asked: method, path, parameters, reason and body, as a
// SHA-256 in lower-case hexadecimal.
func RequestHash(ctx context.Context) string {
	r, _ := ctx.Value(requestKey{}).(request)
	return r.digest
}

// HashWith is RequestHash for a body that was not read before: by the digest of its content.
func HashWith(ctx context.Context, content string) string {
	sum := sha256.Sum256([]byte(RequestHash(ctx) + content))
	return hex.EncodeToString(sum[:])
}

// Body is a body as it comes, and its announced length, -1 where there is none. Its sender may rest for as long as stall
// between two pieces, whatever the server's own limits are.
func Body(ctx huma.Context, stall time.Duration) (io.Reader, int64) {
	r, w := humago.Unwrap(ctx)
	return &patient{from: r.Body, connection: http.NewResponseController(w), stall: stall}, r.ContentLength
}

// patient puts off the deadlines of a connection as long as bytes come.
type patient struct {
	from       io.Reader
	connection *http.ResponseController
	stall      time.Duration
}

// Read implements io.Reader.
func (p *patient) Read(into []byte) (int, error) {
	now := time.Now()
	// A connection without deadlines, as a test's, has none to put off.
	_ = p.connection.SetReadDeadline(now.Add(p.stall))
	_ = p.connection.SetWriteDeadline(now.Add(2 * p.stall))
	return p.from.Read(into)
}

// Bound reads the body of a request, which is bounded in size and time and must be JSON.
func (d *Door) Bound(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !sound(r.URL.Path, "") {
			WriteProblem(w, NewProblem(http.StatusNotFound, "There is nothing here: nothing is named by invalid UTF-8 or a NUL character."))
			return
		}
		if !sound("", r.URL.RawQuery) {
			WriteProblem(w, wrong("query", "holds what is no UTF-8, or a NUL character", "escape each value as UTF-8"))
			return
		}
		if !takesJSON(r.Header.Values("Accept")) {
			WriteProblem(w, NewProblem(http.StatusNotAcceptable, "Answers are JSON. Send Accept: application/json, or no Accept."))
			return
		}
		if r.URL.Path == MediaPath {
			next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), requestKey{}, request{digest: digest(r, nil)})))
			return
		}
		body, problem := readBody(w, r)
		if problem != nil {
			WriteProblem(w, problem)
			return
		}
		timeout := requestTimeout
		if r.URL.Path == ProxyPath {
			timeout = proxyTimeout
			// A connection without a deadline, as a test's, has none to put off.
			_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(timeout + storeTimeout))
		}
		ctx, cancel := context.WithTimeout(r.Context(), timeout)
		defer cancel()
		r = r.WithContext(context.WithValue(ctx, requestKey{}, request{digest: digest(r, body)}))
		r.Body = io.NopCloser(bytes.NewReader(body))
		next.ServeHTTP(w, r)
	})
}

// sound tells whether the database could know what a path and its parameters name.
func sound(path, query string) bool {
	values, err := url.QueryUnescape(query)
	return err == nil && utf8.ValidString(path+values) && !strings.ContainsRune(path+values, 0)
}

func readBody(w http.ResponseWriter, r *http.Request) ([]byte, *Problem) {
	tooLarge := NewProblem(http.StatusRequestEntityTooLarge, fmt.Sprintf("A body has up to %d bytes. Upload media to %s, or give them by URL.", maxBody, MediaPath))
	if r.ContentLength > maxBody {
		return nil, tooLarge
	}
	if encoding := r.Header.Get("Content-Encoding"); encoding != "" && !strings.EqualFold(encoding, "identity") {
		return nil, NewProblem(http.StatusUnsupportedMediaType, "Compressed bodies are not taken. Send the JSON as it is.")
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	switch {
	case errors.As(err, new(*http.MaxBytesError)):
		return nil, tooLarge
	case err != nil:
		return nil, NewProblem(http.StatusBadRequest, "The body ended before it was complete.")
	case len(body) > 0 && !isJSON(r.Header.Get("Content-Type")):
		return nil, NewProblem(http.StatusUnsupportedMediaType, "Bodies are JSON. Send Content-Type: application/json.")
	case !utf8.Valid(body):
		return nil, NewProblem(http.StatusBadRequest, "The body is not UTF-8.")
	case len(body) > 0 && !json.Valid(body):
		return nil, NewProblem(http.StatusBadRequest, "The body is no JSON.")
	}
	return body, unstorable(body)
}

// takesJSON tells whether a caller that accepts these takes a JSON answer.
func takesJSON(accepted []string) bool {
	if len(accepted) == 0 {
		return true
	}
	for one := range strings.SplitSeq(strings.Join(accepted, ","), ",") {
		kind, parameters, err := mime.ParseMediaType(one)
		if err == nil && parameters["q"] != "0" && slices.Contains([]string{"*/*", "application/*", "application/json", "application/problem+json"}, kind) {
			return true
		}
	}
	return false
}

func isJSON(contentType string) bool {
	if contentType == "" {
		return true
	}
	kind, _, err := mime.ParseMediaType(contentType)
	return err == nil && kind == "application/json"
}

func digest(r *http.Request, body []byte) string {
	sum := sha256.New()
	// Each part with its length, so that no two requests read the same.
	for _, part := range []string{r.Method, r.URL.EscapedPath(), r.URL.Query().Encode(), r.Header.Get(reasonHeader), string(body)} {
		fmt.Fprintf(sum, "%d:%s", len(part), part)
	}
	return hex.EncodeToString(sum.Sum(nil))
}
