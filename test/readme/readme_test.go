package readme

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"autopost/internal/config"
	"autopost/internal/testing/port"
	"autopost/internal/testing/source"
	"autopost/internal/testing/wait"
)

// typedBlock is a block of commands or SQL in a page. A comment at the end of a command is its answer.
var typedBlock = regexp.MustCompile("(?ms)^```(sh|sql)\n(.*?)^```$")

// TestReadmeWorksAsTyped types every command of README.md, in order, into one shell, and then
// the page about psql. The machine has no data, no variable and no file of autopost. Only the
// two addresses change, so that tests can run side by side.
func TestReadmeWorksAsTyped(t *testing.T) {
	t.Parallel()
	root, err := source.Root()
	require.NoError(t, err)
	page, err := os.ReadFile(filepath.Join(root, "README.md"))
	require.NoError(t, err)
	simulators := port.Free(t)
	sh := openShell(t, root, "AUTOPOST_LISTEN="+port.Free(t))
	psql, err := os.ReadFile(filepath.Join(root, "docs", "operate", "psql.md"))
	require.NoError(t, err)
	for n, block := range typedBlock.FindAllStringSubmatch(string(page)+string(psql), -1) {
		if n == 1 { // the demo keeps its data only in a folder that is named
			sh.types(`export AUTOPOST_DATA_DIR="$TEST_DATA_DIR"`, "")
		}
		if block[1] == "sql" {
			sh.types("psql -v ON_ERROR_STOP=1 <<'END'\n"+block[2]+"END", "")
			continue
		}
		for line := range strings.Lines(block[2]) {
			command, answer, _ := strings.Cut(strings.TrimSpace(line), "  # ")
			command = strings.TrimSpace(command)
			command = strings.ReplaceAll(command, "(autopost-sim &", "(autopost-sim --listen "+simulators+" &")
			command = strings.ReplaceAll(command, "127.0.0.1:9090", simulators)
			if strings.HasSuffix(command, "&") {
				sh.starts(command, strings.TrimSpace(answer))
				continue
			}
			sh.types(command, strings.TrimSpace(answer))
		}
	}
	printed := withoutFigures(sh.log.String())
	for line := range strings.Lines(withoutFigures(string(demoBlock.FindSubmatch(page)[1]))) {
		require.Contains(t, printed, strings.TrimSpace(line), "README.md shows a line that make demo does not print")
	}
}

var (
	// demoBlock is the part of a page that shows the output of the demo.
	demoBlock = regexp.MustCompile("(?ms)^```text\n(.*?)^```$")
	figures   = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f-]{27}|\d+(?:\.\d+)?`)
)

// withoutFigures replaces ids and numbers, which differ from run to run.
func withoutFigures(text string) string { return figures.ReplaceAllString(text, "N") }

// plainEnvironment is the environment without any variable of autopost.
func plainEnvironment() []string {
	return slices.DeleteFunc(os.Environ(), func(variable string) bool {
		name, _, _ := strings.Cut(variable, "=")
		return strings.HasPrefix(name, "AUTOPOST_") || slices.ContainsFunc(config.Variables(), func(v config.Variable) bool { return v.Name == name })
	})
}

// shell is one running bash, as a reader of a page has it.
type shell struct {
	t     *testing.T
	in    io.Writer
	lines *bufio.Scanner
	log   *strings.Builder
	typed int
}

func openShell(t *testing.T, dir string, variables ...string) *shell {
	t.Helper()
	home, err := os.MkdirTemp("", "autopost-readme-")
	require.NoError(t, err)
	require.NoError(t, os.Chmod(home, 0o711)) // the user of PostgreSQL must reach its data
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(home)) })
	bash := exec.Command("bash") // the cleanup ends it after its children
	bash.Dir = dir
	bash.Env = append(plainEnvironment(), "TEST_DATA_DIR="+filepath.Join(home, "data"))
	bash.Env = append(bash.Env, variables...)
	bash.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	in, err := bash.StdinPipe()
	require.NoError(t, err)
	out, err := bash.StdoutPipe()
	require.NoError(t, err)
	bash.Stderr = bash.Stdout
	require.NoError(t, bash.Start())
	t.Cleanup(func() {
		// The group has what the page left running: the daemon and the simulators.
		_ = syscall.Kill(-bash.Process.Pid, syscall.SIGTERM)
		_, _ = io.Copy(io.Discard, out) // ends when the last of them has ended
		_ = bash.Wait()
	})
	return &shell{t: t, in: in, lines: bufio.NewScanner(out), log: &strings.Builder{}}
}

// types enters a command and waits for its end. A command whose answer is not there yet is
// typed again: a person would look once more, too.
func (s *shell) types(command, answer string) {
	s.t.Helper()
	wait.Until(s.t, command+" answers "+answer, func() bool {
		s.typed++
		mark := fmt.Sprintf("@@%d", s.typed)
		_, err := fmt.Fprintf(s.in, "%s\necho \"%s $?\"\n", command, mark)
		require.NoError(s.t, err)
		var output strings.Builder
		for s.lines.Scan() {
			if code, ended := strings.CutPrefix(s.lines.Text(), mark+" "); ended {
				s.log.WriteString(output.String())
				require.Equal(s.t, "0", code, "%s\n%s", command, output.String())
				return strings.Contains(output.String(), answer)
			}
			output.WriteString(s.lines.Text() + "\n")
		}
		require.FailNow(s.t, "the shell ended", "%s\n%s", command, output.String())
		return false
	})
}

// starts enters a command that stays in the background and waits until it prints the answer.
func (s *shell) starts(command, answer string) {
	s.t.Helper()
	_, err := fmt.Fprintln(s.in, command)
	require.NoError(s.t, err)
	for s.lines.Scan() {
		if strings.Contains(s.lines.Text(), answer) {
			return
		}
	}
	require.FailNow(s.t, "the shell ended", command)
}
