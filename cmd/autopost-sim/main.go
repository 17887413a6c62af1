// Command autopost-sim serves the simulated platforms, for demonstrations and for trying workflows
// without a real account. It accepts every well-formed token and creates chats at their first use.
// Package platforms lists its paths; each platform's package describes its credentials.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"autopost/internal/sim/maxmessenger"
	"autopost/internal/sim/objectstore"
	"autopost/internal/sim/platforms"
	"autopost/internal/sim/telegram"
	"autopost/internal/sim/twitter"
	"autopost/internal/sim/webhook"
	"autopost/internal/sim/youtube"
)

const (
	exitFailure = 1
	exitMisuse  = 2
	// grace bounds the end of running requests after a signal. A request that hangs by a fault does not
	// end before.
	grace = 2 * time.Second
	// processing is the processing time of a video; settle is the delay until lists show new posts.
	processing = 5 * time.Second
	settle     = 3 * time.Second
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// run serves until ctx ends and returns the exit code.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	flags := flag.NewFlagSet("autopost-sim", flag.ContinueOnError)
	flags.SetOutput(stderr)
	listen := flags.String("listen", "127.0.0.1:9090", "loopback address to listen on")
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return 0
		}
		return exitMisuse
	}
	if flags.NArg() > 0 {
		fmt.Fprintf(stderr, "autopost-sim takes only flags, got arguments %q\n", flags.Args())
		return exitMisuse
	}
	if err := loopback(*listen); err != nil {
		fmt.Fprintln(stderr, err)
		return exitMisuse
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", *listen)
	if err != nil {
		fmt.Fprintln(stderr, err)
		return exitFailure
	}
	base := "http://" + listener.Addr().String()
	for _, at := range [][2]string{
		{"TELEGRAM_API", "/telegram"}, {"MAX_API", "/max"}, {"X_API", "/x"}, {"YOUTUBE_API", "/youtube"}, {"GOOGLE_TOKEN", "/google/token"},
	} {
		fmt.Fprintf(stdout, "AUTOPOST_%s_URL=%s%s\n", at[0], base, at[1])
	}
	fmt.Fprintf(stderr, "requests are shown at %s/_control/\n", base)
	if err := serve(ctx, listener); err != nil {
		fmt.Fprintln(stderr, err)
		return exitFailure
	}
	return 0
}

// loopback rejects addresses that other machines could reach: the simulators have no authentication.
func loopback(address string) error {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return fmt.Errorf("listen address %q: %w", address, err)
	}
	if ip := net.ParseIP(host); host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return fmt.Errorf("listen address must be a loopback address, got %q", address)
	}
	return nil
}

func serve(ctx context.Context, listener net.Listener) error {
	server := &http.Server{
		Handler: platforms.New(platforms.Options{
			Telegram: telegram.Options{AnyBot: true, AnyChat: true, Local: true},
			MAX:      maxmessenger.Options{AnyBot: true, AnyChat: true, AnyHook: true},
			X:        twitter.Options{AnyAccount: true, Processing: processing, Settle: settle},
			YouTube: youtube.Options{AnyAccount: true, Lags: youtube.Lags{
				Processing: processing, Found: time.Second, Listed: settle,
			}},
			Webhook: webhook.Options{AnyEndpoint: true},
			Store:   objectstore.Options{AnyKey: true},
		}),
		ReadHeaderTimeout: 10 * time.Second,
	}
	done := make(chan error, 1)
	go func() { done <- server.Serve(listener) }()
	select {
	case err := <-done:
		return fmt.Errorf("serve simulators: %w", err)
	case <-ctx.Done():
	}
	stopping, cancel := context.WithTimeout(context.WithoutCancel(ctx), grace)
	defer cancel()
	if err := server.Shutdown(stopping); err != nil {
		// Close ends requests that hang by a fault.
		if err := server.Close(); err != nil {
			return fmt.Errorf("stop simulators: %w", err)
		}
	}
	return nil
}
