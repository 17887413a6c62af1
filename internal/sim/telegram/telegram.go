// Package telegram simulates the Telegram Bot API, version 10.1: the methods to send, edit, delete, pin and
// forward messages and to answer pressed buttons, the health checks, and webhooks with updates about rights, messages,
// titles and pressed buttons.
//
// It is as strict as the real server: markup, lengths in code points, albums, file ids bound to bot and
// kind, rights and rates. Its errors have the texts of the real server. It does not detect links and
// hashtags in plain text, fetch media by URL, keep updates for getUpdates, or push two updates of a bot at
// the same time.
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

// Platform is the name of the simulator in the log and in fault rules.
const Platform = "telegram"

// Access is the access of all bots to a chat.
type Access string

// The kinds of access. The zero value is AccessAdmin.
const (
	AccessAdmin    Access = ""
	AccessMember   Access = "member"    // may post in groups, not in channels
	AccessReadOnly Access = "read_only" // a member or administrator without the right to post
	AccessNone     Access = "none"      // not a member
	AccessKicked   Access = "kicked"
)

// Chat is a simulated chat.
type Chat struct {
	// ID is negative for groups and channels.
	ID int64
	// Type is "channel", "supergroup", "group" or "private". The default is "channel" for a negative ID, else
	// "private".
	Type  string
	Title string
	// Username is without the @.
	Username string
	Access   Access
	// Protected says that messages cannot be forwarded.
	Protected bool
	// Threads are the message_thread_id values of a forum.
	Threads []int64
}

// Limits are the rate limits of the server. A zero Rate is unlimited.
type Limits struct {
	// Token limits the messages of one bot, Chat those to one chat, Group those to one group or supergroup.
	// Each item of an album counts.
	Token, Chat, Group sim.Rate
}

// DefaultLimits are the published limits: 30 messages a second for a bot, one a second with short bursts
// for a chat, 20 a minute for a group.
func DefaultLimits() Limits {
	return Limits{
		Token: sim.Rate{PerSecond: 30, Burst: 30},
		Chat:  sim.Rate{PerSecond: 1, Burst: 3},
		Group: sim.Rate{PerSecond: 20.0 / 60, Burst: 20},
	}
}

// Options are the settings of a Server.
type Options struct {
	// Limits are DefaultLimits if nil. A pointer to the zero value means unlimited.
	Limits *Limits
	// AnyBot accepts each well-formed token.
	AnyBot bool
	// AnyChat creates unknown chats on their first use.
	AnyChat bool
	// Local accepts webhooks with any port and with plain HTTP, as a self-hosted server in local mode.
	Local bool
}

// Message is a stored message.
type Message struct {
	ChatID, ID int64
	Date       time.Time
	// Text is the text or the caption, without markup.
	Text     string
	Entities []Entity
	// Media is nil for a text message. FileID is the file id of the medium.
	Media        *sim.Media
	FileID       string
	MediaGroupID string
	ThreadID     int64
	Preview      LinkPreview
	// CaptionAbove says that the caption is above the media.
	CaptionAbove bool
	// Buttons are rows of buttons.
	Buttons [][]sim.Button
	// Video is set for videos and animations.
	Video *Video
}

// LinkPreview is how a message shows the preview of a link.
type LinkPreview struct {
	IsDisabled  bool   `json:"is_disabled,omitempty"`
	URL         string `json:"url,omitempty"`
	PreferSmall bool   `json:"prefer_small_media,omitempty"`
	PreferLarge bool   `json:"prefer_large_media,omitempty"`
	Above       bool   `json:"show_above_text,omitempty"`
}

// Video holds the dimensions of a video: its sides in pixels, its duration in seconds.
type Video struct {
	Width     int  `json:"width"`
	Height    int  `json:"height"`
	Duration  int  `json:"duration"`
	Streaming bool `json:"supports_streaming"`
}

// Server is the simulated server. It is an http.Handler for the paths /bot<token>/<method>.
type Server struct {
	core    *sim.Core
	opts    Options
	buckets sim.Buckets
	// webhooks delivers the updates.
	webhooks *sim.WebhookSender

	mu     sync.Mutex
	limits Limits
	bots   map[string]*bot
	chats  map[int64]*chat
	files  map[string]*file
	serial uint64
	// renameForwarded: see RenameForwarded.
	renameForwarded bool
	// scheduleVideos: see ScheduleVideos.
	scheduleVideos bool
	// presses are the presses of buttons that may be answered.
	presses map[string]press
}

type bot struct {
	id       int64
	token    string
	username string
	webhook  webhook
	// pending are the updates that no webhook has accepted yet, oldest first.
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

// remembered is the number of newest messages of a chat that are stored.
const remembered = 10_000

// New returns a server without bots and chats.
func New(core *sim.Core, opts Options) *Server {
	s := &Server{core: core, opts: opts, limits: DefaultLimits(), webhooks: sim.NewWebhookSender()}
	if opts.Limits != nil {
		s.limits = *opts.Limits
	}
	s.bots, s.chats, s.files, s.presses = map[string]*bot{}, map[int64]*chat{}, map[string]*file{}, map[string]press{}
	return s
}

var tokenForm = regexp.MustCompile(`^[1-9][0-9]{0,15}:[A-Za-z0-9_-]{3,60}$`)

// AddBot adds a bot. The token is "<digits>:<secret>"; the digits are the bot's user id.
func (s *Server) AddBot(token string) error {
	if !tokenForm.MatchString(token) {
		return errors.New("a Telegram token must be digits:secret")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.addBot(token)
	return nil
}

func (s *Server) addBot(token string) *bot {
	digits, _, _ := strings.Cut(token, ":")
	id, _ := strconv.ParseInt(digits, 10, 64) // tokenForm was checked
	b := &bot{id: id, token: token, username: "sim_" + digits + "_bot"}
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

// SetAccess changes the bots' access to a known chat. They get an update.
func (s *Server) SetAccess(chatID int64, access Access) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.chats[chatID]; c != nil && c.Access != access {
		before := c.Access
		c.Access = access
		s.changed(c, before)
	}
}

// Migrate turns the group from into the supergroup to. Calls with the old id then fail with the new id.
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

// RenameForwarded gives the file of each message that is forwarded from now on another id. The real server
// does not promise the same id.
func (s *Server) RenameForwarded() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.renameForwarded = true
}

// ScheduleVideos makes the server post videos later, as the real one does in large chats. From now on it
// answers them with message_id 0. Messages returns them with their real ids.
func (s *Server) ScheduleVideos() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.scheduleVideos = true
}

// ExpireFiles makes all present file ids invalid.
func (s *Server) ExpireFiles() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.files)
}

// Reset removes messages, files and the use of rate limits. It keeps bots, chats and the next message ids.
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

// Messages returns the messages of a chat in the order of their ids.
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

// bot returns the bot with a token; nil if it is unknown.
func (s *Server) bot(token string) *bot {
	b, known := s.bots[token]
	if !known && s.opts.AnyBot && tokenForm.MatchString(token) {
		b = s.addBot(token)
	}
	return b
}

// chat returns the chat of a chat_id, which is a number or an @username; nil if it is unknown.
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
