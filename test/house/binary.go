package house

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
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// commandPatience bounds a command that is expected to end by itself.
const commandPatience = 2 * time.Minute

// built are the folders of the programs, once they are built.
var built struct {
	sync.Mutex
	folders []string
}

// atOnce is how many tests of houses run at once: they wait for leases and slots more than they work.
const atOnce = "6"

// Main runs the tests of a package and removes what they shared; it is what TestMain does.
func Main(m *testing.M) {
	defer leave()
	flag.Parse()
	if err := flag.Set("test.parallel", atOnce); err != nil {
		panic(err)
	}
	m.Run()
}

func leave() {
	built.Lock()
	defer built.Unlock()
	for _, folder := range built.folders {
		_ = os.RemoveAll(folder) // nothing is left to be told of it
	}
}

// ordinary and armed build the program once for this test process and return its
// path. The armed one dies at the point that AUTOPOST_CRASH names.
var (
	ordinary = sync.OnceValues(func() (string, error) { return build() })
	armed    = sync.OnceValues(func() (string, error) { return build("-tags", "crash") })
)

func build(flags ...string) (string, error) {
	_, here, _, ok := runtime.Caller(0)
	if !ok {
		return "", errors.New("the source of this package cannot be found")
	}
	root := filepath.Join(filepath.Dir(here), "..", "..")
	dir, err := os.MkdirTemp("", "autopost-binary-")
	if err != nil {
		return "", err
	}
	built.Lock()
	built.folders = append(built.folders, dir)
	built.Unlock()
	path := filepath.Join(dir, "autopost")
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	compile := exec.CommandContext(ctx, "go", slices.Concat([]string{"build"}, flags, []string{"-o", path, "./cmd/autopost"})...)
	compile.Dir = root
	if out, err := compile.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build the binary: %w\n%s", err, out)
	}
	return path, nil
}

// Result is what a command left behind.
type Result struct {
	Code   int
	Stdout string
	Stderr string
}

// Run runs a command of the binary to its end, in the house's environment with
// extra variables "NAME=value" on top.
func (h *House) Run(extra []string, args ...string) Result {
	h.t.Helper()
	return h.RunWithin(commandPatience, extra, args...)
}

// RunWithin is Run with a patience of the caller's.
func (h *House) RunWithin(patience time.Duration, extra []string, args ...string) Result {
	h.t.Helper()
	return h.runOn(nil, patience, extra, args, nil)
}

// RunOn is Run with something on standard input.
func (h *House) RunOn(stdin string, args ...string) Result {
	h.t.Helper()
	return h.runOn(strings.NewReader(stdin), commandPatience, nil, args, nil)
}

// RunTalking is Run with something on standard input, and with heard called for each
// line on standard error while the command runs, on a goroutine of its own.
func (h *House) RunTalking(extra []string, stdin string, heard func(line string), args ...string) Result {
	h.t.Helper()
	reader, writer := io.Pipe()
	done := make(chan struct{})
	go func() {
		defer close(done)
		for lines := bufio.NewScanner(reader); lines.Scan(); {
			heard(lines.Text())
		}
		_, _ = io.Copy(io.Discard, reader)
	}()
	result := h.runOn(strings.NewReader(stdin), commandPatience, extra, args, writer)
	_ = writer.Close()
	<-done
	return result
}

func (h *House) runOn(stdin io.Reader, patience time.Duration, extra, args []string, listener io.Writer) Result {
	h.t.Helper()
	ctx, cancel := context.WithTimeout(h.t.Context(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, h.binary, args...)
	var stdout, stderr bytes.Buffer
	cmd.Stdin = stdin
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = h.dir, append(h.environment(), extra...), &stdout, &stderr
	cmd.SysProcAttr = attributes()
	if listener != nil {
		cmd.Stderr = io.MultiWriter(&stderr, listener)
	}
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		require.NoError(h.t, err, "autopost %v", args)
	}
	require.NoError(h.t, ctx.Err(), "autopost %v did not end\n%s", args, stderr.String())
	h.keepsSecrets("autopost "+fmt.Sprint(args), stdout.String()+stderr.String())
	return Result{Code: cmd.ProcessState.ExitCode(), Stdout: stdout.String(), Stderr: stderr.String()}
}
