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
	// readsPerSecond limits the reads of all open pages together; readsAtOnce may follow a calm at once: those of some
	// changes, so that a page shows each of them soon.
	readsPerSecond, readsAtOnce = 1, 40
	// liveWait is how long a page waits for a read; liveRetry is the pause before it tries again.
	liveWait, liveRetry = 5 * time.Second, 2 * time.Second
)

// errDeferred means that the open pages have used up their reads. The page is rendered again later.
var errDeferred = problem.TooManyRunning.Says("Open pages have read too often. Try again in some seconds.")

// Changes opens streams of changes. *stream.Hub implements it.
type Changes interface {
	Open(reader stream.Reader, after string) (*stream.Stream, error)
}

// live keeps open pages up to date.
//
//	stream of the session ──► feed ──► each page is rendered again ──► sent if it differs
//
// Pages of a session share one stream. Pages of one role that read the same operation share the answer until a change
// that can be seen in it.
type live struct {
	changes Changes
	limit   *rate.Limiter

	mu    sync.Mutex
	feeds map[feedKey]*feed
	pages int
	// answers are those of each workspace, by role and operation.
	answers map[string]map[string]answer
	reads   singleflight.Group
}

type feedKey struct{ workspace, session string }

// feed is the stream of one session in one workspace.
type feed struct {
	stream *stream.Stream
	stop   context.CancelFunc
	pages  int
	// at is the last change; changed is closed when there is a later one.
	at      version
	changed chan struct{}
}

// version is a state of a workspace: the numbers of the last changes. 0 means that the stream has not begun.
type version struct {
	// any is the number of the last change.
	any uint64
	// posts is that of the last one that is not an alert: an alert is not seen in a list of posts.
	posts uint64
	// actions is that of the last operator action: nothing else changes the names of channels.
	actions uint64
}

// after returns the version after an item of a stream.
func (v version) after(item stream.Item) version {
	v.any = max(v.any, item.Number) // a Reset may have the number of a later item
	if item.Kind != "alert" {
		v.posts = max(v.posts, item.Number)
	}
	if item.Kind == "change" || item.Kind == stream.Reset {
		v.actions = max(v.actions, item.Number)
	}
	return v
}

// channelNames is the operation with which pages name channels in filters and lists.
const channelNames = "/channels?limit=200"

// of returns the last change that can be seen in the answer of an operation.
func (v version) of(target string) uint64 {
	switch {
	case target == channelNames:
		return v.actions
	case strings.HasPrefix(target, "/posts?"):
		return v.posts
	}
	return v.any
}

// answer is that of an operation.
type answer struct {
	target string
	// number is the last change that it shows for certain.
	number uint64
	text   json.RawMessage
}

func newLive(changes Changes) *live {
	return &live{changes: changes, limit: rate.NewLimiter(readsPerSecond, readsAtOnce), feeds: map[feedKey]*feed{}, answers: map[string]map[string]answer{}}
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
			for _, item := range items {
				f.at = f.at.after(item)
			}
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

// last returns the last change of a feed, and what is closed by the next one.
func (l *live) last(f *feed) (at version, changed <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return f.at, f.changed
}

// read returns the answer of an operation after a change. Pages of one role share it. read runs at most as often as
// the limit allows. The error is errDeferred if that would take too long.
func (l *live) read(ctx context.Context, at version, caller rest.Key, target string, read func(context.Context) (json.RawMessage, error)) (json.RawMessage, error) {
	key := caller.Role + " " + target
	if strings.HasPrefix(target, "/drafts") || strings.HasPrefix(target, "/me") {
		key = caller.UserID + " " + target
	}
	if text := l.known(caller.WorkspaceID, at.of(target), key); text != nil {
		return text, nil
	}
	got, err, _ := l.reads.Do(fmt.Sprintf("%s %d %s", caller.WorkspaceID, at.of(target), key), func() (any, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), timeout) // others wait for it, too
		defer cancel()
		if err := l.turn(ctx); err != nil {
			return nil, err
		}
		if text := l.known(caller.WorkspaceID, at.of(target), key); text != nil { // a later change was faster
			return text, nil
		}
		text, err := read(ctx)
		if err == nil {
			l.keep(caller.WorkspaceID, at, key, answer{target, at.of(target), text})
		}
		return text, err
	})
	if err != nil {
		return nil, err
	}
	return got.(json.RawMessage), nil
}

// turn waits until the limit allows a read.
func (l *live) turn(ctx context.Context) error {
	turn := l.limit.Reserve()
	if turn.Delay() > liveWait {
		turn.Cancel()
		return errDeferred
	}
	worker.Sleep(ctx, turn.Delay())
	return nil
}

// known returns an answer that shows the change with this number; nil without one.
func (l *live) known(workspace string, number uint64, key string) json.RawMessage {
	l.mu.Lock()
	defer l.mu.Unlock()
	if a, found := l.answers[workspace][key]; found && a.number >= number {
		return a.text
	}
	return nil
}

// keep stores an answer, and forgets those that are older than the last change.
func (l *live) keep(workspace string, at version, key string, a answer) {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := l.answers[workspace]
	if all == nil {
		all = map[string]answer{}
		l.answers[workspace] = all
	}
	for other, old := range all {
		if old.number < at.of(old.target) {
			delete(all, other)
		}
	}
	if all[key].number <= a.number {
		all[key] = a
	}
}

// refresh is what a page that is rendered again gets beside its request.
type refresh struct {
	session   *Session
	token     string
	workspace Membership
	at        version
	// deferred means that a read had to wait for too long: the page is not complete.
	deferred bool
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
	seen, shown := version{}, false
	for {
		now, changed := s.live.last(f)
		if now.any > 0 && (!shown || now != seen) {
			html, status := s.again(ctx, v, at, now)
			switch sum := sha256.Sum256(html); {
			case ctx.Err() != nil:
				return
			case status == http.StatusServiceUnavailable || status == http.StatusTooManyRequests:
				shown = false // tried again below
			case status >= http.StatusMultipleChoices:
				_ = to.send("gone", []byte("{}")) // the page is left as it is
				return
			case sum != sent:
				data, _ := json.Marshal(string(html)) // a text can be encoded
				if to.send("page", data) != nil {
					return
				}
				sent, seen, shown = sum, now, true
			default:
				seen, shown = now, true
			}
		}
		pause := liveHeartbeat
		if now.any > 0 && !shown {
			pause = liveRetry
			changed = nil // the limit is for all changes
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

// again renders a page as after a change. A page that would not be complete has the status 429.
func (s *server) again(ctx context.Context, v *view, at string, now version) (html []byte, status int) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	again := &refresh{session: v.session, token: v.token, workspace: v.workspace, at: now}
	r, err := http.NewRequestWithContext(context.WithValue(ctx, refreshKey{}, again), http.MethodGet, at, http.NoBody)
	if err != nil {
		return nil, http.StatusBadRequest
	}
	r.Host, r.RemoteAddr, r.TLS = v.r.Host, v.r.RemoteAddr, v.r.TLS
	for _, name := range []string{"Cookie", "Accept-Language"} {
		r.Header[name] = v.r.Header[name]
	}
	answer := pageWriter{header: http.Header{}, status: http.StatusOK}
	s.mux.ServeHTTP(&answer, r)
	if again.deferred {
		s.Log.DebugContext(ctx, "web.refresh_deferred", "path", r.URL.Path)
		return nil, http.StatusTooManyRequests
	}
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
