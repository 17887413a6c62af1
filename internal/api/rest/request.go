package rest

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

	"autopost/internal/problem"
)

const (
	// maxBody limits the body of a request, in bytes. Media have other limits.
	maxBody = 1 << 20
	// requestTimeout limits a request, except uploads of media: they may continue while bytes arrive.
	requestTimeout = 30 * time.Second
)

const (
	// MediaPath accepts bodies of any type and length.
	MediaPath = "/api/v1/media"
	// ProxyPath uploads a medium to a platform before it answers.
	ProxyPath = MediaPath + "/proxy"
	// proxyTimeout replaces requestTimeout there. It suffices for the largest media and a slow platform.
	proxyTimeout = time.Hour
)

type requestKey struct{}

// request is the request that an Idempotency-Key identifies.
type request struct{ digest string }

// RequestHash returns the SHA-256 of method, path, parameters, reason and body, in lower-case hexadecimal.
func RequestHash(ctx context.Context) string {
	r, _ := ctx.Value(requestKey{}).(request)
	return r.digest
}

// HashWith is RequestHash for a streamed body with the digest content.
func HashWith(ctx context.Context, content string) string {
	sum := sha256.Sum256([]byte(RequestHash(ctx) + content))
	return hex.EncodeToString(sum[:])
}

// Body returns the body as a stream, and its Content-Length, -1 if unknown. The sender may pause for stall between two
// parts, whatever the limits of the server are.
func Body(ctx huma.Context, stall time.Duration) (io.Reader, int64) {
	r, w := humago.Unwrap(ctx)
	return Slow(w, r.Body, stall), r.ContentLength
}

// Slow returns a body whose sender may pause for stall between two parts, whatever the limits of the server are.
func Slow(w http.ResponseWriter, body io.Reader, stall time.Duration) io.Reader {
	return &slowBody{from: body, connection: http.NewResponseController(w), stall: stall}
}

// slowBody extends the deadlines of a connection while bytes arrive.
type slowBody struct {
	from       io.Reader
	connection *http.ResponseController
	stall      time.Duration
}

// Read implements io.Reader.
func (p *slowBody) Read(into []byte) (int, error) {
	now := time.Now()
	// The connection of a test has no deadlines.
	_ = p.connection.SetReadDeadline(now.Add(p.stall))
	_ = p.connection.SetWriteDeadline(now.Add(2 * p.stall))
	return p.from.Read(into)
}

// Bound limits requests in size and time, and requires JSON bodies.
func (d *Server) Bound(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !sound(r.URL.Path, "") {
			problem.Write(w, problem.UnknownPath.Says("This path does not exist: a path must be UTF-8 without NUL characters."))
			return
		}
		if !sound("", r.URL.RawQuery) {
			problem.Write(w, wrong("query", "must be UTF-8 without NUL characters", "escape each value as UTF-8"))
			return
		}
		if !takes(r.URL.Path, r.Header.Values("Accept")) {
			problem.Write(w, problem.NotAcceptable.Says("The answer is JSON. Send Accept: application/json, or no Accept."))
			return
		}
		if r.URL.Path == MediaPath {
			next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), requestKey{}, request{digest: digest(r, nil)})))
			return
		}
		body, refused := readBody(w, r)
		if refused != nil {
			problem.Write(w, refused)
			return
		}
		timeout := requestTimeout
		switch r.URL.Path {
		case StreamPath:
			timeout = StreamTime + storeTimeout
		case ProxyPath:
			timeout = proxyTimeout
			// The connection of a test has no deadline.
			_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(timeout + storeTimeout))
		}
		ctx, cancel := context.WithTimeout(r.Context(), timeout)
		defer cancel()
		r = r.WithContext(context.WithValue(ctx, requestKey{}, request{digest: digest(r, body)}))
		r.Body = io.NopCloser(bytes.NewReader(body))
		next.ServeHTTP(w, r)
	})
}

// sound reports whether the database can store the values of a path and its parameters.
func sound(path, query string) bool {
	values, err := url.QueryUnescape(query)
	return err == nil && utf8.ValidString(path+values) && !strings.ContainsRune(path+values, 0)
}

func readBody(w http.ResponseWriter, r *http.Request) ([]byte, *problem.Problem) {
	tooLarge := problem.TooLarge.Says("The body must have at most %d bytes. Upload media to %s, or send their URLs.", maxBody, MediaPath)
	if r.ContentLength > maxBody {
		return nil, tooLarge
	}
	if encoding := r.Header.Get("Content-Encoding"); encoding != "" && !strings.EqualFold(encoding, "identity") {
		return nil, problem.WrongEncoding.Says("The body must not be compressed. Send plain JSON.")
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	switch {
	case errors.As(err, new(*http.MaxBytesError)):
		return nil, tooLarge
	case err != nil:
		return nil, problem.BodyCut.Says("The body ended before it was complete. Send it again.")
	case len(body) > 0 && !isJSON(r.Header.Get("Content-Type")):
		return nil, problem.WrongContentType.Says("The body must be JSON. Send Content-Type: application/json.")
	case !utf8.Valid(body):
		return nil, problem.NotJSON.Says("The body must be UTF-8.")
	case len(body) > 0 && !json.Valid(body):
		return nil, problem.NotJSON.Says("The body must be JSON.")
	}
	return body, unstorable(body)
}

// takes reports whether one of the accepted types is that of the path: JSON, or server-sent events.
func takes(path string, accepted []string) bool {
	if len(accepted) == 0 {
		return true
	}
	known := []string{"*/*", "application/*", "application/json", "application/problem+json"}
	if path == StreamPath {
		known = []string{"*/*", "text/*", eventStream}
	}
	for one := range strings.SplitSeq(strings.Join(accepted, ","), ",") {
		kind, parameters, err := mime.ParseMediaType(one)
		if err == nil && parameters["q"] != "0" && slices.Contains(known, kind) {
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
	// The length of each part prevents that two requests get the same text.
	for _, part := range []string{r.Method, r.URL.EscapedPath(), r.URL.Query().Encode(), r.Header.Get(ReasonHeader), string(body)} {
		fmt.Fprintf(sum, "%d:%s", len(part), part)
	}
	return hex.EncodeToString(sum.Sum(nil))
}
