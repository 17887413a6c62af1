// Package twitter simulates the publishing part of X's API, version 2, as of autumn 2026: both kinds of
// credentials, chunked and simple uploads, posts, replies, edits, deletions and timelines, with rate
// windows, prices and caps.
//
// Texts in answers have X's form: short links, a link to the media at the end, and escaped &, < and >.
// Long posts are cut and have a note. The simulator has no results of polls, no likes, no quotes (X
// refuses them for self-serve apps), no subtitles, and not the older upload commands.
package twitter

import (
	"errors"
	"hash/fnv"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"autopost/internal/sim"
	"autopost/internal/sim/oauth"
)

// Platform is the simulator's name in the log and in fault rules.
const Platform = "x"

// Standing is the state of an account at X.
type Standing string

// The standings. The zero value is StandingGood.
const (
	StandingGood      Standing = ""
	StandingSuspended Standing = "suspended"
	StandingLocked    Standing = "locked"
)

// App is a developer's app. Its consumer key is for OAuth 1.0a, its client id for OAuth 2.0. An app has at
// least one of them.
type App struct {
	Name                        string
	ConsumerKey, ConsumerSecret string
	// ClientSecret is empty for a public client.
	ClientID, ClientSecret string
	// Callbacks are the registered redirect addresses of the consent page.
	Callbacks []string
	// OwnerID is the user who reads own posts at the lower price.
	OwnerID string
	// ReadOnly is an app without the permission to write by OAuth 1.0a.
	ReadOnly bool
	// Unenrolled is an app without a project.
	Unenrolled bool
}

// User is an account.
type User struct {
	ID       string // digits
	Username string
	Name     string
	// MaxLength is the longest post by weight; 280 when 0.
	MaxLength int
	// Premium accounts may edit their posts.
	Premium  bool
	Standing Standing
}

// Options are the settings of a Server.
type Options struct {
	// Limits are DefaultLimits when nil; a pointer to an empty map means no limits.
	Limits *map[string]Limit
	// AnyAccount accepts every well-formed token. An unknown token belongs to the user of its leading digits
	// ("42-abc"), else to a new user. The secret of an OAuth 1.0a key or token K is K followed by "-secret".
	AnyAccount bool
	// Processing is the processing time of a video or an animation; 0 for none.
	Processing time.Duration
	// Settle is the delay of new posts in timelines.
	Settle time.Duration
}

// Post is a stored post.
type Post struct {
	ID     string
	UserID string
	Date   time.Time
	// Text is the received text in NFC.
	Text     string
	ReplyTo  string
	MadeByAI bool
	Media    []sim.Media
	AltTexts []string
}

// Server is the simulated platform, an http.Handler.
type Server struct {
	// Consent is the page at x.com/i/oauth2/authorize.
	Consent *oauth.ConsentPage

	core *sim.Core
	opts Options

	mu         sync.Mutex
	limits     map[string]Limit
	windows    map[string]*window
	settle     time.Duration
	processing time.Duration
	apps       map[string]*app
	users      map[string]*user
	tokens     map[string]*token
	nonces     map[string]time.Time
	media      map[string]*medium
	posts      map[string]*post
	charges    []Charge
	newNames   Treatment
	oldNames   Treatment
	lastID     int64
	serial     int64
}

type app struct {
	App
	credits    int64
	limited    bool // whether credits are limited
	monthlyCap int  // 0 for none
	month      string
	posted     int
	// capEnds is the reset day of a reached spending limit; zero without one.
	capEnds time.Time
}

type user struct {
	User
	posts []*post // oldest first
}

// New returns a platform without apps and users.
func New(core *sim.Core, opts Options) *Server {
	s := &Server{
		core: core, opts: opts, limits: DefaultLimits(), settle: opts.Settle, processing: opts.Processing,
		windows: map[string]*window{}, apps: map[string]*app{}, users: map[string]*user{}, tokens: map[string]*token{},
		nonces: map[string]time.Time{}, media: map[string]*medium{}, posts: map[string]*post{},
	}
	if opts.Limits != nil {
		s.limits = *opts.Limits
	}
	s.Consent = s.newConsent()
	if opts.AnyAccount {
		s.apps[anyApp] = &app{App: App{Name: anyApp}}
	}
	return s
}

// anyApp is the app of unknown credentials with AnyAccount.
const anyApp = "any"

var digits = regexp.MustCompile(`^[0-9]{1,19}$`)

// AddApp creates or replaces an app.
func (s *Server) AddApp(a App) error {
	if a.Name == "" || a.ConsumerKey == "" && a.ClientID == "" {
		return errors.New("x app needs a name and a consumer key or a client id")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.apps[a.Name] = &app{App: a}
	return nil
}

// AddUser creates or replaces an account. A replaced account keeps its posts.
func (s *Server) AddUser(u User) error {
	if !digits.MatchString(u.ID) || u.Username == "" {
		return errors.New("x user needs an id of digits and a user name")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.addUser(u)
	return nil
}

func (s *Server) addUser(u User) *user {
	if u.Name == "" {
		u.Name = u.Username
	}
	if u.MaxLength == 0 {
		u.MaxLength = defaultLimit
	}
	known := s.users[u.ID]
	if known == nil {
		known = &user{}
		s.users[u.ID] = known
	}
	known.User = u
	return known
}

// SetStanding changes the state of a known account.
func (s *Server) SetStanding(userID string, standing Standing) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if u := s.users[userID]; u != nil {
		u.Standing = standing
	}
}

// SetSettle changes the delay of new posts in timelines.
func (s *Server) SetSettle(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.settle = d
}

// SetProcessing changes the processing time of later uploads.
func (s *Server) SetProcessing(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.processing = d
}

// Reset removes posts, media, charges and the use of limits. Apps, users and tokens stay.
func (s *Server) Reset() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.media)
	clear(s.posts)
	clear(s.windows)
	clear(s.nonces)
	s.charges = nil
	for _, u := range s.users {
		u.posts = nil
	}
	for _, a := range s.apps {
		a.posted = 0
	}
}

// Posts returns the posts of an account, oldest first.
func (s *Server) Posts(userID string) []Post {
	s.mu.Lock()
	defer s.mu.Unlock()
	u := s.users[userID]
	if u == nil {
		return nil
	}
	var out []Post
	for _, p := range u.posts {
		shown := Post{ID: p.id, UserID: userID, Date: p.date, Text: p.text, ReplyTo: p.replyTo, MadeByAI: p.madeByAI}
		for _, m := range p.media {
			shown.Media = append(shown.Media, m.described())
			shown.AltTexts = append(shown.AltTexts, m.altText)
		}
		out = append(out, shown)
	}
	return out
}

var tokenForm = regexp.MustCompile(`^[A-Za-z0-9_.:~+/=-]{6,}$`)

// userOf is the user of an unknown token with AnyAccount.
func (s *Server) userOf(token string) *user {
	id, _, cut := strings.Cut(token, "-")
	if !cut || !digits.MatchString(id) {
		h := fnv.New32a()
		_, _ = h.Write([]byte(token)) // a hash never fails
		id = strconv.FormatInt(1_000_000_000+int64(h.Sum32()), 10)
	}
	if known := s.users[id]; known != nil {
		return known
	}
	return s.addUser(User{ID: id, Username: "sim_" + id})
}

// epoch is the first millisecond of X's ids.
const epoch = 1288834974657

// newID returns an id from the time, as X does. Ids always grow.
func (s *Server) newID() string {
	s.lastID = max(s.lastID+1, (time.Now().UnixMilli()-epoch)<<22)
	return strconv.FormatInt(s.lastID, 10)
}

// newSecret returns an opaque token.
func (s *Server) newSecret(kind string) string {
	s.serial++
	return sim.Digest([]byte(kind + strconv.FormatInt(s.serial, 10) + strconv.FormatInt(time.Now().UnixNano(), 10)))[:48]
}
