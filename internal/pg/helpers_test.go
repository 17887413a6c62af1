package pg_test

import (
	"log/slog"
	"testing"
	"time"
)

func discard() *slog.Logger { return slog.New(slog.DiscardHandler) }

func waitFor(t *testing.T, bell <-chan struct{}) {
	t.Helper()
	select {
	case <-bell:
	case <-time.After(10 * time.Second):
		t.Fatal("the bell did not ring")
	}
}
