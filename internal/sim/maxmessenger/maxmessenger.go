// Package maxmessenger simulates the bot API of the MAX messenger as of the
// summer of 2026, as far as publishing needs it: the health checks, uploads,
// sending, reading back, editing, deleting and pinning messages, and subscriptions with the
// updates by which bots learn where they are and what is said there.
//
// The upload hosts of the real platform are paths of the same listener here;
// the URLs in the answers are absolute all the same. What it does not do:
// resumable uploads, long polling, callbacks, fetching pictures by URL.
package maxmessenger

import (
	"errors"
	"hash/fnv"
	"regexp"
	"strconv"
	"sync"
	"time"

	"autopost/internal/sim"
)

// Platform is the simulator's name in the log and in fault rules.
const Platform = "max"

// Access is what the bots of a chat may do there.
type Access string

// The kinds of access. The zero value is AccessAdmin.
const (
	AccessAdmin     Access = ""
	AccessMember    Access = "member"    // may write in groups, not in channels
	AccessReadOnly  Access = "read_only" // an administrator without the right to write
	AccessNone      Access = "none"      // removed from the chat
	AccessSuspended Access = "suspended" // a dialog whose user stopped the bot
)

// Chat describes a simulated chat.
type Chat struct {
	// ID is negative for groups and channels.
	ID int64
	// Type is "channel" (the default for a negative ID), "chat" or "dialog".
	Type  string
	Title string
	// Username makes a channel public: its posts get a URL.
	Username string
	// UserID is a dialog's user, who can be written to by user_id.
	UserID int64
	Access Access
}

// Limits are the platform's rate limits; a zero Rate is no limit.
type Limits struct {
	// Token is for all calls of one bot, Chat for messages to one chat.
	Token, Chat sim.Rate
}

// DefaultLimits are the published ones: 30 calls a second for a bot, 2 messages
// a second for a chat.
func DefaultLimits() Limits {
	return Limits{Token: sim.Rate{PerSecond: 30, Burst: 30}, Chat: sim.Rate{PerSecond: 2, Burst: 2}}
}

// Processing is how long an uploaded medium is not ready: for so many attempts
// to send it, and for so long after the upload. The zero value is ready at once.
type Processing struct {
	Attempts int
	Delay    time.Duration
}

// Options are the settings of a Server.
type Options struct {
	// Limits are DefaultLimits when nil; a pointer to the zero value is no limits.
	Limits *Limits
	// AnyBot takes every well-formed token for a bot's.
	AnyBot bool
	// AnyChat makes unknown chats when they are first spoken to.
	AnyChat bool
	// Prefix is the path under which the Server is mounted; upload URLs begin with it.
	Prefix string
	// Processing holds for uploads until SetProcessing.
	Processing Processing
	// AnyHook takes subscriptions of any port and of plain HTTP, as the real platform does not.
	AnyHook bool
}

// Message is a message as the platform stores it.
type Message struct {
	ChatID int64
	Mid    string
	Seq    int64
	Date   time.Time
	// Text is without markup.
	Text  string
	Marks []sim.Mark
	Media []sim.Media
	// Buttons are rows of them.
	Buttons [][]sim.Button
}

// Server is the simulated platform, an http.Handler of the API's own paths and,
// under /upload/, of its upload hosts.
type Server struct {
	core    *sim.Core
	opts    Options
	buckets sim.Buckets
	courier *sim.Courier

	mu         sync.Mutex
	limits     Limits
	processing Processing
	bots       map[string]*bot
	chats      map[int64]*chat
	slots      map[string]*slot
	media      map[string]*medium
	messages   map[string]*message
	serial     int64
	lastSeq    int64
}

type bot struct {
	id    int64
	token string
	subs  []*subscription
}

type chat struct {
	Chat
	// order holds the messages, oldest first.
	order  []*message
	pinned *message
}

// remembered is how many messages of a chat can still be read, edited and deleted.
const remembered = 10_000

// New returns a platform without bots and chats.
func New(core *sim.Core, opts Options) *Server {
	s := &Server{
		core: core, opts: opts, limits: DefaultLimits(), processing: opts.Processing, courier: sim.NewCourier(),
		bots: map[string]*bot{}, chats: map[int64]*chat{}, slots: map[string]*slot{},
		media: map[string]*medium{}, messages: map[string]*message{},
	}
	if opts.Limits != nil {
		s.limits = *opts.Limits
	}
	return s
}

var tokenForm = regexp.MustCompile(`^[A-Za-z0-9_.-]{6,256}$`)

// AddBot makes a bot. The token is what stands in the Authorization header.
func (s *Server) AddBot(token string) error {
	if !tokenForm.MatchString(token) {
		return errors.New("max token is not of 6 to 256 letters, digits, dashes, dots or underscores")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.addBot(token)
	return nil
}

func (s *Server) addBot(token string) *bot {
	h := fnv.New32a()
	_, _ = h.Write([]byte(token)) // a hash never fails
	b := &bot{id: 200_000_000 + int64(h.Sum32()), token: token}
	s.bots[token] = b
	return b
}

// RevokeBot makes the token unknown, and keeps it so under AnyBot.
func (s *Server) RevokeBot(token string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.bots[token] = nil
}

// AddChat makes or replaces a chat; a replaced chat keeps its messages.
func (s *Server) AddChat(c Chat) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.addChat(c)
}

func (s *Server) addChat(c Chat) *chat {
	if c.Type == "" {
		c.Type = "dialog"
		if c.ID < 0 {
			c.Type = "channel"
		}
	}
	if c.Title == "" {
		c.Title = "Chat " + strconv.FormatInt(c.ID, 10)
	}
	known := s.chats[c.ID]
	if known == nil {
		known = &chat{}
		s.chats[c.ID] = known
	}
	known.Chat = c
	return known
}

// SetAccess changes what the bots may do in a known chat. As on the real platform
// they are told that they were added, removed or stopped, and of no other change.
func (s *Server) SetAccess(chatID int64, access Access) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.chats[chatID]; c != nil && c.Access != access {
		before := c.Access
		c.Access = access
		s.changed(c, before)
	}
}

// SetLimits changes the rate limits from now on.
func (s *Server) SetLimits(limits Limits) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.limits = limits
	s.buckets.Reset()
}

// SetProcessing changes how long what is uploaded from now on is not ready.
func (s *Server) SetProcessing(p Processing) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.processing = p
}

// ExpireTokens makes all attachment tokens given so far invalid.
func (s *Server) ExpireTokens() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.media)
}

// Reset forgets messages, uploads and spent rates; bots and chats stay.
func (s *Server) Reset() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.media)
	clear(s.slots)
	clear(s.messages)
	for _, c := range s.chats {
		c.order = nil
	}
	s.buckets.Reset()
}

// Messages returns what a chat holds, oldest first.
func (s *Server) Messages(chatID int64) []Message {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.chats[chatID]
	if c == nil {
		return nil
	}
	var out []Message
	for _, m := range c.order {
		out = append(out, Message{
			ChatID: chatID, Mid: m.mid, Seq: m.seq, Date: m.date,
			Text: m.content.text, Marks: m.content.marks, Media: m.content.described(), Buttons: m.content.buttons,
		})
	}
	return out
}

// bot returns the bot of a token, or nil.
func (s *Server) bot(token string) *bot {
	b, known := s.bots[token]
	if !known && s.opts.AnyBot && tokenForm.MatchString(token) {
		b = s.addBot(token)
	}
	return b
}

// chat returns the chat of an id, or nil.
func (s *Server) chat(id int64) *chat {
	c := s.chats[id]
	if c == nil && s.opts.AnyChat && id != 0 {
		c = s.addChat(Chat{ID: id, UserID: max(0, id)})
	}
	return c
}

// dialog returns the dialog with a user, or nil.
func (s *Server) dialog(userID int64) *chat {
	for _, c := range s.chats {
		if c.Type == "dialog" && c.UserID == userID {
			return c
		}
	}
	return nil
}
