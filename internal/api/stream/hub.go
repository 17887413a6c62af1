// Package stream informs open connections about what changes in their workspace: submissions, deliveries, posts and
// alerts.
//
//	NOTIFY, or 1.5 s ──► Hub.poll: one call for all streams ──► ring of the workspace ──► Stream.Next
//
// A daemon has one Hub. It reads at most once a second on average while a stream is open, and nothing otherwise. After
// a calm a change is read at once. A new stream, and
// one that cannot be continued without a gap, gets the item Reset: its reader reads then what it shows.
package stream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	"autopost/internal/worker"
)

const (
	// spacing is the least time between two reads on average. One read may come earlier: that of a change after a calm.
	spacing = time.Second
	// interval is the time between two reads without a wake-up. With the read it stays below two seconds, within
	// which a decision must be visible.
	interval = 1500 * time.Millisecond
	// linger is how long a workspace without streams is read on, so that a stream can be continued after a short loss
	// of its connection.
	linger = 30 * time.Second
	// ringSize is how many items of a workspace are kept for streams that continue.
	ringSize = 512
	// mostPending bounds the items that a slow reader has not taken. Beyond it they are replaced by one Reset.
	mostPending = 256
	// readTimeout bounds one read.
	readTimeout = 10 * time.Second
)

// The largest numbers of open streams.
const (
	PerHolder    = 50
	PerWorkspace = 200
	PerDaemon    = 1000
)

// Reset is the kind of an item that stands for changes before it: the reader reads what it shows. Every later change
// follows as an item of its own. The other kinds come from the database.
const Reset = "reset"

// ErrClosed means that the daemon stops.
var ErrClosed = errors.New("the daemon stops")

// Item is one change.
type Item struct {
	// ID continues a stream after this item; see Hub.Open.
	ID string
	// Number orders the items of a Hub. A Reset has that of the last item before it.
	Number uint64
	// Kind is submission, delivery, post, alert, change or Reset.
	Kind string
	// Data is a JSON object.
	Data json.RawMessage
}

// Watched is an open stream, as the database needs it.
type Watched struct {
	WorkspaceID string `json:"workspace_id"`
	// KeyID is the API key of the stream; "" for a stream without one.
	KeyID string `json:"key_id,omitempty"`
	// SessionID is the session of the stream; "" for a stream without one.
	SessionID string `json:"session_id,omitempty"`
}

// Read is what changed since a position.
type Read struct {
	Position json.RawMessage `json:"position"`
	// DoneAt: items up to it are not returned again.
	DoneAt time.Time `json:"done_at"`
	Items  []Row     `json:"items"`
	// Lost are workspaces with too many changes for one read.
	Lost []string `json:"lost"`
	// Ended are keys and sessions that are not valid any more.
	Ended []string `json:"ended"`
}

// Row is one change of a Read.
type Row struct {
	WorkspaceID string          `json:"workspace_id"`
	Kind        string          `json:"kind"`
	ID          string          `json:"id"`
	At          time.Time       `json:"at"`
	Data        json.RawMessage `json:"data"`
}

// Store is what this package needs from the database.
type Store interface {
	// StreamItems returns what changed since position; nil begins now.
	StreamItems(ctx context.Context, watched []Watched, position json.RawMessage) (Read, error)
}

// Config configures a Hub.
type Config struct {
	Store Store
	// Wake holds one hint that something changed. The Hub wakes itself through it too.
	Wake chan struct{}
	Log  *slog.Logger
}

// Hub serves all streams of a daemon. Make it with New, and Run it.
type Hub struct {
	cfg   Config
	epoch string

	mu         sync.Mutex // before the one of a Stream
	workspaces map[string]*workspace
	holders    map[string]int
	open       int
	seq        uint64
	position   json.RawMessage
	due        time.Time // end of the spacing of all reads so far; the next read may be one spacing before it
	closed     bool
}

// workspace is the state of a workspace with streams, or that had some lately.
type workspace struct {
	streams map[*Stream]struct{}
	ring    []Item
	// from is the number of the last item that the ring does not have.
	from uint64
	// seen are the changes that the next reads may return again, by their time.
	seen map[string]time.Time
	// live: a read has covered the workspace, so that its next changes are not missed.
	live bool
	// emptySince is when the last stream ended.
	emptySince time.Time
}

// New returns a Hub that serves nothing until Run.
func New(cfg Config) *Hub {
	return &Hub{cfg: cfg, epoch: strings.ReplaceAll(uuid.NewString(), "-", "")[:12], workspaces: map[string]*workspace{}, holders: map[string]int{}}
}

// Run reads until ctx ends, then ends all streams.
func (h *Hub) Run(ctx context.Context) error {
	h.setClosed(false)
	defer h.setClosed(true)
	return worker.Loop{
		Interval: interval, Wake: h.cfg.Wake, Name: "stream", Log: h.cfg.Log, Backoff: worker.Backoff{Least: spacing, Most: 4 * spacing},
		Poll: func(ctx context.Context) (time.Duration, error) { return 0, h.poll(ctx) },
	}.Run(ctx)
}

// poll reads once and passes the changes on. Of many polls each waits for spacing, and the first one for nothing.
func (h *Hub) poll(ctx context.Context) error {
	h.mu.Lock()
	pause := time.Until(h.due.Add(-spacing))
	h.mu.Unlock()
	if !worker.Sleep(ctx, pause) {
		return nil
	}
	watched, position := h.begin()
	if watched == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	read, err := h.cfg.Store.StreamItems(ctx, watched, position)
	if err != nil {
		return fmt.Errorf("read a stream: %w", err)
	}
	h.pass(watched, read)
	return nil
}

// begin forgets workspaces without streams, and returns what to read; nil if nothing is to be read.
func (h *Hub) begin() ([]Watched, json.RawMessage) {
	h.mu.Lock()
	defer h.mu.Unlock()
	var watched []Watched
	for id, w := range h.workspaces {
		if len(w.streams) == 0 && time.Since(w.emptySince) > linger {
			delete(h.workspaces, id)
			continue
		}
		if len(w.streams) == 0 {
			watched = append(watched, Watched{WorkspaceID: id})
		}
		for s := range w.streams {
			watched = append(watched, Watched{WorkspaceID: id, KeyID: s.reader.KeyID, SessionID: s.reader.SessionID})
		}
	}
	if watched == nil {
		h.position = nil
		return nil, nil
	}
	if now := time.Now(); h.due.Before(now) {
		h.due = now
	}
	h.due = h.due.Add(spacing)
	return watched, h.position
}

// pass gives the read of some workspaces to their streams.
func (h *Hub) pass(watched []Watched, read Read) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.position = read.Position
	for _, id := range read.Ended {
		h.endReader(id)
	}
	for _, row := range read.Items {
		if w := h.workspaces[row.WorkspaceID]; w != nil && w.isNew(row) {
			h.add(w, Item{Kind: row.Kind, Data: row.Data})
		}
	}
	for _, id := range read.Lost {
		if w := h.workspaces[id]; w != nil {
			h.lose(w)
		}
	}
	for _, one := range watched {
		w := h.workspaces[one.WorkspaceID]
		if w == nil {
			continue
		}
		w.forgetSeen(read.DoneAt)
		if !w.live {
			w.live = true
			for s := range w.streams {
				s.begin(h.reset())
			}
		}
	}
}

// isNew remembers a change, and reports whether it is seen for the first time.
func (w *workspace) isNew(row Row) bool {
	name := row.Kind + " " + row.ID + " " + row.At.String()
	_, repeated := w.seen[name]
	w.seen[name] = row.At
	return !repeated
}

// forgetSeen forgets the changes that no read returns again.
func (w *workspace) forgetSeen(doneAt time.Time) {
	for name, at := range w.seen {
		if !at.After(doneAt) {
			delete(w.seen, name)
		}
	}
}

// add numbers an item, keeps it and gives it to the streams of its workspace.
func (h *Hub) add(w *workspace, item Item) {
	h.seq++
	item.ID, item.Number = h.id(h.seq), h.seq
	w.ring = append(w.ring, item)
	if len(w.ring) > ringSize {
		w.from = h.numberOf(w.ring[0].ID)
		w.ring = w.ring[1:]
	}
	for s := range w.streams {
		s.push(item)
	}
}

// lose empties a workspace: its streams read again what they show.
func (h *Hub) lose(w *workspace) {
	h.seq++
	w.ring, w.from = nil, h.seq
	for s := range w.streams {
		s.replace(h.reset())
	}
}

func (h *Hub) id(seq uint64) string { return h.epoch + "-" + strconv.FormatUint(seq, 10) }

func (h *Hub) reset() Item {
	return Item{ID: h.id(h.seq), Number: h.seq, Kind: Reset, Data: json.RawMessage(`{}`)}
}

// numberOf returns the number of an item of this Hub; 0 for any other text.
func (h *Hub) numberOf(id string) uint64 {
	number, found := strings.CutPrefix(id, h.epoch+"-")
	if !found {
		return 0
	}
	seq, err := strconv.ParseUint(number, 10, 64)
	if err != nil {
		return 0
	}
	return seq
}

// setClosed opens or closes the Hub. Closing ends all streams.
func (h *Hub) setClosed(closed bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.closed = closed
	for _, w := range h.workspaces {
		for s := range w.streams {
			if closed {
				s.end()
			}
		}
	}
}

// endReader ends the streams of a key or a session.
func (h *Hub) endReader(id string) {
	for _, w := range h.workspaces {
		for s := range w.streams {
			if s.reader.KeyID == id || s.reader.SessionID == id {
				s.end()
			}
		}
	}
}
