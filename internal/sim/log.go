package sim

import (
	"context"
	"slices"
	"sync"
	"time"
)

const defaultLogSize = 10_000

// Entry is one request, as the simulator received it.
type Entry struct {
	// Seq numbers the entries of a log from 1, in order of arrival.
	Seq int64 `json:"seq"`
	// Start is the time when the headers were read. End is the end of the exchange; zero while it runs.
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
	// Title is the heading that the platform shows above the text, if any.
	Title string `json:"title,omitempty"`
	// Text is the text as the platform shows it. Its markup is in Marks.
	Text string `json:"text,omitempty"`
	// TextDigest is the Digest of the text as it was sent, with markup.
	TextDigest string     `json:"text_digest,omitempty"`
	Marks      []Mark     `json:"marks,omitempty"`
	Media      []Media    `json:"media,omitempty"`
	Buttons    [][]Button `json:"buttons,omitempty"`
	// ReplyTo is the id of the message that this one answers.
	ReplyTo string `json:"reply_to,omitempty"`
	// Badges are labels that the platform shows next to a post: "private", "made with AI".
	Badges []string `json:"badges,omitempty"`
	// Removed are the ids of the messages that the request deleted.
	Removed []string `json:"removed,omitempty"`
	// Edited, Pinned and Unpinned are the ids of the messages that the request changed, pinned and
	// unpinned.
	Edited   []string `json:"edited,omitempty"`
	Pinned   []string `json:"pinned,omitempty"`
	Unpinned []string `json:"unpinned,omitempty"`
	// Items is the number of messages that the request asks for.
	Items int `json:"items,omitempty"`

	Status int `json:"status,omitempty"`
	// Accepted: the platform executed the request, even if the sender got no answer.
	Accepted   bool     `json:"accepted"`
	MessageIDs []string `json:"message_ids,omitempty"`
	// RetryAfter is in seconds.
	RetryAfter int `json:"retry_after,omitempty"`
	// ReplyDelivered: the whole answer was written to the connection.
	ReplyDelivered bool `json:"reply_delivered"`
	// Fault is the effect of the fault that was applied, if any.
	Fault Effect `json:"fault,omitempty"`
	// Reason is the reason of a refusal, in the platform's words.
	Reason string `json:"reason,omitempty"`
	// Notes are oddities that the platform tolerates.
	Notes []string `json:"notes,omitempty"`
}

// Mark is a range of formatted text. From and Length count UTF-16 code units.
type Mark struct {
	Type   string `json:"type"`
	From   int    `json:"from"`
	Length int    `json:"length"`
	URL    string `json:"url,omitempty"`
}

// Media is one medium of a request.
type Media struct {
	Kind string `json:"kind"`
	// Digest and Size (bytes) are set for uploads, and for media that were uploaded before.
	Digest   string `json:"digest,omitempty"`
	Size     int64  `json:"size,omitempty"`
	Filename string `json:"filename,omitempty"`
	// ID is the platform's id of the medium, if the request has it.
	ID string `json:"id,omitempty"`
	// URL is the address from which the platform fetches the medium, if the request has it.
	URL string `json:"url,omitempty"`
	// Uploaded: the content was part of this request.
	Uploaded bool   `json:"uploaded,omitempty"`
	Caption  string `json:"caption,omitempty"`
}

// Button is a button below a message.
type Button struct {
	Text string `json:"text"`
	URL  string `json:"url,omitempty"`
	// Data comes back with a press.
	Data string `json:"data,omitempty"`
}

// Person is a user who presses a button.
type Person struct {
	ID   int64
	Name string
}

// Totals count all entries of the log, including dropped ones.
type Totals struct {
	Requests int64 `json:"requests"`
	Accepted int64 `json:"accepted"`
	Refused  int64 `json:"refused"`
	Faults   int64 `json:"faults"`
	// Messages is the number of message ids that were assigned.
	Messages int64 `json:"messages"`
}

// Filter selects entries. An empty field selects all.
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

// Log records the requests that reached the platforms, with bounded memory.
type Log struct {
	mu      sync.Mutex
	size    int
	last    int64
	entries []Entry
	calls   map[Filter]int
	totals  Totals
	changed chan struct{}
}

// NewLog returns a log that keeps the newest size entries; 10,000 if size is not positive.
func NewLog(size int) *Log {
	if size <= 0 {
		size = defaultLogSize
	}
	return &Log{size: size, calls: map[Filter]int{}, changed: make(chan struct{})}
}

// Entries returns the kept entries that match every filter, oldest first.
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

// WaitFor returns nil when done returns true for the kept entries, or ctx's error. It calls done
// whenever an entry is added or ends.
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

// Reset removes all entries and counters. Numbering continues, so that a running request cannot
// overwrite a new entry.
func (l *Log) Reset() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.entries, l.calls, l.totals = nil, map[Filter]int{}, Totals{}
	l.signal()
}

// arrive adds an entry and assigns its numbers.
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

// update replaces a kept entry. The first update that has Accepted or End set counts it.
func (l *Log) update(e Entry) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.entries) == 0 || e.Seq < l.entries[0].Seq {
		return
	}
	// Entries are dropped only from the front, so their numbers are contiguous.
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
