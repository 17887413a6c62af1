package web

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"
	"golang.org/x/time/rate"

	"autopost/internal/api/rest"
	"autopost/internal/api/stream"
	"autopost/internal/problem"
	"autopost/internal/worker"
)

const (
	// livePath is the address of the event stream of a page.
	livePath = "/live"
	// liveTime is the longest time of a stream. Then the browser connects again.
	liveTime = 15 * time.Minute
	// liveHeartbeat is the pause after which a stream without changes says that it lives.
	liveHeartbeat = 5 * time.Second
	// liveWrite bounds the write of one event.
	liveWrite = 10 * time.Second
	// livePages bounds the open pages of a daemon, livePagesEach those of one session.
	livePages, livePagesEach = 1000, 300
	// readsPerSecond limits the reads of all open pages together; readsAtOnce may follow a calm at once.
	readsPerSecond, readsAtOnce = 1, 12
)

// Changes opens streams of changes. *stream.Hub implements it.
type Changes interface {
	Open(reader stream.Reader, after string) (*stream.Stream, error)
}

// live keeps open pages up to date.
//
//	stream of the session ──► feed ──► each page is rendered again ──► sent if it differs
//
// Pages of a session share one stream. Pages of one role that read the same operation share the answer until the next
// change of the workspace.
type live struct {
	changes Changes
	limit   *rate.Limiter

	mu    sync.Mutex
	feeds map[feedKey]*feed
	pages int
	// answers are those of the last change of each workspace.
	answers map[string]*answers
	reads   singleflight.Group
}

type feedKey struct{ workspace, session string }

// feed is the stream of one session in one workspace.
type feed struct {
	stream *stream.Stream
	stop   context.CancelFunc
	pages  int
	// version is the id of the last change; changed is closed when there is a later one.
	version string
	changed chan struct{}
}

// answers are answers of operations after one change of a workspace.
type answers struct {
	version string
	of      map[string]json.RawMessage
}

func newLive(changes Changes) *live {
	return &live{changes: changes, limit: rate.NewLimiter(readsPerSecond, readsAtOnce), feeds: map[feedKey]*feed{}, answers: map[string]*answers{}}
}

// join adds a page to the feed of its session. leave removes it.
func (l *live) join(ctx context.Context, key feedKey) (f *feed, leave func(), err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	f = l.feeds[key]
	if l.pages >= livePages || f != nil && f.pages >= livePagesEach {
		return nil, nil, &stream.TooManyError{Of: "daemon", Most: livePages}
	}
	if f == nil {
		opened, err := l.changes.Open(stream.Reader{WorkspaceID: key.workspace, Holder: key.session, SessionID: key.session}, "")
		if err != nil {
			return nil, nil, err
		}
		following, stop := context.WithCancel(context.WithoutCancel(ctx))
		f = &feed{stream: opened, stop: stop, changed: make(chan struct{})}
		l.feeds[key] = f
		go worker.Task(following, func() { l.follow(following, f) })()
	}
	f.pages++
	l.pages++
	return f, func() { l.leave(key, f) }, nil
}

func (l *live) leave(key feedKey, f *feed) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.pages--
	if f.pages--; f.pages > 0 {
		return
	}
	if l.feeds[key] == f {
		delete(l.feeds, key)
	}
	f.stop()
	f.stream.Close()
}

// follow passes the changes of a stream to the pages of its feed.
func (l *live) follow(ctx context.Context, f *feed) {
	for ctx.Err() == nil {
		items := f.stream.Next(ctx, liveTime)
		if len(items) > 0 {
			l.mu.Lock()
			f.version = items[len(items)-1].ID
			close(f.changed)
			f.changed = make(chan struct{})
			l.mu.Unlock()
		}
		select {
		case <-f.stream.Done():
			return
		default:
		}
	}
}

// at returns the last change of a feed, and what is closed by the next one.
func (l *live) at(f *feed) (version string, changed <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return f.version, f.changed
}

// read returns the answer of an operation after a change. Pages of one role share it. read runs at most as often as
// the limit allows.
func (l *live) read(ctx context.Context, version string, caller rest.Key, target string, read func() (json.RawMessage, error)) (json.RawMessage, error) {
	key := caller.Role + " " + target
	if strings.HasPrefix(target, "/drafts") || strings.HasPrefix(target, "/me") {
		key = caller.UserID + " " + target
	}
	if answer := l.known(caller.WorkspaceID, version, key); answer != nil {
		return answer, nil
	}
	got, err, _ := l.reads.Do(caller.WorkspaceID+" "+version+" "+key, func() (any, error) {
		waiting, cancel := context.WithTimeout(context.WithoutCancel(ctx), timeout) // others wait for it, too
		defer cancel()
		if err := l.limit.Wait(waiting); err != nil {
			return nil, fmt.Errorf("wait for a read: %w", err)
		}
		answer, err := read()
		if err == nil {
			l.keep(caller.WorkspaceID, version, key, answer)
		}
		return answer, err
	})
	if err != nil {
		return nil, err
	}
	return got.(json.RawMessage), nil
}

func (l *live) known(workspace, version, key string) json.RawMessage {
	l.mu.Lock()
	defer l.mu.Unlock()
	if a := l.answers[workspace]; a != nil && a.version == version {
		return a.of[key]
	}
	return nil
}

// keep stores an answer, and forgets those before the last change.
func (l *live) keep(workspace, version, key string, answer json.RawMessage) {
	l.mu.Lock()
	defer l.mu.Unlock()
	a := l.answers[workspace]
	if a == nil || a.version != version {
		a = &answers{version: version, of: map[string]json.RawMessage{}}
		l.answers[workspace] = a
	}
	a.of[key] = answer
}

// refresh is what a page that is rendered again gets beside its request.
type refresh struct {
	session   *Session
	token     string
	workspace Membership
	version   string
}

type refreshKey struct{}

// follow answers GET /live?at=PAGE with the page each time it has changed, as server-sent events: page (JSON text of
// the HTML), alive, and gone when the page cannot be shown any more.
func (s *server) follow(v *view) {
	at := local(v.r.URL.Query().Get("at"))
	if strings.HasPrefix(at, livePath) || s.live == nil {
		v.fail(errNotFound)
		return
	}
	f, leave, err := s.live.join(v.r.Context(), feedKey{v.workspace.WorkspaceID, v.session.SessionID})
	if err != nil {
		v.fail(problem.TooManyRunning.Says("%s", v.t("live.too_many")))
		return
	}
	defer leave()
	ctx, cancel := context.WithTimeout(v.r.Context(), liveTime)
	defer cancel()
	to := newEventWriter(v.w)
	sent := sha256.Sum256(nil)
	seen := ""
	for {
		version, changed := s.live.at(f)
		if version != seen {
			html, status := s.again(ctx, v, at, version)
			switch sum := sha256.Sum256(html); {
			case ctx.Err() != nil:
				return
			case status == http.StatusServiceUnavailable || status == http.StatusTooManyRequests: // tried again below
			case status >= http.StatusMultipleChoices:
				_ = to.send("gone", []byte("{}")) // the page is left as it is
				return
			case sum != sent:
				data, _ := json.Marshal(string(html)) // a text can be encoded
				if to.send("page", data) != nil {
					return
				}
				sent, seen = sum, version
			default:
				seen = version
			}
		}
		pause := liveHeartbeat
		if version != seen {
			pause = time.Second // the page could not be rendered
		}
		timer := time.NewTimer(pause)
		select {
		case <-changed:
		case <-timer.C:
			if to.send("alive", []byte("{}")) != nil {
				return
			}
		case <-f.stream.Done():
			return
		case <-ctx.Done():
			return
		}
		timer.Stop()
	}
}

// again renders a page as after a change.
func (s *server) again(ctx context.Context, v *view, at, version string) (html []byte, status int) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	ctx = context.WithValue(ctx, refreshKey{}, &refresh{session: v.session, token: v.token, workspace: v.workspace, version: version})
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, at, http.NoBody)
	if err != nil {
		return nil, http.StatusBadRequest
	}
	r.Host, r.RemoteAddr, r.TLS = v.r.Host, v.r.RemoteAddr, v.r.TLS
	for _, name := range []string{"Cookie", "Accept-Language"} {
		r.Header[name] = v.r.Header[name]
	}
	answer := pageWriter{header: http.Header{}, status: http.StatusOK}
	s.mux.ServeHTTP(&answer, r)
	return answer.body.Bytes(), answer.status
}

// pageWriter keeps a page in memory.
type pageWriter struct {
	header http.Header
	status int
	body   bytes.Buffer
}

// Header implements http.ResponseWriter.
func (w *pageWriter) Header() http.Header { return w.header }

// WriteHeader implements http.ResponseWriter.
func (w *pageWriter) WriteHeader(status int) { w.status = status }

// Write implements http.ResponseWriter.
func (w *pageWriter) Write(p []byte) (int, error) { return w.body.Write(p) }

// eventWriter writes server-sent events.
type eventWriter struct {
	to         http.ResponseWriter
	connection *http.ResponseController
}

func newEventWriter(w http.ResponseWriter) eventWriter {
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("X-Accel-Buffering", "no") // nginx would keep the events back
	e := eventWriter{w, http.NewResponseController(w)}
	_ = e.connection.SetReadDeadline(time.Time{}) // a test has no deadline
	w.WriteHeader(http.StatusOK)
	return e
}

// send writes one event. data has no line feed. An error means that the browser is gone.
func (e eventWriter) send(event string, data []byte) error {
	_ = e.connection.SetWriteDeadline(time.Now().Add(liveWrite)) // a test has no deadline
	if _, err := fmt.Fprintf(e.to, "event: %s\ndata: %s\n\n", event, data); err != nil {
		return err
	}
	return e.connection.Flush()
}
