package cli

import (
	"strings"
	"testing"
	"unicode"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"
)

// shortLimit is the largest number of characters of a short help text.
const shortLimit = 60

func TestHelpTexts(t *testing.T) {
	t.Parallel()
	root := rootCommand()
	for _, cmd := range commandsOf(root) {
		if n := len([]rune(cmd.Short)); n > shortLimit {
			t.Errorf("%s: the short text has %d characters", cmd.CommandPath(), n)
		}
		require.True(t, unicode.IsUpper([]rune(cmd.Short)[0]), "%s: %s", cmd.CommandPath(), cmd.Short)
		require.False(t, strings.HasSuffix(cmd.Short, "."), "%s: %s", cmd.CommandPath(), cmd.Short)
		for line := range strings.Lines(cmd.Long) {
			require.LessOrEqual(t, len([]rune(line)), 95, "%s: %s", cmd.CommandPath(), line)
		}
	}
}

// Each example is a command line that the flag parser accepts.
func TestExamplesParse(t *testing.T) {
	t.Parallel()
	for _, cmd := range commandsOf(rootCommand()) {
		if cmd.HasSubCommands() && cmd.Name() != "migrate" {
			continue
		}
		if cmd.Example == "" {
			t.Errorf("%s has no example", cmd.CommandPath())
			continue
		}
		for line := range strings.SplitSeq(strings.ReplaceAll(cmd.Example, "\\\n", ""), "\n") {
			require.True(t, strings.HasPrefix(line, "  "), "%s: an example is indented by two spaces", cmd.CommandPath())
			words := shellWords(line)
			for strings.Contains(words[0], "=") { // environment
				words = words[1:]
			}
			require.Equal(t, "autopost", words[0], line)
			root := rootCommand()
			found, args, err := root.Find(words[1:])
			require.NoError(t, err, line)
			require.Equal(t, cmd.CommandPath(), found.CommandPath(), line)
			require.NoError(t, found.ParseFlags(args), line)
			require.NoError(t, found.ValidateArgs(found.Flags().Args()), line)
		}
	}
}

// commandsOf lists a command and all below it.
func commandsOf(cmd *cobra.Command) []*cobra.Command {
	all := []*cobra.Command{cmd}
	for _, c := range cmd.Commands() {
		if c.Name() != "help" && c.Name() != "completion" {
			all = append(all, commandsOf(c)...)
		}
	}
	return all
}

// shellWords splits a command line at spaces, with single and double quotes. It stops at a
// redirection.
func shellWords(line string) []string {
	var words []string
	var word strings.Builder
	var quote rune
	inWord := false
	for _, r := range line + " " {
		switch {
		case quote != 0 && r == quote:
			quote = 0
		case quote == 0 && (r == '\'' || r == '"'):
			quote, inWord = r, true
		case quote == 0 && r == '>':
			return words
		case quote == 0 && r == ' ':
			if inWord {
				words = append(words, word.String())
			}
			word.Reset()
			inWord = false
		default:
			word.WriteRune(r)
			inWord = true
		}
	}
	return words
}
