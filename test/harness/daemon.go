package harness

import (
	"bufio"
	"encoding/json"
	"io"
	"net/http"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"

	"github.com/stretchr/testify/require"

	"autopost/internal/testing/wait"
)

// shownWarnings is the number of warnings and errors of a daemon that a failed test shows.
const shownWarnings = 15

// Daemon is a running autopost serve.
type Daemon struct {
	// URL is the address of its listener.
	URL string

	h       *Harness
	cmd     *exec.Cmd
	log     *journal
	started chan struct{} // closed once URL is set
	exited  chan struct{}
}

// Serve starts a daemon with extra variables "NAME=value" and waits until it is ready. The end
// of the test kills it.
func (h *Harness) Serve(extra ...string) *Daemon {
	h.t.Helper()
	return h.serving(h.serve(nil, extra))
}

// ServeOnly is Serve for some stages, such as "ingest,web".
func (h *Harness) ServeOnly(stages string, extra ...string) *Daemon {
	h.t.Helper()
	return h.serving(h.serve([]string{"--only", stages}, extra))
}

func (h *Harness) serving(d *Daemon) *Daemon {
	h.t.Helper()
	if d.hasExited() {
		require.FailNow(h.t, "the daemon ended at once", d.log.warnings())
	}
	return d
}

// ServeUntilDeath is Serve for a daemon that a failpoint may stop before it is ready. Its URL is
// empty if it did not listen.
func (h *Harness) ServeUntilDeath(extra ...string) *Daemon {
	h.t.Helper()
	return h.serve(nil, extra)
}

func (h *Harness) serve(flags, extra []string) *Daemon {
	h.t.Helper()
	d := &Daemon{h: h, cmd: exec.Command(h.binary, append([]string{"serve"}, flags...)...), log: &journal{}, started: make(chan struct{}), exited: make(chan struct{})} //nolint:noctx // Kill and Stop end it
	d.cmd.Dir, d.cmd.Env = h.dir, append(h.environment(), extra...)
	d.cmd.SysProcAttr = attributes()
	stderr, err := d.cmd.StderrPipe()
	require.NoError(h.t, err)
	require.NoError(h.t, d.cmd.Start())
	go d.follow(stderr)
	h.t.Cleanup(d.end)
	h.Until("the daemon is ready", func() bool {
		if d.hasExited() {
			return true
		}
		select {
		case <-d.started:
		default:
			return false
		}
		answer, err := h.Get(d.URL+"/readyz", "")
		return err == nil && answer.Status == http.StatusOK
	})
	return d
}

// follow reads the log of the daemon to its end and closes started when the daemon listens.
func (d *Daemon) follow(stderr io.Reader) {
	defer close(d.exited)
	lines := bufio.NewScanner(stderr)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		d.log.add(lines.Text())
		var line struct{ Msg, Listen string }
		if json.Unmarshal(lines.Bytes(), &line) == nil && line.Msg == "daemon.started" {
			d.URL = line.Listen
			close(d.started)
		}
	}
	_ = d.cmd.Wait() // Stop reads the exit code from the state of the process
}

func (d *Daemon) hasExited() bool {
	select {
	case <-d.exited:
		return true
	default:
		return false
	}
}

// Kill ends the daemon as a power failure does. Any goroutine may call it.
func (d *Daemon) Kill() {
	_ = d.cmd.Process.Kill() // the process may have ended
	<-d.exited
}

// Stop sends SIGTERM, waits for the end of the daemon and returns its exit code.
func (d *Daemon) Stop() int {
	d.h.t.Helper()
	require.NoError(d.h.t, d.cmd.Process.Signal(syscall.SIGTERM))
	if !wait.Closed(d.exited) {
		require.FailNow(d.h.t, "the daemon did not stop", d.log.warnings())
	}
	return d.cmd.ProcessState.ExitCode()
}

// Died waits until the daemon has ended without a signal of the test, as AUTOPOST_FAILPOINT
// orders. It returns false after wait.Bound.
func (d *Daemon) Died() bool { return wait.Closed(d.exited) }

// PID returns the id of the process.
func (d *Daemon) PID() int { return d.cmd.Process.Pid }

// Log returns the lines that the daemon has logged until now.
func (d *Daemon) Log() string { return d.log.text() }

// end kills the daemon and shows its warnings if the test failed.
func (d *Daemon) end() {
	d.Kill()
	d.h.requireNoSecrets("the daemon", d.Log())
	if d.h.t.Failed() {
		d.h.t.Logf("warnings and errors of the daemon with pid %d:\n%s", d.cmd.Process.Pid, d.log.warnings())
	}
}

// journal keeps the lines of a log. It is safe for concurrent use.
type journal struct {
	mu    sync.Mutex
	lines []string
}

func (j *journal) add(line string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.lines = append(j.lines, line)
}

func (j *journal) text() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return strings.Join(j.lines, "\n")
}

// warnings returns the newest lines above the level INFO.
func (j *journal) warnings() string {
	lines := slices.DeleteFunc(strings.Split(j.text(), "\n"), func(line string) bool {
		return strings.Contains(line, `"level":"INFO"`) || strings.Contains(line, `"level":"DEBUG"`)
	})
	return strings.Join(lines[max(0, len(lines)-shownWarnings):], "\n")
}
