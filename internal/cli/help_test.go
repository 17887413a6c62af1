package cli

import (
	"os"
	"regexp"
	"strings"
	"testing"
	"unicode"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
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

// listingLine is a line of the table of the end-to-end test of lists.
var listingLine = regexp.MustCompile(`"([a-z -]+)": \{`)

// The end-to-end test of lists runs each command that prints rows.
func TestEachListIsTested(t *testing.T) {
	t.Parallel()
	source, err := os.ReadFile("../../test/e2e/lists_test.go")
	require.NoError(t, err)
	_, rest, _ := strings.Cut(string(source), "var listings = ")
	table, _, _ := strings.Cut(rest, "\n}\n")
	var tested, listed []string
	for _, line := range listingLine.FindAllStringSubmatch(table, -1) {
		tested = append(tested, line[1])
	}
	for _, cmd := range commandsOf(rootCommand()) {
		if cmd.Flags().Lookup("wide") != nil {
			listed = append(listed, strings.TrimPrefix(cmd.CommandPath(), "autopost "))
		}
	}
	require.ElementsMatch(t, listed, tested)
}

// enumeration is a list of values in the usage of a flag.
var enumeration = regexp.MustCompile(`^(?:[^(]*: )?[\w-]+(?:, [\w-]+)* or [\w-]+(?: \(|$|;)`)

// Flags whose usage lists the accepted values complete them.
func TestEnumeratedFlagsComplete(t *testing.T) {
	t.Parallel()
	checked := 0
	for _, cmd := range commandsOf(rootCommand()) {
		cmd.Flags().VisitAll(func(flag *pflag.Flag) {
			if flag.Value.Type() == "bool" || !enumeration.MatchString(flag.Usage) {
				return
			}
			checked++
			complete, ok := cmd.GetFlagCompletionFunc(flag.Name)
			if !ok {
				t.Errorf("%s --%s lists values that the shell does not complete: %s", cmd.CommandPath(), flag.Name, flag.Usage)
				return
			}
			values, _ := complete(cmd, nil, "")
			for _, value := range values {
				require.Contains(t, flag.Usage, value, "%s --%s", cmd.CommandPath(), flag.Name)
			}
		})
	}
	require.Greater(t, checked, 20)
}

// Rows that can be disabled can be enabled again, each by a command.
func TestDisableHasEnable(t *testing.T) {
	t.Parallel()
	for _, cmd := range commandsOf(rootCommand()) {
		if cmd.Name() != "disable" {
			continue
		}
		other, _, err := cmd.Parent().Find([]string{"enable"})
		require.NoError(t, err)
		require.Equal(t, "enable", other.Name(), cmd.CommandPath())
	}
}

// Each duration accepts days, and no flag is a bare number of seconds.
func TestDurationsHaveOneForm(t *testing.T) {
	t.Parallel()
	for _, cmd := range commandsOf(rootCommand()) {
		cmd.Flags().VisitAll(func(flag *pflag.Flag) {
			if flag.Value.Type() == "duration" {
				require.NoError(t, flag.Value.Set("2d"), "%s --%s", cmd.CommandPath(), flag.Name)
			}
			if flag.Value.Type() == "int" {
				require.NotContains(t, flag.Usage, "seconds", "%s --%s", cmd.CommandPath(), flag.Name)
			}
		})
	}
}

// A rate has one name everywhere, and also that of its field.
func TestRatesHaveOneName(t *testing.T) {
	t.Parallel()
	for _, path := range []string{"channel set", "group set", "endpoint set", "endpoint add", "webhook set"} {
		cmd, _, err := rootCommand().Find(strings.Fields(path))
		require.NoError(t, err)
		require.NoError(t, cmd.ParseFlags([]string{"--rate-rps", "2"}), path)
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
