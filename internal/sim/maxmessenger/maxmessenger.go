// Package maxmessenger simulates the bot API of the MAX messenger, version 0.0.33: the health checks,
// uploads, the methods to send, read, edit, delete and pin messages and to answer pressed buttons, and subscriptions
// with updates about memberships, messages, titles and pressed buttons.
//
// The upload hosts are paths of the same server; the URLs in answers are absolute. The simulator has no
// resumable uploads, GET /updates does not wait, and pictures are not fetched by URL.
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

// Platform is the name of the simulator in the log and in fault rules.
const Platform = "max"

// Access is the access of all bots to a chat.
type Access string

// The kinds of access. The zero value is AccessAdmin.
const (
	AccessAdmin     Access = ""
	AccessMember    Access = "member"     // may write in groups, not in channels
	AccessReadOnly  Access = "read_only"  // administrator without the right to write
	AccessWriteOnly Access = "write_only" // administrator without the right to read all messages
	AccessNone      Access = "none"       // removed from the chat
	AccessSuspended Access = "suspended"  // the user of the dialog stopped the bot
)

// Chat is a simulated chat.
type Chat struct {
	// ID is negative for groups and channels.
	ID int64
	// Type is "channel", "chat" or "dialog". The default is "channel" for a negative ID, else "dialog".
	Type  string
	Title string
	// Username makes a channel public: its posts have a URL.
	Username string
	// UserID is the user of a dialog.
	UserID int64
	Access Access
}

// Limits are the rate limits of the server. A zero Rate is unlimited.
type Limits struct {
	// Token limits all calls of one bot, Chat the messages to one chat.
	Token, Chat sim.Rate
}

// DefaultLimits are the published limits: 30 calls a second for a bot, 2 messages a second for a chat.
func DefaultLimits() Limits {
	return Limits{Token: sim.Rate{PerSecond: 30, Burst: 30}, Chat: sim.Rate{PerSecond: 2, Burst: 2}}
}

// Processing is how long an uploaded medium is not ready: for a number of attempts to send it, and for a
// time after the upload. The zero value means ready at once.
type Processing struct {
	Attempts int
	Delay    time.Duration
}

// Showing is the form of messages in answers, as far as the real one is not known. The zero value has the
// sender, and the tokens with which media were sent.
type Showing struct {
	// NoSender omits the sender in channels. OtherTokens gives media new tokens.
	NoSender, OtherTokens bool
}

// Options are the settings of a Server.
type Options struct {
	// Limits are DefaultLimits if nil. A pointer to the zero value means unlimited.
	Limits *Limits
	// AnyBot accepts each well-formed token.
	AnyBot bool
	// AnyChat creates unknown chats on their first use.
	AnyChat bool
	// Prefix is the path under which the Server is mounted. Upload URLs begin with it.
	Prefix string
	// Processing applies until SetProcessing.
	Processing Processing
	// AnyHook accepts subscriptions with any port and with plain HTTP. The real server does not.
	AnyHook bool
}

// Message is a stored message.
type Message struct {
	ChatID int64
	Mid    string
	Seq    int64
	Date   time.Time
	// Text is without markup.
	Text  string
	Marks []sim.Mark
	Media []sim.Media
	// Buttons are rows of buttons.
	Buttons [][]sim.Button
}

// Server is the simulated server. It is an http.Handler for the paths of the API and, under /upload/, of the
// upload hosts.
type Server struct {
	core    *sim.Core
	opts    Options
	buckets sim.Buckets
	// webhooks delivers the updates.
	webhooks *sim.WebhookSender

	mu         sync.Mutex
	limits     Limits
	processing Processing
	showing    Showing
	bots       map[string]*bot
	chats      map[int64]*chat
	slots      map[string]*slot
	media      map[string]*medium
	messages   map[string]*message
	serial     int64
	lastSeq    int64
	// presses are the presses of buttons, by their ids.
	presses map[string]press
}

type bot struct {
	id    int64
	token string
	subs  []*subscription
	// waiting are the updates that no subscription took, oldest first; lastMarker is that of the newest one.
	waiting    []waitingUpdate
	lastMarker int64
}

type chat struct {
	Chat
	// order holds the messages, oldest first.
	order  []*message
	pinned *message
}

// remembered is the number of newest messages of a chat that are stored.
const remembered = 10_000

// New returns a server without bots and chats.
func New(core *sim.Core, opts Options) *Server {
	s := &Server{
		core: core, opts: opts, limits: DefaultLimits(), processing: opts.Processing, webhooks: sim.NewWebhookSender(),
		bots: map[string]*bot{}, chats: map[int64]*chat{}, slots: map[string]*slot{},
		media: map[string]*medium{}, messages: map[string]*message{}, presses: map[string]press{},
	}
	if opts.Limits != nil {
		s.limits = *opts.Limits
	}
	return s
}

var tokenForm = regexp.MustCompile(`^[A-Za-z0-9_.-]{6,}$`)

// AddBot adds a bot. The token is its whole Authorization header.
func (s *Server) AddBot(token string) error {
	if !tokenForm.MatchString(token) {
		return errors.New("a MAX token must have at least 6 letters, digits, dashes, dots or underscores")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.addBot(token)
	return nil
}

func (s *Server) addBot(token string) *bot {
	h := fnv.New32a()
	_, _ = h.Write([]byte(token)) // never fails
	b := &bot{id: 200_000_000 + int64(h.Sum32()), token: token}
	s.bots[token] = b
	return b
}

// RevokeBot makes a token unknown, also under AnyBot.
func (s *Server) RevokeBot(token string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.bots[token] = nil
}

// AddChat adds or replaces a chat. A replaced chat keeps its messages.
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

// SetAccess changes the bots' access to a known chat. They get an update if they were added, removed,
// started or stopped.
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

// SetProcessing applies to uploads from now on.
func (s *Server) SetProcessing(p Processing) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.processing = p
}

// SetShowing changes the form of messages in answers from now on.
func (s *Server) SetShowing(showing Showing) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.showing = showing
}

// ExpireTokens makes all present attachment tokens invalid.
func (s *Server) ExpireTokens() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.media)
}

// Reset removes messages, uploads and the use of rate limits. It keeps bots and chats.
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

// Messages returns the messages of a chat, oldest first.
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

// bot returns the bot with a token; nil if it is unknown.
func (s *Server) bot(token string) *bot {
	b, known := s.bots[token]
	if !known && s.opts.AnyBot && tokenForm.MatchString(token) {
		b = s.addBot(token)
	}
	return b
}

// chat returns the chat with an id; nil if it is unknown.
func (s *Server) chat(id int64) *chat {
	c := s.chats[id]
	if c == nil && s.opts.AnyChat && id != 0 {
		c = s.addChat(Chat{ID: id, UserID: max(0, id)})
	}
	return c
}

// dialog returns the dialog with a user; nil if there is none.
func (s *Server) dialog(userID int64) *chat {
	for _, c := range s.chats {
		if c.Type == "dialog" && c.UserID == userID {
			return c
		}
	}
	return nil
}
