package push

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"mime"
	"net/http"
	"strings"
	"time"

	"autopost"
	"autopost/internal/failpoint"
	"autopost/internal/problem"
)

const (
	// storeTimeout limits each call to the database. After it the source must retry.
	storeTimeout = 30 * time.Second
	// retryWait is the Retry-After if the database is unavailable, retryWaitFull if its disk is full.
	retryWait     = 5 * time.Second
	retryWaitFull = 30 * time.Second
)

// Endpoint is the endpoint of a request.
type Endpoint struct {
	WorkspaceID string `json:"workspace_id"`
	EndpointID  string `json:"endpoint_id"`
	// MaxPayloadBytes limits the body.
	MaxPayloadBytes int `json:"max_payload_bytes"`
}

// Verdict is the result of guard_ingress.
type Verdict struct {
	Admitted bool
	// Reason is "rate" or "size" if the request is refused, and "disabled" if its workspace was disabled meanwhile.
	Reason string
	// RetryAfter is the pause for the source if the reason is "rate".
	RetryAfter time.Duration
	// Quota is the rate of the endpoint; zero if the rate was not checked.
	Quota problem.Quota
}

// receive stores an array of posts in one transaction and returns {"run_id", "results": [one per post, in order]}.
type receive func(ctx context.Context, items json.RawMessage) (json.RawMessage, error)

// receiver processes requests whose endpoint is known. Both handlers share it.
type receiver struct {
	store Store
	log   *slog.Logger
}

// plain are content types that programs set without regard to the body.
var plain = []string{"", "text/plain", "application/octet-stream", "application/x-www-form-urlencoded"}

// form refuses requests that cannot be a push, before the endpoint is resolved.
func form(w http.ResponseWriter, r *http.Request) *problem.Problem {
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		return problem.WrongMethod.Says("The method must be POST, got %s.", r.Method)
	}
	if encoding := r.Header.Get("Content-Encoding"); encoding != "" && !strings.EqualFold(encoding, "identity") {
		return problem.WrongEncoding.Says("The body must not be compressed, but Content-Encoding is %q. Send plain JSON.", encoding)
	}
	given := r.Header.Get("Content-Type")
	media, parameters, err := mime.ParseMediaType(given)
	if err != nil {
		media, _, _ = strings.Cut(given, ";")
		media = strings.ToLower(strings.TrimSpace(media))
	}
	if media != "application/json" && media != "text/json" && !strings.HasSuffix(media, "+json") && !oneOf(media, plain) {
		return problem.WrongContentType.Says("The body is sent as %s. Send JSON, with Content-Type: application/json.", media)
	}
	if charset := parameters["charset"]; charset != "" && !oneOf(strings.ToLower(charset), []string{"utf-8", "utf8", "us-ascii"}) {
		return problem.WrongContentType.Says("The body is sent in %s. Send JSON in UTF-8, with Content-Type: application/json.", charset)
	}
	return nil
}

func oneOf(value string, list []string) bool {
	for _, x := range list {
		if x == value {
			return true
		}
	}
	return false
}

// enter checks the syntax and the rate of a request and stores its posts.
func (d receiver) enter(w http.ResponseWriter, r *http.Request, e Endpoint, body []byte, store receive) {
	posts, refusal := parse(body)
	if refusal != nil {
		problem.Write(w, hinted(refusal, r))
		return
	}
	if d.admit(w, r, e, len(body), len(posts.items)) {
		d.receive(w, r, e, posts, store)
	}
}

// hinted adds a hint for requests with the content type of a form, which curl -d sends by default.
func hinted(p *problem.Problem, r *http.Request) *problem.Problem {
	if given := r.Header.Get("Content-Type"); strings.HasPrefix(strings.ToLower(given), "application/x-www-form-urlencoded") {
		p.Detail += " It was sent as a form; send JSON, with Content-Type: application/json."
	}
	return p
}

// tooLarge records the drop and answers 413, also if the record failed.
func (d receiver) tooLarge(w http.ResponseWriter, r *http.Request, e Endpoint, size int64) {
	if _, err := d.judge(r, e, int(min(size, math.MaxInt32)), 1); err != nil {
		d.log.Error("push.drop_not_recorded", "error", err)
	}
	if r.ContentLength <= drained {
		// A sender that still writes when the connection closes gets a reset instead of the answer.
		_, _ = io.CopyN(io.Discard, r.Body, drained)
	}
	problem.Write(w, oversize(e.MaxPayloadBytes))
}

// drained is how much of a too large body is read so that the sender gets the answer, in bytes. A body with a larger
// Content-Length is not read.
const drained = 4 << 20

func oversize(limit int) *problem.Problem {
	return problem.TooLarge.Says("The body must have up to %d bytes. Send large media by URL, or the posts in several requests.", limit)
}

func (d receiver) judge(r *http.Request, e Endpoint, bytes, items int) (Verdict, error) {
	ctx, cancel := context.WithTimeout(r.Context(), storeTimeout)
	defer cancel()
	verdict, err := d.store.GuardIngress(ctx, e.WorkspaceID, e.EndpointID, bytes, items)
	if err != nil {
		return Verdict{}, fmt.Errorf("guard ingress ws=%s endpoint=%s: %w", e.WorkspaceID, e.EndpointID, err)
	}
	return verdict, nil
}

func (d receiver) admit(w http.ResponseWriter, r *http.Request, e Endpoint, bytes, items int) bool {
	verdict, err := d.judge(r, e, bytes, items)
	verdict.Quota.Show(w)
	switch {
	case err != nil:
		d.unavailable(w, err)
	case verdict.Admitted:
		return true
	case verdict.Reason == "size":
		problem.Write(w, oversize(e.MaxPayloadBytes))
	default:
		seconds := problem.RetryAfter(w, verdict.RetryAfter)
		problem.Write(w, problem.OverRate.Says("This endpoint is over its rate of posts. Send this again in %d s.", seconds))
	}
	return false
}

// receive stores the sound posts and answers for all posts.
func (d receiver) receive(w http.ResponseWriter, r *http.Request, e Endpoint, b batch, store receive) {
	var results []result
	if sound := b.sound(); len(sound) > 0 {
		ctx, cancel := context.WithTimeout(r.Context(), storeTimeout)
		defer cancel()
		failpoint.Hit(failpoint.BeforeReceipt)
		failpoint.Within(failpoint.InsideReceipt)
		raw, err := store(ctx, join(sound))
		failpoint.Hit(failpoint.ReceiptCommitted)
		if err == nil {
			results, err = decode(raw, len(sound))
		}
		if err != nil {
			d.unavailable(w, fmt.Errorf("receive push ws=%s endpoint=%s: %w", e.WorkspaceID, e.EndpointID, err))
			return
		}
	}
	results = b.merge(results)
	status := statusOf(results)
	d.log.Info("push.received", "workspace_id", e.WorkspaceID, "endpoint_id", e.EndpointID,
		"items", len(results), "status", status, "run_id", runOf(results))
	if b.array {
		writeArray(w, status, results)
		return
	}
	writeSingle(w, status, results[0])
}

// unavailable asks the source to retry. If the posts were stored after all, the retry is a duplicate.
func (d receiver) unavailable(w http.ResponseWriter, err error) {
	d.log.Error("push.unavailable", "error", err)
	if errors.Is(err, autopost.ErrNoSpace) {
		seconds := problem.RetryAfter(w, retryWaitFull)
		problem.Write(w, problem.NoRoom.Says("The disk of the database is full, and no post was stored. The operator must free disk space. Send this again in %d s: nothing is lost.", seconds))
		return
	}
	seconds := problem.RetryAfter(w, retryWait)
	problem.Write(w, problem.Unavailable.Says("Posts cannot be stored now. Send this again in %d s: nothing is lost.", seconds))
}
