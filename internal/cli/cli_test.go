package cli

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestMistypedCommandsGetSuggestions(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		args []string
		says string
	}{
		{[]string{"chanel", "list"}, `unknown command "chanel": run autopost channel`},
		{[]string{"channel", "lst"}, `unknown command "lst": run autopost channel list`},
		{[]string{"help", "channel", "resme"}, `unknown command "resme": run autopost channel resume`},
		{[]string{"dance"}, `unknown command "dance": run autopost --help`},
	} {
		root := rootCommand()
		root.SetArgs(c.args)
		err := root.ExecuteContext(t.Context())
		require.ErrorContains(t, err, c.says)
		require.ErrorAs(t, err, &usageError{}, c.args)
	}
}

// The list of commands has a heading for each of them.
func TestEachCommandHasAGroup(t *testing.T) {
	t.Parallel()
	root := rootCommand()
	root.InitDefaultCompletionCmd()
	for _, cmd := range root.Commands() {
		require.NotEmpty(t, cmd.GroupID, cmd.Name())
	}
	require.NotContains(t, root.UsageString(), "Additional Commands")
}
