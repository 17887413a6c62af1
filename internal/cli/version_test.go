package cli

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestVersionIsAFlagAndACommand(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"--version"}, {"version"}} {
		var out bytes.Buffer
		root := rootCommand()
		root.SetOut(&out)
		root.SetArgs(args)
		require.NoError(t, root.ExecuteContext(t.Context()))
		require.Regexp(t, `^autopost \S+\n$`, out.String(), args)
	}
}
