// Package world puts the simulators together under one handler, for
// cmd/autopost-sim, the demo and tests:
//
//	/telegram   the Telegram Bot API (base URL for adapters)
//	/max        the MAX bot API and its upload hosts
//	/feeds      feed documents
//	/files      media files
//	/_control   what arrived, as a page and as JSON, and the faults
package world

import (
	"net/http"

	"autopost/internal/sim"
	"autopost/internal/sim/control"
	"autopost/internal/sim/feeds"
	"autopost/internal/sim/maxmessenger"
	"autopost/internal/sim/telegram"
)

// Options are the settings of a World. The zero value knows no bot and no chat,
// and limits rates as the platforms do.
type Options struct {
	Telegram telegram.Options
	// MAX's Prefix is set by New.
	MAX maxmessenger.Options
	// LogSize is how many requests are remembered, 10,000 when not positive.
	LogSize int
}

// World is all simulated platforms, an http.Handler.
type World struct {
	Log      *sim.Log
	Faults   *sim.Faults
	Telegram *telegram.Server
	MAX      *maxmessenger.Server
	Feeds    *feeds.Server
	Files    *feeds.Server

	mux *http.ServeMux
}

// New returns a world without effect on anything outside of it.
func New(opts Options) *World {
	core := sim.NewCore(opts.LogSize)
	opts.MAX.Prefix = "/max"
	w := &World{
		Log: core.Log, Faults: core.Faults,
		Telegram: telegram.New(core, opts.Telegram),
		MAX:      maxmessenger.New(core, opts.MAX),
		Feeds:    feeds.NewFeeds(core),
		Files:    feeds.NewFiles(core),
		mux:      http.NewServeMux(),
	}
	w.mux.Handle("/telegram/", http.StripPrefix("/telegram", w.Telegram))
	w.mux.Handle("/max/", http.StripPrefix("/max", w.MAX))
	w.mux.Handle("/feeds/", http.StripPrefix("/feeds", w.Feeds))
	w.mux.Handle("/files/", http.StripPrefix("/files", w.Files))
	w.mux.Handle("/_control/", http.StripPrefix("/_control", control.New(core, w.Reset)))
	w.mux.Handle("GET /{$}", http.RedirectHandler("/_control/", http.StatusFound))
	return w
}

// Reset forgets messages, media, documents, spent rates, faults and the log.
// Bots and chats stay.
func (w *World) Reset() {
	w.Telegram.Reset()
	w.MAX.Reset()
	w.Feeds.Reset()
	w.Files.Reset()
	w.Faults.Clear()
	w.Log.Reset()
}

// ServeHTTP answers one request of any platform.
func (w *World) ServeHTTP(rw http.ResponseWriter, r *http.Request) { w.mux.ServeHTTP(rw, r) }
