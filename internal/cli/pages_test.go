package cli

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"autopost/internal/testing/source"
)

var (
	// fenced is a block of a page with its language.
	fenced = regexp.MustCompile("(?ms)^```(\\w*)[^\n]*\n(.*?)^```$")
	// span is a command in the text of a page, which may continue in the next line.
	span = regexp.MustCompile("`(autopost [^`]+)`")
	// typed is a command in a line of a shell: at its start, in a list, in a subshell or after variables.
	typed = regexp.MustCompile(`(?:^|[|&(;]|\w+=\S+)\s*(autopost (?:'[^']*'|"[^"]*"|[^'"|&;)#]|\w#)*)`)
)

// Every command of a page exists with its flags. A command in a block of a shell is complete, too.
func TestPagesNameExistingCommands(t *testing.T) {
	t.Parallel()
	root, err := source.Root()
	require.NoError(t, err)
	var pages []string
	for _, pattern := range []string{"*.md", "docs/*.md", "docs/*/*.md"} {
		found, err := filepath.Glob(filepath.Join(root, pattern))
		require.NoError(t, err)
		pages = append(pages, found...)
	}
	commands := 0
	for _, page := range pages {
		text, err := os.ReadFile(page)
		require.NoError(t, err)
		for _, block := range fenced.FindAllStringSubmatch(string(text), -1) {
			if block[1] != "sh" && block[1] != "" {
				continue
			}
			for line := range strings.SplitSeq(strings.ReplaceAll(block[2], "\\\n", " "), "\n") {
				line, _, _ = strings.Cut(line, "  #")
				for _, found := range typed.FindAllStringSubmatch(line, -1) {
					checkCommand(t, filepath.Base(page), found[1], block[1] == "sh")
					commands++
				}
			}
		}
		for _, found := range span.FindAllStringSubmatch(fenced.ReplaceAllString(string(text), ""), -1) {
			checkCommand(t, filepath.Base(page), strings.Join(strings.Fields(found[1]), " "), false)
			commands++
		}
	}
	require.Greater(t, commands, 200)
}

// checkCommand reports a command line whose command or flags do not exist. A complete one also needs its arguments and
// its required flags.
func checkCommand(t *testing.T, page, line string, complete bool) {
	t.Helper()
	line = strings.TrimSuffix(strings.TrimSpace(line), "…")
	root := rootCommand()
	root.InitDefaultCompletionCmd()
	found, args, err := root.Find(shellWords(strings.ReplaceAll(line, "reason …", "reason WHY"))[1:])
	switch {
	case err != nil:
	case complete:
		if err = found.ParseFlags(args); err == nil {
			err = errors.Join(found.ValidateArgs(found.Flags().Args()), found.ValidateRequiredFlags())
		}
	case found.HasSubCommands() && !found.Runnable() && len(args) > 0 && !strings.HasPrefix(args[0], "-"):
		err = fmt.Errorf("there is no command %s", args[0])
	}
	for _, arg := range args {
		name, isFlag := strings.CutPrefix(arg, "--")
		name, _, _ = strings.Cut(name, "=")
		if err == nil && isFlag && name != "help" && name != "version" && found.Flags().Lookup(name) == nil && found.InheritedFlags().Lookup(name) == nil {
			err = fmt.Errorf("there is no flag --%s", name)
		}
	}
	if err != nil {
		t.Errorf("%s: %s: %v", page, line, err)
	}
}
