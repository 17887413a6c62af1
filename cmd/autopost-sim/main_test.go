package main

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestServesUntilStopped(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	read, write := io.Pipe()
	code := make(chan int, 1)
	go func() { code <- run(ctx, []string{"--listen", "127.0.0.1:0"}, write, io.Discard) }()
	lines := bufio.NewScanner(read)
	bases := map[string]string{}
	for len(bases) < 5 && lines.Scan() {
		name, base, _ := strings.Cut(lines.Text(), "=")
		bases[name] = base
	}
	for name, path := range map[string]string{
		"AUTOPOST_TELEGRAM_API_URL": "/bot123:abcdef/getMe",
		"AUTOPOST_MAX_API_URL":      "/me",
		"AUTOPOST_X_API_URL":        "/2/users/me",
		"AUTOPOST_YOUTUBE_API_URL":  "/youtube/v3/channels?part=id&mine=true",
	} {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, bases[name]+path, nil)
		require.NoError(t, err)
		request.Header.Set("Authorization", authorization(name))
		response, err := http.DefaultClient.Do(request)
		require.NoError(t, err)
		require.NoError(t, response.Body.Close())
		require.Equal(t, 200, response.StatusCode)
	}
	cancel()
	require.Equal(t, 0, <-code)
}

func authorization(name string) string {
	if name == "AUTOPOST_MAX_API_URL" {
		return "any-token"
	}
	return "Bearer any-token"
}

func TestMisuse(t *testing.T) {
	for _, args := range [][]string{
		{"--colour", "red"}, {"serve"}, {"--listen", "9090"}, {"--listen", "0.0.0.0:9090"}, {"--listen", "example.org:9090"}, {"--listen", ":9090"},
	} {
		require.Equal(t, exitMisuse, run(t.Context(), args, io.Discard, io.Discard), "%v", args)
	}
	require.Equal(t, 0, run(t.Context(), []string{"--help"}, io.Discard, io.Discard))
	require.Equal(t, exitFailure, run(t.Context(), []string{"--listen", "127.0.0.1:999999"}, io.Discard, io.Discard))
}
