package youtube

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"time"

	"autopost"
	"autopost/internal/adapter"
)

// maxStalls is the number of successive requests without progress that end an attempt.
const maxStalls = 3

// upload sends the rest of the video to its session. It replaces a lost session once.
func (s *sender) upload(ctx context.Context, step autopost.Step) (adapter.Receipt, *autopost.Error) {
	medium, failure := s.medium(step)
	if failure != nil {
		return adapter.Receipt{}, failure
	}
	content, failure := adapter.Open(ctx, s.call.Media, medium, s.hide)
	if failure != nil {
		return adapter.Receipt{}, failure
	}
	defer func() { _ = content.Close() }()
	if s.session() == nil {
		return adapter.Receipt{}, adapter.Refusal(autopost.Permanent, autopost.ScopeDelivery, autopost.CodeValidationFailed, "the video step must follow its session step")
	}
	for replaced := false; ; replaced = true {
		made, failure := s.fill(ctx, content)
		if failure != nil {
			return adapter.Receipt{}, failure
		}
		if made == nil {
			made, failure = s.resolveLost(ctx, s.session())
		}
		if failure != nil {
			return adapter.Receipt{}, failure
		}
		if made != nil {
			s.uploaded = made
			return adapter.Receipt{IDs: []string{made.ID}, SentAt: made.Snippet.PublishedAt}, nil
		}
		if replaced {
			return adapter.Receipt{}, sessionLost("YouTube no longer has the new session either", 0)
		}
		if failure := s.replace(ctx); failure != nil {
			return adapter.Receipt{}, failure
		}
	}
}

// fill sends the missing bytes of the newest session. It returns nil if YouTube no longer has the session.
func (s *sender) fill(ctx context.Context, content *autopost.Content) (*video, *autopost.Error) {
	u := s.session()
	var at progress
	var failure *autopost.Error
	if u.recalled {
		if at, failure = s.requestProgress(ctx, u, content.Size); failure != nil {
			return nil, failure
		}
	}
	for stalls := 0; at.video == nil && !at.gone; {
		before := at.next
		if at, failure = s.put(ctx, u, content, before); failure != nil && failure.Known {
			return nil, failure
		}
		if failure != nil { // the connection broke: ask for the received bytes
			broken := failure
			if at, failure = s.requestProgress(ctx, u, content.Size); failure != nil && failure.Category == autopost.Permanent {
				return nil, failure
			}
			if failure != nil {
				return nil, definite(broken)
			}
		}
		switch {
		case at.video != nil, at.gone:
		case at.next > before:
			stalls = 0
			if err := s.call.Renew(ctx); err != nil {
				return nil, adapter.Refusal(autopost.Transient, autopost.ScopeDelivery, codeInterrupted, s.hide.Text("the upload stopped: "+err.Error()))
			}
		default:
			if stalls++; stalls == maxStalls {
				return nil, adapter.Refusal(autopost.Transient, autopost.ScopeDelivery, codeInterrupted,
					fmt.Sprintf("the session accepts no byte after %d", at.next))
			}
		}
	}
	return at.video, nil
}

// put sends one part at an offset. After an unknown outcome the caller asks the session.
func (s *sender) put(ctx context.Context, u *session, content *autopost.Content, from int64) (progress, *autopost.Error) {
	size := min(s.cfg.PartBytes, content.Size-from)
	if size < 0 {
		return progress{}, adapter.Refusal(autopost.Permanent, autopost.ScopeDelivery, autopost.CodeMediaRejected,
			fmt.Sprintf("the session has %d bytes, the video has %d", from, content.Size))
	}
	u.whole = u.whole || from+size == content.Size
	if _, err := content.Seek(from, io.SeekStart); err != nil {
		return progress{}, adapter.Refusal(autopost.Transient, autopost.ScopeDelivery, adapter.CodeOriginUnavailable, s.hide.Text("seek in the video: "+err.Error()))
	}
	req, failure := newRequest(ctx, http.MethodPut, u.uri)
	if failure != nil {
		return progress{}, failure
	}
	sent := &part{Reader: adapter.Exactly(content, size), closed: make(chan struct{})}
	req.Body, req.ContentLength = sent, size
	req.Header.Set("Content-Type", videoType(content))
	req.Header.Set("Content-Range", contentRange(from, size, content.Size))
	answer, failure := s.do(req)
	<-sent.closed
	if failure != nil {
		return progress{next: from}, failure
	}
	return s.readProgress(answer)
}

func contentRange(from, size, total int64) string {
	if size == 0 {
		return fmt.Sprintf("bytes */%d", total)
	}
	return fmt.Sprintf("bytes %d-%d/%d", from, from+size-1, total)
}

// part is the body of one request. The transport may read the content after the answer, until it closes
// the part.
type part struct {
	io.Reader
	closed chan struct{}
}

// Close implements io.Closer. The content stays open for the next part.
func (p *part) Close() error {
	select {
	case <-p.closed:
	default:
		close(p.closed)
	}
	return nil
}

// resolveLost returns the video of a session that YouTube no longer has; nil if there is none. While the
// list of uploads may lag, it returns a transient failure.
func (s *sender) resolveLost(ctx context.Context, u *session) (*video, *autopost.Error) {
	if !u.recalled && !u.whole {
		return nil, nil
	}
	found, failure := s.findUpload(ctx, u.began)
	if found != nil || failure != nil {
		return found, failure
	}
	// The list of uploads lags. The time of the loss is recorded, and a later attempt decides.
	step := u.step + "-lost"
	if ids := s.call.Delivery.RenderMeta.Progress.Steps[step]; len(ids) > 0 {
		since, err := time.Parse(time.RFC3339Nano, ids[0])
		if left := s.cfg.Settle - time.Since(since); err == nil && left > 0 {
			return nil, sessionLost("YouTube no longer has the upload session, and the list of uploads may lag", left)
		}
		return nil, nil
	}
	now := time.Now().UTC().Format(time.RFC3339Nano)
	if err := s.call.Emit(ctx, autopost.Acknowledged{Step: step, IDs: []string{now}}); err != nil {
		return nil, adapter.NotRecorded(step, err, s.hide)
	}
	return nil, sessionLost("YouTube no longer has the upload session, and the list of uploads may lag", s.cfg.Settle)
}

// sessionLost is a transient failure with a wait.
func sessionLost(message string, wait time.Duration) *autopost.Error {
	failure := adapter.Refusal(autopost.Transient, autopost.ScopeDelivery, codeSessionLost, message)
	failure.RetryAfterMS = wait.Milliseconds()
	return failure
}

// replace starts another session and records it before its use.
func (s *sender) replace(ctx context.Context) *autopost.Error {
	u, failure := s.start(ctx)
	if failure != nil {
		return failure
	}
	ids, failure := s.record(u)
	if failure != nil {
		return failure
	}
	if err := s.call.Emit(ctx, autopost.Acknowledged{Step: u.step, IDs: ids}); err != nil {
		return adapter.NotRecorded(u.step, err, s.hide)
	}
	return nil
}
