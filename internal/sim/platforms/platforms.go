// Package platforms serves all simulators under one handler, for cmd/autopost-sim, the demo and tests:
//
//	/telegram   the Telegram Bot API (base URL for adapters)
//	/max        the MAX bot API and its upload hosts
//	/x          the API of X
//	/youtube    the YouTube Data API and its upload host
//	/x/i/oauth2/authorize         X's consent page
//	/google/token                 Google's token endpoint
//	/google/o/oauth2/v2/auth      Google's consent page
//	/webhook    a receiver of signed webhooks, one endpoint per path
//	/s3         an S3 store, path-style
//	/feeds      feed documents
//	/files      media files
//	/_control   the request log, as a page and as JSON, and the faults
//	POST /_control/chats   change a chat of Telegram or MAX: {"platform", "chat_id"} and "access", "title" or "text"
//	GET /_control/pushes   the webhook deliveries and their answers
package platforms

import (
	"net/http"

	"autopost/internal/sim"
	"autopost/internal/sim/control"
	"autopost/internal/sim/feeds"
	"autopost/internal/sim/maxmessenger"
	"autopost/internal/sim/objectstore"
	"autopost/internal/sim/telegram"
	"autopost/internal/sim/twitter"
	"autopost/internal/sim/webhook"
	"autopost/internal/sim/youtube"
)

// Options configure a Server. The zero value has no accounts and the platforms' own rate limits.
type Options struct {
	Telegram telegram.Options
	// New sets MAX's Prefix.
	MAX     maxmessenger.Options
	X       twitter.Options
	YouTube youtube.Options
	Webhook webhook.Options
	Store   objectstore.Options
	// LogSize is the number of requests that the log keeps; 10,000 if not positive.
	LogSize int
}

// Server contains all simulated platforms. It is an http.Handler.
type Server struct {
	Log      *sim.Log
	Faults   *sim.Faults
	Pace     *sim.Pace
	Telegram *telegram.Server
	MAX      *maxmessenger.Server
	X        *twitter.Server
	YouTube  *youtube.Server
	Webhook  *webhook.Server
	Store    *objectstore.Server
	Feeds    *feeds.Server
	Files    *feeds.Server

	mux *http.ServeMux
}

// New returns a Server. It has no external effects.
func New(opts Options) *Server {
	core := sim.NewCore(opts.LogSize)
	opts.MAX.Prefix = "/max"
	s := &Server{
		Log: core.Log, Faults: core.Faults, Pace: core.Pace,
		Telegram: telegram.New(core, opts.Telegram),
		MAX:      maxmessenger.New(core, opts.MAX),
		X:        twitter.New(core, opts.X),
		YouTube:  youtube.New(core, opts.YouTube),
		Webhook:  webhook.New(core, opts.Webhook),
		Store:    objectstore.New(core, opts.Store),
		Feeds:    feeds.NewFeeds(core),
		Files:    feeds.NewFiles(core),
		mux:      http.NewServeMux(),
	}
	s.mux.Handle("/telegram/", http.StripPrefix("/telegram", s.Telegram))
	s.mux.Handle("/max/", http.StripPrefix("/max", s.MAX))
	s.mux.Handle("/x/", http.StripPrefix("/x", s.X))
	s.mux.Handle("/youtube/", http.StripPrefix("/youtube", s.YouTube))
	s.mux.Handle("/x/i/oauth2/authorize", s.X.Consent)
	s.mux.Handle("/google/token", s.YouTube.Tokens())
	s.mux.Handle("/google/o/oauth2/v2/auth", s.YouTube.Consent)
	s.mux.Handle("/webhook/", http.StripPrefix("/webhook", s.Webhook))
	s.mux.Handle("/s3/", http.StripPrefix("/s3", s.Store))
	s.mux.Handle("/feeds/", http.StripPrefix("/feeds", s.Feeds))
	s.mux.Handle("/files/", http.StripPrefix("/files", s.Files))
	s.mux.HandleFunc("POST /_control/chats", s.changeChat)
	s.mux.HandleFunc("GET /_control/pushes", s.showPushes)
	s.mux.Handle("/_control/", http.StripPrefix("/_control", control.New(core, s.Reset)))
	s.mux.Handle("GET /{$}", http.RedirectHandler("/_control/", http.StatusFound))
	return s
}

// Reset removes messages, media, documents, used rates, faults and the log. Accounts, chats and the
// pace stay.
func (s *Server) Reset() {
	s.Telegram.Reset()
	s.MAX.Reset()
	s.X.Reset()
	s.YouTube.Reset()
	s.Webhook.Reset()
	s.Store.Reset()
	s.Feeds.Reset()
	s.Files.Reset()
	s.Faults.Clear()
	s.Log.Reset()
}

// Close stops the background work of the platforms.
func (s *Server) Close() {
	s.Telegram.Close()
	s.MAX.Close()
}

// ServeHTTP answers one request of any platform.
func (s *Server) ServeHTTP(rw http.ResponseWriter, r *http.Request) { s.mux.ServeHTTP(rw, r) }
