package cli

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"
)

func TestDurationsMayBeInDays(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]time.Duration{
		"90s": 90 * time.Second, "2d": 48 * time.Hour, "1d12h": 36 * time.Hour, "0d": 0, "0s": 0, "-1h": -time.Hour,
	} {
		var got time.Duration
		cmd := &cobra.Command{}
		durationFlag(cmd, &got, "for", time.Hour, "time")
		require.NoError(t, cmd.ParseFlags([]string{"--for=" + text}), text)
		require.Equal(t, want, got, text)
	}
	for _, text := range []string{"", "d", "2", "2days", "1h2d", "soon", "999999d"} {
		var d duration
		require.ErrorContains(t, d.Set(text), "write 90s, 2h30m or 2d", text)
	}
}

// All flags for a duration have the same grammar.
func TestDurationFlagsHaveOneGrammar(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("*.go")
	require.NoError(t, err)
	for _, name := range files {
		text, err := os.ReadFile(name)
		require.NoError(t, err)
		require.NotContains(t, string(text), "Flags()."+"Duration", name+": use durationFlag")
	}
}
