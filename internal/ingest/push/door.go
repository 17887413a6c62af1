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
	"autopost/internal/crash"
)

const (
	// storeTimeout bounds each call to the database; after it the source is told to
	// come again.
	storeTimeout = 30 * time.Second
	// comeAgain is the Retry-After of an answer that the database could not give, comeLater
	// that of one for which people have to make room first.
	comeAgain = 5 * time.Second
	comeLater = 30 * time.Second
)

// Endpoint is what a request was found to be meant for.
type Endpoint struct {
	WorkspaceID string
	EndpointID  string
	// MaxPayloadBytes bounds the body.
	MaxPayloadBytes int
}

// Verdict is the guard's answer.
type Verdict struct {
	Admitted bool
	// Reason is "rate" or "size" when the request is not admitted, and "disabled" when
	// its workspace has been since it was found.
	Reason string
	// RetryAfter is how long the source has to wait when the reason is "rate".
	RetryAfter time.Duration
}

// Guard judges what comes in before it is worked on.
type Guard interface {
	// GuardIngress counts and judges a request.
	GuardIngress(ctx context.Context, workspace, endpoint string, bytes, items int) (Verdict, error)
}

// take hands an array of posts to the database in one transaction; it answers
// {"run_id", "results": [one a post, in order]}.
type take func(ctx context.Context, items json.RawMessage) (json.RawMessage, error)

// door is what both handlers share: all that follows once a request is known to be
// an endpoint's.
type door struct {
	guard Guard
	log   *slog.Logger
}

// plain are content types that programs give a body without having looked at it.
var plain = []string{"", "text/plain", "application/octet-stream", "application/x-www-form-urlencoded"}

// form refuses what cannot be a push whatever its body says, before anybody asks
// whose it is.
func form(w http.ResponseWriter, r *http.Request) *problem {
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		return wrongMethod.says("Posts are pushed with POST, not with %s.", r.Method)
	}
	if encoding := r.Header.Get("Content-Encoding"); encoding != "" && !strings.EqualFold(encoding, "identity") {
		return wrongEncoding.says("Compressed bodies are not taken, and Content-Encoding is %q. Send the JSON as it is.", encoding)
	}
	given := r.Header.Get("Content-Type")
	media, parameters, err := mime.ParseMediaType(given)
	if err != nil {
		media, _, _ = strings.Cut(given, ";")
		media = strings.ToLower(strings.TrimSpace(media))
	}
	if media != "application/json" && media != "text/json" && !strings.HasSuffix(media, "+json") && !oneOf(media, plain) {
		return wrongContentType.says("The body is sent as %s. Send JSON, with Content-Type: application/json.", media)
	}
	if charset := parameters["charset"]; charset != "" && !oneOf(strings.ToLower(charset), []string{"utf-8", "utf8", "us-ascii"}) {
		return wrongContentType.says("The body is sent in %s. Send JSON in UTF-8, with Content-Type: application/json.", charset)
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

// enter takes a body that is the endpoint's own: its form, its rate, its posts.
func (d door) enter(w http.ResponseWriter, r *http.Request, e Endpoint, body []byte, take take) {
	posts, refusal := parse(body)
	if refusal != nil {
		writeProblem(w, hinted(refusal, r))
		return
	}
	if d.admit(w, r, e, len(body), len(posts.items)) {
		d.receive(w, r, e, posts, take)
	}
}

// hinted tells senders of forms what they did: curl -d says that it sends one unless it is told otherwise.
func hinted(p *problem, r *http.Request) *problem {
	if given := r.Header.Get("Content-Type"); strings.HasPrefix(strings.ToLower(given), "application/x-www-form-urlencoded") {
		p.Detail += " It was sent as a form; send JSON, with Content-Type: application/json."
	}
	return p
}

// tooLarge has the guard record the drop; that it could not changes nothing for
// the source, whose body stays too large.
func (d door) tooLarge(w http.ResponseWriter, r *http.Request, e Endpoint, size int64) {
	if _, err := d.judge(r, e, int(min(size, math.MaxInt32)), 1); err != nil {
		d.log.Error("push.drop_not_recorded", "error", err)
	}
	if r.ContentLength <= heardOut {
		// A sender that still writes when the connection is closed hears of a reset, and not why.
		_, _ = io.CopyN(io.Discard, r.Body, heardOut)
	}
	writeProblem(w, oversize(e.MaxPayloadBytes))
}

// heardOut is how much of a body that is too large is read for its sender to hear the answer, in bytes; one that is announced as longer is refused unread.
const heardOut = 4 << 20

func oversize(limit int) *problem {
	return bodyTooLarge.says("This endpoint takes bodies of up to %d bytes. Send large media by URL, or posts in several requests.", limit)
}

func (d door) judge(r *http.Request, e Endpoint, bytes, items int) (Verdict, error) {
	ctx, cancel := context.WithTimeout(r.Context(), storeTimeout)
	defer cancel()
	verdict, err := d.guard.GuardIngress(ctx, e.WorkspaceID, e.EndpointID, bytes, items)
	if err != nil {
		return Verdict{}, fmt.Errorf("guard ingress ws=%s endpoint=%s: %w", e.WorkspaceID, e.EndpointID, err)
	}
	return verdict, nil
}

func (d door) admit(w http.ResponseWriter, r *http.Request, e Endpoint, bytes, items int) bool {
	verdict, err := d.judge(r, e, bytes, items)
	switch {
	case err != nil:
		d.unavailable(w, err)
	case verdict.Admitted:
		return true
	case verdict.Reason == "size":
		writeProblem(w, oversize(e.MaxPayloadBytes))
	default:
		seconds := retryAfter(w, verdict.RetryAfter)
		writeProblem(w, overRate.says("This endpoint is over its rate of posts. Send this again in %d s.", seconds))
	}
	return false
}

// receive hands the sound posts over and answers for all of them.
func (d door) receive(w http.ResponseWriter, r *http.Request, e Endpoint, b batch, take take) {
	var results []result
	if sound := b.sound(); len(sound) > 0 {
		ctx, cancel := context.WithTimeout(r.Context(), storeTimeout)
		defer cancel()
		crash.Here(crash.BeforeReceipt)
		crash.During(crash.InsideReceipt)
		raw, err := take(ctx, join(sound))
		crash.Here(crash.ReceiptCommitted)
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

// unavailable tells the source to come again: nothing was taken, or it is not
// known to have been, and a repeat is recognised.
func (d door) unavailable(w http.ResponseWriter, err error) {
	d.log.Error("push.unavailable", "error", err)
	if errors.Is(err, autopost.ErrNoRoom) {
		seconds := retryAfter(w, comeLater)
		writeProblem(w, noRoom.says("The disk of the database is full, and nothing of this was taken. Its operator has to make room. Nothing is lost by sending this again, in %d s.", seconds))
		return
	}
	seconds := retryAfter(w, comeAgain)
	writeProblem(w, notTaken.says("Posts cannot be taken at the moment. Nothing is lost by sending this again, in %d s.", seconds))
}
