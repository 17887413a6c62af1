package harness

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"autopost/internal/testing/source"
	"autopost/internal/testing/wait"
)

// binFolder names the variable with the folder of the programs that make test builds once for
// all packages: autopost and autopost-failpoint. Without it each test process builds its own.
const binFolder = "AUTOPOST_TEST_BIN"

// parallel is the number of tests that run at once. They wait for leases and slots more than they compute.
const parallel = "8"

// built lists the folders of the programs that this process has built.
var built struct {
	sync.Mutex
	folders []string
}

// Main runs the tests of a package from its TestMain, then removes the programs that they built.
func Main(m *testing.M) {
	defer removeBuilt()
	flag.Parse()
	if err := flag.Set("test.parallel", parallel); err != nil {
		panic(err)
	}
	m.Run()
}

func removeBuilt() {
	built.Lock()
	defer built.Unlock()
	for _, folder := range built.folders {
		_ = os.RemoveAll(folder) // a folder that remains in the temporary directory does no harm
	}
}

// ordinary and withFailpoints return the path of a program. The second one stops at the
// failpoint that AUTOPOST_FAILPOINT names.
var (
	ordinary       = sync.OnceValues(func() (string, error) { return prebuilt("autopost") })
	withFailpoints = sync.OnceValues(func() (string, error) { return prebuilt("autopost-failpoint", "-tags", "failpoint") })
)

// prebuilt returns the program in the folder of binFolder, or builds it with the flags.
func prebuilt(name string, flags ...string) (string, error) {
	folder := os.Getenv(binFolder)
	if folder == "" {
		return build(flags...)
	}
	path := filepath.Join(folder, name)
	// The go command sees this call: a cached test result is void once the program changes.
	if _, err := os.Stat(path); err != nil {
		return "", fmt.Errorf("%s is set, but the program is missing (make test builds it): %w", binFolder, err)
	}
	return path, nil
}

func build(flags ...string) (string, error) {
	root, err := source.Root()
	if err != nil {
		return "", err
	}
	dir, err := os.MkdirTemp("", "autopost-binary-")
	if err != nil {
		return "", err
	}
	built.Lock()
	built.folders = append(built.folders, dir)
	built.Unlock()
	path := filepath.Join(dir, "autopost")
	compile := exec.Command("go", slices.Concat([]string{"build"}, flags, []string{"-o", path, "./cmd/autopost"})...) //nolint:noctx // it ends without help
	compile.Dir = root
	if out, err := compile.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build the binary: %w\n%s", err, out)
	}
	return path, nil
}

// Result is the exit code and the output of a command.
type Result struct {
	Code   int
	Stdout string
	Stderr string
	// Anonymous is the most private memory that was seen, in bytes; 0 if the kernel does not show it.
	Anonymous int64
}

// Run runs a command of the program and waits for its end. The extra variables "NAME=value"
// replace those of the harness.
func (h *Harness) Run(extra []string, args ...string) Result {
	h.t.Helper()
	return h.run(nil, extra, args, nil)
}

// Binary is the path of the program.
func (h *Harness) Binary() string { return h.binary }

// RunWithInput is Run with a text on standard input.
func (h *Harness) RunWithInput(stdin string, args ...string) Result {
	h.t.Helper()
	return h.run(strings.NewReader(stdin), nil, args, nil)
}

// RunInteractive is Run with a text on standard input. While the command runs, it calls onLine
// for each line on standard error, on another goroutine.
func (h *Harness) RunInteractive(extra []string, stdin string, onLine func(line string), args ...string) Result {
	h.t.Helper()
	reader, writer := io.Pipe()
	done := make(chan struct{})
	go func() {
		defer close(done)
		for lines := bufio.NewScanner(reader); lines.Scan(); {
			onLine(lines.Text())
		}
		_, _ = io.Copy(io.Discard, reader)
	}()
	result := h.run(strings.NewReader(stdin), extra, args, writer)
	_ = writer.Close()
	<-done
	return result
}

func (h *Harness) run(stdin io.Reader, extra, args []string, listener io.Writer) Result {
	h.t.Helper()
	ctx, cancel := context.WithTimeout(h.t.Context(), wait.Bound)
	defer cancel()
	cmd := exec.CommandContext(ctx, h.binary, args...)
	var stdout, stderr bytes.Buffer
	cmd.Stdin = stdin
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = h.dir, append(h.environment(), extra...), &stdout, &stderr
	cmd.SysProcAttr = attributes()
	if listener != nil {
		cmd.Stderr = io.MultiWriter(&stderr, listener)
	}
	require.NoError(h.t, cmd.Start())
	memory := WatchMemory(cmd.Process.Pid)
	err := cmd.Wait()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		require.NoError(h.t, err, "autopost %v", args)
	}
	require.NoError(h.t, ctx.Err(), "autopost %v did not end\n%s", args, stderr.String())
	h.requireNoSecrets("autopost "+fmt.Sprint(args), stdout.String()+stderr.String())
	return Result{Code: cmd.ProcessState.ExitCode(), Stdout: stdout.String(), Stderr: stderr.String(), Anonymous: memory.End()}
}
