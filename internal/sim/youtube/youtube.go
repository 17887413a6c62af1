// Package youtube simulates the publishing part of the YouTube Data API, version 3, as of autumn 2026:
// resumable uploads, thumbnails, captions, comments, the state of videos, lists, both daily quotas, and Google's
// token endpoint.
//
// One host serves the API and the uploads. Session addresses are absolute. The simulator has no other
// uploads, no replies to comments and no settings of playlists.
package youtube

import (
	"errors"
	"hash/fnv"
	"regexp"
	"strconv"
	"sync"
	"time"
	_ "time/tzdata" // quotas end at midnight in California, wherever this runs

	"autopost/internal/sim"
	"autopost/internal/sim/oauth"
)

// Platform is the simulator's name in the log and in fault rules.
const Platform = "youtube"

// Project is a Google Cloud project with its OAuth client.
type Project struct {
	ID                     string
	ClientID, ClientSecret string
	// Callbacks are the registered redirect addresses of the consent page.
	Callbacks []string
	// Unaudited projects create only private videos.
	Unaudited bool
}

// Channel is a YouTube channel.
type Channel struct {
	ID    string
	Title string
	// Unverified channels must not set thumbnails.
	Unverified bool
	// CommentsOff refuses comments on all its videos.
	CommentsOff bool
	// Uploads is the daily limit of videos; 0 for no limit.
	Uploads int
	// Playlists are the ids of its playlists, without the playlist of its uploads.
	Playlists []string
	// Refusal is a reason, such as "channelSuspended", that refuses every call; "" for none.
	Refusal string
}

// Quotas are the daily quotas of a project. The day starts at midnight in California.
type Quotas struct {
	Units, Uploads, Searches int
}

// DefaultQuotas returns the published quotas.
func DefaultQuotas() Quotas { return Quotas{Units: 10_000, Uploads: 100, Searches: 100} }

// Lags are the delays after an upload.
type Lags struct {
	// Processing is the time until a video is processed, Found until thumbnails and captions find it,
	// Listed until lists and searches show it.
	Processing, Found, Listed time.Duration
}

// Options are the settings of a Server.
type Options struct {
	// Quotas are DefaultQuotas when nil; a quota of 0 means no limit.
	Quotas *Quotas
	// AnyAccount accepts every well-formed token as one of a channel, and every client as one of a project.
	AnyAccount bool
	Lags       Lags
	// TakeAtMost is the number of bytes that one request stores; 0 for all.
	TakeAtMost int64
}

// Video is a stored video.
type Video struct {
	ID, ChannelID string
	Date          time.Time
	Title         string
	Description   string
	Tags          []string
	Privacy       string
	PublishAt     time.Time
	Synthetic     bool
	Media         sim.Media
	Thumbnail     sim.Media
	Captions      []string // "language name"
	Comments      []string // oldest first
	Language      string
	License       string
	Embeddable    bool
	// Notified reports that subscribers were notified.
	Notified bool
	// Playlists are the playlists of the video, one entry for each addition.
	Playlists      []string
	UploadStatus   string
	RejectedReason string
}

// Server is the simulated platform, an http.Handler for the paths of the API.
type Server struct {
	// Consent is the page at accounts.google.com/o/oauth2/v2/auth.
	Consent *oauth.ConsentPage

	core *sim.Core
	opts Options

	mu       sync.Mutex
	quotas   Quotas
	lags     Lags
	most     int64
	projects map[string]*project
	channels map[string]*channel
	tokens   map[string]*token
	sessions map[string]*session
	videos   map[string]*video
	spent    map[string]int
	charges  []Charge
	serial   int64
}

type project struct{ Project }

type channel struct {
	Channel
	videos    []*video // oldest first
	playlists map[string][]*video
}

// New returns a platform without projects and channels.
func New(core *sim.Core, opts Options) *Server {
	s := &Server{
		core: core, opts: opts, quotas: DefaultQuotas(), lags: opts.Lags, most: opts.TakeAtMost,
		projects: map[string]*project{}, channels: map[string]*channel{}, tokens: map[string]*token{},
		sessions: map[string]*session{}, videos: map[string]*video{}, spent: map[string]int{},
	}
	if opts.Quotas != nil {
		s.quotas = *opts.Quotas
	}
	s.Consent = s.newConsent()
	return s
}

// AddProject creates or replaces a project.
func (s *Server) AddProject(p Project) error {
	if p.ID == "" || p.ClientID == "" || p.ClientSecret == "" {
		return errors.New("youtube project needs an id, a client id and a client secret")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if known := s.projects[p.ID]; known != nil {
		known.Project = p
		return nil
	}
	s.projects[p.ID] = &project{p}
	return nil
}

var channelForm = regexp.MustCompile(`^UC[A-Za-z0-9_-]{4,22}$`)

// AddChannel creates or replaces a channel. A replaced channel keeps its videos.
func (s *Server) AddChannel(c Channel) error {
	if !channelForm.MatchString(c.ID) {
		return errors.New("youtube channel needs an id that begins with UC")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.addChannel(c)
	return nil
}

func (s *Server) addChannel(c Channel) *channel {
	if c.Title == "" {
		c.Title = "Channel " + c.ID
	}
	known := s.channels[c.ID]
	if known == nil {
		known = &channel{playlists: map[string][]*video{}}
		s.channels[c.ID] = known
	}
	known.Channel = c
	return known
}

// SetLags changes the delays.
func (s *Server) SetLags(l Lags) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lags = l
}

// SetTakeAtMost changes the number of bytes that one request stores; 0 for all.
func (s *Server) SetTakeAtMost(bytes int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.most = bytes
}

// ExpireSessions ends all upload sessions. They answer 410 if gone is true, else 404.
func (s *Server) ExpireSessions(gone bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, u := range s.sessions {
		u.expires, u.gone = time.Now(), gone
	}
}

// Reset removes videos, sessions and the use of quotas. Projects, channels and tokens stay.
func (s *Server) Reset() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.videos)
	clear(s.sessions)
	clear(s.spent)
	s.charges = nil
	for _, c := range s.channels {
		c.videos = nil
		clear(c.playlists)
	}
}

// Videos returns the videos of a channel, oldest first.
func (s *Server) Videos(channelID string) []Video {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.channels[channelID]
	if c == nil {
		return nil
	}
	var out []Video
	for _, v := range c.videos {
		status, reason := v.uploadStatus()
		shown := Video{
			ID: v.id, ChannelID: c.ID, Date: v.date, Title: v.meta.Snippet.Title, Description: v.meta.Snippet.Description, Tags: v.meta.Snippet.Tags,
			Privacy: v.privacy(), PublishAt: v.publishAt, Synthetic: v.meta.Status.ContainsSyntheticMedia, Media: v.media, Thumbnail: v.thumbnail,
			UploadStatus: status, RejectedReason: reason, Language: v.meta.Snippet.DefaultLanguage, License: v.meta.Status.License,
			Embeddable: v.meta.Status.Embeddable == nil || *v.meta.Status.Embeddable, Notified: v.notified,
		}
		for _, id := range c.Playlists {
			for _, in := range c.playlists[id] {
				if in == v {
					shown.Playlists = append(shown.Playlists, id)
				}
			}
		}
		for _, m := range v.comments {
			shown.Comments = append(shown.Comments, m.text)
		}
		for _, caption := range v.captions {
			shown.Captions = append(shown.Captions, caption.language+" "+caption.name)
		}
		out = append(out, shown)
	}
	return out
}

var tokenForm = regexp.MustCompile(`^[A-Za-z0-9_.:~+/=-]{6,}$`)

// channelOf is the channel of an unknown token with AnyAccount.
func (s *Server) channelOf(token string) *channel {
	h := fnv.New64a()
	_, _ = h.Write([]byte(token)) // a hash never fails
	id := "UCsim" + strconv.FormatUint(h.Sum64(), 36)
	if known := s.channels[id]; known != nil {
		return known
	}
	return s.addChannel(Channel{ID: id})
}

// projectOf is the project of an unknown client with AnyAccount.
func (s *Server) projectOf(clientID string) *project {
	if s.projects[clientID] == nil {
		s.projects[clientID] = &project{Project{ID: clientID, ClientID: clientID}}
	}
	return s.projects[clientID]
}

// newName returns an opaque name.
func (s *Server) newName(kind string, length int) string {
	s.serial++
	return sim.Digest([]byte(kind + strconv.FormatInt(s.serial, 10) + strconv.FormatInt(time.Now().UnixNano(), 10)))[:length]
}
