// Package world puts the simulators together under one handler, for
// cmd/autopost-sim, the demo and tests:
//
//	/telegram   the Telegram Bot API (base URL for adapters)
//	/max        the MAX bot API and its upload hosts
//	/x          the API of X
//	/youtube    the YouTube Data API and its upload host
//	/x/i/oauth2/authorize         the page on which X asks for consent
//	/google/token                 Google's token endpoint
//	/google/o/oauth2/v2/auth      the page on which Google asks for consent
//	/webhook    a receiver of signed webhooks, an endpoint a path
//	/s3         an S3 store, path-style
//	/feeds      feed documents
//	/files      media files
//	/_control   what arrived, as a page and as JSON, and the faults
//	POST /_control/chats   what becomes of a chat of Telegram or MAX: {"platform", "chat_id"} and "access", "title" or "text"
//	GET /_control/pushes   what was brought to webhooks, and how it was answered
package world

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

// Options are the settings of a World. The zero value knows no account, and
// limits rates as the platforms do.
type Options struct {
	Telegram telegram.Options
	// MAX's Prefix is set by New.
	MAX     maxmessenger.Options
	X       twitter.Options
	YouTube youtube.Options
	Webhook webhook.Options
	Store   objectstore.Options
	// LogSize is how many requests are remembered, 10,000 when not positive.
	LogSize int
}

// World is all simulated platforms, an http.Handler.
type World struct {
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

// New returns a world without effect on anything outside of it.
func New(opts Options) *World {
	core := sim.NewCore(opts.LogSize)
	opts.MAX.Prefix = "/max"
	w := &World{
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
	w.mux.Handle("/telegram/", http.StripPrefix("/telegram", w.Telegram))
	w.mux.Handle("/max/", http.StripPrefix("/max", w.MAX))
	w.mux.Handle("/x/", http.StripPrefix("/x", w.X))
	w.mux.Handle("/youtube/", http.StripPrefix("/youtube", w.YouTube))
	w.mux.Handle("/x/i/oauth2/authorize", w.X.Consent)
	w.mux.Handle("/google/token", w.YouTube.Tokens())
	w.mux.Handle("/google/o/oauth2/v2/auth", w.YouTube.Consent)
	w.mux.Handle("/webhook/", http.StripPrefix("/webhook", w.Webhook))
	w.mux.Handle("/s3/", http.StripPrefix("/s3", w.Store))
	w.mux.Handle("/feeds/", http.StripPrefix("/feeds", w.Feeds))
	w.mux.Handle("/files/", http.StripPrefix("/files", w.Files))
	w.mux.HandleFunc("POST /_control/chats", w.changeChat)
	w.mux.HandleFunc("GET /_control/pushes", w.showPushes)
	w.mux.Handle("/_control/", http.StripPrefix("/_control", control.New(core, w.Reset)))
	w.mux.Handle("GET /{$}", http.RedirectHandler("/_control/", http.StatusFound))
	return w
}

// Reset forgets messages, media, documents, spent rates, faults and the log.
// Accounts, chats and the pace stay.
func (w *World) Reset() {
	w.Telegram.Reset()
	w.MAX.Reset()
	w.X.Reset()
	w.YouTube.Reset()
	w.Webhook.Reset()
	w.Store.Reset()
	w.Feeds.Reset()
	w.Files.Reset()
	w.Faults.Clear()
	w.Log.Reset()
}

// Close ends what the platforms do by themselves.
func (w *World) Close() {
	w.Telegram.Close()
	w.MAX.Close()
}

// ServeHTTP answers one request of any platform.
func (w *World) ServeHTTP(rw http.ResponseWriter, r *http.Request) { w.mux.ServeHTTP(rw, r) }
