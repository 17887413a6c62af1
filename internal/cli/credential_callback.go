package cli

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

// consentAnswer is the answer of the platform: a code, or the reason why it gave none.
type consentAnswer struct {
	code string
	err  error
}

// awaitCode serves the callback until the browser brings the given state. It rejects all
// other requests. It closes the listener.
func awaitCode(ctx context.Context, listener net.Listener, state string) (string, error) {
	answers := make(chan consentAnswer, 1)
	var mismatches atomic.Int64
	server := &http.Server{
		Handler: callbackHandler(state, answers, &mismatches), ReadHeaderTimeout: 10 * time.Second, ReadTimeout: 10 * time.Second, MaxHeaderBytes: 32 << 10,
	}
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(listener) }()
	var found consentAnswer
	select {
	case found = <-answers:
	case err := <-failed:
		return "", fmt.Errorf("serve the callback: %w", err)
	case <-ctx.Done():
		found.err = errors.New("no answer from the platform in time: run autopost credential link again")
		if n := mismatches.Load(); n > 0 {
			found.err = fmt.Errorf("%w (%d answers belonged to another request: open only the newest address)", found.err, n)
		}
	}
	stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	_ = server.Shutdown(stop) // the browser already has its answer
	return found.code, found.err
}

// callbackHandler serves the callback. It counts the requests with another state.
func callbackHandler(state string, answers chan<- consentAnswer, mismatches *atomic.Int64) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /callback", func(w http.ResponseWriter, r *http.Request) {
		query := r.URL.Query()
		if subtle.ConstantTimeCompare([]byte(query.Get("state")), []byte(state)) != 1 {
			mismatches.Add(1)
			http.Error(w, "This answer belongs to another request. Open the address that the terminal shows now.", http.StatusBadRequest)
			return
		}
		found := consentAnswer{code: query.Get("code")}
		switch {
		case query.Get("error") != "":
			found.err = fmt.Errorf("the platform refused the permission with %.100q: run the command again and allow all that the app requests", query.Get("error"))
		case found.code == "":
			found.err = errors.New("the platform answered without a code: run the command again")
		}
		text := "Done. Return to the terminal; you can close this page."
		if found.err != nil {
			text = "The permission was not given. Read the terminal; you can close this page."
		}
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		_, _ = w.Write([]byte(text))
		select {
		case answers <- found:
		default: // an answer is already there
		}
	})
	return mux
}
