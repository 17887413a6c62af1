package house

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
	"time"

	"github.com/stretchr/testify/require"
)

const (
	startPatience = 30 * time.Second
	stopPatience  = 60 * time.Second
	// troubles is how many warnings and errors of its log a daemon's failure shows.
	troubles = 15
)

// Daemon is a running autopost serve.
type Daemon struct {
	// URL is where it listens.
	URL string

	h      *House
	cmd    *exec.Cmd
	log    *journal
	exited chan struct{}
}

// Serve starts the daemon with extra variables "NAME=value" and waits until it is
// ready. It is killed when the test ends, unless it ended before.
func (h *House) Serve(extra ...string) *Daemon {
	h.t.Helper()
	d := &Daemon{h: h, cmd: exec.Command(h.binary, "serve"), log: &journal{}, exited: make(chan struct{})} //nolint:noctx // Kill and Stop end it
	d.cmd.Dir, d.cmd.Env = h.dir, append(h.environment(), extra...)
	d.cmd.SysProcAttr = attributes()
	stderr, err := d.cmd.StderrPipe()
	require.NoError(h.t, err)
	require.NoError(h.t, d.cmd.Start())
	listening := make(chan string, 1)
	go d.follow(stderr, listening)
	h.t.Cleanup(d.end)
	select {
	case d.URL = <-listening:
	case <-d.exited:
		require.FailNow(h.t, "the daemon ended at once", d.log.troubles())
	case <-time.After(startPatience):
		require.FailNow(h.t, "the daemon did not start", d.log.troubles())
	}
	h.Until("the daemon is ready", startPatience, func() bool {
		answer, err := h.Get(d.URL+"/readyz", "")
		return err == nil && answer.Status == http.StatusOK
	})
	return d
}

// follow reads the daemon's log to its end, and announces where it listens.
func (d *Daemon) follow(stderr io.Reader, listening chan<- string) {
	defer close(d.exited)
	lines := bufio.NewScanner(stderr)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		d.log.add(lines.Text())
		var line struct{ Msg, Listen string }
		if json.Unmarshal(lines.Bytes(), &line) == nil && line.Msg == "daemon.started" {
			listening <- line.Listen
		}
	}
	_ = d.cmd.Wait() // the exit code is asked of the process's state
}

// Kill ends the daemon as a power cut does. It may be called from any goroutine.
func (d *Daemon) Kill() {
	_ = d.cmd.Process.Kill() // it may have ended already
	<-d.exited
}

// Stop asks the daemon to end, and returns its exit code.
func (d *Daemon) Stop() int {
	d.h.t.Helper()
	require.NoError(d.h.t, d.cmd.Process.Signal(syscall.SIGTERM))
	select {
	case <-d.exited:
	case <-time.After(stopPatience):
		require.FailNow(d.h.t, "the daemon did not stop", d.log.troubles())
	}
	return d.cmd.ProcessState.ExitCode()
}

// Died waits until the daemon has ended by itself, as it was told to by
// AUTOPOST_CRASH; false is that it did not within patience.
func (d *Daemon) Died(patience time.Duration) bool {
	select {
	case <-d.exited:
		return true
	case <-time.After(patience):
		return false
	}
}

// PID is the daemon's process.
func (d *Daemon) PID() int { return d.cmd.Process.Pid }

// Log is what the daemon has logged so far.
func (d *Daemon) Log() string { return d.log.whole() }

// end kills what still runs, and says what it was doing if the test failed.
func (d *Daemon) end() {
	d.Kill()
	d.h.keepsSecrets("the daemon", d.Log())
	if d.h.t.Failed() {
		d.h.t.Logf("warnings and errors of the daemon with pid %d:\n%s", d.cmd.Process.Pid, d.log.troubles())
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

func (j *journal) whole() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return strings.Join(j.lines, "\n")
}

// troubles are the newest lines that are more than information.
func (j *journal) troubles() string {
	lines := slices.DeleteFunc(strings.Split(j.whole(), "\n"), func(line string) bool {
		return strings.Contains(line, `"level":"INFO"`) || strings.Contains(line, `"level":"DEBUG"`)
	})
	return strings.Join(lines[max(0, len(lines)-troubles):], "\n")
}
