// Package telegram simulates the Telegram Bot API, version 10.1, as far as
// publishing needs it: the send, edit, delete, pin and forward methods, the health
// checks, and webhooks with the updates by which bots learn of their rights, of
// what is said and of titles that change.
//
// It is strict where the real server is: markup, lengths in code points, albums,
// file ids bound to bot and kind, rights, rates; refusals carry the real
// server's texts. What it does not do: detect links and hashtags in plain text,
// fetch media by URL, keep updates for getUpdates, push two updates of a bot at once.
package telegram

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"autopost/internal/sim"
)

// Platform is the simulator's name in the log and in fault rules.
const Platform = "telegram"

// Access is what the bots of a chat may do there.
type Access string

// The kinds of access. The zero value is AccessAdmin.
const (
	AccessAdmin    Access = ""
	AccessMember   Access = "member"    // may post in groups, not in channels
	AccessReadOnly Access = "read_only" // a member or administrator without the right to post
	AccessNone     Access = "none"      // not a member
	AccessKicked   Access = "kicked"
)

// Chat describes a simulated chat.
type Chat struct {
	// ID is negative for groups and channels.
	ID int64
	// Type is "channel" (the default for a negative ID), "supergroup", "group" or "private".
	Type  string
	Title string
	// Username is without the @.
	Username string
	Access   Access
	// Protected chats refuse forwarding.
	Protected bool
	// Threads are the message_thread_id values of a forum.
	Threads []int64
}

// Limits are the platform's rate limits; a zero Rate is no limit.
type Limits struct {
	// Token is for all messages of one bot, Chat for those to one chat, Group for
	// those to one group or supergroup. An album costs its items.
	Token, Chat, Group sim.Rate
}

// DefaultLimits are the published ones: 30 messages a second for a bot, one a
// second with short bursts for a chat, 20 a minute for a group.
func DefaultLimits() Limits {
	return Limits{
		Token: sim.Rate{PerSecond: 30, Burst: 30},
		Chat:  sim.Rate{PerSecond: 1, Burst: 3},
		Group: sim.Rate{PerSecond: 20.0 / 60, Burst: 20},
	}
}

// Options are the settings of a Server.
type Options struct {
	// Limits are DefaultLimits when nil; a pointer to the zero value is no limits.
	Limits *Limits
	// AnyBot takes every well-formed token for a bot's.
	AnyBot bool
	// AnyChat makes unknown chats when they are first spoken to.
	AnyChat bool
	// Local takes webhooks of any port and of plain HTTP, as a self-hosted server in local mode does.
	Local bool
}

// Message is a message as the platform stores it.
type Message struct {
	ChatID, ID int64
	Date       time.Time
	// Text is the text or the caption, markup parsed away.
	Text     string
	Entities []Entity
	// Media is nil for a text message.
	Media        *sim.Media
	MediaGroupID string
	ThreadID     int64
}

// Server is the simulated platform, an http.Handler of the API's own paths
// (/bot<token>/<method>).
type Server struct {
	core    *sim.Core
	opts    Options
	buckets sim.Buckets
	courier *sim.Courier

	mu     sync.Mutex
	limits Limits
	bots   map[string]*bot
	chats  map[int64]*chat
	files  map[string]*file
	serial uint64
}

type bot struct {
	id       int64
	token    string
	username string
	webhook  webhook
	// pending are the updates that no webhook has taken yet, oldest first.
	pending    []*update
	lastUpdate int64
}

type chat struct {
	Chat
	anyThread  bool
	migratedTo int64
	lastID     int64
	messages   map[int64]*message
	pinned     []int64
}

// remembered is how many messages of a chat can still be edited, deleted and forwarded.
const remembered = 10_000

// New returns a platform without bots and chats.
func New(core *sim.Core, opts Options) *Server {
	s := &Server{core: core, opts: opts, limits: DefaultLimits(), courier: sim.NewCourier()}
	if opts.Limits != nil {
		s.limits = *opts.Limits
	}
	s.bots, s.chats, s.files = map[string]*bot{}, map[int64]*chat{}, map[string]*file{}
	return s
}

var tokenForm = regexp.MustCompile(`^[1-9][0-9]{0,15}:[A-Za-z0-9_-]{3,60}$`)

// AddBot makes a bot; token is "<digits>:<secret>", of which the digits become
// its user id.
func (s *Server) AddBot(token string) error {
	if !tokenForm.MatchString(token) {
		return errors.New("telegram token is not of the form digits:secret")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.addBot(token)
	return nil
}

func (s *Server) addBot(token string) *bot {
	digits, _, _ := strings.Cut(token, ":")
	id, _ := strconv.ParseInt(digits, 10, 64) // the form was checked
	b := &bot{id: id, token: token, username: "sim_" + digits + "_bot"}
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
		c.Type = "private"
		if c.ID < 0 {
			c.Type = "channel"
		}
	}
	if c.Title == "" {
		c.Title = "Chat " + strconv.FormatInt(c.ID, 10)
	}
	known := s.chats[c.ID]
	if known == nil {
		known = &chat{messages: map[int64]*message{}}
		s.chats[c.ID] = known
	}
	known.Chat = c
	return known
}

// SetAccess changes what the bots may do in a known chat, and tells them.
func (s *Server) SetAccess(chatID int64, access Access) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.chats[chatID]; c != nil && c.Access != access {
		before := c.Access
		c.Access = access
		s.changed(c, before)
	}
}

// Migrate turns the group from into the supergroup to, as Telegram does: calls
// to the old id are refused with the new one.
func (s *Server) Migrate(from, to int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.chats[from]; c != nil {
		s.service(c, map[string]any{"migrate_to_chat_id": to})
		c.migratedTo = to
		s.addChat(Chat{ID: to, Type: "supergroup", Title: c.Title, Access: c.Access})
	}
}

// SetLimits changes the rate limits from now on.
func (s *Server) SetLimits(limits Limits) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.limits = limits
	s.buckets.Reset()
}

// ExpireFiles makes all file ids given so far invalid.
func (s *Server) ExpireFiles() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.files)
}

// Reset forgets messages, files and spent rates; bots and chats stay, and
// message ids go on growing.
func (s *Server) Reset() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.files)
	for _, c := range s.chats {
		clear(c.messages)
		c.pinned = nil
	}
	s.buckets.Reset()
}

// Messages returns what a chat holds, in order of id.
func (s *Server) Messages(chatID int64) []Message {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.chats[chatID]
	if c == nil {
		return nil
	}
	var out []Message
	for _, m := range c.messages {
		out = append(out, m.public(chatID))
	}
	slices.SortFunc(out, func(a, b Message) int { return int(a.ID - b.ID) })
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

// chat returns the chat of a chat_id parameter (a number or @username), or nil.
func (s *Server) chat(id string) *chat {
	if name, ok := strings.CutPrefix(id, "@"); ok {
		for _, c := range s.chats {
			if name != "" && strings.EqualFold(c.Username, name) {
				return c
			}
		}
		if !s.opts.AnyChat || name == "" {
			return nil
		}
		sum := sha256.Sum256([]byte(strings.ToLower(name)))
		made := int64(binary.BigEndian.Uint32(sum[:4]))
		return s.addChat(Chat{ID: -1_000_000_000_000 - made, Type: "channel", Title: name, Username: name})
	}
	n, err := strconv.ParseInt(id, 10, 64)
	if err != nil {
		return nil
	}
	c := s.chats[n]
	if c == nil && s.opts.AnyChat && n != 0 {
		made := Chat{ID: n}
		if n < 0 && n > -1_000_000_000_000 {
			made.Type = "group"
		}
		c = s.addChat(made)
		c.anyThread = true
	}
	return c
}
