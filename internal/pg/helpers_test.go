package pg_test

import (
	"encoding/json"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
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

// field returns one field of a JSON object, as JSON.
func field(t *testing.T, object json.RawMessage, name string) string {
	t.Helper()
	var fields map[string]json.RawMessage
	require.NoError(t, json.Unmarshal(object, &fields))
	return string(fields[name])
}
