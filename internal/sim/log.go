package sim

import (
	"context"
	"slices"
	"sync"
	"time"
)

const defaultLogSize = 10_000

// Entry is one request as its receiver saw it.
type Entry struct {
	// Seq numbers the entries of a log from 1, in the order of arrival.
	Seq int64 `json:"seq"`
	// Start is when the request's headers had been read, End when the exchange was
	// over; the zero End means that it still runs.
	Start time.Time `json:"start"`
	End   time.Time `json:"end,omitzero"`

	Platform string `json:"platform"`
	// Credential is the CredentialHash of the token, never the token.
	Credential string `json:"credential,omitempty"`
	Chat       string `json:"chat,omitempty"`
	ChatTitle  string `json:"chat_title,omitempty"`
	// Method is the platform's name of the call ("sendMessage", "POST /messages").
	Method string `json:"method"`
	// N counts the calls of this method with this credential to this chat, from 1.
	N int `json:"n"`

	BytesIn int64 `json:"bytes_in"`
	// Title is the heading that the platform shows above the text, where it has one.
	Title string `json:"title,omitempty"`
	// Text is the text as the platform shows it, markup parsed away into Marks.
	Text string `json:"text,omitempty"`
	// TextDigest is the Digest of the text exactly as it was sent, markup included.
	TextDigest string     `json:"text_digest,omitempty"`
	Marks      []Mark     `json:"marks,omitempty"`
	Media      []Media    `json:"media,omitempty"`
	Buttons    [][]Button `json:"buttons,omitempty"`
	// ReplyTo is the id of the message that this one answers.
	ReplyTo string `json:"reply_to,omitempty"`
	// Badges are what the platform shows beside a post: "private", "made with AI".
	Badges []string `json:"badges,omitempty"`
	// Removed are the ids of the messages that the request took away.
	Removed []string `json:"removed,omitempty"`
	// Edited, Pinned and Unpinned are those of the messages that it changed, and put to and took from the top of their chat.
	Edited   []string `json:"edited,omitempty"`
	Pinned   []string `json:"pinned,omitempty"`
	Unpinned []string `json:"unpinned,omitempty"`
	// Items is how many messages the request asks the platform to make.
	Items int `json:"items,omitempty"`

	Status int `json:"status,omitempty"`
	// Accepted says that the platform did what was asked, whatever the sender heard of it.
	Accepted   bool     `json:"accepted"`
	MessageIDs []string `json:"message_ids,omitempty"`
	// RetryAfter is in seconds.
	RetryAfter int `json:"retry_after,omitempty"`
	// ReplyDelivered says that the whole answer was written to the connection.
	ReplyDelivered bool `json:"reply_delivered"`
	// Fault is the effect of the rule that was applied, if any.
	Fault Effect `json:"fault,omitempty"`
	// Reason is why the request was refused, in the platform's words.
	Reason string `json:"reason,omitempty"`
	// Notes are oddities which the platform tolerates.
	Notes []string `json:"notes,omitempty"`
}

// Mark is a stretch of formatted text; From and Length count UTF-16 code units.
type Mark struct {
	Type   string `json:"type"`
	From   int    `json:"from"`
	Length int    `json:"length"`
	URL    string `json:"url,omitempty"`
}

// Media is one medium of a request.
type Media struct {
	Kind string `json:"kind"`
	// Digest and Size (bytes) are known for uploads and for what was uploaded before.
	Digest   string `json:"digest,omitempty"`
	Size     int64  `json:"size,omitempty"`
	Filename string `json:"filename,omitempty"`
	// ID is the platform's id of the medium, where the request named it.
	ID string `json:"id,omitempty"`
	// URL is where the platform was asked to fetch the medium.
	URL string `json:"url,omitempty"`
	// Uploaded says that the content came with this very request.
	Uploaded bool   `json:"uploaded,omitempty"`
	Caption  string `json:"caption,omitempty"`
}

// Button is a button under a message.
type Button struct {
	Text string `json:"text"`
	URL  string `json:"url,omitempty"`
}

// Totals are counted over the whole life of the log, dropped entries included.
type Totals struct {
	Requests int64 `json:"requests"`
	Accepted int64 `json:"accepted"`
	Refused  int64 `json:"refused"`
	Faults   int64 `json:"faults"`
	// Messages is how many message ids were given.
	Messages int64 `json:"messages"`
}

// Filter selects entries; an empty field selects all.
type Filter struct {
	Platform, Credential, Chat, Method string
}

// Match reports whether the filter selects e.
func (f Filter) Match(e Entry) bool {
	return (f.Platform == "" || f.Platform == e.Platform) &&
		(f.Credential == "" || f.Credential == e.Credential) &&
		(f.Chat == "" || f.Chat == e.Chat) &&
		(f.Method == "" || f.Method == e.Method)
}

// Log is the receiver's log: what reached the platforms, with a bounded memory.
type Log struct {
	mu      sync.Mutex
	size    int
	last    int64
	entries []Entry
	calls   map[Filter]int
	totals  Totals
	changed chan struct{}
}

// NewLog returns a log that remembers the newest size entries (10,000 when not positive).
func NewLog(size int) *Log {
	if size <= 0 {
		size = defaultLogSize
	}
	return &Log{size: size, calls: map[Filter]int{}, changed: make(chan struct{})}
}

// Entries returns what the log remembers, oldest first, of all given filters
// together; without a filter, everything.
func (l *Log) Entries(filters ...Filter) []Entry {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.selected(filters)
}

func (l *Log) selected(filters []Filter) []Entry {
	var out []Entry
	for _, e := range l.entries {
		if len(filters) == 0 || slices.ContainsFunc(filters, func(f Filter) bool { return f.Match(e) }) {
			out = append(out, e)
		}
	}
	return out
}

// Totals returns the counters.
func (l *Log) Totals() Totals {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.totals
}

// WaitFor returns nil as soon as done is satisfied with the remembered entries,
// or ctx's error. It looks again whenever an entry arrives or ends.
func (l *Log) WaitFor(ctx context.Context, done func([]Entry) bool) error {
	for {
		l.mu.Lock()
		entries, changed := l.selected(nil), l.changed
		l.mu.Unlock()
		if done(entries) {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// Reset forgets all entries and counters. Numbering goes on, so that a request
// still running cannot overwrite a new entry.
func (l *Log) Reset() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.entries, l.calls, l.totals = nil, map[Filter]int{}, Totals{}
	l.signal()
}

// arrive adds an entry and gives it its numbers.
func (l *Log) arrive(e *Entry) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.last++
	e.Seq = l.last
	call := Filter{Platform: e.Platform, Credential: e.Credential, Chat: e.Chat, Method: e.Method}
	l.calls[call]++
	e.N = l.calls[call]
	l.totals.Requests++
	l.entries = append(l.entries, *e)
	if len(l.entries) > l.size {
		l.entries = slices.Delete(l.entries, 0, len(l.entries)-l.size)
	}
	l.signal()
}

// update replaces a remembered entry. The first update that says accepted or
// ended counts it.
func (l *Log) update(e Entry) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.entries) == 0 || e.Seq < l.entries[0].Seq {
		return
	}
	// Entries are dropped from the front only, so that their numbers are contiguous.
	i := int(e.Seq - l.entries[0].Seq)
	before := l.entries[i]
	l.entries[i] = e
	if e.Accepted && !before.Accepted {
		l.totals.Accepted++
		l.totals.Messages += int64(len(e.MessageIDs))
	}
	if !e.End.IsZero() && before.End.IsZero() {
		if e.Status >= 400 {
			l.totals.Refused++
		}
		if e.Fault != "" {
			l.totals.Faults++
		}
	}
	l.signal()
}

func (l *Log) signal() {
	close(l.changed)
	l.changed = make(chan struct{})
}
