package main

import (
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync/atomic"
	"time"
)

// callback is what came of a consent: a code, or why there is none.
type callback struct {
	code string
	err  error
}

// awaitCode serves the callback until the browser comes with the state that was
// given to the platform; anything else is answered and waited past. It closes the listener.
func awaitCode(ctx context.Context, listener net.Listener, state string) (string, error) {
	came := make(chan callback, 1)
	var strangers atomic.Int64
	server := &http.Server{
		Handler: callbackHandler(state, came, &strangers), ReadHeaderTimeout: 10 * time.Second, ReadTimeout: 10 * time.Second, MaxHeaderBytes: 32 << 10,
	}
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(listener) }()
	var found callback
	select {
	case found = <-came:
	case err := <-failed:
		return "", fmt.Errorf("serve the callback: %w", err)
	case <-ctx.Done():
		found.err = errors.New("nobody came back from the platform: open the address again by a new autopost credential link")
		if n := strangers.Load(); n > 0 {
			found.err = fmt.Errorf("%w (%d answers came that belong to another request, by their state: open the newest address alone)", found.err, n)
		}
	}
	stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	_ = server.Shutdown(stop) // the browser has its answer, or has gone
	return found.code, found.err
}

// callbackHandler counts the answers that belong to another request.
func callbackHandler(state string, came chan<- callback, strangers *atomic.Int64) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /callback", func(w http.ResponseWriter, r *http.Request) {
		query := r.URL.Query()
		if subtle.ConstantTimeCompare([]byte(query.Get("state")), []byte(state)) != 1 {
			strangers.Add(1)
			http.Error(w, "This is not the answer that is waited for: it belongs to another request. Open the address that the terminal shows now.", http.StatusBadRequest)
			return
		}
		found := callback{code: query.Get("code")}
		switch {
		case query.Get("error") != "":
			found.err = fmt.Errorf("the platform gave no permission: %.100q: link again, and allow the app what it asks for", query.Get("error"))
		case found.code == "":
			found.err = errors.New("the platform came back without a code")
		}
		text := "Done: go back to the terminal. This page can be closed."
		if found.err != nil {
			text = "No permission was given: see the terminal. This page can be closed."
		}
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		_, _ = w.Write([]byte(text))
		select {
		case came <- found:
		default: // it came before
		}
	})
	return mux
}
