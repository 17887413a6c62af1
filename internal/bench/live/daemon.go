package live

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const (
	startPatience = 30 * time.Second
	stopPatience  = 60 * time.Second
	lookAgain     = 10 * time.Millisecond
)

// asker asks whether a daemon is ready.
var asker = &http.Client{Timeout: 5 * time.Second}

// Options say what a daemon is to run on.
type Options struct {
	// Program is the path of the binary.
	Program string
	// DatabaseURL is migrated.
	DatabaseURL string
	// PlatformURL is where Telegram is.
	PlatformURL string
	// Env are further variables, NAME=value.
	Env []string
}

// Daemon is a running autopost serve.
type Daemon struct {
	// URL is where it listens.
	URL string

	cmd    *exec.Cmd
	dir    string
	exited chan error
}

// Start starts a daemon and waits until it is ready. Stop it.
func Start(ctx context.Context, o Options) (d *Daemon, err error) {
	address, err := freeAddress(ctx)
	if err != nil {
		return nil, err
	}
	d = &Daemon{URL: "http://" + address, exited: make(chan error, 1)}
	if d.dir, err = os.MkdirTemp("", "autopost-live-"); err != nil {
		return nil, err
	}
	log, err := os.Create(d.logFile())
	if err != nil {
		return nil, err
	}
	defer log.Close()                        //nolint:errcheck // the process has its own
	d.cmd = exec.Command(o.Program, "serve") //nolint:noctx // Stop ends it
	d.cmd.Stderr = log
	d.cmd.Env = append([]string{
		"DATABASE_URL=" + o.DatabaseURL, "AUTOPOST_MIGRATE=never", "AUTOPOST_DATA_DIR=" + d.dir, "AUTOPOST_LISTEN=" + address,
		"AUTOPOST_TELEGRAM_API_URL=" + o.PlatformURL,
	}, o.Env...)
	if err := d.cmd.Start(); err != nil {
		return nil, errors.Join(err, os.RemoveAll(d.dir))
	}
	go func() { d.exited <- d.cmd.Wait() }()
	if err := d.untilReady(ctx); err != nil {
		return nil, errors.Join(err, d.Stop())
	}
	return d, nil
}

func (d *Daemon) logFile() string { return filepath.Join(d.dir, "daemon.log") }

func freeAddress(ctx context.Context) (string, error) {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return listener.Addr().String(), listener.Close()
}

func (d *Daemon) untilReady(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startPatience)
	defer cancel()
	for {
		if d.ready(ctx) {
			return nil
		}
		select {
		case err := <-d.exited:
			d.exited <- err
			return fmt.Errorf("the daemon ended at once: %w: %s", err, d.lastWords())
		case <-ctx.Done():
			return fmt.Errorf("the daemon did not get ready: %s", d.lastWords())
		case <-time.After(lookAgain):
		}
	}
}

func (d *Daemon) ready(ctx context.Context) bool {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, d.URL+"/readyz", nil)
	if err != nil {
		return false
	}
	answer, err := asker.Do(req)
	if err != nil {
		return false
	}
	_, _ = io.Copy(io.Discard, answer.Body)
	_ = answer.Body.Close()
	return answer.StatusCode == http.StatusOK
}

// lastWords is the end of the log.
func (d *Daemon) lastWords() string {
	log, err := os.ReadFile(d.logFile())
	if err != nil {
		return err.Error()
	}
	return string(log[max(0, len(log)-2000):])
}

// Stop asks the daemon to end, and waits until it has drained.
func (d *Daemon) Stop() error {
	_ = d.cmd.Process.Signal(syscall.SIGTERM) // it may have ended already
	var err error
	select {
	case err = <-d.exited:
	case <-time.After(stopPatience):
		err = errors.Join(errors.New("the daemon did not stop"), d.cmd.Process.Kill())
	}
	if err != nil {
		err = fmt.Errorf("%w: %s", err, d.lastWords())
	}
	return errors.Join(err, os.RemoveAll(d.dir))
}

// Usage is what a daemon takes.
type Usage struct {
	// Processor is its time so far.
	Processor time.Duration
	// Own is the memory that it holds, in bytes; Program are the pages of its file beside that.
	Own, Program int64
}

// Usage asks the kernel. Linux alone tells.
func (d *Daemon) Usage() (Usage, error) {
	times, err := TimesOf(d.cmd.Process.Pid)
	if err != nil {
		return Usage{}, err
	}
	memory, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", d.cmd.Process.Pid))
	if err != nil {
		return Usage{}, err
	}
	pages := strings.Fields(string(memory)) // size, resident, shared (of files), …
	if len(pages) < 3 {
		return Usage{}, fmt.Errorf("/proc/%d/statm tells less than expected", d.cmd.Process.Pid)
	}
	resident, err := strconv.ParseInt(pages[1], 10, 64)
	if err != nil {
		return Usage{}, err
	}
	shared, err := strconv.ParseInt(pages[2], 10, 64)
	if err != nil {
		return Usage{}, err
	}
	page := int64(os.Getpagesize())
	return Usage{Processor: times.Own, Own: (resident - shared) * page, Program: shared * page}, nil
}

// Processors is how long the processors of the machine have been idle, and how long
// they have been there, in ticks. Linux alone tells.
func Processors() (idle, all float64, err error) {
	stat, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0, 0, err
	}
	line, _, _ := strings.Cut(string(stat), "\n")
	// cpu, user, nice, system, idle, iowait, …
	for i, text := range strings.Fields(line) {
		if i == 0 {
			continue
		}
		ticks, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return 0, 0, err
		}
		if all += ticks; i == 4 || i == 5 {
			idle += ticks
		}
	}
	return idle, all, nil
}
